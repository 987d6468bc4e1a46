"""Times against figures worked by hand, and flows against a slow twin."""
import random
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lps.collectives import flows, simulate
from d2lps.collectives import strategies as sch
from d2lps.collectives import topology as top
from d2lps.collectives import Schedule, Send
from plans import topology_of

MB = 1e6


def ms(*args, **kwargs):
    return 1e3 * simulate.timing(*args, **kwargs).seconds


# --- the book's figures ------------------------------------------------------

def test_where_to_sum():
    server = top.pcie_switch(4)
    assert ms(sch.gather_broadcast(4), server, 160 * MB) == pytest.approx(60)
    assert ms(sch.gather_broadcast(4, 'cpu'), server, 160 * MB) == (
        pytest.approx(80))
    assert ms(sch.sharded(4), server, 160 * MB) == pytest.approx(15)


def test_two_rings():
    # 14 rounds, in each 2/3 of the data / 8 over two links of 18 GB/s.
    want = 14 * 160 * MB * 2 / 3 / 8 / 36e9 * 1e3
    assert round(want, 2) == 5.19
    machine = top.nvlink_p3()
    for barrier in True, False:
        assert ms(sch.two_rings(), machine, 160 * MB,
                  barrier=barrier) == pytest.approx(want)
        assert ms(sch.two_rings(True), machine, 160 * MB,
                  barrier=barrier) == pytest.approx(want / 2)
    # One way round, every cable is busy in one direction and idle in the
    # other; both ways, all are busy.
    busy = simulate.timing(sch.two_rings(), machine, 160 * MB).busy()
    assert sorted(busy.values()) == pytest.approx(16 * [0] + 16 * [1])
    assert all(busy[a, b] + busy[b, a] == pytest.approx(1) for a, b in busy)
    busy = simulate.timing(sch.two_rings(True), machine, 160 * MB).busy()
    assert list(busy.values()) == pytest.approx(32 * [1])
    # With the bandwidth of the data sheet:
    machine = top.nvlink_p3(top.NVLINK_V100)
    assert round(ms(sch.two_rings(), machine, 160 * MB), 2) == 3.73
    assert round(ms(sch.two_rings(True), machine, 160 * MB), 2) == 1.87


# --- closed forms on a switch ------------------------------------------------
# T seconds for all N bytes over one cable, A seconds of latency per message:
# each message takes two cables.

N, T, A = 160 * MB, 0.01, 2e-4


def on_switch(schedule, **kwargs):
    switch = top.pcie_switch(schedule.num_devices, N / T, A / 2)
    return simulate.timing(schedule, switch, N, **kwargs).seconds


def tree_levels(n):
    """Time of one way: 2 T a level, T if no parent there has two children."""
    depth = n.bit_length() - 1
    last = n - (2 ** depth - 1)  # nodes on the lowest level
    return sum((2 if level < depth or last > 1 else 1) * T + A
               for level in range(1, depth + 1))


@pytest.mark.parametrize('n', [2, 3, 5, 8, 31])
def test_closed_forms_on_a_switch(n):
    power = n.bit_length() - 1  # n is 2 ** power, or a bit more
    forms = {
        sch.gather_broadcast(n): 2 * ((n - 1) * T + A),
        sch.gather_broadcast(n, 'cpu'): 2 * (n * T + A),
        sch.sharded(n): 2 * ((n - 1) / n * T + A),
        sch.running_sum(n): 2 * (n - 1) * (T + A),
        sch.ring(n): 2 * (n - 1) * (T / n + A),
        # Both directions leave a device by the same cable.
        sch.bidirectional_ring(n): 2 * (n - 1) * (T / n + A),
        sch.tree(n): 2 * tree_levels(n),
        sch.recursive_doubling(n): power * (T + A) + (
            0 if n == 2 ** power else 2 * (T + A)),
        sch.halving_doubling(n): 2 * ((1 - 2 ** -power) * T + power * A) + (
            0 if n == 2 ** power else 2 * (T + A)),
    }
    for schedule, seconds in forms.items():
        assert on_switch(schedule) == pytest.approx(seconds), schedule


