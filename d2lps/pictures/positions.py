"""Places of nodes in the picture of a topology, or of a tree."""
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from d2lps.annotations import Node
from d2lps.collectives.topology import Topology


def positions(topology: Topology) -> dict[Node, Any]:
    """A point for every node and switch, a dict from name to (x, y).

    Nodes stand on a circle, switches between what they join.
    """
    turn = 2 * np.pi * np.arange(len(topology.nodes)) / len(topology.nodes)
    at = dict(zip(topology.nodes, np.stack([np.sin(turn), np.cos(turn)], 1)))
    at.update((switch, np.zeros(2)) for switch in topology.switches)
    # Lists, as sums of what is in a set differ in their last digits.
    near = {switch: [*dict.fromkeys(
        end for link in topology.links if switch in link[:2]
        for end in link[:2])] for switch in topology.switches}
    for _ in range(50):
        for switch in topology.switches:  # to the middle of its neighbours
            at[switch] = np.mean([at[other] for other in near[switch]], axis=0)
    return at


def tree_places(parents: Mapping[Node, Node], nodes: Iterable[Node]
               ) -> dict[Node, tuple[float, int]]:
    """Places of the nodes of trees: {node: (from the left, depth)}.

    parents: {child: parent}. Leaves stand at 0, 1, 2, ..., the others over
    the middle of their children. Nodes that send in a circle are left out.
    """
    at, leaves = {}, itertools.count()

    def put(node, depth):
        xs = [put(child, depth + 1) for child in nodes
              if parents.get(child) == node]
        x = float(np.mean(xs)) if xs else next(leaves)
        at[node] = x, depth
        return x

    for node in nodes:
        if node not in parents:
            put(node, 0)
    return at
