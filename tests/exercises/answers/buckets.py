# ruff: noqa: E402, F811, F821
# %% wrong: the last bucket is not full, and forgotten
# says: are in no bucket
def fill_buckets(backward, nbytes, bandwidth, latency):
    buckets, bucket = [], []
    for layer in reversed(range(len(nbytes))):
        bucket.append(layer)
        if sum(nbytes[i] for i in bucket) >= 11e6:
            buckets.append(bucket)
            bucket = []
    return buckets


# %% wrong: the first layer goes first
# says: The backward pass begins with the last layer
def fill_buckets(backward, nbytes, bandwidth, latency):
    layers = list(range(len(nbytes)))
    return [layers[i:i + 2] for i in range(0, len(layers), 2)]


# %% wrong: the best size for a bucket, as in the chapter
# says: 20.00 ms later than it could (75.00 ms)
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


# %% wrong: one bucket for all
# says: in one message, which leaves when all is computed, at 41 ms
def fill_buckets(backward, nbytes, bandwidth, latency):
    return [list(range(len(nbytes)))[::-1]]


# %% wrong: each gradient on its own
# says: the latency of 10 ms counts 8 times
def fill_buckets(backward, nbytes, bandwidth, latency):
    return [[layer] for layer in reversed(range(len(nbytes)))]


# %% wrong: whenever the link is free, all that is ready goes
# says: 2.00 ms later than it could (72.00 ms)
def fill_buckets(backward, nbytes, bandwidth, latency):
    left, buckets, now = list(range(len(nbytes)))[::-1], [], 0
    while left:
        now = max(now, sum(backward[left[0]:]))
        bucket = [i for i in left if sum(backward[i:]) <= now + 1e-9]
        left = left[len(bucket):]
        now += latency + sum(nbytes[i] for i in bucket) / bandwidth
        buckets.append(bucket)
    return buckets


# %% wrong: the layer that fills a bucket also begins the next
# says: and again in bucket 1: it would be sent, and added, twice
def fill_buckets(backward, nbytes, bandwidth, latency):
    buckets, bucket = [], []
    for layer in reversed(range(len(nbytes))):
        bucket.append(layer)
        if sum(nbytes[i] for i in bucket) >= 2e6 and layer:
            buckets.append(bucket)
            bucket = [layer]
    return buckets + [bucket]


# %% wrong: layers are numbered from 1
# says: the layers are 0 to
def fill_buckets(backward, nbytes, bandwidth, latency):
    n = len(nbytes)
    return [list(range(n, n // 2, -1)), list(range(n // 2, 0, -1))]


# %% wrong: pairs, and an empty bucket at the end
# says: is empty
def fill_buckets(backward, nbytes, bandwidth, latency):
    layers = list(range(len(nbytes)))[::-1]
    return [layers[i:i + 2] for i in range(0, len(layers) + 2, 2)]


# %% wrong: one list, of no buckets
# says: A list of lists of layers is wanted
def fill_buckets(backward, nbytes, bandwidth, latency):
    return list(range(len(nbytes)))[::-1]


# %% wrong: cutting one bucket in two at the best place
# says: later than it could
def fill_buckets(backward, nbytes, bandwidth, latency):
    layers = list(range(len(nbytes)))[::-1]
    ways = [[layers[:i], layers[i:]] for i in range(1, len(layers))]
    return min(ways + [[layers]], key=lambda b: end_of_step(
        b, backward, nbytes, bandwidth, latency))


# %% wrong: the best of all ways with at most three buckets
# says: later than it could
def fill_buckets(backward, nbytes, bandwidth, latency):
    layers = list(range(len(nbytes)))[::-1]
    ways = []
    for i in range(len(layers) + 1):
        for j in range(i, len(layers) + 1):
            way = layers[:i], layers[i:j], layers[j:]
            ways.append([bucket for bucket in way if bucket])
    return min(ways, key=lambda b: end_of_step(
        b, backward, nbytes, bandwidth, latency))


# %% wrong: what is right for one network alone
# says: layers are 0 to
def fill_buckets(backward, nbytes, bandwidth, latency):
    return [[7], [6], [5, 4, 3, 2, 1, 0]]


# %% wrong: all ways are tried
# says: To cut 200 layers there are 2 ** 199 ways, too many to try each
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


# %% wrong: the next bucket is the one that ends first for what it has
# says: later than it could
def fill_buckets(backward, nbytes, bandwidth, latency):
    k, now, buckets = len(backward), 0, []
    while k:
        ways = []
        for j in range(k):
            end = max(now, sum(backward[j:])) + latency + sum(
                nbytes[j:k]) / bandwidth
            ways.append(((end - now) / (k - j), j, end))
        _, j, now = min(ways)
        buckets.append(list(range(j, k)))
        k = j
    return buckets


# %% right: layer by layer, the best end of all that has been computed
def fill_buckets(backward, nbytes, bandwidth, latency):
    best = [(0, [])]
    for last in range(len(nbytes))[::-1]:
        best.append(min((
            max(end, sum(backward[last:])) + latency
            + sum(nbytes[last:len(nbytes) - k]) / bandwidth,
            [*buckets, (*range(last, len(nbytes) - k),)])
            for k, (end, buckets) in enumerate(best)))
    return best[-1][1]


# %% right: with the function that is given
def fill_buckets(backward, nbytes, bandwidth, latency):
    n = len(backward)
    best = {n: []}
    for k in reversed(range(n)):
        best[k] = min((best[j] + [[*range(k, j)]]
                       for j in range(k + 1, n + 1)),
                      key=lambda buckets: end_of_step(
                          buckets, backward, nbytes, bandwidth, latency))
    return best[0]


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


# %% wrong: nothing is returned
# says: is there a `return`?
#-    return buckets

# %% wrong: gradients of no bytes are left out
# says: so the other workers never get them.
#-    return buckets
#+    full = [[layer for layer in bucket if nbytes[layer]]
#+            for bucket in buckets]
#+    return [bucket for bucket in full if bucket]

# %% wrong: a bucket is ready when its last layer is
# says: later than it could
#-        ready, ways = sum(backward[k:]), []
#-        for j in range(k + 1, n + 1):
#+        ways = []
#+        for j in range(k + 1, n + 1):
#+            ready = sum(backward[j - 1:])

# %% wrong: the link is always free
# says: later than it could
#-            end = max(end, ready) + latency + sum(nbytes[k:j]) / bandwidth
#+            end = ready + latency + sum(nbytes[k:j]) / bandwidth

# %% wrong: the buckets in the wrong order
# says: The backward pass begins with the last layer
#-            ways.append((end, buckets + [[*range(k, j)]]))
#+            ways.append((end, [[*range(k, j)]] + buckets))

# %% wrong: ends are compared in tenths of a millisecond
# says: ms later than it could
#-        best[k] = min(ways)
#+        best[k] = min(ways, key=lambda way: round(way[0], 4))