@pytest.mark.parametrize('power', [1, 2, 5])
def test_double_tree_on_a_switch(power):
    # Halves: T/2 on the lowest level, where only one child is, and T above.
    assert on_switch(sch.double_tree(2 ** power)) == pytest.approx(
        2 * (T / 2 + (power - 1) * T + power * A))


@pytest.mark.parametrize('m, d', [(1, 4), (3, 4), (5, 1)])
def test_hierarchical_on_a_switch_and_on_a_cluster(m, d):
    schedule = sch.hierarchical(m, d)
    inside = 2 * ((d - 1) / d * T + A) if d > 1 else 0
    assert on_switch(schedule) == pytest.approx(
        inside + 2 * (m - 1) * (T / m / d + A))
    # Cables of a cluster add latency each; the network is 20 times slower,
    # and the d rings share it.
    cluster = top.cluster(m, d, N / T, N / T / 20, latency=A / 2,
                          network_latency=A)
    assert simulate.timing(schedule, cluster, N).seconds == pytest.approx(
        inside + 2 * (m - 1) * (20 * T / m + 3 * A))


@pytest.mark.parametrize('workers, servers', [(1, 3), (5, 1), (8, 8)])
def test_parameter_server(workers, servers):
    schedule = sch.parameter_server(workers, servers)
    network = top.ethernet(schedule.nodes, N / T, A / 2)
    # A server takes workers/servers of T, a worker has T to send.
    assert simulate.timing(schedule, network, N).seconds == pytest.approx(
        2 * (max(workers / servers, 1) * T + A))
    if workers == servers > 1:
        together = sch.parameter_server(workers, servers, colocated=True)
        assert on_switch(together) == on_switch(sch.sharded(workers))


# --- sharing -----------------------------------------------------------------

def test_flows_share_and_speed_up_when_others_end():
    # 0 sends 10 bytes to 2 and 1 sends 30: 10 each by second 2, at half of
    # 10 bytes/s; the 20 that are left take 2 seconds more.
    plan = Schedule([[Send(0, 2, 0, True), Send(1, 2, 1, True)]], 3,
                    weights=[1, 3])
    timing = simulate.timing(plan, top.ethernet(3, 10.0), 40)
    assert [(e.start, e.end) for e in timing.events] == [
        (0.0, pytest.approx(2)), (0.0, pytest.approx(4))]


def twin(flows, capacity):
    """Ends of flows (delay, bytes, links), in fractions, one by one."""
    left = [Fraction(nbytes) for _, nbytes, _ in flows]
    ends, now = {}, Fraction(0)
    while len(ends) < len(flows):
        going = [k for k, flow in enumerate(flows)
                 if k not in ends and flow[0] <= now]
        rates, free = {}, dict(enumerate(map(Fraction, capacity)))
        open_ = set(going)
        while open_:
            share = {link: free[link] / users for link in free if (
                users := sum(link in flows[k][2] for k in open_))}
            tight = min(share, key=share.get)
            for k in [k for k in open_ if tight in flows[k][2]]:
                rates[k] = share[tight]
                for link in flows[k][2]:
                    free[link] -= share[tight]
                open_.remove(k)
        steps = [left[k] / rates[k] for k in going] + [
            flow[0] - now for flow in flows if flow[0] > now]
        step = min(steps)
        for k in going:
            left[k] -= step * rates[k]
            if not left[k]:
                ends[k] = now + step
        now += step
    return [float(ends[k]) for k in range(len(flows))]


