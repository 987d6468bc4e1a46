"""Which strategy is fastest over which links?"""
from functools import partial

from d2lps.checks import (checked, list_of, number, one_of, positive, refuse,
                          whole)
from d2lps.collectives import simulate
from d2lps_pictures.controls import choose, menu
from d2lps_pictures.drawing import Row
from d2lps_pictures.menus import CHOICES, LINKS, PLANS, STRATEGIES
from d2lps_pictures.plots import plot_comparison, plot_topology, shown_ms
from d2lps_pictures.widgets import live_picture


def _drawable(num_devices, plans, **_):
    """Two machines share the devices equally; not all links join a CPU."""
    if num_devices % 2:
        refuse('num_devices', num_devices, 'an even number')
    if plans and {*plans} == {'cpu'}:
        refuse('plans', plans, "more than 'cpu', which not all links join")


@checked(_drawable, links=one_of(*LINKS), megabytes=positive,
         bandwidth=positive, latency=number,
         num_devices=partial(whole, least=2, most=16),
         plans=list_of(one_of(*STRATEGIES), 'a list of names of strategies'))
def explore_synchronisation(links='one PCIe switch', num_devices=4,
                            megabytes=160, bandwidth=16, latency=0,
                            plans=None):
    """Choose links and data; see what each strategy would take.

    megabytes: of each device's array. bandwidth: GB/s of a cable, each way.
    latency: µs per cable, of which a message may cross several.
    plans: names of `STRATEGIES`; without it, all. 'cpu' is `gather_broadcast`
    on the CPU.
    """
    def draw(links, n, megabytes, bandwidth, latency, which):
        joined = LINKS[links](n, bandwidth * 1e9, latency / 1e6)
        schedules = [PLANS[name][1](n) for name in plans or STRATEGIES]
        timings = [simulate.time(plan, joined, megabytes * 1e6)
                   for plan in schedules
                   if {*plan.nodes} <= {*joined.nodes}]
        shown = {'best': min, 'worst': max}[which](timings, key=shown_ms)
        return Row(plot_comparison(timings, width=400), plot_topology(
            joined, shown.busy(), scale=False, width=312,
            title=f'{shown.schedule.name}, busy links dark'))

    live_picture(draw, dict(
        links=menu([*LINKS], links, 'links'),
        n=choose(CHOICES['devices'], num_devices, 'devices'),
        megabytes=choose(CHOICES['MB'], megabytes, 'MB'),
        bandwidth=choose(CHOICES['GB/s'], bandwidth, 'GB/s'),
        latency=choose(CHOICES['µs per cable'], latency, 'µs per cable'),
        which=menu(['best', 'worst'], 'best', 'show the')))
