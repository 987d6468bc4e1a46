"""Make the pictures of the README: python -m d2lps_pictures.animation FOLDER

Each is an animation, NAME.svg, and what readers see who want no motion,
NAME-still.svg.
"""
import sys
from pathlib import Path

from d2lps.collectives import simulate, strategies, topology
from d2lps_pictures.animation.animation import animate


def readme_pictures(nbytes=160e6):
    """The animations of the README, a dict from their names."""
    server = topology.pcie_switch(4)
    circle = topology.Topology(
        [link for k in range(4) for link in topology.both_ways(
            k, (k + 1) % 4, topology.NVLINK)], name='a circle of cables')
    return {
        'where-to-sum': animate(
            *(simulate.time(plan, server, nbytes) for plan in (
                strategies.gather_broadcast(4), strategies.sharded(4))),
            title='160 MB from each of 4 GPUs',
            names=['GPU 0 adds everything', 'each GPU adds a quarter']),
        'ring': animate(
            simulate.time(strategies.ring(4), circle, nbytes),
            names=['a ring of 4 GPUs, 160 MB each'])}


if __name__ == '__main__':
    for name, animation in readme_pictures().items():
        animation.save(Path(sys.argv[1], f'{name}.svg'))
        animation.still(4).save(Path(sys.argv[1], f'{name}-still.svg'))
