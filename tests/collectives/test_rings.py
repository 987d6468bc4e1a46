"""Rings over the cables of machines: as many as there can be, and timed."""
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp

from d2lps.collectives import simulate
from d2lps.collectives import strategies as sch
from d2lps.collectives.cables import (P3_CABLES, _cycles, _Steps,
                                      best_devices, rings_of)
from d2lps.collectives.links import Topology, star


def some(devices, cables=P3_CABLES):
    """The table of some devices of a machine."""
    return np.asarray(cables)[np.ix_(devices, devices)]


def complete(n, count=1):
    return count * (1 - np.eye(n, dtype=int))


def table_of(graph, count=1):
    return count * nx.to_numpy_array(graph, dtype=int)


def of_edges(n, edges):
    table = np.zeros((n, n), int)
    for i, j, count in edges:
        table[i, j] = table[j, i] = count
    return table


def at_random(random, n, most, share):
    """A table where `share` of the pairs have 1 to `most` cables."""
    table = random.integers(1, most + 1, (n, n))
    table = np.triu(table * (random.random((n, n)) < share), 1)
    return table + table.T


def count_of(cables):
    """How many rings `rings_of` finds; 0 where it raises."""
    try:
        return sum(count for _, count in rings_of(cables))
    except ValueError:
        return 0


def hops(order):
    return [*zip(order, order[1:] + order[:1])]


def check(cables, rings):
    """Are these rings through all devices, over cables used once?"""
    left = np.array(cables)
    assert len({tuple(order) for order, _ in rings}) == len(rings)
    for order, count in rings:
        assert sorted(order) == [*range(len(left))] and order[0] == 0
        assert len(order) == 2 or order[1] < order[-1]
        assert type(count) is int and count >= 1
        for i, j in hops(order)[:len(order) if len(order) > 2 else 1]:
            left[i, j] -= count
            left[j, i] -= count
    assert (left >= 0).all()
    counts = [count for _, count in rings]
    assert counts == sorted(counts, reverse=True)


def solved(cables):
    """The most rings, by integer programming over all cycles."""
    cables = np.asarray(cables)
    n = len(cables)
    pairs = {frozenset(pair): k
             for k, pair in enumerate(combinations(range(n), 2))}
    cycles = [[0, *rest] for rest in permutations(range(1, n))
              if rest[0] < rest[-1]]
    cycles = [order for order in cycles
              if all(cables[i, j] for i, j in hops(order))]
    if not cycles:
        return 0
    uses = np.zeros((len(pairs), len(cycles)))
    for k, order in enumerate(cycles):
        uses[[pairs[frozenset(hop)] for hop in hops(order)], k] = 1
    there = [cables[min(pair), max(pair)] for pair in pairs]
    ones = np.ones(len(cycles))
    best = milp(-ones, integrality=ones,
                constraints=LinearConstraint(uses, -np.inf, there))
    return round(-best.fun)


# --- as many as there can be -------------------------------------------------

@pytest.mark.parametrize('most', [1, 2, 4, 12])
@pytest.mark.parametrize('n', [3, 4, 5, 6, 7])
def test_no_table_has_more_rings(n, most):
    random = np.random.default_rng([n, most])
    counts = []
    tables = 2 if n == 7 else 5  # for each share; large ones take long
    for share in tables * [0.5, 0.7, 0.9, 1]:
        cables = at_random(random, n, most, share)
        want = solved(cables)
        counts.append(want)
        if want:
            check(cables, rings_of(cables))
        assert count_of(cables) == want, cables.tolist()
    assert max(counts) > min(counts)


@pytest.mark.parametrize('n', [3, 5, 6])
def test_the_search_comes_to_each_cycle_once(n):
    random = np.random.default_rng(n)
    for share in 0.5, 0.8, 1:
        cables = at_random(random, n, 2, share)
        found = [*_cycles(cables.tolist(), _Steps(10_000))]
        assert sorted(found) == [
            [0, *rest] for rest in permutations(range(1, n))
            if all(cables[i, j] for i, j in hops([0, *rest]))]


@pytest.mark.full
def test_hardly_any_of_many_tables_has_more_rings():
    random, missed = np.random.default_rng(0), 0
    for _ in range(1000):
        cables = at_random(random, int(random.integers(3, 8)),
                           int(random.choice([1, 2, 3, 4, 6, 12])),
                           random.choice([0.4, 0.6, 0.8, 1]))
        lost = solved(cables) - count_of(cables)
        assert 0 <= lost <= 1, cables.tolist()
        missed += lost
    assert missed <= 1