@given(st.data())
def test_flows_agree_with_a_slow_exact_twin(data):
    capacity = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    links = st.sets(st.integers(0, len(capacity) - 1), min_size=1, max_size=3)
    drawn = data.draw(st.lists(st.tuples(
        st.integers(0, 3), st.integers(0, 20), links), min_size=1, max_size=7))
    pad = len(capacity)
    paths = np.array([[*path, pad, pad][:3] for _, _, path in drawn])
    delay, size = np.array([flow[:2] for flow in drawn], float).T
    starts, ends = flows.flow(paths, size, delay,
                                 np.array([*capacity, np.inf], float))
    assert ends == pytest.approx(twin(drawn, capacity))
    assert not starts.any()


@st.composite
def worlds(draw):
    """A strategy and a random connected topology with its nodes."""
    n = draw(st.integers(2, 8))
    make = draw(st.sampled_from([
        sch.gather_broadcast, sch.sharded, sch.running_sum, sch.ring, sch.tree,
        sch.bidirectional_ring, sch.double_tree, sch.recursive_doubling,
        sch.halving_doubling]))
    graph = nx.random_labeled_tree(n, seed=draw(st.integers(0, 10 ** 6)))
    more = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    graph.add_edges_from((a, b) for a, b in draw(st.lists(more)) if a != b)
    graph = graph.to_directed()
    little = random.Random(draw(st.integers(0, 10 ** 6)))
    for edge in graph.edges.values():
        # No two routes are equally good: whoever searches finds the same.
        uneven = 1 + 1e-3 * little.random()
        edge['bandwidth'] = draw(st.integers(1, 20)) * 1e8 * uneven
        edge['latency'] = draw(st.sampled_from([0, 1e-5, 3e-4]))
    return make(n), topology_of(graph)


def bytes_are_conserved(timing, events, routes, size, waits):
    carried = dict.fromkeys(timing.load, 0.0)
    alone = 0.0
    for event, route, wait in zip(events, routes, waits):
        for link in route:
            carried[link[:2]] += size[event.send.chunk]
        least = sum(link.latency for link in route) + size[
            event.send.chunk] / min(link.bandwidth for link in route)
        assert event.end - event.start >= least * (1 - 1e-6)
        alone += wait + least
    assert timing.load == pytest.approx(carried)
    # No link carried more than it can, and work never stops.
    assert max(timing.busy().values()) <= 1 + 1e-9
    assert timing.seconds <= alone * (1 + 1e-9)


def rates_carry_the_bytes(timing, events, routes, size):
    carried = np.zeros(len(events))
    for start, end, which, rates in timing.rates():
        through = dict.fromkeys(timing.load, 0)
        for k, rate in zip(which, rates):
            assert events[k].start <= start * (1 + 1e-6)
            assert end <= events[k].end * (1 + 1e-6)
            for link in routes[k]:
                through[link[:2]] += rate
                assert through[link[:2]] <= link.bandwidth * (1 + 1e-6)
        carried[which] += rates * (end - start)
    assert np.allclose(carried, [size[e.send.chunk] for e in events],
                       rtol=1e-6)


def turn(send, sends):
    """As which message its ends handle a send of a round: the later one."""
    to = [*dict.fromkeys(s.dst for s in sends if s.src == send.src)]
    come = [*dict.fromkeys(s.src for s in sends if s.dst == send.dst)]
    return 1 + max(to.index(send.dst), come.index(send.src))


def handled(event, schedule, overhead):
    return overhead * turn(event.send, schedule.rounds[event.round - 1])


def rounds_wait_for_each_other(events, schedule, overhead):
    for event in events:
        ends = [e.end for e in events if e.round == event.round - 1]
        assert event.start == pytest.approx(
            max(ends, default=0) + handled(event, schedule, overhead))


def sends_wait_only_for_what_they_need(events, schedule, overhead):
    for event in events:
        before = [e.end for e in events if e.round < event.round and (
            (e.send.dst, e.send.chunk) == (event.send.src, event.send.chunk)
            or e.send[:2] == event.send[:2])]
        assert event.start == pytest.approx(
            max(before, default=0) + handled(event, schedule, overhead))


