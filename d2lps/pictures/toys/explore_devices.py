"""Sum arrays on this machine's devices, now, beside what copies predict."""
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from d2lps.checks import checked, integer, number
from d2lps.collectives import strategies
from d2lps.engine import devices, mx
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.rows import WIDE, new_figure
from d2lps.pictures.style import BLUE, ORANGE
from d2lps.pictures.widgets import live_picture
from d2lps.training.data_parallel import allreduce
from d2lps.training.stopwatch import Stopwatch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# How many copies one after the other, if each device had its own cable.
COPIES = {'allreduce': lambda n: 2 * (n - 1),
          'gather_broadcast': lambda n: 2 * (n - 1),
          'mx.kv local': lambda n: 2 * n,
          'sharded': lambda n: 2 * (n - 1) / n}
ALL, LIMIT = 'all four', 0.08  # seconds after which nothing is repeated


def _jobs(arrays, way):
    """{name: function} of one copy, and of the chosen methods to sum."""
    n, store = len(arrays), mx.kv.create('local')
    store.init(0, arrays[0])
    ways = {'allreduce': allreduce, 'sharded': strategies.sharded(n).run,
            'gather_broadcast': strategies.gather_broadcast(n).run,
            'mx.kv local': lambda arrays: (store.push(0, arrays),
                                           store.pull(0, out=arrays))}
    return {'copy': lambda: arrays[0].copyto(arrays[1]),
            **{name: partial(ways[name], arrays) for name in COPIES
               if way in (ALL, name)}}


def _measure(n, megabytes, way):
    """Seconds of one copy and of each method: the fastest of a few turns."""
    arrays = [mx.np.zeros(max(1, round(megabytes * 250_000)), ctx=device)
              for device in devices(n)]
    jobs, turns, begin = _jobs(arrays, way), [], time.perf_counter()
    while len(turns) < 2 or (len(turns) < 8 and
                             time.perf_counter() < begin + LIMIT):
        turns.append({})
        for name, job in jobs.items():
            with Stopwatch() as watch:
                job()
            turns[-1][name] = watch.seconds
    return {name: min(turn[name] for turn in turns[1:]) for name in jobs}


def draw_devices(num_devices: int, megabytes: float, way: str) -> 'Figure':
    """Measure, and draw what was measured beside what copies predict."""
    seconds = _measure(num_devices, megabytes, way)
    copy = seconds.pop('copy')
    figure = new_figure(WIDE, 3.5, layout=None)
    ax = figure.add_axes(
        (0.19, 0.25, 0.79, 0.67), ylim=(len(COPIES) - 0.5, -0.5),
        xlabel='time / ms',
        title=f'{megabytes:g} MB on each of {num_devices} devices; one copy '
        f'takes {1e3 * copy:.3g} ms')
    for place, label, times, color, hatch in (
            (-0.2, 'predicted by copies', [
                COPIES[name](num_devices) * copy for name in seconds],
             BLUE, ''),
            (0.2, 'measured just now', seconds.values(), ORANGE, '//')):
        bars = ax.barh(np.arange(len(seconds)) + place,
                       1e3 * np.array([*times]), 0.36, color=color,
                       hatch=hatch, label=label)
        ax.bar_label(bars, fmt='{:.3g} ms', padding=4)
    ax.set_yticks(range(len(seconds)), [*seconds])
    ax.grid(False, axis='y')
    ax.margins(x=0.15)
    figure.legend(loc='lower left', ncols=2)
    return figure


@checked(num_devices=partial(integer, least=2, most=4),
         megabytes=partial(number, least=0.01, most=40))
def explore_devices(num_devices: int = 2, megabytes: float = 4) -> None:
    """Choose devices and data; see what a sum takes on this machine.

    Each change measures anew, a few turns of which the fastest counts.
    megabytes: of each device's array.
    """
    live_picture(draw_devices, {
        'num_devices': choose([2, 3, 4], num_devices, 'devices'),
        'megabytes': choose([.01, .04, .1, .4, 1, 4, 10, 40], megabytes, 'MB'),
        'way': menu([ALL, *COPIES], ALL, 'method')})
