"""Which strategy is fastest over which links?"""
from collections.abc import Sequence
from functools import cache, partial

from d2lps.checks import (checked, integer, list_of, number, one_of, positive,
                          refuse)
from d2lps.collectives import simulate, topology
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import Row, wrapped
from d2lps.pictures.plots import plot_comparison, plot_topology, shown_ms
from d2lps.pictures.rows import LETTERS, new_figure
from d2lps.pictures.toys.explore_plans import PLANS
from d2lps.pictures.widgets import live_picture
from d2lps.units import several

# Names in PLANS: strategies for any links and any even number of devices.
STRATEGIES = ('gather_broadcast', 'cpu', 'sharded', 'running_sum', 'ring',
              'bidirectional_ring', 'tree', 'double_tree',
              'recursive_doubling', 'halving_doubling', 'hierarchical')


def _cables_in_a_ring(n, bandwidth, latency):
    """n devices with cables to their neighbours; two share one cable."""
    pairs = [(i, (i + 1) % n) for i in range(n)] if n > 2 else [(0, 1)]
    return topology.Topology([
        link for a, b in pairs
        for link in topology.both_ways(a, b, bandwidth, latency)])


def _two_machines(n, bandwidth, latency):
    """Two machines of n // 2 devices, joined by 10 Gbit/s Ethernet."""
    return topology.cluster(2, n // 2, bandwidth, latency=latency,
                            network_latency=latency)


# What can join n devices, given bytes/s and seconds of latency per cable.
LINKS = {'one PCIe switch': topology.pcie_switch,
         'cables in a ring': _cables_in_a_ring,
         'two machines, 10 Gbit/s apart': _two_machines}


def _drawable(num_devices, plans, **_):
    """Two machines share the devices equally; not all links join a CPU."""
    if num_devices % 2:
        refuse('num_devices', num_devices, 'an even number')
    if plans and {*plans} == {'cpu'}:
        refuse('plans', plans, "more than 'cpu', which not all links join")


@cache
def _plan(name, num_devices):
    return PLANS[name][1](num_devices)


def _sentence(timings):
    """Which are the best and the worst, if one is better than the others."""
    times = [shown_ms(timing) for timing in timings]
    if min(times) == max(times):
        return f'All take {times[0]:,g} ms.'
    said = []
    for word, time in ('Best', min(times)), ('Worst', max(times)):
        name, *others = [timing.schedule.name for timing in timings
                         if shown_ms(timing) == time]
        also = f' and {several(len(others), "other")}' if others else ''
        said.append(f'{word}: {name}{also}, {time:,g} ms.')
    return ' '.join(said)


def draw_synchronisation(links: str, n: int, megabytes: float,
                         bandwidth: float, latency: float, which: str,
                         plans: Sequence[str] = STRATEGIES) -> Row:
    """The picture of the toy: times on the left, links on the right.

    which: 'best' or 'worst', whose links are shown.
    """
    joined = LINKS[links](n, bandwidth * 1e9, latency / 1e6)
    made = [_plan(name, n) for name in plans]
    timings = [simulate.timing(plan, joined, megabytes * 1e6) for plan in made
               if {*plan.nodes} <= {*joined.nodes}]
    best, worst = (find(timings, key=shown_ms) for find in (min, max))
    high = max(3.5, 1.4 + 0.27 * len(plans))  # inches
    left = new_figure(4.2, high, layout=None)
    left.suptitle('\n'.join(wrapped(_sentence(timings), LETTERS, 390, True)),
                  x=0.01, ha='left')
    ax = left.add_axes((0.46, 0.55 / high, 0.49, 1 - 1.25 / high))
    plot_comparison(timings, ax=ax)
    ax.tick_params(axis='y', labelsize=9)  # points
    shown = {'best': best, 'worst': worst}[which]
    right = plot_topology(
        joined, shown.busy(), scale=False, width=312,
        title=f'The {which}, {shown.schedule.name}: busy links stand out')
    right.height = 96 * high
    return Row(left, right)


@checked(_drawable, links=one_of(*LINKS), megabytes=positive,
         bandwidth=positive, latency=number,
         num_devices=partial(integer, least=2, most=16),
         plans=list_of(one_of(*STRATEGIES), 'a list of names of strategies'))
def explore_synchronisation(links: str = 'one PCIe switch',
                            num_devices: int = 4, megabytes: float = 160,
                            bandwidth: float = 16, latency: float = 0,
                            plans: Sequence[str] | None = None) -> None:
    """Choose links and data; see what each strategy would take.

    megabytes: of each device's array. bandwidth: GB/s of a cable, each way.
    latency: µs per cable, of which a message may cross several.
    plans: names of `STRATEGIES`; without it, all. 'cpu' is `gather_broadcast`
    on the CPU.
    """
    live_picture(partial(draw_synchronisation, plans=tuple(
        plans or STRATEGIES)), dict(
        links=menu([*LINKS], links, 'links'),
        n=choose(range(2, 17, 2), num_devices, 'devices'),
        megabytes=choose([.01, .1, 1, 10, 40, 160, 1000], megabytes, 'MB'),
        bandwidth=choose([1, 2, 4, 10, 16, 32, 100], bandwidth, 'GB/s'),
        latency=choose([0, 1, 5, 20, 100, 1000], latency, 'µs per cable'),
        which=menu(['best', 'worst'], 'best', 'links of the')))
