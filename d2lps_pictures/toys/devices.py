"""Sum arrays on this machine's devices, now, beside what copies predict."""
import time
from functools import partial

import numpy as np
from matplotlib import pyplot as plt

from d2lps.checks import checked, number, one_of, whole
from d2lps.collectives import strategies
from d2lps.engine import devices, mx
from d2lps_pictures.controls import choose, menu
from d2lps_pictures.style import BLUE, ORANGE
from d2lps_pictures.widgets import live_picture
from d2lps.training.data_parallel import allreduce
from d2lps.training.stopwatch import Stopwatch

# How many copies one after the other, if each device had its own cable.
COPIES = {'allreduce': lambda n: 2 * (n - 1),
          'gather_broadcast': lambda n: 2 * (n - 1),
          'mx.kv local': lambda n: 2 * n,
          'sharded': lambda n: 2 * (n - 1) / n}
ALL, LIMIT = 'all four', 0.08  # seconds after which nothing is repeated


def _jobs(arrays, way):
    """By name: one copy, and the ways to sum `arrays` that are chosen."""
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
    """Seconds of one copy and of each way: the fastest of a few turns."""
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


def _draw(num_devices, megabytes, way):
    seconds = _measure(num_devices, megabytes, way)
    copy = seconds.pop('copy')
    fig, ax = plt.subplots(figsize=(9, 3.4))
    fig.subplots_adjust(0.18, 0.09, 0.97, 0.9)
    rows = np.arange(len(seconds))
    predicted = [COPIES[name](num_devices) * copy for name in seconds]
    for place, color, label, values in (
            (-0.2, BLUE, 'predicted by copies', predicted),
            (0.2, ORANGE, 'measured just now', [*seconds.values()])):
        bars = ax.barh(rows + place, values, 0.38, color=color, label=label)
        ax.bar_label(bars, [f' {1e3 * value:.3g} ms' for value in values])
    ax.set_yticks(rows, seconds)
    ax.margins(x=0.5)
    ax.set(xlabel='time', xticks=[], ylim=(3.5, -0.5), title=(
        f'{megabytes:g} MB on each of {num_devices} devices; '
        f'one copy takes {1e3 * copy:.3g} ms'))
    ax.spines[['top', 'right', 'bottom']].set_visible(False)
    ax.legend(loc='lower right', frameon=False, fontsize=9)
    return ax


@checked(num_devices=partial(whole, least=2, most=4), way=one_of(ALL, *COPIES),
         megabytes=partial(number, least=0.01, most=40))
def explore_devices(num_devices=2, megabytes=4, way=ALL):
    """Choose devices and data; see what a sum takes on this machine.

    Each change measures anew, a few turns of which the fastest counts.
    megabytes: of each device's array. way: 'allreduce', 'gather_broadcast',
    'mx.kv local' or 'sharded'; without it, all four.
    """
    live_picture(_draw, {
        'num_devices': choose([2, 3, 4], num_devices, 'devices'),
        'megabytes': choose([.01, .04, .1, .4, 1, 4, 10, 40], megabytes, 'MB'),
        'way': menu([ALL, *COPIES], way, 'way')})
