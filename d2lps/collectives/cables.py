"""The cables of a machine as a matrix, and the rings that they make."""
from collections.abc import Sequence

import numpy as np

from d2lps.checks import checked
from d2lps.collectives import limits

# How many NVLinks join GPU i and GPU j of a p3.16xlarge (and of a DGX-1 with
# V100s), as `nvidia-smi topo -m` shows it there.
P3_CABLES = np.array([
    [0, 1, 1, 2, 2, 0, 0, 0],
    [1, 0, 2, 1, 0, 2, 0, 0],
    [1, 2, 0, 2, 0, 0, 1, 0],
    [2, 1, 2, 0, 0, 0, 0, 1],
    [2, 0, 0, 0, 0, 1, 1, 2],
    [0, 2, 0, 0, 1, 0, 2, 1],
    [0, 0, 1, 0, 1, 2, 0, 2],
    [0, 0, 0, 1, 2, 1, 2, 0]])
P3_CABLES.flags.writeable = False


@checked(cables=limits.matrix)
def rings_of(cables: np.ndarray | Sequence[Sequence[int]]
             ) -> list[tuple[list[int], int]]:
    """Take the cables of a machine apart into rings through all devices.

    cables: a symmetric integer matrix, how many cables join i and j.
    Returns a list of (order, cables per hop), widest first: one ring of all
    pairs joined by as many cables. Raises ValueError where such pairs make
    no ring through all devices.
    """
    cables, rings = np.asarray(cables), []
    for count in sorted({*cables.ravel().tolist()} - {0}, reverse=True):
        joined, order = cables == count, [0]
        while near := [k for k in np.flatnonzero(joined[order[-1]]).tolist()
                       if k not in order]:
            order.append(near[0])
        if len(order) < len(cables) or (joined.sum(axis=1) != 2).any():
            raise ValueError(f'cables: the pairs with {count} of them do not '
                             'make one ring through all devices')
        rings.append((order, count))
    return rings
