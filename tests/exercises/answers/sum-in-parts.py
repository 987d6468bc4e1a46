# ruff: noqa: F811
# %% wrong: everything on device 0
# says: All messages go into or out of device 0
def sum_in_parts(data):
    first, *others = data
    for other in others:
        first += other.as_in_ctx(first.ctx)
    for other in others:
        first.copyto(other)


# %% wrong: numbers that are left over are forgotten
# says: are on all devices what they were: nobody has summed them
#-    cuts = [len(flat[0]) * i // k for i in range(k + 1)]
#+    cuts = [len(flat[0]) // k * i for i in range(k + 1)]

# %% wrong: the flat copies are not written back
# says: What reshape returns is a copy
#-    for array, summed in zip(data, flat):
#-        array[:] = summed.reshape(array.shape)

# %% wrong: the device that sums counts twice
# says: is counted 2 times
#-        total = chunks.pop(i)
#+        total = chunks[i].copy()

# %% wrong: new arrays in the list instead of the sum in place
# says: it still has its own gradient alone
#-    for array, summed in zip(data, flat):
#-        array[:] = summed.reshape(array.shape)
#+    for i, summed in enumerate(flat):
#+        data[i] = summed.reshape(data[i].shape)

# %% wrong: the sum is not sent back
# says: it still has its own gradient alone
#-        for chunk in chunks:
#-            chunk[:] = total.as_in_ctx(chunk.ctx)

# %% wrong: the mean
# says: it has the mean
#-        for chunk in chunks:
#-            chunk[:] = total.as_in_ctx(chunk.ctx)
#+        total /= k
#+        for chunk in chunks:
#+            chunk[:] = total.as_in_ctx(chunk.ctx)

# %% wrong: added without a copy
# says: Copy it to this device first
#-            total += chunk.as_in_ctx(total.ctx)
#+            total += chunk

# %% wrong: every device sums everything for itself
# says: Cut first, then copy
def sum_in_parts(data):
    totals = [sum(array.as_in_ctx(mine.ctx) for array in data)
              for mine in data]
    for mine, total in zip(data, totals):
        mine[:] = total


# %% wrong: whole arrays are copied, and then cut
# says: Cut first, then copy
def sum_in_parts(data):
    k = len(data)
    flat = [array.reshape(-1) for array in data]
    cuts = [len(flat[0]) * i // k for i in range(k + 1)]
    for i in range(k):
        part = slice(cuts[i], cuts[i + 1])
        for d in range(k):
            if d != i:
                flat[i][part] += flat[d].as_in_ctx(flat[i].ctx)[part]
        for d in range(k):
            if d != i:
                flat[d][part] = flat[i].as_in_ctx(flat[d].ctx)[part]
    for array, summed in zip(data, flat):
        array[:] = summed.reshape(array.shape)


# %% wrong: told to the others before all is added
# says: gradient of device
#-            total += chunk.as_in_ctx(total.ctx)
#-        for chunk in chunks:
#+            total += chunk.as_in_ctx(total.ctx)

# %% wrong: the last device takes all that is left over
# says: as evenly as can be
#-    cuts = [len(flat[0]) * i // k for i in range(k + 1)]
#+    cuts = [len(flat[0]) // k * i for i in range(k)] + [len(flat[0])]

# %% wrong: rows are cut, not numbers
# says: as evenly as can be
def sum_in_parts(data):
    k = len(data)
    cuts = [len(data[0]) * i // k for i in range(k + 1)]
    for i in range(k):
        chunks = [array[cuts[i]:cuts[i + 1]] for array in data]
        total = chunks.pop(i)
        for chunk in chunks:
            total += chunk.as_in_ctx(total.ctx)
        for chunk in chunks:
            chunk[:] = total.as_in_ctx(chunk.ctx)


# %% wrong: a whole array to the device whose number its size has
# says: All messages go into or out of device
def sum_in_parts(data):
    total, *others = sorted(data, key=lambda one: one.ctx != one.size % 4)
    for other in others:
        total += other.as_in_ctx(total.ctx)
    for other in others:
        other[:] = total.as_in_ctx(other.ctx)


# %% wrong: one number too few in each chunk
# says: are on all devices what they were
#-        chunks = [array[cuts[i]:cuts[i + 1]] for array in flat]
#+        chunks = [array[cuts[i]:cuts[i + 1] - 1] for array in flat]

# %% wrong: written past the arrays
# says: only 0 MB were copied
def sum_in_parts(data):
    total = sum(array.data for array in data)
    for array in data:
        array.data[:] = total


# %% wrong: the messages are thrown away
# says: no way needs less than
def sum_in_parts(data):
    first, *others = data
    for other in others:
        first += other.as_in_ctx(first.ctx)
    for other in others:
        first.copyto(other)
    data[0].log.clear()


# %% wrong: added and sent back without any copy
# says: what travels to be summed takes 0 ms
def sum_in_parts(data):
    total = sum(array.data for array in data)
    for array in data:
        array[:] = total


# %% right: the other way round, with copies
def sum_in_parts(data):
    k, size = len(data), data[0].size
    flat = [array.reshape(-1) for array in data]
    for i in range(k):
        part = slice(-(-size * i // k), -(-size * (i + 1) // k))
        place = data[k - 1 - i].ctx
        total = sum(array[part].copyto(place) for array in flat)
        for array in flat:
            array[part] = total.as_in_ctx(array.ctx)
    for array, summed in zip(data, flat):
        array[:] = summed.reshape(*array.shape)


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


# %% wrong: added without copies, which are made for show
# says: what travels to be summed takes 0 ms
def sum_in_parts(data):
    total = sum(array.data for array in data)
    size = data[0].size // len(data)
    for array in data:
        array[:] = total
        for other in data:
            for _ in range(2):
                array.reshape(-1)[:size].as_in_ctx(other.ctx)
