"""Where nodes stand in the picture of a topology."""
import numpy as np

from d2lps.checks import a, checked
from d2lps.collectives.topology import Topology


@checked(topology=a(Topology, 'a Topology: pcie_switch(4)'))
def positions(topology):
    """A point for every node and switch, a dict from name to (x, y).

    Nodes stand on a circle, switches between what they join.
    """
    turn = 2 * np.pi * np.arange(len(topology.nodes)) / len(topology.nodes)
    at = dict(zip(topology.nodes, np.stack([np.sin(turn), np.cos(turn)], 1)))
    at.update((switch, np.zeros(2)) for switch in topology.switches)
    near = {switch: {end for link in topology.links if switch in link[:2]
                     for end in link[:2]} for switch in topology.switches}
    for _ in range(50):
        for switch in topology.switches:  # to the middle of its neighbours
            at[switch] = np.mean([at[other] for other in near[switch]], axis=0)
    return at
