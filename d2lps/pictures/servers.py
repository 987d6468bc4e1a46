"""Workers and servers to play with, without starting any."""
from functools import partial

import ipywidgets
from matplotlib import pyplot as plt

from d2lps.checks import checked, flag, number, one_of, positive, whole
from d2lps.cluster.network import PAYLOAD
from d2lps.collectives import strategies, simulate, topology
from d2lps.pictures.plots import BLUE, GRAY, ORANGE
from d2lps.pictures.widgets import choose, live_picture

SIZES = [1, 2, 4, 8, 16, 32, 64, 128]


OWN, SHARED = 'machines of their own', "the workers' machines"


def _room(workers, servers, colocated=False, **others):
    """A worker's machine has room for one server."""
    if colocated and servers > workers:
        raise ValueError(f'servers is {servers}, but there are only {workers} '
                         'workers to be colocated with')


@checked(_room, workers=whole, servers=whole, nbytes=number,
         bandwidth=positive, colocated=flag)
def law(workers, servers, nbytes, bandwidth, colocated=False):
    """Seconds for all workers to push `nbytes`, and then to pull as much.

    Every machine has a link of `bandwidth` bytes per second each way, and
    the busiest one decides. A server's carries m/n of the bytes, a worker's
    carries them once. With servers on the workers' own machines (at most one
    on each), a server's carries those of the m - 1 other workers.

    Raises:
        ValueError: for more colocated servers than workers.
    """
    m, n = workers, servers
    busiest = (m - 1) / n if colocated else max(1, m / n)
    return 2 * busiest * nbytes / bandwidth


def _not_too_many(workers, servers, pieces=None, **others):
    if workers * servers * (pieces or 1) > 10 ** 6:
        raise ValueError('workers times servers times pieces must be at most '
                         f'a million; it was {workers} * {servers} * '
                         f'{pieces or 1}')


@checked(_not_too_many, workers=whole, servers=whole, nbytes=number,
         bandwidth=positive, colocated=flag, pieces=whole)
def simulated(workers, servers, nbytes, bandwidth, colocated=False,
              pieces=None):
    """The `Timing` of the same, by the flow simulator.

    pieces: cut what goes to a server into so many, each of which is pulled
    as soon as it is summed, while others are pushed. Without it, all pulls
    wait for all pushes, as in `law`.
    """
    plan = strategies.parameter_server(workers, servers, colocated)
    if pieces:
        plan = strategies.pipelined(plan, pieces)
    return simulate.time(plan, topology.ethernet(plan.nodes, bandwidth),
                         nbytes, barrier=not pieces)


@checked(_room, workers=whole, servers=whole, nbytes=positive,
         bandwidth=positive, colocated=flag)
def plot_servers(workers, servers, nbytes, bandwidth, colocated=False):
    """Time for every number of servers, and which links are busy how long.

    Left, `law` for a line and the simulator for a point; right, for each
    kind of machine, the seconds that its links work in one step.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4),
                                         width_ratios=[1.1, 1])
    sizes = [n for n in SIZES if n <= workers or not colocated]
    left.plot(sizes, [law(workers, n, nbytes, bandwidth, colocated)
                      for n in sizes], color=BLUE, label='predicted')
    timing = simulated(workers, servers, nbytes, bandwidth, colocated)
    left.plot(servers, timing.seconds, 'o', color=ORANGE, markersize=9,
              label='simulated')
    left.set_xscale('log', base=2)
    left.set_xticks(sizes, sizes)
    left.set(xlabel='servers', ylabel='seconds', ylim=(0, None),
             title=f'{workers} worker{"s" * (workers > 1)}, {servers} server'
                   f'{"s" * (servers > 1)}: {timing.seconds:.3g} s per step')
    left.legend(frameon=False)
    bars = _bars(timing, servers, bandwidth, colocated)
    longest = max(bars.values(), default=0)
    right.barh([*bars], [*bars.values()], color=[
        ORANGE if t > 0.999 * longest else GRAY for t in bars.values()])
    right.bar_label(right.containers[0], [f'{t:.3g}' for t in bars.values()],
                    padding=3)
    right.invert_yaxis()
    right.margins(x=0.18)
    right.set(xlabel='seconds at work in a step',
              title='links, the busiest coloured')
    right.spines[['top', 'right']].set_visible(False)
    figure.subplots_adjust(0.08, 0.15, 0.98, 0.9, wspace=0.72)
    return left, right


def _bars(timing, servers, bandwidth, colocated):
    """Seconds at work by kind of link, of the busiest of each kind."""
    bars = {}
    for (src, dst), carried in timing.load.items():
        host, does = ((src, 'sends') if dst == 'switch' else
                      (dst, 'receives'))
        kind = 'server' if isinstance(host, str) else 'worker'
        if colocated and host < servers:
            kind = 'worker with server'
        bars.setdefault(f'{kind} {does}', []).append(carried / bandwidth)
    return {name: max(bars[name]) for name in sorted(bars, reverse=True)}


@checked(workers=partial(whole, most=1000), servers=partial(whole, most=1000),
         megabytes=positive, gigabits=positive, place=one_of(OWN, SHARED))
def explore_servers(workers=4, servers=1, megabytes=40, gigabits=1, place=OWN):
    """Choose workers, servers, data and links; see what a step takes."""
    def draw(m, n, megabytes, gigabits, place):
        colocated = place == SHARED
        # A worker's machine has room for one server.
        return plot_servers(m, min(n, m) if colocated else n, megabytes * 1e6,
                            gigabits * 1e9 / 8 * PAYLOAD, colocated)[0]

    live_picture(draw, dict(
        m=choose(SIZES, workers, 'workers'),
        n=choose(SIZES, servers, 'servers'),
        megabytes=choose([1, 2, 10, 40, 160, 1000], megabytes, 'MB'),
        gigabits=choose([0.1, 1, 10, 25, 100], gigabits, 'Gbit/s'),
        place=ipywidgets.Dropdown(options=[OWN, SHARED], value=place,
                                  description='servers on')), None)
