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
# says: 1.00 ms later than it could (72.00 ms). Your 3 messages
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
# says: in one message, which leaves when all is computed, at 60 ms
def fill_buckets(backward, nbytes, bandwidth, latency):
    return [list(range(len(nbytes)))[::-1]]


# %% wrong: each gradient on its own
# says: the latency of 3 ms counts 8 times
def fill_buckets(backward, nbytes, bandwidth, latency):
    return [[layer] for layer in reversed(range(len(nbytes)))]


# %% wrong: whenever the link is free, all that is ready goes
# says: the link is idle for 2 ms before bucket 0, which waits for layer 7
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


# %% wrong: what is right for the toy alone
# says: layers are 0 to
def fill_buckets(backward, nbytes, bandwidth, latency):
    return [[7], [6, 5, 4], [3, 2, 1, 0]]


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


# %% right: with sets and NumPy's numbers, and its arguments used up
import numpy as np

def fill_buckets(backward, nbytes, bandwidth, latency):
    def ways(n):
        if n == 0:
            return [()]
        return [(frozenset(np.arange(k, n)), *rest)
                for k in range(n) for rest in ways(k)]
    found = tuple(min(ways(len(nbytes)), key=lambda b: end_of_step(
        b, backward, nbytes, bandwidth, latency)))
    backward.clear()
    nbytes.clear()
    return found


# %% wrong: nothing is returned
# says: is there a `return`?
#-    return min(ways, key=lambda buckets: end_of_step(
#+    min(ways, key=lambda buckets: end_of_step(

# %% wrong: gradients of no bytes are left out
# says: so the other workers never get them.
#-    return min(ways, key=lambda buckets: end_of_step(
#-        buckets, backward, nbytes, bandwidth, latency))
#+    best = min(ways, key=lambda buckets: end_of_step(
#+        buckets, backward, nbytes, bandwidth, latency))
#+    full = [[layer for layer in bucket if nbytes[layer]] for bucket in best]
#+    return [bucket for bucket in full if bucket]

# %% wrong: ends are compared in tenths of a millisecond
# says: ms later than it could
def fill_buckets(backward, nbytes, bandwidth, latency):
    ways = [[]]
    for layer in reversed(range(len(nbytes))):
        ways = [way + [[layer]] for way in ways] + [
            way[:-1] + [way[-1] + [layer]] for way in ways if way]
    return min(ways, key=lambda way: round(end_of_step(
        way, backward, nbytes, bandwidth, latency), 4))