# --- machines ----------------------------------------------------------------

def test_the_rings_of_the_p3_are_those_of_chapter_5():
    assert rings_of(P3_CABLES) == [([0, 3, 2, 1, 5, 6, 7, 4], 2),
                                   ([0, 1, 3, 7, 5, 4, 6, 2], 1)]


# Bus bandwidths by the GPUs of a DGX-1 that one takes: a cable carries 20 GB/s
# each way (NCCL's estimate), so a ring in both directions carries 40.
@pytest.mark.parametrize('devices, gigabytes', [
    ([0, 1, 2, 3], 80), ([0, 3, 4, 7], 40), ([0, 1, 4, 5], 40),
    ([0, 1, 2], 40), (range(6), 40), (range(7), 80), (range(8), 120)])
def test_gpus_of_a_dgx1(devices, gigabytes):
    assert 2 * 20 * count_of(some([*devices])) == gigabytes


def test_five_gpus_of_a_dgx1_have_no_ring():
    with pytest.raises(ValueError, match=(
            '^cables: device 4 has cables to device 0 only, and a ring needs '
            'two neighbours; devices 0, 1, 2 and 3 have 2 rings$')):
        rings_of(some(range(5)))


@pytest.mark.parametrize('cables, want', [
    # DGX-1 with P100s: four cables each, all to different GPUs.
    (P3_CABLES > 0, 2),
    (complete(4, 4), 6), (complete(4, 2), 3), (complete(4), 1),  # A100s
    (complete(3), 1), (complete(3, 6), 6),
    ([[0, 1, 3], [1, 0, 2], [3, 2, 0]], 1),
    ([[0, 4], [4, 0]], 4),
    (complete(5), 2), (complete(8), 3), (complete(16), 7),
    (complete(16, 3), 22),
    (table_of(nx.hypercube_graph(4)), 2),
    (table_of(nx.grid_2d_graph(4, 4, periodic=True), 2), 4),
    (table_of(nx.complete_bipartite_graph(8, 8)), 4)])
def test_known_numbers_of_rings(cables, want):
    cables = np.array(cables, int)
    rings = rings_of(cables)
    check(cables, rings)
    assert sum(count for _, count in rings) == want


def test_eight_gpus_with_unequal_pairs():
    cables = at_random(np.random.default_rng(8), 8, 4, 1)
    rings = rings_of(cables)
    check(cables, rings)
    assert sum(count for _, count in rings) == cables.sum(axis=1).min() // 2


def test_equal_rings_are_one_over_more_cables():
    assert rings_of(complete(3, 5)) == [([0, 1, 2], 5)]
    assert rings_of([[0, 3], [3, 0]]) == [([0, 1], 3)]
    assert [count for _, count in rings_of(complete(4, 4))] == [2, 2, 2]


def joined_cliques(*joins):
    """Two groups of 8, each completely joined, and cables between them."""
    cables = np.kron(np.eye(2, dtype=int), complete(8))
    return cables + of_edges(16, [(i, j, 1) for i, j in joins])


LARGE = {
    'sparse': at_random(np.random.default_rng(5), 16, 2, 0.45),
    'dense': at_random(np.random.default_rng(6), 16, 12, 1),
    'unequal': at_random(np.random.default_rng(7), 16, 12, 0.7),
    'cliques': joined_cliques((0, 8), (3, 12), (5, 13), (7, 15)),
    'torus': table_of(nx.grid_2d_graph(4, 4, periodic=True)),
}


