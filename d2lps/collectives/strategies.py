"""Strategies to give every device the sum of all devices' arrays.

Each returns a `Schedule`. The n devices, 1 or more, are called 0 to n - 1.
"""
from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np

from d2lps.annotations import Node
from d2lps.checks import (boolean, checked, either, from_zero, function,
                          integer, list_of, refuse, text)
from d2lps.collectives.cables import P3_CABLES, rings_of
from d2lps.collectives.limits import (check_size, known_root,
                                      up_to_100_000, up_to_4096)
from d2lps.collectives.schedule import Schedule, any_schedule
from d2lps.collectives.sends import Send


@checked(known_root, n=up_to_100_000,
         root=either(partial(integer, least=0), text,
                     must="a device or a name such as 'cpu'"))
def gather_broadcast(n: int, root: Node = 0) -> Schedule:
    """All devices send to `root`, which sends the sum back to all.

    root: a device, or a name such as 'cpu' for a node without an array.
    """
    helpers = [root] if isinstance(root, str) else []
    rest = np.array([i for i in range(n) if i != root], int)
    return Schedule([[Send(rest, root, 0, True)],
                     [Send(root, rest, 0, False)]], n, helpers,
                    name=f'gather_broadcast({n}, {root!r})')


@checked(n=up_to_4096)
def sharded(n: int) -> Schedule:
    """Device i sums chunk i of all devices and sends the sum to all."""
    src, dst = np.nonzero(~np.eye(n, dtype=bool))
    return Schedule([[Send(src, dst, dst, True)],
                     [Send(src, dst, src, False)]], n, name=f'sharded({n})')


@checked(n=up_to_100_000)
def running_sum(n: int) -> Schedule:
    """A running sum goes from device to device, then the total goes.

    One link is busy at a time: the ring without chunks.
    """
    rounds = []
    for r in range(2 * n - 2):
        src, dst = r % n, (r + 1) % n  # neighbours on the circle
        adds = r < n - 1  # the later messages carry the total
        rounds.append([Send(src, dst, 0, adds)])
    return Schedule(rounds, n, name=f'running_sum({n})')


@checked(n=up_to_100_000)
def ring(n: int) -> Schedule:
    """n running sums at the same time: chunk i starts at device i.

    First the sums go round (n - 1 rounds), then the totals (n - 1 rounds).
    Source: Patarasuk and Yuan 2009.
    """
    return Schedule(_ring(range(n)), n, name=f'ring({n})')


@checked(n=up_to_4096)
def bidirectional_ring(n: int) -> Schedule:
    """Two rings, each with half of the data, in opposite directions."""
    there = np.arange(n)
    return Schedule(_side_by_side(_ring(there), _ring(there[::-1], n)), n,
                    name=f'bidirectional_ring({n})')


@checked(both_ways=boolean)
def two_rings(both_ways: bool = False) -> Schedule:
    """The two rings that the cables of 8 V100 GPUs make (p3.16xlarge).

    Two thirds of the data go round the ring with two links per hop, one
    third round the ring with one. both_ways: each ring in both directions,
    with half of its data in each. Source: Wang, Li, Liberty, Smola 2018.
    """
    plan = rings(rings_of(P3_CABLES), both_ways)
    plan.name = f'two_rings({both_ways})'
    return plan


