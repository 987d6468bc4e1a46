"""Plans that a page lets race: pictures that obey the page's clock."""
import re

from d2lps.collectives import simulate, strategies, topology
from d2lps.pictures.animation.playtime import Driven
from d2lps.pictures.animation.timing_panel import FOOT, HEAD, Panel
from d2lps.pictures.drawing import Drawing

NUM, NBYTES = 4, 160e6
TITLE = HEAD - 36  # what a panel keeps for its name, which the page shows
# What readers call a plan, what it does, and how to make it.
PLANS = {
    'gather': ('GPU 0 adds everything', 'All GPUs send their gradients to '
               'GPU 0. It adds them, and sends the sum back to each GPU.',
               strategies.gather_broadcast(NUM)),
    'cpu': ('The CPU adds everything', 'All GPUs send their gradients to the '
            'CPU. It adds them, and sends the sum back to each GPU.',
            strategies.gather_broadcast(NUM, 'cpu')),
    'sharded': ('Each GPU adds a quarter', 'Each GPU gets one quarter from '
                'all other GPUs, adds it, and sends the sum to all of them.',
                strategies.sharded(NUM)),
    'ring': ('Quarters go around a ring', 'Each GPU sends a quarter to its '
             'neighbour: three rounds to add, three rounds to share.',
             strategies.ring(NUM)),
    'one': ('One sum goes from GPU to GPU', 'Each GPU adds its gradient and '
            'sends the sum on. Then the total goes around.',
            strategies.running_sum(NUM)),
    'tree': ('Sums climb a tree', 'GPUs 1 and 2 send to GPU 0, GPU 3 to GPU '
             '1. The total comes down the same way.',
             strategies.tree(NUM)),
    'halves': ('Halves, then quarters', 'Partners exchange halves, then '
               'quarters with the next partner, then the same in reverse.',
               strategies.halving_doubling(NUM))}
LINKS = {
    'switch': ('a PCIe switch, 16 GB/s for each GPU', topology.Topology(
        [link for k in range(NUM) for link in topology.both_ways(
            k, 'switch', topology.PCIE3)], ['switch'], 'pcie, no CPU')),
    'ring': ('a ring of cables, 18 GB/s each', topology.Topology(
        [link for k in range(NUM) for link in topology.both_ways(
            k, (k + 1) % NUM, topology.NVLINK)], name='a ring of cables'))}
NAME = re.compile(r'(\b(?:id="|href="#|class="(?=t\d))|url\(#)(?=\w)')
MOVES = re.compile(r'(?<=[.: ,])(t\d+)\b(?=[{,"; ])')


class Racer:
    """A plan on some links: `svg` is its picture at --now, a text.

    seconds: how long it takes. rounds: (words, begin) of each. complete:
    when each GPU has all of the sum. All times are in ms.
    """

    def __init__(self, plan: str, links: str) -> None:
        self.name, self.summary, schedule = PLANS[plan]
        # The CPU is drawn where it does something.
        place = (topology.pcie_switch(NUM) if plan == 'cpu' else
                 LINKS[links][1])
        timing = simulate.timing(schedule, place, NBYTES)
        clock = Driven(timing.seconds, 1)
        rates = sorted({*timing.topology.bandwidth[:-1].tolist()})[::-1]
        panel = Panel(timing, '', rates)
        drawing = Drawing(panel.width, panel.height - TITLE - FOOT + 8,
                          f'{self.name}, with {LINKS[links][0]}')
        complete = panel.draw(drawing, clock, 0, -TITLE, None)
        drawing.add(clock.style())
        self.svg = _alone(drawing.svg(), f'{plan}-{links}-')
        self.seconds = clock.real(timing.seconds)
        self.rounds = [(name, clock.real(begin))
                       for name, begin, _ in panel.rounds()]
        self.complete = [clock.real(time) for time in complete]


def _alone(svg, prefix):
    """Names in it are not those of other pictures on the page."""
    svg = svg.replace('class="n"', 'class="race-n"')  # of race.css
    svg = NAME.sub(lambda match: match[1] + prefix, svg)
    return MOVES.sub(lambda match: prefix + match[1], svg)


def racers() -> dict[str, dict[str, Racer]]:
    """All that can race, a dict from links to a dict from plans."""
    return {links: {plan: Racer(plan, links) for plan in PLANS
                    if links == 'switch' or plan != 'cpu'}
            for links in LINKS}
