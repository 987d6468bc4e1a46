# ruff: noqa: F811, F821
# %% wrong: the ring of the chapter
# says: One direction is idle
#-            onward, backward = (i - r) % n, n + (i + r) % n  # chunks
#+            onward = (i - r) % n
#-            sends.append(Send(i, (i - 1) % n, backward, reduce))
#-        rounds.append(sends)
#-    return Schedule(rounds, n, weights=[there] * n + [back] * n)
#+        rounds.append(sends)
#+    return Schedule(rounds, n)

# %% wrong: one ring after the other
# says: all go the same way round
def both_directions(n, there, back):
    forward, backward = [], []
    for r in range(2 * n - 2):
        forward.append([Send(i, (i + 1) % n, (i - r) % n, r < n - 1)
                        for i in range(n)])
        backward.append([Send(i, (i - 1) % n, n + (i + r) % n, r < n - 1)
                         for i in range(n)])
    return Schedule(forward + backward, n,
                    weights=[there] * n + [back] * n)


# %% wrong: both rings sum the same chunks
# says: devices 0 and 2 send device 1 chunk 1, to replace it; only one message
#-            onward, backward = (i - r) % n, n + (i + r) % n  # chunks
#+            onward, backward = (i - r) % n, (i + r) % n
#-    return Schedule(rounds, n, weights=[there] * n + [back] * n)
#+    return Schedule(rounds, n)

# %% wrong: half of the gradient each way, whatever the speed
# says: 50% from i to i + 1, and 100% the other way
#-    return Schedule(rounds, n, weights=[there] * n + [back] * n)
#+    return Schedule(rounds, n)

# %% wrong: the slower direction gets more
# says: 25% from i to i + 1, and 100% the other way
#-    return Schedule(rounds, n, weights=[there] * n + [back] * n)
#+    return Schedule(rounds, n, weights=[back] * n + [there] * n)

# %% wrong: one weight for each ring
# says: ValueError
#-    return Schedule(rounds, n, weights=[there] * n + [back] * n)
#+    return Schedule(rounds, n, weights=[there, back])

# %% wrong: n chunks as before, every second one goes the other way
# says: they carry 67%
def both_directions(n, there, back):
    rounds = []
    for r in range(2 * n - 2):
        sends = []
        for chunk in range(n):
            way = -1 if chunk % 2 else 1
            src = (chunk + way * r) % n
            sends.append(Send(src, (src + way) % n, chunk, r < n - 1))
        rounds.append(sends)
    return Schedule(rounds, n)


# %% wrong: stops when every device has the total of one chunk
# says: is missing
#-    for r in range(2 * n - 2):
#+    for r in range(n - 1):

# %% wrong: added on the second way, too
# says: counted 2 times
#-        sends, reduce = [], r < n - 1
#+        sends, reduce = [], True

# %% wrong: the first total is put in place one round too early
# says: is missing
#-        sends, reduce = [], r < n - 1
#+        sends, reduce = [], r < n - 2

# %% wrong: the way back passes on another chunk than came
# says: is missing
#-            onward, backward = (i - r) % n, n + (i + r) % n  # chunks
#+            onward, backward = (i - r) % n, n + (i - r) % n

# %% wrong: the last device is left out
# says: device 2 is left out
#-    rounds = []
#+    n, rounds = n - 1, []
#-    return Schedule(rounds, n, weights=[there] * n + [back] * n)
#+    return Schedule(rounds, n + 1, weights=[there] * n + [back] * n)

# %% wrong: everyone to device 0, over as many cables as it takes
# says: not all messages go to neighbours
def both_directions(n, there, back):
    return Schedule([[Send(i, 0, 0, True) for i in range(1, n)],
                     [Send(0, i, 0, False) for i in range(1, n)]], n)


# %% right: chunk numbers mixed
def both_directions(n, there, back):
    rounds = [[] for _ in range(2 * n - 2)]
    for r, sends in enumerate(rounds):
        for i in range(n):
            sends.append(Send(i, (i + 1) % n, 2 * ((i - r) % n), r < n - 1))
            sends.append(Send(i, (i - 1) % n, 2 * ((i + r) % n) + 1,
                              r < n - 1))
    return Schedule(rounds, n, weights=[there / 3, back / 3] * n)


# %% right: a function that makes a ring of any order, with arrays
def ring_through(order, first):
    import numpy as np
    order, n = np.array(order), len(order)
    return [Send(order, np.roll(order, -1), first + (np.arange(n) - r) % n,
                 r < n - 1) for r in range(2 * n - 2)]


def both_directions(n, there, back):
    pairs = zip(ring_through(range(n), 0),
                ring_through([*range(n)][::-1], n))
    return Schedule([list(pair) for pair in pairs], n,
                    weights=[there] * n + [back] * n)


# %% wrong: the package's, with weights
# says: bidirectional_ring of d2lps was called
def both_directions(n, there, back):
    from d2lps import strategies
    plan = strategies.bidirectional_ring(n)
    half = len(plan.weights) // 2
    return Schedule(plan.rounds, n, weights=[there] * half + [back] * half)


# %% wrong: the package's ring, and the same mirrored
# says: ring of d2lps was called
def both_directions(n, there, back):
    from d2lps import strategies
    rounds = []
    for sends in strategies.ring(n).rounds:
        mirrored = [Send(n - 1 - s.src, n - 1 - s.dst, n + s.chunk, s.reduce)
                    for s in sends]
        rounds.append([*sends, *mirrored])
    return Schedule(rounds, n, weights=[there] * n + [back] * n)
