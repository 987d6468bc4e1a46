# ruff: noqa: F811
# %% wrong: everything on device 0
# says: All messages go into or out of device 0
def sum_in_parts(device_grads):
    for first, *others in zip(*device_grads):
        for other in others:
            first += other.as_in_ctx(first.ctx)
        for other in others:
            first.copyto(other)


# %% wrong: the device that sums counts twice
# says: is counted 2 times
def sum_in_parts(device_grads):
    k = len(device_grads)
    for j, copies in enumerate(zip(*device_grads)):
        total = copies[j % k].copy()
        for copy in copies:
            total += copy.as_in_ctx(total.ctx)
        for copy in copies:
            copy[:] = total.as_in_ctx(copy.ctx)


# %% wrong: parameters that are left over are forgotten
# says: it is what it was, on all devices
def sum_in_parts(device_grads):
    k = len(device_grads)
    share = len(device_grads[0]) // k
    for owner in range(k):
        for j in range(owner * share, (owner + 1) * share):
            total = device_grads[owner][j]
            others = [row[j] for i, row in enumerate(device_grads)
                      if i != owner]
            for other in others:
                total += other.as_in_ctx(total.ctx)
            for other in others:
                other[:] = total.as_in_ctx(other.ctx)


# %% wrong: a new array in the list instead of the sum in place
# says: it still has its own gradient alone
def sum_in_parts(device_grads):
    k = len(device_grads)
    for j in range(len(device_grads[0])):
        total = device_grads[j % k][j]
        for i in range(k):
            if i != j % k:
                total = total + device_grads[i][j].as_in_ctx(total.ctx)
        for row in device_grads:
            row[j] = total.as_in_ctx(row[j].ctx)


# %% wrong: the sum is not sent back
# says: it still has its own gradient alone
def sum_in_parts(device_grads):
    k = len(device_grads)
    for j, copies in enumerate(zip(*device_grads)):
        for i, copy in enumerate(copies):
            if i != j % k:
                copies[j % k][:] += copy.as_in_ctx(copies[j % k].ctx)


# %% wrong: the mean
# says: it has the mean
def sum_in_parts(device_grads):
    k = len(device_grads)
    for j, copies in enumerate(zip(*device_grads)):
        total = copies[j % k]
        for i, copy in enumerate(copies):
            if i != j % k:
                total += copy.as_in_ctx(total.ctx)
        total /= k
        for copy in copies:
            copy[:] = total.as_in_ctx(copy.ctx)


# %% wrong: added without a copy
# says: Copy it to this device first
def sum_in_parts(device_grads):
    k = len(device_grads)
    for j, copies in enumerate(zip(*device_grads)):
        for i, copy in enumerate(copies):
            if i != j % k:
                copies[j % k][:] += copy


# %% wrong: every device sums everything for itself
# says: every gradient should go only to where it is summed
def sum_in_parts(device_grads):
    for copies in zip(*device_grads):
        totals = [sum(copy.as_in_ctx(mine.ctx) for copy in copies)
                  for mine in copies]
        for mine, total in zip(copies, totals):
            mine[:] = total


# %% wrong: summed on the next device, told to the others one by one
# says: gradient of device
def sum_in_parts(device_grads):
    k = len(device_grads)
    for j, copies in enumerate(zip(*device_grads)):
        total = copies[j % k]
        for i, copy in enumerate(copies):
            if i != j % k:
                total += copy.as_in_ctx(total.ctx)
                copy[:] = total.as_in_ctx(copy.ctx)


# %% right: the other way round, with copies
def sum_in_parts(device_grads):
    k = len(device_grads)
    for j in range(len(device_grads[0])):
        owner = (k - 1 - j) % k
        place = device_grads[owner][j].ctx
        total = sum(row[j].copyto(place) for row in device_grads)
        for row in device_grads:
            total.copyto(row[j])


# %% right: arrays are cut into a piece for each device
def sum_in_parts(device_grads):
    k = len(device_grads)
    for copies in zip(*device_grads):
        flat = [copy.reshape(-1) for copy in copies]
        cuts = [len(flat[0]) * i // k for i in range(k + 1)]
        for i in range(k):
            pieces = [one[cuts[i]:cuts[i + 1]] for one in flat]
            for d in range(k):
                if d != i:
                    pieces[i] += pieces[d].as_in_ctx(pieces[i].ctx)
            for d in range(k):
                if d != i:
                    pieces[d][:] = pieces[i].as_in_ctx(pieces[d].ctx)


# %% wrong: on device 0, if sizes differ
# says: the target is
#-    for j, copies in enumerate(zip(*device_grads)):
#+    sizes = {one.size for one in device_grads[0]}
#+    for j, copies in enumerate(zip(*device_grads)):
#+        j = j if len(sizes) == 1 else 0

# %% wrong: written past the arrays
# says: only
def sum_in_parts(device_grads):
    for copies in zip(*device_grads):
        total = sum(copy.data for copy in copies)
        for copy in copies:
            copy.data[:] = total


# %% wrong: the messages are thrown away
# says: no way needs less than
def sum_in_parts(device_grads):
    for first, *others in zip(*device_grads):
        for other in others:
            first += other.as_in_ctx(first.ctx)
        for other in others:
            first.copyto(other)
    device_grads[0][0].log.clear()
