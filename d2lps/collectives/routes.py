"""Routes: the links that a message takes from node to node."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from d2lps.annotations import Node

if TYPE_CHECKING:
    import networkx

MOST_LAYERS = 3  # of switches above a node; deeper networks are searched


class Router:
    """Finds the routes of a topology, many at once.

    Vertices with a single neighbour are removed, layer by layer. Most of a
    network is such layers: a route climbs them and comes down again. `up`
    and `down` have each vertex's link in each layer, `gate` the vertex above
    the last one. Only the routes from gate to gate have to be searched.

    vertices: the nodes of the topology, and then its switches.
    number: the number of the link from a vertex to another.
    graph: makes `Topology.graph` when a route has to be searched.
    """

    def __init__(self, vertices: Sequence[Node],
                 number: Mapping[tuple[Node, Node], int],
                 graph: Callable[[], networkx.DiGraph]) -> None:
        self.vertices, self.number = vertices, number
        self.none = len(number)
        self._make_graph = graph
        self.graph: networkx.DiGraph | None = None
        self.paths: dict[int, dict[Node, list[Node]]] = {}
        self._find_layers(number)

    def _find_layers(self, number):
        place = {vertex: k for k, vertex in enumerate(self.vertices)}
        near = {vertex: set() for vertex in place}
        for src, dst in number:
            near[src].add(dst)
            near[dst].add(src)
        layers = []
        self.gate = np.arange(len(place))
        for _ in range(MOST_LAYERS):
            above = np.arange(len(place))
            cables = np.full((2, len(place)), self.none)
            leaves = [vertex for vertex in near if len(near[vertex]) == 1]
            for vertex in leaves:
                parent = next(iter(near[vertex]), None)  # None: it came off
                up = number.get((vertex, parent), self.none)
                down = number.get((parent, vertex), self.none)
                if self.none not in (up, down):
                    near[vertex].clear()
                    near[parent].remove(vertex)
                    above[place[vertex]] = place[parent]
                    cables[:, place[vertex]] = up, down
            layers.append(cables[:, self.gate])
            self.gate = above[self.gate]
        layers = np.array(layers)
        filled = (layers < self.none).any(axis=(1, 2))
        self.up, self.down = layers[filled].transpose(1, 2, 0)

    def routes(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """The result of `Topology.routes`."""
        up, down = self.up[src], self.down[dst]
        both = up == self.up[dst]  # above the vertex where the two ways meet
        up[both] = down[both] = self.none
        # The rest has to be searched; many pairs have it in common.
        ends = len(self.vertices)
        codes, which = np.unique(self.gate[src] * ends + self.gate[dst],
                                 return_inverse=True)
        middle = [self._path(*divmod(code, ends)) for code in codes.tolist()]
        width = max(map(len, middle), default=0)
        filled = [path + [self.none] * (width - len(path)) for path in middle]
        table = np.array(filled, int).reshape(len(middle), width)
        return np.column_stack([up, table[which], down[:, ::-1]])

    def _path(self, start, stop):
        """Numbers of the links from one vertex to another."""
        if start == stop:
            return []
        if start not in self.paths:
            import networkx
            self.graph = self.graph or self._make_graph()
            self.paths[start] = networkx.single_source_dijkstra_path(
                self.graph, self.vertices[start], weight='hop')
        path = self.paths[start].get(self.vertices[stop])
        if path is None:
            ends = self.vertices[start], self.vertices[stop]
            raise ValueError('{} has no way from {!r} to {!r}'.format(
                self.graph.name, *ends))
        return [self.number[step] for step in zip(path, path[1:])]
