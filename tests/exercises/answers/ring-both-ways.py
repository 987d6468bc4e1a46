# ruff: noqa: F811, F821
# %% wrong: the ring of the chapter
# loses: time, uneven
#-            onward, backward = (i - r) % n, n + (i + r) % n  # chunks
#+            onward = (i - r) % n
#-            sends.append(Send(i, (i - 1) % n, backward, reduce))
#-        rounds.append(sends)
#-    return Schedule(rounds, n, weights=[there] * n + [back] * n)
#+        rounds.append(sends)
#+    return Schedule(rounds, n)


# %% wrong: half of the gradient each way, whatever the speed
# loses: uneven
#-    return Schedule(rounds, n, weights=[there] * n + [back] * n)
#+    return Schedule(rounds, n)


# %% wrong: added on the second way, too
# loses: sum
#-        sends, reduce = [], r < n - 1
#+        sends, reduce = [], True


# %% wrong: the package's ring, and the same mirrored
# loses: sum, time, uneven
def both_directions(n, there, back):
    from d2lps import strategies
    rounds = []
    for sends in strategies.ring(n).rounds:
        mirrored = [Send(n - 1 - s.src, n - 1 - s.dst, n + s.chunk, s.reduce)
                    for s in sends]
        rounds.append([*sends, *mirrored])
    return Schedule(rounds, n, weights=[there] * n + [back] * n)


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