@given(worlds(), st.booleans(), st.sampled_from([0, 0, 2e-6, 1e-4, 0.1]))
def test_what_is_true_on_random_topologies(world, barrier, overhead):
    is_true(*world, barrier, overhead)


def is_true(schedule, topology, barrier, overhead):
    timing = simulate.timing(schedule, topology, 12 * MB, barrier, overhead)
    events = list(timing.events)
    routes = [topology.route(*event.send[:2]) for event in events]
    size = schedule.chunk_bytes(12 * MB)
    waits = [handled(event, schedule, overhead) for event in events]
    bytes_are_conserved(timing, events, routes, size, waits)
    rates_carry_the_bytes(timing, events, routes, size)
    if barrier:
        rounds_wait_for_each_other(events, schedule, overhead)
    else:
        sends_wait_only_for_what_they_need(events, schedule, overhead)


UNEQUAL = Schedule(
    [[Send(k, (k + 1) % 5, (k + turn) % 5, True) for k in range(5)]
     for turn in range(3)], 5, weights=[1, 2, 3, 1, 2])


@pytest.mark.parametrize('overhead', [0, 3e-5])
def test_it_is_true_where_rounds_are_alike(overhead):
    """They are solved once, if their sends take equally long."""
    machines = top.cluster(2, 5, latency=1e-6, network_latency=1e-5)
    for schedule in sch.ring(7), UNEQUAL, sch.pipelined(sch.tree(9), 3):
        is_true(schedule, machines, True, overhead)
    is_true(sch.hierarchical(3, 4, lambda m: sch.parameter_server(m, 2)),
            top.cluster(3, 4, num_servers=2, network_latency=2e-5),
            True, overhead)


@pytest.mark.full
def test_ten_thousand_devices():
    n = 16_384
    timing = simulate.timing(sch.ring(n), top.pcie_switch(n, latency=A / 2), N)
    assert timing.seconds == pytest.approx(
        2 * (n - 1) * (N / n / top.PCIE3 + A))
    assert len(timing.load) == 2 * n
    assert np.allclose([*timing.load.values()], 2 * (n - 1) / n * N)
    assert timing.events[-1].end == pytest.approx(timing.seconds)
    assert timing.events[-1].send == sch.ring(n).rounds[-1][-1]
    start, end, which, rates = next(timing.rates())
    assert (start, end) == (A, pytest.approx(A + N / n / top.PCIE3))
    assert len(which) == n and np.allclose(rates, top.PCIE3)
    # 1024 machines: parts of their sums climb a tree of machines and come
    # back. Of two children each brings 8 of them through the parent's cable.
    inside = 2 * 7 / 8 * N / top.PCIE3
    levels = [2] * 9 + [1]  # the lowest of ten has one machine
    across = 2 * sum(levels) * N / top.ETHERNET_10G
    timing = simulate.timing(sch.hierarchical(1024, 8, sch.tree),
                             top.cluster(1024, 8), N)
    assert timing.seconds == pytest.approx(inside + across)


# --- messages that cost their ends time -----------------------------------

def test_each_end_handles_a_message_after_the_other():
    n = 8
    # Messages without bytes, on cables without latency: only handling takes
    # time, and the last message of a round waits for all turns before it.
    def seconds(make, *args):
        plan = make(n, *args)
        return simulate.timing(plan, top.ethernet(plan.nodes), 0,
                               overhead=2e-6).seconds * 1e6
    levels = n.bit_length() - 1
    assert seconds(sch.sharded) == pytest.approx(2 * (n - 1) * 2)
    assert seconds(sch.gather_broadcast) == pytest.approx(2 * (n - 1) * 2)
    assert seconds(sch.ring) == pytest.approx(2 * (n - 1) * 2)
    assert seconds(sch.parameter_server, 3) == pytest.approx(
        2 * max(n, 3) * 2)
    assert seconds(sch.recursive_doubling) == pytest.approx(levels * 2)
    # Many chunks for the same partner are one message.
    assert seconds(sch.halving_doubling) == pytest.approx(2 * levels * 2)


