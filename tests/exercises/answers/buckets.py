# ruff: noqa: E402, F811, F821
# %% wrong: the best size for a bucket, as in the chapter
# loses: time, many
def fill_buckets(backward, nbytes, bandwidth, latency):
    ways = []
    for size in range(61):
        buckets, bucket = [], []
        for layer in reversed(range(len(nbytes))):
            bucket.append(layer)
            if sum(nbytes[i] for i in bucket) >= size * 1e6 or layer == 0:
                buckets.append(bucket)
                bucket = []
        ways.append(buckets)
    return min(ways, key=lambda b: end_of_step(
        b, backward, nbytes, bandwidth, latency))


# %% wrong: the last bucket is not full, and forgotten
# loses: once, time, many
def fill_buckets(backward, nbytes, bandwidth, latency):
    buckets, bucket = [], []
    for layer in reversed(range(len(nbytes))):
        bucket.append(layer)
        if sum(nbytes[i] for i in bucket) >= 11e6:
            buckets.append(bucket)
            bucket = []
    return buckets


# %% wrong: one bucket for all
# loses: time, many
def fill_buckets(backward, nbytes, bandwidth, latency):
    return [list(range(len(nbytes)))[::-1]]


# %% wrong: what is right for one network alone
# loses: once, time, many
def fill_buckets(backward, nbytes, bandwidth, latency):
    return [[7], [6], [5, 4, 3, 2, 1, 0]]


# %% wrong: all ways are tried
# loses: many
def fill_buckets(backward, nbytes, bandwidth, latency):
    from itertools import product
    last, *others = reversed(range(len(backward)))
    best, least = None, float('inf')
    for cuts in product([False, True], repeat=len(others)):
        buckets = [[last]]
        for layer, cut in zip(others, cuts):
            if cut:
                buckets.append([])
            buckets[-1].append(layer)
        end = end_of_step(buckets, backward, nbytes, bandwidth, latency)
        if end < least:
            best, least = buckets, end
    return best


# %% right: from the first layer on, with sets, and its arguments used up
import numpy as np

def fill_buckets(backward, nbytes, bandwidth, latency):
    from functools import cache
    ready = np.cumsum(backward[::-1])[::-1]
    sent = np.concatenate([[0], np.cumsum(nbytes)]) / bandwidth

    @cache
    def end(k):
        if k == len(ready):
            return 0, ()
        return min((max(end(j)[0], ready[k]) + latency + sent[j] - sent[k], j)
                   for j in range(k + 1, len(ready) + 1))

    for k in reversed(range(len(ready))):
        end(k)
    k, found = 0, []
    while k < len(ready):
        j = end(k)[1]
        found.insert(0, frozenset(np.arange(k, j)))
        k = j
    backward.clear()
    nbytes.clear()
    return tuple(found)
