"""The cables of a machine as a table, and the rings over them."""
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np

from d2lps.checks import checked, integer
from d2lps.collectives import limits

Table: TypeAlias = list[list[int]]  # how many cables join devices i and j
Rings: TypeAlias = list[tuple[list[int], int]]  # (order, cables per hop)

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

MOST_DEVICES = 16  # of which rings are searched
# A long search is limited by steps, not by seconds, so the same table has the
# same rings on every machine. A step is one device put into a ring.
STEPS_PER_TRY = 1250
STEPS_FOR_ALL_SETS = 150_000


class _OutOfSteps(Exception):
    """A search has taken all the steps that it was given."""


class _Steps:
    """The steps that are left, here and in the larger search around."""

    def __init__(self, left: int, around: '_Steps | None' = None) -> None:
        self.left, self.around = left, around

    def take(self) -> None:
        if self.left == 0:
            raise _OutOfSteps
        self.left -= 1
        if self.around:
            self.around.take()


def _small_enough(cables):
    integer('devices in cables', len(cables), least=2, most=MOST_DEVICES)
    integer('cables between two devices', cables.max(), least=0, most=1000)


@checked(_small_enough, cables=limits.matrix)
def rings_of(cables: np.ndarray | Sequence[Sequence[int]]) -> Rings:
    """Divide the cables of a machine into rings through all devices.

    cables: a symmetric table of integers, how many cables join i and j, for
    2 to 16 devices.

    Returns a list of (order, cables per hop), widest first, for as many
    rings as were found. No cable is used twice. Equal rings are one of more
    cables per hop. The "ring" of two devices is [0, 1], over all cables.
    Raises ValueError if no ring goes through all devices. The error says
    why, and which of the devices have a ring.

    The idea: find one ring, take its cables out of the table, and find the
    next ring in the remaining cables. If there is none, go back and find
    another previous ring. For some tables such a search takes too long and
    is stopped: the result is the best one found.
    """
    rings = most_rings(cables)
    if not rings:
        table = np.asarray(cables, int).tolist()
        raise ValueError(f'cables: {_why_not(table)}{_which_do(table)}')
    return rings


def most_rings(cables: np.ndarray | Sequence[Sequence[int]]) -> Rings:
    """The rings of `rings_of`, but [] where none goes through all devices."""
    return _most_rings(np.asarray(cables, int).tolist())


def best_devices(cables: np.ndarray | Sequence[Sequence[int]], k: int
                 ) -> list[tuple[int, ...]]:
    """The sets of k devices that have the most rings.

    cables: as in `rings_of`. Returns tuples of devices, in order; none if
    no k devices have a ring. Of thousands of sets, those with cables for
    the most rings are searched first, and maybe not all.
    """
    return _best_devices(np.asarray(cables, int).tolist(), k,
                         _Steps(STEPS_FOR_ALL_SETS))[0]


def _best_devices(table, k, steps):
    """The best sets of k devices, and how many rings each of them has."""
    sets = np.array([*combinations(range(len(table)), k)])
    parts = np.array(table)[sets[:, :, None], sets[:, None, :]]
    bounds = _bounds(parts)
    best, most = [], 1
    known: dict[bytes, int] = {}  # many sets have equal tables
    for which in np.argsort(-bounds, kind='stable'):
        if bounds[which] < most or not steps.left:
            break
        part = parts[which]
        if part.tobytes() not in known:
            rings = _most_rings(part.tolist(), most, steps)
            known[part.tobytes()] = sum(width for _, width in rings)
        count = known[part.tobytes()]
        if count > most:
            best, most = [], count
        if count == most:
            best.append(tuple(sets[which].tolist()))
    return sorted(best), most


def _why_not(table):
    """A sentence on why no ring goes through all devices."""
    reached = [0]
    for i in reached:
        reached += [j for j, count in enumerate(table[i])
                    if count and j not in reached]
    missing = [i for i in range(len(table)) if i not in reached]
    if missing:
        return (f'no cables lead from device 0 to {_listed(missing)}, and a '
                'ring goes through all devices')
    for i, row in enumerate(table):
        near = [j for j, count in enumerate(row) if count]
        if len(near) == 1:
            return (f'device {i} has cables to device {near[0]} only, and a '
                    'ring needs two neighbours')
    return ('each device has two neighbours, but no ring over cables goes '
            'through all devices once')


def _which_do(table):
    """The end of that sentence: as many devices as have a ring, if any."""
    steps = _Steps(STEPS_FOR_ALL_SETS)
    for k in range(len(table) - 1, 1, -1):
        best, most = _best_devices(table, k, steps)
        if best:
            noun = 'cable' if k == 2 else 'ring'
            return (f'; {_listed(best[0])} have {most} {noun}'
                    + 's' * (most > 1))
    return ''


