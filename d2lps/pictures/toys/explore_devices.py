"""Sum arrays on this machine's devices, now, beside what copies predict."""
import time
from functools import partial

from d2lps.checks import checked, integer, number, one_of
from d2lps.collectives import strategies
from d2lps.engine import devices, mx
from d2lps.pictures.chart import new_chart
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.style import BLUE, ORANGE
from d2lps.pictures.widgets import live_picture
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


def draw_devices(num_devices: int, megabytes: float, way: str) -> Drawing:
    """Measure, and draw what was measured beside what copies predict."""
    seconds = _measure(num_devices, megabytes, way)
    copy = seconds.pop('copy')
    title = (f'{megabytes:g} MB on each of {num_devices} devices; one copy '
             f'takes {1e3 * copy:.3g} ms')
    bars = {name: ((COPIES[name](num_devices) * copy, BLUE),
                   (one, ORANGE)) for name, one in seconds.items()}
    chart = new_chart(
        720, 300, f'{title}. ' + ' '.join(
            f'{name}: predicted {1e3 * predicted:.3g} ms, measured '
            f'{1e3 * measured:.3g} ms.'
            for name, ((predicted, _), (measured, _)) in bars.items()),
        (0, 1.25 * max(time for pair in bars.values() for time, _ in pair)),
        (len(COPIES) - 0.5, -0.5), title=title, xticks=[], grid='',
        yticks=dict(enumerate(bars)), least_left=130, legend=[
            ('predicted by copies', BLUE, 'box'),
            ('measured just now', ORANGE, 'box')])
    for row, pair in enumerate(bars.values()):
        for place, (time_, color) in zip((-0.2, 0.2), pair):
            chart.bar(0, time_, row + place - 0.18, row + place + 0.18, color)
            chart.text(time_, row + place, f'{1e3 * time_:.3g} ms', dx=6,
                       anchor='start')
    return chart.drawing


@checked(num_devices=partial(integer, least=2, most=4),
         way=one_of(ALL, *COPIES),
         megabytes=partial(number, least=0.01, most=40))
def explore_devices(num_devices: int = 2, megabytes: float = 4, way: str = ALL
                   ) -> None:
    """Choose devices and data; see what a sum takes on this machine.

    Each change measures anew, a few turns of which the fastest counts.
    megabytes: of each device's array. way: 'allreduce', 'gather_broadcast',
    'mx.kv local' or 'sharded'; without it, all four.
    """
    live_picture(draw_devices, {
        'num_devices': choose([2, 3, 4], num_devices, 'devices'),
        'megabytes': choose([.01, .04, .1, .4, 1, 4, 10, 40], megabytes, 'MB'),
        'way': menu([ALL, *COPIES], way, 'way')})
