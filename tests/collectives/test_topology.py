"""Links, routes, and whether the presets are the machines they claim to be."""
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lps.collectives import strategies as sch
from d2lps.collectives import topology as top
from d2lps.collectives.topology import Link, Topology
from plans import topology_of

# Wang, Li, Liberty, Smola 2018: the GPUs of a p3.16xlarge in the order of
# two rings, by the paper's numbers, and how many NVLinks make a hop.
PAPER_RINGS = [([1, 2, 3, 4, 5, 6, 7, 8], 2), ([1, 4, 6, 3, 5, 8, 2, 7], 1)]


def of_matrix(cables):
    """Undirected graph with the number of cables on each edge."""
    graph = nx.Graph()
    for a, b in np.argwhere(cables):
        graph.add_edge(a, b, links=cables[a, b])
    return graph


def of_rings(rings):
    graph = nx.Graph()
    for order, links in rings:
        nx.add_cycle(graph, order, links=links)
    return graph


def of_topology(topology):
    graph = nx.Graph()
    for link in topology.links:
        graph.add_edge(*link[:2], links=link.bandwidth / top.NVLINK)
    return graph


def same(one, other):
    return nx.is_isomorphic(one, other,
                            edge_match=lambda a, b: a['links'] == b['links'])


def test_the_papers_rings_are_the_cables_of_the_p3():
    assert same(of_rings(PAPER_RINGS), of_matrix(top.P3_CABLES))


def test_the_cables_come_apart_into_two_rings():
    rings = top.rings_of(top.P3_CABLES)
    assert [links for _, links in rings] == [2, 1]
    again = np.zeros((8, 8), int)
    for order, links in rings:
        assert sorted(order) == list(range(8))
        for a, b in zip(order, order[1:] + order[:1]):
            again[a, b] = again[b, a] = links
    assert (again == top.P3_CABLES).all()
    assert same(of_rings(rings), of_rings(PAPER_RINGS))


TWO_TRIANGLES = np.kron(np.eye(2, dtype=int), 1 - np.eye(3, dtype=int))
CHAIN = np.diag([3, 3], 1) + np.diag([3, 3], -1)


@pytest.mark.parametrize('cables, words', [
    (TWO_TRIANGLES, 'no cables lead from device 0 to devices 3'),
    (CHAIN, 'device 0 has cables to device 1 only'),
    (np.triu(np.ones((3, 3), int), 1), 'symmetric matrix'),
    ('two', 'must be'), ([[0], [1, 2]], 'must be')])
def test_cables_that_make_no_rings(cables, words):
    with pytest.raises(ValueError, match=f'^cables.*{words}'):
        top.rings_of(cables)


def test_nvlink_is_built_from_the_matrix_in_its_numbering():
    topology = top.nvlink_p3()
    assert topology.nodes == tuple(range(8))
    graph = of_topology(topology)
    assert nx.utils.graphs_equal(graph, of_matrix(top.P3_CABLES))
    assert len(topology.links) == 2 * graph.number_of_edges() == 32


def test_pcie_switch():
    topology = top.pcie_switch(4)
    assert set(topology.nodes) == {0, 1, 2, 3, 'cpu'}
    assert len(topology.links) == 10
    assert {link.bandwidth for link in topology.links} == {16e9}
    assert topology.route(1, 'cpu') == [Link(1, 'switch', 16e9, 0.0),
                                        Link('switch', 'cpu', 16e9, 0.0)]
    slow = top.pcie_switch(2, latency=4e-6).route(0, 1)
    assert sum(link.latency for link in slow) == pytest.approx(8e-6)


def test_ethernet_by_number_and_by_name():
    assert top.ethernet(3, 1e8).nodes == (0, 1, 2)
    names = sch.parameter_server(2, 2).nodes
    topology = top.ethernet(names, 1e8)
    assert topology.nodes == (0, 1, 'server 0', 'server 1')
    assert len(topology.route(0, 'server 1')) == 2


