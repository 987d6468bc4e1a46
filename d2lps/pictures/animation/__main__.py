"""Make the picture of the README: python -m d2lps.pictures.animation FOLDER

NAME.svg plays over and over; NAME-still.svg is for readers who want no
motion.
"""
import sys
from pathlib import Path

from d2lps.collectives import simulate, strategies, topology
from d2lps.pictures.animation.animation import animate
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.ideas import for_readme


def readme_pictures() -> dict[str, Drawing]:
    """The pictures of the README, a dict from their names."""
    machine = topology.pcie_switch(4)
    race = animate(
        *(simulate.timing(plan, machine, 160e6) for plan in (
            strategies.gather_broadcast(4), strategies.sharded(4))),
        title='160 MB from each of 4 GPUs',
        names=['GPU 0 adds everything', 'each GPU adds a quarter'])
    return {'where-to-sum': race.looping(),
            'where-to-sum-still': race.still(3)}


if __name__ == '__main__':
    for name, drawing in readme_pictures().items():
        Path(sys.argv[1], f'{name}.svg').write_text(for_readme(drawing),
                                                    encoding='utf-8')