@pytest.mark.parametrize('name', LARGE)
def test_sixteen_devices(name):
    rings = rings_of(LARGE[name])
    check(LARGE[name], rings)
    assert rings == rings_of(LARGE[name].tolist())  # always the same
    want = {'cliques': 2}.get(name, LARGE[name].sum(axis=1).min() // 2)
    assert sum(count for _, count in rings) == want


# The same on every machine and in every version: found once, written down.
def test_the_same_table_has_the_same_rings_everywhere():
    assert rings_of(complete(8)) == [
        ([0, 1, 2, 3, 4, 5, 6, 7], 1), ([0, 2, 4, 6, 1, 3, 7, 5], 1),
        ([0, 3, 5, 1, 4, 7, 2, 6], 1)]
    assert rings_of(some(range(7))) == [
        ([0, 1, 3, 2, 6, 5, 4], 1), ([0, 3, 2, 1, 5, 6, 4], 1)]


# --- no ring -----------------------------------------------------------------

PAIRS = np.kron(np.eye(4, dtype=int), complete(2, 4))
PENDANT = of_edges(4, [(0, 1, 2), (1, 2, 2), (0, 2, 2), (2, 3, 4)])
STAR = of_edges(4, [(0, 3, 1), (1, 3, 2), (2, 3, 1)])


@pytest.mark.parametrize('cables, words', [
    (PAIRS, 'no cables lead from device 0 to devices 2, 3, 4, 5, 6 '
     'and 7, and a ring goes through all devices; devices 0 and 1 '
     'have 4 cables$'),
    (np.kron(np.eye(2, dtype=int), complete(3)), 'from device 0 to devices '
     '3, 4 and 5, .*; devices 0, 1 and 2 have 1 ring$'),
    (PENDANT, 'device 3 has cables to device 2 only, and a ring needs two '
     'neighbours; devices 0, 1 and 2 have 2 rings$'),
    (STAR, 'device 0 has cables to device 3 only, .*; devices '
     '1 and 3 have 2 cables$'),
    (joined_cliques((0, 8), (0, 9)), 'each device has two neighbours, but no '
     'ring over cables goes through all devices once; devices 0, '
     '8, 9, .* and 15 have 1 ring$'),
    (table_of(nx.petersen_graph()), 'goes through all devices once; '
     'devices 0, 1, 2, .* and 8 have 1 ring$'),
    (table_of(nx.complete_bipartite_graph(7, 9)), 'goes through all '
     'devices once; devices 0, 1, .* 12 and 13 have 3 rings$'),
    ([[0, 0], [0, 0]], 'no cables lead from device 0 to device 1, '
     'and a ring goes through all devices')])
def test_why_there_is_no_ring_and_which_devices_have_one(cables, words):
    with pytest.raises(ValueError, match=f'^cables: .*{words}'):
        rings_of(cables)


@pytest.mark.parametrize('bad, words', [
    (lambda: rings_of([[0]]), 'cables must be a symmetric matrix'),
    (lambda: rings_of([[0, 1], [2, 0]]), 'cables must be a symmetric matrix'),
    (lambda: rings_of([[1, 1], [1, 0]]), '0 on its diagonal'),
    (lambda: rings_of([[0, .5], [.5, 0]]), 'cables must be .* whole numbers'),
    (lambda: rings_of('two'), 'cables must be'),
    (lambda: rings_of(complete(17)), 'devices in cables must be .* 16'),
    (lambda: rings_of(complete(3, 1001)), 'cables between two .* 1,000')])
def test_bad_tables(bad, words):
    with pytest.raises(ValueError, match=words):
        bad()


# --- which devices -----------------------------------------------------------

def test_the_best_gpus_of_a_dgx1():
    assert best_devices(P3_CABLES, 2) == [
        (0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7)]
    assert best_devices(P3_CABLES, 4) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert best_devices(P3_CABLES, 8) == [(*range(8),)]


def test_no_devices_where_none_have_a_ring():
    assert best_devices(PAIRS, 3) == []
    assert best_devices(PAIRS, 2) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert best_devices(np.zeros((3, 3), int), 2) == []


@pytest.mark.parametrize('seed', range(12))
def test_the_best_devices_are_those_with_the_most_rings(seed):
    random = np.random.default_rng(seed)
    cables = at_random(random, 8, 4, 0.6)
    for k in range(3, 7):
        counts = {which: solved(some(which, cables))
                  for which in combinations(range(8), k)}
        most = max(counts.values())
        assert best_devices(cables, k) == [
            which for which, count in counts.items() if 0 < count == most]


def test_the_best_of_thousands_of_sets():
    assert len(best_devices(complete(16), 8)) == 12_870
    assert best_devices(joined_cliques((0, 8), (1, 9)), 8) == [
        (*range(8),), (*range(8, 16),)]
    assert best_devices(LARGE['dense'], 8) == best_devices(LARGE['dense'], 8)


# --- the rings as a plan -----------------------------------------------------

def machine(cables, rate):
    """The devices of a table, and its cables of `rate` bytes/s each."""
    links = []
    for i, j in np.argwhere(np.triu(cables)).tolist():
        links += star([i], j, int(cables[i][j]) * rate)
    return Topology(links)


def busbw(schedule, topology, nbytes=160e6):
    """nccl-tests' bus bandwidth of an all-reduce, in bytes/s."""
    n = schedule.num_devices
    seconds = simulate.timing(schedule, topology, nbytes).seconds
    return 2 * (n - 1) / n * nbytes / seconds


@pytest.mark.parametrize('cables', [
    P3_CABLES, some([0, 1, 2, 3]), some([0, 3, 4, 7]), some(range(7)),
    complete(3, 2), complete(4, 4), complete(8), LARGE['cliques'],
    at_random(np.random.default_rng(1), 7, 5, 1)])
def test_bus_bandwidth_is_that_of_the_cables_both_ways(cables):
    rings, rate = rings_of(cables), 20e9
    total = sum(count for _, count in rings)
    both = sch.rings(rings).check()
    assert busbw(both, machine(cables, rate)) == pytest.approx(
        2 * total * rate)
    one_way = sch.rings(rings, both_ways=False).check()
    assert busbw(one_way, machine(cables, rate)) == pytest.approx(
        total * rate)


@pytest.mark.parametrize('both_ways', [True, False])
def test_two_devices_use_both_directions_once(both_ways):
    cables = [[0, 4], [4, 0]]
    plan = sch.rings(rings_of(cables), both_ways).check()
    assert busbw(plan, machine(cables, 12e9)) == pytest.approx(4 * 12e9)
    assert len(plan.weights) == 2 and len(plan.rounds) == 2
    # Each direction carries all N bytes: half as sums, half as totals.
    timing = simulate.timing(plan, machine(cables, 12e9), 160e6)
    assert timing.load == pytest.approx({(0, 1): 160e6, (1, 0): 160e6})
    assert [*timing.busy().values()] == pytest.approx([1, 1])


def test_data_in_proportion_to_cables():
    plan = sch.rings([([0, 1, 2], 3), ([2, 0, 1], 1)], both_ways=False)
    assert plan.chunk_bytes(12).tolist() == [3, 3, 3, 1, 1, 1]
    first = [tuple(send)[:3] for send in plan.rounds[0]]
    assert first == [(0, 1, 0), (1, 2, 1), (2, 0, 2),
                     (2, 0, 3), (0, 1, 4), (1, 2, 5)]
    both = sch.rings([([0, 1, 2], 3), ([2, 0, 1], 1)])
    assert both.chunk_bytes(24).tolist() == 3 * [3] + 3 * [1] + (
        3 * [3] + 3 * [1])


@pytest.mark.parametrize('both_ways', [True, False])
def test_two_rings_are_the_rings_of_the_p3(both_ways):
    named = sch.two_rings(both_ways)
    plan = sch.rings(rings_of(P3_CABLES), both_ways)
    assert named.name == f'two_rings({both_ways})'
    assert named.weights.tolist() == plan.weights.tolist() == (
        np.repeat([2, 1, 2, 1][:4 if both_ways else 2], 8).tolist())
    assert [*map(tuple, named.rounds)] == [*map(tuple, plan.rounds)]
    assert named.rounds[0][0] == (0, 3, 0, True)
    assert named.rounds[0][8] == (0, 1, 8, True)
    assert len(named.rounds) == 14


@pytest.mark.parametrize('bad, words', [
    (lambda: sch.rings([]), 'rings is too short'),
    (lambda: sch.rings([[0, 1, 2]]), r'rings\[0\] must be a pair'),
    (lambda: sch.rings([([0], 1)]), r'rings\[0\]\[0\] is too short'),
    (lambda: sch.rings([([0, 1, 3], 1)]), r'rings\[0\]\[0\] must be .* 0 to'),
    (lambda: sch.rings([([0, 1, 1], 1)]), 'each once; it was'),
    (lambda: sch.rings([([0, 1, 2], 1), ([0, 1], 1)]),
     r'rings\[1\]\[0\] must be an order of all devices, 0 to 2'),
    (lambda: sch.rings([([0, 1], 0)]), r'rings\[0\]\[1\] must be a whole'),
    (lambda: sch.rings([([0, 'a'], 1)]), r'rings\[0\]\[0\]\[1\] must be'),
    (lambda: sch.rings([([0, 1], 1)], 1), 'both_ways must be True or False'),
    (lambda: sch.rings([(list(range(4000)), 1)]), 'rings must be smaller')])
def test_bad_rings(bad, words):
    with pytest.raises(ValueError, match=words):
        bad()
