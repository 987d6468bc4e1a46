# ruff: noqa: E501, F821
# %% wrong: the last uneven columns are forgotten
# says: are left out: they are in no part
#-    parts = []
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#+    n = plan.num_devices
#+    size = A.shape[1] // n
#+    parts = []
#+    for device in range(n):
#-        for k in share:
#+        for k in range(device * size, (device + 1) * size):

# %% wrong: parts are added, whatever plus is
# says: The plus of this semiring is minimum
#-    plan.run(parts, op=plus)
#+    plan.run(parts)

# %% wrong: parts begin with 0, whatever zero is
# says: 0 everywhere
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#+        part = np.full((A.shape[0], B.shape[1]), 0.0)

# %% wrong: every device does everything
# says: counted 3 times, by device 0 and 1 and 2
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#+    for share in [range(A.shape[1])] * plan.num_devices:

# %% wrong: device 0 does everything
# says: device 0 does 6 of the 6
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#+    for share in [range(A.shape[1])] + [[]] * (plan.num_devices - 1):

# %% wrong: the last device takes all that is left over
# says: The target is 2 at most
#-    parts = []
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#+    n, K = plan.num_devices, A.shape[1]
#+    parts = []
#+    for device in range(n):
#-        for k in share:
#+        end = K if device == n - 1 else (device + 1) * (K // n)
#+        for k in range(device * (K // n), end):

# %% wrong: no device is given anything to do
# says: plan.run was called 0 times
#-    parts = []
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#-        for k in share:
#-            part = plus(part, times(A[:, [k]], B[[k], :]))
#-        parts.append(part)
#-    plan.run(parts, op=plus)
#-    return parts[0]
#+    return plus.reduce(times(A[:, :, None], B), axis=1)

# %% wrong: the first part is returned as it was
# says: what you return is something else
#-        parts.append(part)
#+        parts.append(part)
#+    first = parts[0].copy()
#-    return parts[0]
#+    return first

# %% wrong: a call of plan.run for each k
# says: plan.run was called
#-    parts = []
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#-        for k in share:
#-            part = plus(part, times(A[:, [k]], B[[k], :]))
#-        parts.append(part)
#-    plan.run(parts, op=plus)
#-    return parts[0]
#+    C = np.full((A.shape[0], B.shape[1]), zero)
#+    for k in range(A.shape[1]):
#+        parts = [np.full(C.shape, zero) for _ in range(plan.num_devices)]
#+        parts[k % len(parts)] = times(A[:, [k]], B[[k], :])
#+        plan.run(parts, op=plus)
#+        C = plus(C, parts[0])
#+    return C

# %% wrong: times is always the product of numbers
# says: do not make the product
#-            part = plus(part, times(A[:, [k]], B[[k], :]))
#+            part = plus(part, A[:, [k]] * B[[k], :])

# %% right: every n-th column
def spread_product(A, B, plus, times, zero, plan):
    n = plan.num_devices
    parts = np.full((n, len(A), B.shape[1]), zero)
    for k in range(A.shape[1]):
        parts[k % n] = plus(parts[k % n], np.array(
            [[times(a, b) for b in B[k]] for a in A[:, k]]))
    parts = [part.copy() for part in parts]
    plan.run(parts, plus)
    return parts[-1].tolist()


# %% right: with reduce
#-    parts = []
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#-        for k in share:
#-            part = plus(part, times(A[:, [k]], B[[k], :]))
#-        parts.append(part)
#+    parts = [plus.reduce(times(a[:, :, None], b[None]), axis=1, initial=zero)
#+             for a, b in zip(np.array_split(A + 0., plan.num_devices, axis=1),
#+                             np.array_split(B, plan.num_devices))]

# %% wrong: no room for a device without work
# says: zero-size array
#-    parts = []
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#-        for k in share:
#-            part = plus(part, times(A[:, [k]], B[[k], :]))
#-        parts.append(part)
#+    parts = [plus.reduce(times(A[:, k, None], B[None, k, :]), axis=1)
#+             for k in np.array_split(np.arange(A.shape[1]), plan.num_devices)]

# %% wrong: the product of the transposed
# says: the product must be an array of shape (3, 4)
#-    return parts[0]
#+    return parts[0].T

# %% wrong: parts as long as a row
# says: a part as large as the product
#-        parts.append(part)
#+        parts.append(part[0])
#-    return parts[0]
#+    return np.array([parts[0]] * 3)

# %% wrong: times is called the other way round
# says: the order counts
#-            part = plus(part, times(A[:, [k]], B[[k], :]))
#+            part = plus(part, times(B[[k], :], A[:, [k]]))

# %% wrong: A is overwritten in the end
# says: A or B is another
#-    return parts[0]
#+    A[:] = 0
#+    return parts[0]

# %% wrong: parts of whole numbers
# says: need float64
#-            part = plus(part, times(A[:, [k]], B[[k], :]))
#+            part = plus(part, times(A[:, [k]], B[[k], :]))
#+        part = part.astype('int32')

# %% wrong: a large number in place of infinity
# says: the parts of the devices do not make the product, put together with minimum
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#+        part = np.full((A.shape[0], B.shape[1]), min(zero, 1e6))

# %% wrong: parts begin with 1
# says: too large by 1
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#+        part = np.ones((A.shape[0], B.shape[1]))

# %% wrong: single precision
# says: They are of type float32
#-            part = plus(part, times(A[:, [k]], B[[k], :]))
#+            part = plus(part, times(A[:, [k]], B[[k], :])).astype('float32')
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#+        part = np.full((A.shape[0], B.shape[1]), zero, dtype='float32')

# %% wrong: a part has the type of A
# says: the parts of the devices do not make the product. They are of type int64
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#+        part = np.full((A.shape[0], B.shape[1]), zero, dtype=A.dtype)

# %% wrong: with reduce, in whole numbers
# says: infinity and numbers with a point need float64
#-    parts = []
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#-        for k in share:
#-            part = plus(part, times(A[:, [k]], B[[k], :]))
#-        parts.append(part)
#+    parts = [plus.reduce(times(a[:, :, None], b[None]), axis=1, initial=zero)
#+             for a, b in zip(np.array_split(A, plan.num_devices, axis=1),
#+                             np.array_split(B, plan.num_devices))]

