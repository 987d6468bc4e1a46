# ruff: noqa: F811
# %% wrong: everything on device 0
# loses: time
def sum_in_parts(data):
    first, *others = data
    for other in others:
        first += other.as_in_ctx(first.ctx)
    for other in others:
        first.copyto(other)


# %% wrong: the flat copies are not written back
# loses: sum
#-    for array, summed in zip(data, flat):
#-        array[:] = summed.reshape(array.shape)


# %% wrong: the last device takes all that is left over
# loses: time
#-    cuts = [len(flat[0]) * i // k for i in range(k + 1)]
#+    cuts = [len(flat[0]) // k * i for i in range(k)] + [len(flat[0])]


# %% wrong: a whole array to the device whose number its size has
# loses: time
def sum_in_parts(data):
    total, *others = sorted(data, key=lambda one: one.ctx != one.size % 4)
    for other in others:
        total += other.as_in_ctx(total.ctx)
    for other in others:
        other[:] = total.as_in_ctx(other.ctx)


# %% wrong: written past the arrays
# loses: sum, time
def sum_in_parts(data):
    total = sum(array.data for array in data)
    for array in data:
        array.data[:] = total


# %% wrong: added without copies, which are made for show
# loses: sum, time
def sum_in_parts(data):
    total = sum(array.data for array in data)
    size = data[0].size // len(data)
    for array in data:
        array[:] = total
        for other in data:
            for _ in range(2):
                array.reshape(-1)[:size].as_in_ctx(other.ctx)


# %% right: a ring, chunk by chunk
def sum_in_parts(data):
    k = len(data)
    flat = [array.reshape(-1) for array in data]
    cuts = [flat[0].size * i // k for i in range(k + 1)]

    def chunk(device, i):
        return flat[device % k][cuts[i % k]:cuts[i % k + 1]]

    for step in range(k - 1):
        for device in range(k):
            to = chunk(device + 1, device - step)
            to += chunk(device, device - step).as_in_ctx(to.ctx)
    for step in range(k - 1):
        for device in range(k):
            to = chunk(device + 1, device + 1 - step)
            to[:] = chunk(device, device + 1 - step).as_in_ctx(to.ctx)
    for device in range(k):
        data[device][:] = flat[device].reshape(data[device].shape)
