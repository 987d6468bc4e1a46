"""Schedules for tests: all strategies, by name or drawn at random."""
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from d2lps.collectives import strategies as sch
from d2lps.collectives import topology

BY_N = {
    'gather_broadcast': sch.gather_broadcast,
    'gather_last': lambda n: sch.gather_broadcast(n, n - 1),
    'gather_cpu': lambda n: sch.gather_broadcast(n, 'cpu'),
    'sharded': sch.sharded,
    'running_sum': sch.running_sum,
    'ring': sch.ring,
    'bidirectional_ring': sch.bidirectional_ring,
    'tree': sch.tree,
    'double_tree': sch.double_tree,
    'recursive_doubling': sch.recursive_doubling,
    'halving_doubling': sch.halving_doubling,
    'pipelined': lambda n: sch.pipelined(sch.double_tree(n), 3),
}
BY_TWO = {
    'hierarchical': sch.hierarchical,
    'hierarchical, servers': lambda m, d: sch.hierarchical(
        m, d, lambda m: sch.parameter_server(m, 2)),
    'parameter_server': sch.parameter_server,
    'colocated': lambda w, s: sch.parameter_server(w, s, colocated=True),
}
@st.composite
def schedules(draw, most=7):
    if draw(st.integers(0, 3)):
        make = BY_N[draw(st.sampled_from(sorted(BY_N)))]
        return make(draw(st.integers(1, most)))
    make = BY_TWO[draw(st.sampled_from(sorted(BY_TWO)))]
    return make(draw(st.integers(1, 3)), draw(st.integers(1, 3)))


DTYPES = ['int8', 'uint8', 'int32', 'int64', 'float16', 'float32', 'float64']
OPS = {'add': np.add, 'multiply': np.multiply, 'maximum': np.maximum,
       'minimum': np.minimum, 'own': lambda a, b: a + b}


@st.composite
def some_run(draw):
    """A schedule, a reduction, an array for each device, and the result."""
    schedule = draw(schedules())
    dtype, op = draw(st.sampled_from(DTYPES)), draw(st.sampled_from([*OPS]))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0,
                                  max_side=9))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    data = random.integers(1, 3, (schedule.num_devices, *shape)).astype(dtype)
    # Not OPS[op].reduce: it would widen small integers.
    want = data[0].copy()
    for array in data[1:]:
        want = OPS[op](want, array).astype(dtype)
    return schedule, OPS[op], data, want


def topology_of(graph, switches=()):
    """A topology from a `networkx` graph, directed or not.

    Edges have a bandwidth, and may have a latency.
    """
    return topology.Topology([
        topology.Link(src, dst, edge['bandwidth'], edge.get('latency', 0.0))
        for src, dst, edge in graph.to_directed().edges(data=True)], switches)