# --- rounds ------------------------------------------------------------------

def test_pipelining_without_a_barrier():
    # A slow link from 2 to 3 holds up the others only with the barrier.
    graph = nx.complete_graph(4)
    nx.set_edge_attributes(graph, 1e9, 'bandwidth')
    graph.edges[2, 3]['bandwidth'] = 1e8
    topology = topology_of(graph)
    plan = Schedule([[Send(0, 1, 0, True), Send(2, 3, 1, True)],
                     [Send(1, 2, 0, True)]], 4)
    assert ms(plan, topology, 2 * MB) == pytest.approx(10 + 1)
    assert ms(plan, topology, 2 * MB, barrier=False) == pytest.approx(10)


# --- Timing ------------------------------------------------------------------

def test_events_and_loads():
    timing = simulate.timing(sch.gather_broadcast(3), top.pcie_switch(3),
                             16 * MB)
    assert len(timing.events) == 4
    first, last = timing.events[0], timing.events[-1]
    assert first == (0.0, pytest.approx(2e-3), 1, Send(1, 0, 0, True))
    assert last == (pytest.approx(2e-3), pytest.approx(4e-3), 2,
                    Send(0, 2, 0, False))
    assert timing.events[1:3] == list(timing.events)[1:3]
    with pytest.raises(IndexError):
        timing.events[4]
    assert timing.load == {
        (0, 'switch'): 32 * MB, ('switch', 0): 32 * MB,
        (1, 'switch'): 16 * MB, ('switch', 1): 16 * MB,
        (2, 'switch'): 16 * MB, ('switch', 2): 16 * MB}
    assert timing.busy()['switch', 0] == pytest.approx(0.5)
    # Links that carry nothing are there, too.
    assert set(timing.busy()) == {link[:2] for link in timing.topology.links}
    assert timing.busy()['cpu', 'switch'] == 0
    assert '4 ms' in repr(timing)


def test_no_send_ends_before_it_starts():
    """Not even where its overhead is too short to be an event of its own."""
    plan = Schedule([[Send(0, 1, 0, False)], [Send(0, 1, 1, False)]], 2,
                    weights=[1, 0])
    timing = simulate.timing(plan, top.ethernet(2, 1e6), 1e6, barrier=False,
                             overhead=1e-10)
    assert [event.end >= event.start for event in timing.events] == [True] * 2


@pytest.mark.parametrize('barrier', [True, False])
def test_nothing_to_send_takes_no_time(barrier):
    timing = simulate.timing(sch.ring(1), top.pcie_switch(1), MB, barrier)
    assert timing.seconds == 0 and len(timing.events) == 0
    assert not list(timing.rates())
    assert set(timing.busy().values()) == {0}
    empty = simulate.timing(sch.ring(3), top.pcie_switch(3, latency=5e-4), 0,
                            barrier)
    assert empty.seconds == pytest.approx(4e-3) and not empty.load


SWITCH = top.pcie_switch(2)


def flows_on_one_link(n):
    return np.zeros((n, 1), int), np.ones(n), np.zeros(n), np.ones(1)


@pytest.mark.parametrize('call, words', [
    (lambda: simulate.timing('ring', SWITCH, 1),
     'schedule must be a Schedule'),
    (lambda: simulate.timing(sch.ring(2), 2, 1),
     'topology must be a Topology'),
    (lambda: flows.flow(*flows_on_one_link(1), [[0]]), 'flow 0 waits for'),
    (lambda: flows.flow(*flows_on_one_link(3), [[], [2], [1]]),
     r'flow 1 waits for \[2\], and one'),
])
def test_bad_arguments_are_named_and_nothing_hangs(call, words):
    with pytest.raises(ValueError, match=words):
        call()