def ring_over_cables(name: str, value: object) -> tuple[list[int], int]:
    """A check: a pair of an order of devices, and cables per hop."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        refuse(name, value, 'a pair: an order of devices, and how many '
               'cables make a hop, such as ([0, 1, 2], 1)')
    order, count = value
    return (list_of(from_zero, 'a list of devices', least=2)(
        f'{name}[0]', order), integer(f'{name}[1]', count, most=1_000_000))


def _through_the_same(rings, both_ways):
    """A rule: all rings go once through each device, 0 to n - 1."""
    n = len(rings[0][0])
    for k, (order, _) in enumerate(rings):
        if sorted(order) != [*range(n)]:
            refuse(f'rings[{k}][0]', order, 'an order of all devices, '
                   f'0 to {n - 1}, each once')
    check_size('rings', 4 * n * (n - 1) * len(rings))


@checked(_through_the_same, both_ways=boolean, rings=list_of(
    ring_over_cables, 'a list of rings, as from rings_of'))
def rings(rings: Sequence[tuple[Sequence[int], int]],
          both_ways: bool = True) -> Schedule:
    """Several rings at the same time, each over cables of its own.

    rings: a list of (order, cables per hop), as from `rings_of`. A ring gets
    data in proportion to its cables, so that all end at the same time.
    both_ways: each ring in both directions, with half of its data in each.
    A ring of two devices is the same both ways: it always uses both
    directions of its cables, each for all of its data.
    """
    n = len(rings[0][0])
    ways = [(order, count) for order, count in rings]
    if both_ways and n > 2:
        ways += [(order[::-1], count) for order, count in rings]
    plans = [_ring(order, n * k) for k, (order, _) in enumerate(ways)]
    return Schedule(_side_by_side(*plans), n,
                    name=f'rings({len(rings)} of {n} devices, {both_ways})',
                    weights=np.repeat([count for _, count in ways], n))


@checked(n=up_to_100_000)
def tree(n: int) -> Schedule:
    """Sums climb a binary tree to device 0; the total comes down again."""
    return Schedule(_tree(range(n)), n, name=f'tree({n})')


@checked(n=up_to_100_000)
def double_tree(n: int) -> Schedule:
    """Two trees with half of the data each; no device is a leaf in both.

    Source: Sanders, Speck and Traeff 2009 (the idea of two trees).
    """
    order = range(n)
    # An odd number needs a root with one child, else the one in the middle
    # of `order` would be a leaf twice.
    plans = _tree(order, 0, n % 2), _tree(order[::-1], 1, n % 2)
    return Schedule(_side_by_side(*plans), n, name=f'double_tree({n})')


@checked(n=up_to_100_000)
def recursive_doubling(n: int) -> Schedule:
    """Pairs exchange everything, then pairs of pairs, and so on.

    If n is not a power of two, the devices beyond the largest power first
    add their arrays to a partner, and get the total at the end. Source:
    Thakur, Rabenseifner and Gropp 2005, section 4.
    """
    power = 1 << (n.bit_length() - 1)
    i, beyond = np.arange(power), np.arange(power, n)
    steps = [1 << k for k in range(power.bit_length() - 1)]
    return Schedule([[Send(beyond, beyond - power, 0, True)],
                     *([Send(i, i ^ step, 0, True)] for step in steps),
                     [Send(beyond - power, beyond, 0, False)]],
                    n, name=f'recursive_doubling({n})')


@checked(n=up_to_4096)
def halving_doubling(n: int) -> Schedule:
    """Half of the data to a partner, half of that to the next, and back.

    Sums go out by recursive halving (reduce-scatter), the totals come back
    by recursive doubling (all-gather). With n a power of two that is
    2 log2(n) rounds, and each device sends 2 (n - 1) / n of its bytes, as in
    a ring. Devices beyond the largest power of two are treated as in
    `recursive_doubling`. Source: Thakur, Rabenseifner and Gropp 2005,
    section 4.
    """
    power = 1 << (n.bit_length() - 1)
    beyond, every = np.arange(power, n)[:, None], np.arange(power)
    halving: list[list[Send]] = []
    doubling: list[list[Send]] = []
    for step in [1 << k for k in range(power.bit_length() - 1)]:
        # A block of `step` chunks belongs to the block of devices of the
        # same numbers: device i gets it from, or gives it to, i ^ step.
        i, chunk = np.nonzero(every[:, None] // step == every // step)
        halving.insert(0, [Send(i ^ step, i, chunk, True)])
        doubling.append([Send(i, i ^ step, chunk, False)])
    return Schedule([[Send(beyond, beyond - power, every, True)],
                     *halving, *doubling,
                     [Send(beyond - power, beyond, every, False)]], n,
                    name=f'halving_doubling({n})')


@checked(num_machines=up_to_100_000, num_devices=up_to_4096, across=function)
def hierarchical(num_machines: int, num_devices: int,
                 across: Callable[[int], Schedule] = ring) -> Schedule:
    """Sum inside each machine, then across machines, then share inside.

    Device d of machine m is m * num_devices + d. It sums part d of its
    machine, and these parts are summed across machines by the schedule
    across(num_machines): `ring`, `tree`, or one with parameter servers.
    """
    outer = any_schedule('across(num_machines)', across(num_machines))
    if outer.num_devices != num_machines:
        raise ValueError(f'across must return a schedule for {num_machines} '
                         f'machines; it returned {outer!r}')
    parts, chunks = num_devices, len(outer.weights)
    across_sends = parts * sum(map(len, outer.rounds))
    check_size('num_machines and num_devices',
        max(num_machines * parts ** 2 * chunks, across_sends))
    m, src, dst, c = np.nonzero(  # all combinations but those with src = dst
        np.ones((num_machines, parts, parts, chunks))
        - np.eye(parts)[..., None])
    base = m * parts

    def place(node, part):  # helpers come after all devices of all machines
        return np.where(node < num_machines, node * parts + part,
                        node + num_machines * (parts - 1))

    middle = [[Send(place(r.src, d), place(r.dst, d), r.chunk + d * chunks,
                    r.reduce) for d in range(parts)] for r in outer.rounds]
    return Schedule(
        [[Send(base + src, base + dst, dst * chunks + c, True)], *middle,
         [Send(base + src, base + dst, src * chunks + c, False)]],
        num_machines * parts, outer.nodes[num_machines:],
        np.tile(outer.weights, parts),
        f'hierarchical({num_machines}, {num_devices}, {outer.name})')


def _sends_fit(num_workers, num_servers, colocated):
    check_size('num_workers and num_servers', 2 * num_workers * num_servers)


@checked(_sends_fit, num_workers=up_to_100_000, num_servers=up_to_100_000,
         colocated=boolean)
def parameter_server(num_workers: int, num_servers: int,
                     colocated: bool = False) -> Schedule:
    """Every worker sends chunk j to server j, which sends back the sum.

    Servers are called 'server 0' and so on. colocated: server j is worker
    j modulo `num_workers`, no machine of its own. Source: Li et al. 2014.
    """
    worker, chunk = np.indices((num_workers, num_servers)).reshape(2, -1)
    server = chunk % num_workers if colocated else num_workers + chunk
    away = worker != server
    worker, server, chunk = worker[away], server[away], chunk[away]
    names = [f'server {j}' for j in range(num_servers)]
    return Schedule([[Send(worker, server, chunk, True)],
                     [Send(server, worker, chunk, False)]], num_workers,
                    [] if colocated else names, np.ones(num_servers),
                    f'parameter_server({num_workers}, {num_servers})')


def _pieces_fit(schedule, pieces):
    check_size('pieces', pieces * (pieces + sum(map(len, schedule.rounds))))


@checked(_pieces_fit, schedule=any_schedule, pieces=up_to_4096)
def pipelined(schedule: Schedule, pieces: int) -> Schedule:
    """The schedule with each chunk cut up, every piece one round behind.

    While piece 2 is on its first way, piece 1 is on its second. Returns a
    schedule with `pieces` - 1 rounds more, each with smaller messages.
    """
    plans: list[list[list[Send]]] = []
    for piece in range(pieces):
        own = [[Send(r.src, r.dst, r.chunk * pieces + piece, r.reduce)]
               for r in schedule.rounds]
        plans.append([[]] * piece + own)
    return Schedule(_side_by_side(*plans), schedule.num_devices,
                    schedule.nodes[schedule.num_devices:],
                    np.repeat(schedule.weights, pieces),
                    f'pipelined({schedule.name}, {pieces})')


def _side_by_side(*plans):
    """The rounds of several plans side by side: first with first, ..."""
    return [sum(sends, []) for sends in zip_longest(*plans, fillvalue=[])]


def _ring(order, first=0):
    """Rounds of a ring through `order`, with chunks numbered from `first`."""
    order = np.array(order)
    n, onward = len(order), np.concatenate([order[1:], order[:1]])
    twice = first + np.arange(2 * n) % n
    # A schedule reads a read-only array once, and does not copy it.
    for array in order, onward, twice:
        array.flags.writeable = False
    # All are windows of one array, because n arrays would fill the memory.
    chunks = [twice[n - r:2 * n - r] for r in range(n)]
    return [[Send(order, onward, chunks[r % n], r < n - 1)]
            for r in range(2 * n - 2)]


def _tree(order, chunk=0, single=0):
    """Rounds up and down a binary tree; order[0] is the root.

    single: 1 if the root is to have only one child, else 0.
    """
    order, k = np.asarray(order), np.arange(1, len(order))
    parent = (k - 1 + single) // 2
    depth = [0]
    for p in parent:
        depth.append(depth[p] + 1)
    levels = [k[np.equal(depth[1:], d)] for d in range(1, depth[-1] + 1)]
    edges = [(order[level], order[parent[level - 1]]) for level in levels]
    return ([[Send(low, high, chunk, True)] for low, high in edges[::-1]] +
            [[Send(high, low, chunk, False)] for low, high in edges])
