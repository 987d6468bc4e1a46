# ruff: noqa: E402, F811
# %% wrong: takes the first ring that comes, and never gives it back
# loses: most
def my_rings(cables):
    n, found = len(cables), []

    def first(order):
        if len(order) == n:
            return order if cables[order[-1], 0] else None
        for k in range(n):
            if k not in order and cables[order[-1], k]:
                ring = first([*order, k])
                if ring:
                    return ring

    while ring := first([0]):
        found.append(ring)
        for a, b in zip(ring, ring[1:] + ring[:1]):
            cables[a, b] -= 1
            cables[b, a] -= 1
    return found


# %% wrong: the last GPU need not be joined to the first
# loses: rings, once, most, none
#-        return [*zip(order, order[1:] + order[:1])]
#+        return [*zip(order, order[1:])]


# %% wrong: all rings that there are, over the same cables
# loses: once, most, none
#-    return choose(0, cables)
#+    return rings


# %% wrong: the package's rings
# loses: rings, once, most, none
def my_rings(cables):
    from d2lps.collectives import cables as theirs
    return [order for order, count in theirs.rings_of(cables)
            for _ in range(count)]


# %% right: tuples of NumPy's numbers, from the last GPU on, with a limit
import numpy as np


def my_rings(cables):
    n = len(cables)

    def rings(order, left):
        if len(order) == n:
            if left[order[-1], order[0]]:
                yield order
            return
        for k in np.flatnonzero(left[order[-1]]):
            if k not in order:
                yield from rings((*order, k), left)

    def search(left, count):
        if count == 0:
            return ()
        for order in rings((np.int64(n - 1),), left):
            rest = left.copy()
            for a, b in zip(order, order[1:] + order[:1]):
                rest[[a, b], [b, a]] -= 1
            more = search(rest, count - 1)
            if more is not None:
                return (order, *more)
        return None

    for count in range(min(cables.sum(axis=0)) // 2, 0, -1):
        found = search(cables, count)
        if found:
            return found
    return ()
