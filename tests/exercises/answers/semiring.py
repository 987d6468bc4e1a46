# ruff: noqa: F821
# %% wrong: the last uneven columns are forgotten
# loses: shares, product
#-    parts = []
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#+    n = plan.num_devices
#+    size = A.shape[1] // n
#+    parts = []
#+    for device in range(n):
#-        for k in share:
#+        for k in range(device * size, (device + 1) * size):


# %% wrong: parts are added, whatever plus is
# loses: product
#-    plan.run(parts, op=plus)
#+    plan.run(parts)


# %% wrong: device 0 does everything
# loses: shares
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#+    for share in [range(A.shape[1])] + [[]] * (plan.num_devices - 1):


# %% wrong: no device is given anything to do
# loses: shares, product
#-    parts = []
#-    for share in np.array_split(np.arange(A.shape[1]), plan.num_devices):
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#-        for k in share:
#-            part = plus(part, times(A[:, [k]], B[[k], :]))
#-        parts.append(part)
#-    plan.run(parts, op=plus)
#-    return parts[0]
#+    return plus.reduce(times(A[:, :, None], B), axis=1)


# %% wrong: a large number in place of infinity
# loses: product
#-        part = np.full((A.shape[0], B.shape[1]), zero)
#+        part = np.full((A.shape[0], B.shape[1]), min(zero, 1e6))


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
