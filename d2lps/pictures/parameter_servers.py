"""Workers and servers to play with, without starting any."""
from functools import partial
from textwrap import wrap

from d2lps.checks import boolean, checked, integer, number, positive
from d2lps.collectives import simulate, strategies, topology
from d2lps.collectives.simulate import Timing
from d2lps.figures import format_number
from d2lps.kvstore.store_arguments import up_to_1000
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import Row
from d2lps.pictures.rows import HALF, legend_below, new_figure
from d2lps.pictures.style import BLUE, GRAY, ORANGE
from d2lps.pictures.widgets import live_picture
from d2lps.units import several

COUNT = partial(integer, most=10 ** 9)
SIZES = [1, 2, 4, 8, 16, 32, 64, 128]


def _room(num_workers, num_servers, colocated=False, **others):
    """A worker's machine has room for one server."""
    if colocated and num_servers > num_workers:
        raise ValueError(f'num_servers is {num_servers}, but there are only '
                         f'{num_workers} workers to be colocated with')


@checked(_room, num_workers=COUNT, num_servers=COUNT, nbytes=number,
         bandwidth=positive, colocated=boolean)
def predicted_seconds(num_workers: int, num_servers: int, nbytes: float,
                      bandwidth: float, colocated: bool = False) -> float:
    """Seconds for all workers to push `nbytes`, and then to pull as much.

    Every machine has a link of `bandwidth` bytes per second each way, and
    the busiest one decides. A server's carries m/n of the bytes, a worker's
    carries them once. With servers on the workers' own machines (at most one
    on each), a server's carries those of the m - 1 other workers.

    Raises:
        ValueError: for more colocated servers than workers.
    """
    m, n = num_workers, num_servers
    busiest = (m - 1) / n if colocated else max(1, m / n)
    return 2 * busiest * nbytes / bandwidth


def _not_too_many(num_workers, num_servers, pieces=None, **others):
    if num_workers * num_servers * (pieces or 1) > 10 ** 6:
        raise ValueError(
            'num_workers times num_servers times pieces must be at most a '
            f'million; it was {num_workers} * {num_servers} * {pieces or 1}')


@checked(_not_too_many, num_workers=COUNT, num_servers=COUNT, nbytes=number,
         bandwidth=positive, colocated=boolean, pieces=integer)
def simulated(num_workers: int, num_servers: int, nbytes: float,
              bandwidth: float, colocated: bool = False,
              pieces: int | None = None) -> Timing:
    """The `Timing` of the same, by the flow simulator.

    pieces: cut what goes to a server into so many, each of which is pulled
    as soon as it is summed, while others are pushed. Without it, all pulls
    wait for all pushes, as in `predicted_seconds`.
    """
    plan = strategies.parameter_server(num_workers, num_servers, colocated)
    if pieces:
        plan = strategies.pipelined(plan, pieces)
    return simulate.timing(plan, topology.ethernet(plan.nodes, bandwidth),
                           nbytes, barrier=not pieces)


def draw_servers(num_workers: int, num_servers: int, megabytes: float,
                 gigabits: float, colocated: bool) -> Row:
    """The picture of the toy: time for every number of servers, and links.

    Left, `predicted_seconds` for a line and the simulator for a point;
    right, for each kind of machine, the seconds that its links work.
    """
    if colocated:  # a worker's machine has room for one server
        num_servers = min(num_servers, num_workers)
    nbytes, bandwidth = megabytes * 1e6, gigabits * 1e9 / 8 * topology.PAYLOAD
    left, right = (new_figure(HALF, 3, layout=None).add_axes(
        (x, 0.28, 0.96 - x, 0.62)) for x in (0.2, 0.34))
    timing = simulated(num_workers, num_servers, nbytes, bandwidth, colocated)
    sizes = [n for n in SIZES if n <= num_workers or not colocated]
    left.plot(sizes, [predicted_seconds(num_workers, n, nbytes, bandwidth,
                                        colocated) for n in sizes],
              color=BLUE, label='predicted')
    left.plot(num_servers, timing.seconds, 'o', color=ORANGE, markersize=8,
              label='simulated', clip_on=False)
    left.set_xscale('log')
    left.set_xticks(sizes, [*map(str, sizes)])
    left.minorticks_off()
    left.set_title(f'{several(num_workers, "worker")}, '
                   f'{several(num_servers, "server")}: '
                   f'{format_number(timing.seconds)} s')
    left.set(xlabel='servers', ylabel='seconds for push and pull')
    left.set_ylim(bottom=0)
    _draw_links(right, _bars(timing, num_servers, bandwidth, colocated))
    legend_below(left)
    for axis in left.yaxis, right.xaxis:
        axis.set_major_formatter(lambda value, _: format_number(value))
    return Row(left, right)


def _draw_links(ax, bars):
    """Seconds by kind of link; there is always room for four of them."""
    longest = max(bars.values(), default=0)
    drawn = ax.barh(range(len(bars)), bars.values(), 0.72, color=[
        ORANGE if seconds > 0.999 * longest else GRAY
        for seconds in bars.values()])
    ax.bar_label(drawn, [*map(format_number, bars.values())], padding=4)
    ax.set(xlim=(0, 1.4 * longest or 1), ylim=(max(len(bars), 4) - 0.5, -0.5),
           title='Links, the busiest coloured',
           xlabel='seconds that a link is busy')
    ax.set_yticks(range(len(bars)), [*bars])
    ax.locator_params(axis='x', nbins=3)
    ax.tick_params(axis='y', length=0)
    ax.grid(False, axis='y')


def _bars(timing, num_servers, bandwidth, colocated):
    """Seconds at work by kind of link, of the busiest of each kind."""
    bars = {}
    for (src, dst), carried in timing.load.items():
        host, does = ((src, 'sends') if dst == 'switch' else
                      (dst, 'receives'))
        kind = 'server' if isinstance(host, str) else 'worker'
        if colocated and host < num_servers:
            kind = 'worker with server'
        name = '\n'.join(wrap(f'{kind} {does}', 14))
        bars.setdefault(name, []).append(carried / bandwidth)
    return {name: max(bars[name]) for name in sorted(bars, reverse=True)}


@checked(num_workers=up_to_1000, num_servers=up_to_1000)
def explore_parameter_servers(num_workers: int = 4, num_servers: int = 1
                             ) -> None:
    """Choose workers, servers, data, links; see how long push, pull take."""
    machines = {'machines of their own': False, "the workers' machines": True}
    live_picture(draw_servers, {
        'num_workers': choose(SIZES, num_workers, 'workers'),
        'num_servers': choose(SIZES, num_servers, 'servers'),
        'megabytes': choose([1, 2, 10, 40, 160, 1000], 40, 'MB'),
        'gigabits': choose([0.1, 1, 10, 25, 100], 1, 'Gbit/s'),
        'colocated': menu(machines, False, 'servers on')})