def test_cluster():
    topology = top.cluster(3, 2, inside=16e9, network=1e9, num_servers=1,
                           latency=1e-6, network_latency=1e-5)
    assert {'cpu 2', 'server 0', *range(6)} < set(topology.nodes)
    # In this order, or pictures would differ from run to run.
    assert topology.switches == ('network', *(f'switch {k}' for k in range(3)))
    near, far = topology.route(0, 1), topology.route(1, 4)
    assert [link[:2] for link in near] == [(0, 'switch 0'), ('switch 0', 1)]
    assert [link[:2] for link in far] == [
        (1, 'switch 0'), ('switch 0', 'network'), ('network', 'switch 2'),
        ('switch 2', 4)]
    assert min(link.bandwidth for link in far) == 1e9
    assert sum(link.latency for link in far) == pytest.approx(2.2e-5)
    assert [link[:2] for link in topology.route('server 0', 'cpu 0')] == [
        ('server 0', 'network'), ('network', 'switch 0'),
        ('switch 0', 'cpu 0')]


def test_a_route_takes_few_links_first_and_fast_links_next():
    graph = nx.DiGraph()
    graph.add_edge('a', 'slow', bandwidth=1)
    graph.add_edge('slow', 'b', bandwidth=1)
    graph.add_edge('a', 'fast', bandwidth=9)
    graph.add_edge('fast', 'b', bandwidth=9)
    assert [x.dst for x in topology_of(graph).route('a', 'b')] == [
        'fast', 'b']
    graph.add_edge('a', 'b', bandwidth=0.01)
    assert len(topology_of(graph).route('a', 'b')) == 1


@st.composite
def graphs(draw):
    n = draw(st.integers(2, 9))
    graph = nx.random_labeled_tree(n, seed=draw(st.integers(0, 10 ** 6)))
    pairs = [(a, b) for a in range(n) for b in range(a)]
    graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), max_size=8)))
    graph = graph.to_directed()
    for edge in graph.edges:
        graph.edges[edge]['bandwidth'] = draw(st.sampled_from([1, 2, 3, 10]))
    leaves = [node for node in graph if graph.out_degree(node) == 1]
    inner = sorted(set(graph) - set(leaves))
    keep = draw(st.booleans()) and len(leaves) > 1
    return graph, inner if keep else []


@given(graphs())
def test_routes_are_shortest_paths(case):
    graph, switches = case
    topology = topology_of(graph, switches)
    assert set(topology.nodes) == set(graph) - set(switches)
    for a in topology.nodes:
        for b in topology.nodes:
            if a == b:
                continue
            route = topology.route(a, b)
            assert route[0].src == a and route[-1].dst == b
            assert all(x.dst == y.src for x, y in zip(route, route[1:]))
            assert len(route) == nx.shortest_path_length(graph, a, b)
            assert sum(1 / link.bandwidth for link in route) == pytest.approx(
                min(sum(1 / graph.edges[edge]['bandwidth']
                        for edge in zip(path, path[1:]))
                    for path in nx.all_shortest_paths(graph, a, b)))


def one_way():
    return Topology([Link(0, 1, 1.0, 0.0)])


@pytest.mark.parametrize('bad, words', [
    (lambda: Topology([Link(0, 1, 1, 0), Link(0, 1, 2, 0)]), 'join the same'),
    (lambda: Topology([Link(0, 1, np.inf, 0)]), r'links\[0\].bandwidth must'),
    (lambda: Topology([Link(0, 0, 1, 0)]), r'links\[0\] joins 0 to itself'),
    (lambda: Topology([(0, 1, 1, 0)]), 'links must be a list of Link'),
    (lambda: Topology([Link(0, 1, 1, 0)], [2]), 'switches: no link goes to 2'),
    (lambda: one_way().route(1, 0), 'no way from 1 to 0'),
    (lambda: one_way().route(0, 'cpu'), "no node 'cpu'; it has 0, 1"),
    (lambda: top.pcie_switch(2).route(0, 'switch'), "no node 'switch'"),
    (lambda: top.pcie_switch(10 ** 9), 'n must be .*from 1 to 100,000'),
    (lambda: top.ethernet([]), 'hosts must be a whole number'),
    (lambda: top.ethernet([1, 1]), 'hosts must be .* different names'),
    (lambda: top.cluster(10 ** 4, 10 ** 3),
     '10,010,000 nodes, and at most 100,000'),
    (lambda: top.nvlink_p3(True), 'bandwidth must be a positive .*True'),
    (lambda: top.both_ways(0.5, 1, 1), 'a must be a name of a node'),
])
def test_bad_arguments_are_named(bad, words):
    with pytest.raises(ValueError, match=words):
        bad()
