"""Links between nodes, and the routes that messages take over them."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from d2lps.annotations import Node
from d2lps.checks import checked, number, positive, refuse, text
from d2lps.collectives import limits
from d2lps.collectives.routes import Router
from d2lps.units import several

if TYPE_CHECKING:
    import networkx


class Link(NamedTuple):
    """One direction of a cable: bandwidth in bytes/s, latency in s."""
    src: Node
    dst: Node
    bandwidth: float
    latency: float


def _links(name, value):
    """A check: a list of `Link`, no two of them between the same nodes."""
    if not isinstance(value, (list, tuple)) or not all(
            isinstance(link, Link) for link in value):
        refuse(name, value, 'a list of Link, such as both_ways(0, 1, 16e9)')
    for k, link in enumerate(value):
        ends = [limits.node(f'{name}[{k}]', end) for end in link[:2]]
        if ends[0] == ends[1]:
            raise ValueError(f'{name}[{k}] joins {link.src!r} to itself')
        positive(f'{name}[{k}].bandwidth', link.bandwidth)
        number(f'{name}[{k}].latency', link.latency)
    if len({link[:2] for link in value}) < len(value):
        raise ValueError(f'{name}: two of them join the same nodes; make '
                         'them one link with the sum of the bandwidths')
    return value


class Topology:
    """Nodes and the links between them.

    links: `Link`s, at most one from any node to any other.
    switches: nodes that pass data on but are not the end of a route.

    A route has as few links as possible; of several such routes, it is one
    with the least sum of 1 / bandwidth.
    bandwidth, latency: of all links, arrays; one entry more for no link.
    Raises ValueError for a link that exists twice or has no bandwidth.
    """

    @checked(links=_links, switches=limits.names, name=text)
    def __init__(self, links: Sequence[Link], switches: Iterable[Node] = (),
                 name: str = 'topology') -> None:
        self.links, self.name = tuple(links), name
        self.switches = tuple(switches)
        self.number = {link[:2]: k for k, link in enumerate(self.links)}
        self.bandwidth, self.latency = np.array(
            [link[2:] for link in self.links] + [(np.inf, 0.0)], float).T
        ends = dict.fromkeys(end for link in self.links for end in link[:2])
        passing = {*self.switches}
        lost = [switch for switch in self.switches if switch not in ends]
        if lost:
            raise ValueError(f'switches: no link goes to {lost[0]!r}')
        self.nodes = tuple(end for end in ends if end not in passing)
        self.position = {node: k for k, node in enumerate(self.nodes)}
        self._router = Router([*self.nodes, *self.switches], self.number,
                              self.graph)

    def __repr__(self) -> str:
        return (f'<{self.name}: {several(len(self.nodes), "node")}, '
                f'{several(len(self.switches), "switch", "switches")}, '
                f'{several(len(self.links), "link")}>')

    def graph(self) -> networkx.DiGraph:
        """The topology as a `networkx.DiGraph`, to look at or change."""
        import networkx  # here, because it takes 0.1 s to import
        graph = networkx.DiGraph(name=self.name)
        slowest = self.bandwidth.min()
        for link in self.links:
            # One more link is worse than slow links: the rest is below 1.
            hop = 1 + slowest / link.bandwidth / (1 + len(self.links))
            graph.add_edge(*link[:2], bandwidth=link.bandwidth,
                           latency=link.latency, hop=hop)
        return graph

    def route(self, src: Node, dst: Node) -> list[Link]:
        """The links from `src` to `dst`, a list of `Link`.

        Raises ValueError if a node does not exist or no route joins them.
        """
        row, = self.routes(self.positions([src], 'src'),
                           self.positions([dst], 'dst'))
        return [self.links[k] for k in row if k < len(self.links)]

    def positions(self, nodes: Iterable[Node],
                  name: str = 'nodes') -> np.ndarray:
        """The positions of `nodes` in `self.nodes`: an integer array.

        name: the name of the nodes in the ValueError for missing nodes.
        """
        for node in nodes:
            if limits.node(name, node) not in self.position:
                more = ' …' if len(self.nodes) > 20 else ''
                raise ValueError(
                    f'{name}: {self.name} has no node {node!r}; it has '
                    f'{", ".join(map(repr, self.nodes[:20]))}{more}')
        return np.array([self.position[node] for node in nodes], int)

    def routes(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Routes of k pairs at once, as numbers of links.

        src, dst: integer arrays (k,) of positions in `self.nodes`. Returns
        an integer array (k, length of the longest route): row i has the
        route from src[i] to dst[i]. Rows are filled up with len(links).
        """
        return self._router.routes(src, dst)


@checked(a=limits.node, b=limits.node, bandwidth=positive, latency=number)
def both_ways(a: Node, b: Node, bandwidth: float,
              latency: float = 0.0) -> list[Link]:
    """A full-duplex cable between `a` and `b`: a list of two `Link`s."""
    return star([a], b, bandwidth, latency)


def star(nodes: Iterable[Node], middle: Node, bandwidth: float,
         latency: float = 0.0) -> list[Link]:
    """Full-duplex cables between each of `nodes` and the middle."""
    return [Link(*ends, bandwidth, latency) for node in nodes
            for ends in ((node, middle), (middle, node))]