def _listed(devices):
    *most, last = map(str, devices)
    return (f'devices {", ".join(most)} and {last}' if most else
            f'device {last}')


def _bounds(tables):
    """More rings than this there cannot be, for each table, as an array.

    A ring has two cables at each device, which go to two neighbours. So of
    the cables to one neighbour, `count` rings use at most `count`.

    tables: integer array of shape (tables, n, n).
    """
    if tables.shape[1] == 2:
        return tables[:, 0, 1]
    usable = tables
    while True:
        counts = usable.sum(axis=2).min(axis=1) // 2
        usable = np.minimum(usable, counts[:, None, None])
        if (usable.sum(axis=2).min(axis=1) // 2 == counts).all():
            return counts


def _most_rings(table, least=1, around=None):
    """The rings that a search finds, or [] if they are fewer than `least`.

    around: `_Steps` that this search may take at most.
    """
    most = int(_bounds(np.array([table]))[0])
    if most < least or len(table) == 2:
        return [([0, 1], most)] if most >= least else []
    # Is there any? This needs no limit: a way that does not come back is
    # known by its last device and the set of those before, of which there
    # are at most 15 * 2 ** 14.
    best = _try(table, 1, True, _Steps(10 ** 9, around))
    if not best:
        return []
    # Most tables have as many rings as the bound. For others, the range in
    # which the number of rings is gets halved.
    least_known, count = max(1, least - 1), most
    while least_known < most:
        rings = _try_often(table, count, around)
        if rings:
            best, least_known = rings, count
        else:
            most = count - 1
        count = (least_known + most + 1) // 2
    return _merged(best) if least_known >= least else []


def _try_often(table, count, around):
    """A list of `count` rings, or [] if no try found so many.

    A search that begins badly takes very many steps to come back to its
    beginning. Therefore each try is short, and the next begins at another
    device. First rings get as many cables per hop as they can, then one.
    """
    n = len(table)
    for widest_first in True, False:
        for start in range(n):
            devices = [*range(start, n), *range(start)]
            turned = [[table[i][j] for j in devices] for i in devices]
            rings = _try(turned, count, widest_first,
                         _Steps(STEPS_PER_TRY, around))
            if rings:
                return [([devices[k] for k in order], width)
                        for order, width in rings]
    return []


def _try(table, count, widest_first, steps):
    """Rings that `_search` finds, or [] if it finds none in so many steps."""
    try:
        return _search(table, count, widest_first, steps) or []
    except _OutOfSteps:
        return []


def _search(table, count, widest_first, steps):
    """A list of `count` rings, as (order, width), or None: there are none."""
    if count == 0:
        return []
    table = [[min(cables, count) for cables in row] for row in table]
    if min(map(sum, table)) < 2 * count:
        return None
    for order in _cycles(table, steps):
        hops = [*zip(order, order[1:] + order[:1])]
        widths = range(1, min(table[i][j] for i, j in hops) + 1)
        for width in reversed(widths) if widest_first else widths:
            steps.take()
            left = [[*row] for row in table]
            for i, j in hops:
                left[i][j] -= width
                left[j][i] -= width
            rings = _search(left, count - width, widest_first, steps)
            if rings is not None:
                return [(order, width), *rings]
    return None


def _cycles(table: Table, steps: _Steps) -> Iterator[list[int]]:
    """Orders of all devices along cables and back, depth first, from 0.

    Next comes the neighbour that has the largest share of all its cables
    here: so pairs with many cables come first, and devices with few keep
    theirs for other rings. Of equal ones, the next by number comes first.
    """
    n = len(table)
    near = [sorted((j % n for j in range(i, i + n) if row[j % n]),
                   key=lambda j: -row[j] / sum(table[j]))
            for i, row in enumerate(table)]
    # The last device of a way and the set of its devices, as bits, where no
    # way comes back from.
    dead = set()

    def extend(order, visited):
        steps.take()
        end, alive = order[-1], False
        if len(order) == n and table[end][0]:
            yield order
        elif len(order) < n and (end, visited) not in dead:
            for j in near[end]:
                if not visited >> j & 1:
                    for cycle in extend([*order, j], visited | 1 << j):
                        alive = True
                        yield cycle
            if not alive:  # no cycle came
                dead.add((end, visited))

    return extend([0], 1)


def _merged(rings):
    """The same rings from device 0 on, equal ones as one, widest first."""
    widths: Counter[tuple[int, ...]] = Counter()
    for order, width in rings:
        start = order.index(0)
        order = order[start:] + order[:start]
        if order[1] > order[-1]:
            order = [0, *order[:0:-1]]
        widths[tuple(order)] += width
    return [([*order], width) for order, width in sorted(
        widths.items(), key=lambda ring: (-ring[1], ring[0]))]
