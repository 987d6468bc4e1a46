"""Exercise: predict a training step, then measure it on one's own machine.

To chapter 1, notebooks/01-data-parallelism.ipynb, and chapter 4. What is
checked are predictions for machines in a table; a time is never judged.
"""
import copy
import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, scalar)

PARTS = 'compute', 'allreduce', 'python', 'work', 'step'
NEAR = 1e-3  # the largest relative error of a part


def shards_of(k: int, b: int) -> list[int]:
    """How many of b images each of k devices gets, as in chapter 1."""
    return [b * (i + 1) // k - b * i // k for i in range(k)]


def line(images: Sequence[float], ms: Sequence[float], n: int) -> float:
    """ms of n images, on the straight line through two measurements."""
    slope = (ms[1] - ms[0]) / (images[1] - images[0])
    return ms[0] + slope * (n - images[0])


def model(k: int, b: int, m: Mapping[str, Any]) -> dict[str, float]:
    """All parts of the prediction, in ms."""
    shards = [line(m['images'], m['ms'], n) for n in shards_of(k, b)]
    allreduce = (k - 1) * (2 * m['copy_ms'] + m['add_ms'])
    python = k * m['python_ms'] + (k - 1) * m['arrays'] * 3 * m['call_ms']
    work = (python + sum(shards) + allreduce) / m['cores']
    return {'compute': max(shards), 'allreduce': allreduce, 'python': python,
            'work': work,
            'step': max(python, max(shards) + allreduce, work)}


def run(part: str, predict: Answer, machine: str, k: int, b: int,
        **m: Any) -> dict[str, float]:
    """The student's numbers: those of `predict`, as far as they are there."""
    mine = copy.deepcopy(m)
    with forbidding(model):
        found = predict(k, b, mine)
    if mine != m:
        raise Wrong('your function has changed `m`. The caller still needs '
                    'the old one. Make a copy, and change the copy.')
    if found is None:
        raise Wrong('predict returned None: is there a `return`?')
    if not hasattr(found, 'keys'):
        raise Wrong(f'predict returned {shown(found)}. A dictionary is '
                    f'wanted, with {", ".join(map(repr, PARTS))}.')
    if part not in found.keys():
        raise Wrong(f'the dictionary that predict returned has no {part!r}.')
    return {name: _number(name, found[name], name == part)
            for name in PARTS if name in found.keys()}


def _number(name, value, wanted):
    """A float; None for what is none and not looked at now."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(scalar(value))
    except (TypeError, ValueError):
        if not wanted:
            return None
        raise Wrong(f'{name} is {shown(value)}. One number is wanted, in ms.'
                    ) from None


def judge(part: str, found: Notes, machine: str, k: int, b: int,
          **m: Any) -> None:
    """One part, of which the others may be wrong."""
    mine, true = found[part], model(k, b, m)
    own = {name: found.get(name) if _is_time(found.get(name)) else true[name]
           for name in PARTS}
    shards = sum(line(m['images'], m['ms'], n) for n in shards_of(k, b))
    if part == 'work':
        right = (own['python'] + shards + own['allreduce']) / m['cores']
    elif part == 'step':
        right = max(own['python'], own['compute'] + own['allreduce'],
                    own['work'])
    else:
        right = true[part]
    if _near(mine, right):
        return
    text = f'{part!r} is {mine:.5g} ms, and {right:.5g} is right.'
    if part in ('compute', 'work'):
        text += f' (images = {m["images"]}, ms = {m["ms"]})'
    if mine == round(right) and all(
            value.is_integer() for value in found.values()
            if value is not None):
        raise Wrong(f'{text} Did you round it? An error of at most 0.1% is '
                    'allowed.')
    if part == 'work' and not _near(own['compute'], true['compute']):
        raise Wrong(f'{text} Your `compute` is {own["compute"]:.5g}, and '
                    f'{true["compute"]:.5g} is right: correct `compute` '
                    'first. The work has the times of all shards in it.')
    for words, other in MISTAKES[part](k, b, m, own, shards):
        if _near(mine, other):
            raise Wrong(f'{text} {words}')
    if _near(mine * 1e3, right) or _near(mine, right * 1e3):
        raise Wrong(f'{text} All times here are in ms.')
    raise Wrong(f'{text} {LAST[part]}')


def _is_time(value):
    return value is not None and math.isfinite(value) and value >= 0


def _near(mine, right):
    return abs(mine - right) <= NEAR * abs(right) + 1e-9


def _of_compute(k, b, m, own, shards):
    def t(n):
        return line(m['images'], m['ms'], n)
    sizes = shards_of(k, b)
    words = f'{b} images on {k} devices are {", ".join(map(str, sizes))}.'
    n, most = m['images'], max(sizes)
    return [
        (f'{words} All wait for the device with the most images.', t(b // k)),
        (f'{words} No device has {b / k:.4g} of them.', t(b / k)),
        (f'That is the time of all {b} images. How many images does one '
         'device have?', t(b)),
        (f'That is a part of the time of all {b} images. Each device also '
         'needs the time of a step with no images.', t(b) / k),
        ('That is the sum over the devices, but they work at the same time.',
         shards),
        (f'The straight line does not end at {n[0]} and {n[1]} images; '
         'np.interp does.', min(max(t(most), m['ms'][0]), m['ms'][1])),
        *[('That is a line through 0. A step with no images takes time, too: '
           'use both measurements.', ms / images * size)
          for ms, images in zip(m['ms'], n) for size in (most, b / k)],
        *[('`compute` does not depend on the cores; `work` does.',
           t(most) * -(-k // m['cores']))] * (k > m['cores']),
        ('The time of a step with no images is missing: your line has only '
         'its slope.', t(most) - t(0))]


def _of_allreduce(k, b, m, own, shards):
    c, a = m['copy_ms'], m['add_ms']
    return [
        ('Device 0 has its own gradient already. How many gradients come '
         f'from the other {k - 1} devices?', k * (2 * c + a)),
        ('That is one copy and one addition for each other device. And how '
         'does the sum get back to it?', (k - 1) * (c + a)),
        ('The additions are missing.', (k - 1) * 2 * c),
        ('You count as many additions as copies.', (k - 1) * 2 * (c + a)),
        ('This would be right for `sharded` of chapter 4, if the devices had '
         'no other work. Here device 0 does all of it, as in chapter 1.',
         (k - 1) * (2 * c + a) / k),
        ('That is the time of one other device. The other devices come one '
         'after another.',
         2 * c + a),
        ('The copies and the addition were measured for all arrays '
         'together.', m['arrays'] * (k - 1) * (2 * c + a)),
        ('That is one addition in all. Device 0 adds a gradient of each '
         'other device.', (k - 1) * 2 * c + a),
        ('That is the time of k - 2 other devices. There are k - 1.',
         (k - 2) * (2 * c + a))]


def _of_python(k, b, m, own, shards):
    p, calls = m['python_ms'], m['arrays'] * m['call_ms']
    return [
        ('One Python program fills the queues of all devices, one after '
         'another.', p + (k - 1) * 3 * calls),
        ('The calls of the all-reduce are missing.', k * p),
        ('That is Python for one device.', p),
        ('That is one call for each array and each other device: a copy to '
         'device 0, an addition, and a copy back are three.',
         k * p + (k - 1) * calls),
        ('That is two calls for each array and each other device: a copy to '
         'device 0, an addition, and a copy back are three.',
         k * p + (k - 1) * 2 * calls),
        ('How many arrays does an all-reduce sum? Each array has its own '
         'calls for copies and '
         'additions.', k * p + (k - 1) * 3 * m['call_ms']),
        ('Device 0 sends nothing to itself: there are k - 1 other devices.',
         k * p + k * 3 * calls)]


def _of_work(k, b, m, own, shards):
    python, allreduce, cores = own['python'], own['allreduce'], m['cores']
    most, total = own['compute'], python + shards + allreduce
    return [
        ('That is all the work on one core. The machine has more.', total),
        ('You divide by the smaller of devices and cores. Python is a '
         'thread, too, and this part depends on the cores alone. Another '
         'part says that devices cannot share a '
         'shard.', total / min(k, cores)),
        ('You divide by the devices. The cores do the work.', total / k),
        ("Python's work is missing: it needs a core as well.",
         (shards + allreduce) / cores),
        ('The all-reduce is missing.', (python + shards) / cores),
        ('That is the time of the shards alone. Python and the all-reduce '
         'are work, too.', shards / cores),
        ('That is the work of one device. All devices work on these cores.',
         (python + most + allreduce) / cores),
        (f'That is the time of all images on one device. Each of {k} devices '
         'also needs the time of a step with no images.',
         (python + line(m['images'], m['ms'], b) + allreduce) / cores),
        *[('The shards differ: not every device has the largest shard.',
           (python + k * most + allreduce) / cores)] * (b % k > 0)]


def _of_step(k, b, m, own, shards):
    python, both = own['python'], own['compute'] + own['allreduce']
    return [
        ('That is a sum. Python, the devices and the cores work at the same '
         'time. Which of the three ends last?',
         python + both + own['work']),
        ('That is a sum. Python continues while the devices compute. Which '
         'of them ends last?', python + both),
        ('The all-reduce can begin only when the gradients have been '
         'computed. Did you add it to the time of the largest shard?', max(
             python, own['compute'], own['allreduce'], own['work'])),
        ('And if there are too few cores for all the '
         'work?', max(python, both)),
        ('And if Python ends later than the devices?', max(both, own['work'])),
        ('That is the smallest of them. The step ends when the last of them '
         'ends.', min(python, both, own['work'])),
        ('That is not the largest of your own parts: did you add the '
         'all-reduce to the time of the shard?', max(python, own['compute'],
                                        own['work']))]


MISTAKES = {'compute': _of_compute, 'allreduce': _of_allreduce,
            'python': _of_python, 'work': _of_work, 'step': _of_step}
LAST = {
    'compute': 'How many images does the device with the most images have? '
               'What does your line say at the two measured sizes?',
    'allreduce': 'For each other device: what is copied to device 0, what '
                 'does device 0 do, and what is copied back?',
    'python': 'Count the calls for two devices and one array, by hand. Which '
              'of them happen once for each device?',
    'work': 'Which three kinds of work are there, and how many cores share '
             'them?',
    'step': 'It must be the largest of three of your own numbers: Python, '
            'the largest shard with the all-reduce, and the cores.'}


def measured_parts(seconds: float = 3) -> dict[str, Any]:
    """What `predict` needs to know of this machine; needs MXNet."""
    from d2lps.engine import cores
    copy_all, add_all, calls = _copies_and_additions()
    jobs: dict[int | str, Any] = {n: _step(1, n) for n in (2, 8, 256)}
    jobs |= {'copy': copy_all, 'add': add_all, 'call': calls}
    took = _in_turns(jobs, seconds)
    return {'images': [8, 256], 'ms': [took[8][0], took[256][0]],
            'python_ms': took[2][1], 'call_ms': took['call'][0], 'arrays': 8,
            'copy_ms': took['copy'][0], 'add_ms': took['add'][0],
            'cores': cores()}


def _step(k, b):
    """A job: a training step of LeNet; its ms, and those of Python in it."""
    import d2lps
    from d2lps.engine import mx
    X, y = next(iter(d2lps.load_data(b)[0]))
    devices = [mx.cpu(i) for i in range(k)]
    start = d2lps.init_params('xavier', 0)
    copies = [d2lps.get_params(start, device) for device in devices]

    def job():
        with d2lps.Stopwatch() as watch:
            begin = time.perf_counter()
            d2lps.train_batch(X, y, copies, devices, 0.01)
            python = time.perf_counter() - begin
        return 1e3 * watch.seconds, 1e3 * python

    return job


def _copies_and_additions(often=10):
    """Three jobs: ms to copy a gradient, to add it, and of a call."""
    import d2lps
    from d2lps.engine import mx
    start = d2lps.init_params('xavier', 0)
    mine, total, other = [[param.copyto(mx.cpu(i)) for param in start]
                          for i in (0, 0, 1)]

    def copy_all():
        for source, target in zip(other, mine):
            source.copyto(target)

    def add_all():
        for one, target in zip(mine, total):
            target += one

    def timed(job):
        def both():
            with d2lps.Stopwatch() as watch:
                begin = time.perf_counter()
                for _ in range(often):
                    job()
                python = time.perf_counter() - begin
            return (1e3 * watch.seconds / often,
                    1e3 * python / often / len(start))
        return both

    def call():
        return timed(copy_all)()[1:]

    return timed(copy_all), timed(add_all), call


def _in_turns(jobs, seconds, most=9):
    """The median of each job's numbers, without the first round.

    Jobs take turns, and every second round goes the other way. It ends after
    so many seconds, though not before two rounds are done.
    """
    from statistics import median
    end, taken, number = time.monotonic() + seconds, {}, 0
    while number < most and (number < 3 or time.monotonic() < end):
        order = [*jobs] if number % 2 else [*jobs][::-1]
        for name in order:
            if number < 2 or time.monotonic() < end + seconds:
                taken.setdefault(name, []).append(jobs[name]())
        number += 1
    return {name: [median(column) for column in zip(*rows[1:])]
            for name, rows in taken.items()}


def picture(predict: Answer, sizes: Sequence[int] = (8, 256),
            counts: Sequence[int] = (1, 2, 4)) -> Picture:
    """Predict for this machine, print it, and only then measure."""
    import pandas as pd

    from d2lps.figures import format_number
    from d2lps.pictures import BLUE, GREEN, ORANGE, PURPLE
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    m = measured_parts()
    print('Measured here:', ', '.join(f'{name} = {_short(value)}'
                                      for name, value in m.items()))
    cases = [(k, b) for b in sizes for k in counts]
    predicted: dict[tuple[int, int], dict[str, float]] = {}
    for k, b in cases:
        predicted[k, b] = {}
        for part in PARTS:
            predicted[k, b].update(run(part, predict, 'yours', k, b, **m))
    for b in sizes:
        one = predicted[counts[0], b]['step']
        print(f'Your prediction for {b} images: ' + '; '.join(
            f'{k} device{"s" * (k > 1)}: {predicted[k, b]["step"]:.1f} ms, '
            f'{one / predicted[k, b]["step"]:.2f} times as fast'
            for k in counts))
    took = _in_turns({case: _step(*case) for case in cases}, 6)
    figure = new_figure(WIDE, 3.2 * len(sizes))
    for b, ax in zip(sizes, figure.subplots(len(sizes), squeeze=False)[:, 0]):
        table = pd.DataFrame({
            'Python': [predicted[k, b]['python'] for k in counts],
            'largest shard + all-reduce': [
                predicted[k, b]['compute'] + predicted[k, b]['allreduce']
                for k in counts],
            'all work on the cores': [predicted[k, b]['work']
                                      for k in counts],
            'measured': [took[k, b][0] for k in counts]},
            [f'{k} device{"s" * (k > 1)}' for k in counts])
        table.plot.barh(ax=ax, width=0.84, legend=False,
                        color=[PURPLE, BLUE, GREEN, ORANGE])
        for bars, hatch in zip(ax.containers, ('', '//', '\\\\', '')):
            ax.bar_label(bars, fmt=format_number, padding=4)
            for bar in bars:
                bar.set_hatch(hatch)
        gains = [f'{took[1, b][0] / took[k, b][0]:.2f} with {k}'
                 for k in counts[1:]]
        ax.set(title=f'{b} images. Measured speedup: {", ".join(gains)}',
               xlabel='ms of a step')
        ax.set_ylim(len(counts) - 0.5, -0.5)
        ax.grid(False, axis='y')
    legend_below(ax)
    return figure


def _short(value):
    return (f'[{", ".join(map(_short, value))}]' if isinstance(value, list)
            else f'{value:.3g}')


def _machine(images, ms, python, call, arrays, copied, added, cores):
    return {'images': images, 'ms': ms, 'python_ms': python, 'call_ms': call,
            'arrays': arrays, 'copy_ms': copied, 'add_ms': added,
            'cores': cores}


MANY = _machine([10, 100], [13, 103], 2, 0.02, 8, 0.5, 1.2, 16)
FEW = _machine([32, 256], [20, 140], 1.5, 0.03, 8, 0.1, 0.15, 2)
SLOW = _machine([16, 128], [9, 51], 1, 0.02, 6, 9, 15, 8)
FAST = _machine([8, 512], [0.6, 12], 2.5, 0.05, 12, 0.2, 0.3, 4)
CASES = [{'machine': machine, 'k': k, 'b': b, **m}
         for machine, k, b, m in (
             ('many cores', 4, 64, MANY), ('many cores', 3, 64, MANY),
             ('two cores', 4, 250, FEW),
             ('one core', 2, 256, {**FEW, 'cores': 1}),
             ('slow memory', 8, 128, SLOW), ('tiny minibatch', 4, 7, FAST),
             ('one device', 1, 64, MANY),
             ('other times', 1, 64, FAST),
             ('small measurements', 2, 256, {**MANY, 'images': [4, 32],
                                             'ms': [6, 27]}))]
RIGHT = {
    'compute': 'the device with the most images decides.',
    'allreduce': 'for each other device there are a copy, an addition and a '
                 'copy back.',
    'python': 'every call is counted, and one program makes all calls.',
    'work': 'all work is divided among the cores.',
    'step': 'the step takes as long as the longest of the three.'}
CHECKS = {part: Check(CASES, partial(run, part), partial(judge, part), right)
          for part, right in RIGHT.items()}
