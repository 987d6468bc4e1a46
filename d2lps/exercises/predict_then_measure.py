"""Exercise: predict a training step, then measure it on one's own machine.

To chapter 1, notebooks/01-data-parallelism.ipynb, and chapter 4. What is
checked are predictions for machines in a table; a time is never judged.
"""
import math
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from statistics import median
from typing import Any

from d2lps.exercises.charts import bar_chart
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      number, returned, unchanged, without)
from d2lps.explaining import brief, same
from d2lps.units import several

PARTS = 'compute', 'allreduce', 'python', 'work', 'step'


def shards_of(k: int, b: int) -> list[int]:
    """Numbers of images, of b, that k devices get, as in chapter 1."""
    return [b * (i + 1) // k - b * i // k for i in range(k)]


def line(images: Sequence[float], ms: Sequence[float], n: int) -> float:
    """ms of n images, on the straight line through two measurements."""
    slope = (ms[1] - ms[0]) / (images[1] - images[0])
    return ms[0] + slope * (n - images[0])


def model(k: int, b: int, m: Mapping[str, Any],
          own: Mapping[str, float] | None = None) -> dict[str, float]:
    """All parts of the prediction, in ms.

    own: parts that a student has predicted. A part is right if it follows
    from these; the others are the model's.
    """
    own = own or {}
    shards = [line(m['images'], m['ms'], n) for n in shards_of(k, b)]
    right = {
        'compute': max(shards),
        'allreduce': (k - 1) * (2 * m['copy_ms'] + m['add_ms']),
        'python': k * m['python_ms'] + (k - 1) * m['arrays'] * 3 * m['call_ms']
    }
    compute, allreduce, python = (
        _time(own.get(name), ms) for name, ms in right.items())
    right['work'] = (python + sum(shards) + allreduce) / m['cores']
    work = _time(own.get('work'), right['work'])
    return right | {'step': max(python, compute + allreduce, work)}


def _time(own, right):
    """A student's ms, if they can be used."""
    return own if own is not None and 0 <= own < math.inf else right


def run(part: str, predict: Answer, machine: str, k: int, b: int,
        **m: Any) -> dict[str, float]:
    """This part, and the student's others that are numbers."""
    without(predict, model, line, shards_of)
    mine = deepcopy(m)
    with unchanged(m=mine):
        reply = returned(predict, k, b, mine)
    if not hasattr(reply, 'keys') or part not in reply.keys():
        raise Wrong(f'you return {brief(reply)}; a dictionary with {part!r} '
                    'is right.', anywhere=True)
    parts = {part: number(reply[part], f'a number is right for {part!r}')}
    for name in PARTS:
        try:
            parts[name] = number(reply[name])
        except (KeyError, Wrong):  # it has a check of its own
            continue
    return parts


def judge(part: str, parts: Mapping[str, float], machine: str, k: int, b: int,
          **m: Any) -> None:
    """One part, of which the others may be wrong."""
    times = model(k, b, m, parts)
    mine, right = parts[part], float(times[part])
    if not same(mine, right):
        others = {name: _time(parts.get(name), ms)
                  for name, ms in times.items()}
        known, place = _about(part, mine, others, k, b, m)
        raise Differs(f'{part!r} is {mine:.5g} ms; {right:.5g} ms is right',
                      mine, right, values={"m['cores']": m['cores']},
                      known=known, place=place, unit='milliseconds')


def _about(part, mine, others, k, b, m):
    """Facts about a wrong time, and words for an answer that none fits."""
    images, ms, cores = m['images'], m['ms'], m['cores']
    n, arrays, sizes = k - 1, m['arrays'], shards_of(k, b)
    shards = sum(line(images, ms, size) for size in sizes)
    python, compute, allreduce, work = (
        others[name] for name in ('python', 'compute', 'allreduce', 'work'))
    if part == 'allreduce':
        devices = n, k, 1
        return _counts(
            mine, (('copy', 'copies'), m['copy_ms'], 2 * n, (2, 1, 3, 0),
                   devices),
            (('addition',), m['add_ms'], n, (1, 2, 0), devices)), ''
    if part == 'python':
        return _counts(
            mine, (('step',), m['python_ms'], k, (1,), (k, 1, n, 0)),
            (('call',), m['call_ms'], 3 * n * arrays, (3, 1, 2, 0),
             [devices * each for each in (arrays, 1)
              for devices in (n, k, 1)])), ''
    if part == 'compute':
        place = (f'On the line through `images` and `ms`, {mine:.5g} ms are '
                 f'the time of {line(ms, images, mine):.4g} images; the '
                 f'largest shard has {max(sizes)}.')
        wrong = {f'Your line goes through 0 and the {word} measurement alone.':
                 max(sizes) * time / count for word, count, time in zip(
                     ('first', 'second'), images, ms)}
        wrong |= {'Yours is the sum of all shards, not the largest.': shards,
                  'Yours is the mean of the shards, not the largest.':
                  shards / k}
    elif part == 'work':
        place = (f'Python ({python:.5g} ms), all shards ({shards:.5g} ms) and '
                 f'the all-reduce ({allreduce:.5g} ms) share {cores} cores.')
        wrong = {'It has the largest shard alone, not all shards.':
                 (python + compute + allreduce) / cores}
    else:
        place = (f"'python' is {python:.5g} ms, 'compute' + 'allreduce' "
                 f"{compute + allreduce:.5g} ms, and 'work' {work:.5g} ms.")
        wrong = {'Yours is the sum of all four.':
                 python + compute + allreduce + work}
    return {(fact,): fact for fact, time in wrong.items()
            if same(mine, float(time))}, place


def _counts(mine, *kinds):
    """Facts: how often the student counts each of two things.

    kinds: of each, its names, ms of one, how many are right, and two lists
    of numbers whose products are tried.
    """
    tried = [[often * many for often in some for many in others]
             for *_, some, others in kinds]
    (first, price, right, *_), (second, price_2, right_2, *_) = kinds
    return {(i, j): f'You count {several(count, *first)} and '
                    f'{several(count_2, *second)}; {right} and {right_2} are '
                    'right.'
            for i, count in enumerate(tried[0])
            for j, count_2 in enumerate(tried[1])
            if same(mine, float(count * price + count_2 * price_2))}


def measured_parts(seconds: float = 3) -> dict[str, Any]:
    """Measurements of this machine for `predict`; needs MXNet."""
    import d2lps
    from d2lps.engine import mx
    from d2lps.processor import cores
    start = d2lps.init_params('xavier', 0)
    mine, total, other = [[param.copyto(mx.cpu(i)) for param in start]
                          for i in (0, 0, 1)]

    def copy_all():
        for array, target in zip(other, mine):
            array.copyto(target)

    def add_all():
        for array, target in zip(mine, total):
            target += array

    jobs: dict[int | str, Any] = {n: _step(1, n) for n in (2, 8, 256)}
    took = _in_turns(jobs | {'copy': _job(copy_all, 10),
                             'add': _job(add_all, 10)}, seconds)
    return {'images': [8, 256], 'ms': [took[8][0], took[256][0]],
            'python_ms': took[2][1], 'call_ms': took['copy'][1] / len(start),
            'arrays': len(start), 'copy_ms': took['copy'][0],
            'add_ms': took['add'][0], 'cores': cores()}


def _job(call, often=1):
    """A function that returns the ms of a call, and of Python in it."""
    from d2lps import Stopwatch

    def job():
        with Stopwatch() as watch:
            begin = time.perf_counter()
            for _ in range(often):
                call()
            python = time.perf_counter() - begin
        return 1e3 * watch.seconds / often, 1e3 * python / often
    return job


def _step(k, b):
    """A job: a training step of LeNet."""
    import d2lps
    from d2lps.engine import mx
    X, y = next(iter(d2lps.load_data(b)[0]))
    devices = [mx.cpu(i) for i in range(k)]
    start = d2lps.init_params('xavier', 0)
    copies = [d2lps.get_params(start, device) for device in devices]
    return _job(lambda: d2lps.train_batch(X, y, copies, devices, 0.01))


def _in_turns(jobs, seconds, most=9):
    """The median of each job's numbers, without the first round.

    Jobs take turns, and every second round goes the other way. It ends after
    so many seconds, though not before three rounds are done.
    """
    end, taken = time.monotonic() + seconds, {name: [] for name in jobs}
    for number in range(most):
        if number > 2 and time.monotonic() > end:
            break
        for name in [*jobs][::1 if number % 2 else -1]:
            taken[name].append(jobs[name]())
    return {name: [median(column) for column in zip(*rows[1:])]
            for name, rows in taken.items()}


def picture(predict: Answer, sizes: Sequence[int] = (8, 256),
            counts: Sequence[int] = (1, 2, 4)) -> Picture:
    """Predict for this machine, print it, and only then measure."""
    import pandas as pd

    from d2lps.pictures import BLUE, GREEN, ORANGE, PURPLE
    from d2lps.pictures.rows import WIDE, new_figure
    run(PARTS[0], predict, **CASES[0])  # without an answer nothing is measured
    m = measured_parts()
    print('Measured here:', ', '.join(f'{name} = {_short(value)}'
                                      for name, value in m.items()))
    cases = [(k, b) for b in sizes for k in counts]
    predicted = {(k, b): {part: run(part, predict, 'this', k, b, **m)[part]
                          for part in PARTS} for k, b in cases}
    names = [several(k, 'device') for k in counts]
    for b in sizes:
        steps = [predicted[k, b]['step'] for k in counts]
        print(f'Your prediction for {b} images: ' + '; '.join(
            f'{name}: {ms:.1f} ms, {steps[0] / ms:.2f} times as fast'
            for name, ms in zip(names, steps)))
    took = _in_turns({case: _step(*case) for case in cases}, 6)
    figure = new_figure(WIDE, 3.2 * len(sizes))
    for b, ax in zip(sizes, figure.subplots(len(sizes))):
        parts = pd.DataFrame([predicted[k, b] for k in counts], names)
        gains = [f'{took[1, b][0] / took[k, b][0]:.2f} with {k}'
                 for k in counts[1:]]
        bar_chart(pd.DataFrame({
            'Python': parts.python,
            'largest shard + all-reduce': parts.compute + parts.allreduce,
            'all work on the cores': parts.work,
            'measured': [took[k, b][0] for k in counts]}), ax,
            colors=[PURPLE, BLUE, GREEN, ORANGE],
            title=f'{b} images. Measured speedup: {", ".join(gains)}',
            xlabel='ms of a step')
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
             ('small measurements', 2, 256, {**MANY, 'images': [4, 32],
                                             'ms': [6, 27]}))]
RIGHT = {
    'compute': 'the device with the most images decides.',
    'allreduce': 'for each other device there are a copy, an addition and a '
                 'copy back.',
    'python': 'every call is counted, and one program makes all calls.',
    'work': 'all work is divided among the cores.',
    'step': 'the step takes as long as the longest of the three.'}
NUMBERS = {  # of a machine, that a part is made of
    'compute': 'b = {b}, images = {images}, ms = {ms}',
    'allreduce': 'copy_ms = {copy_ms}, add_ms = {add_ms}',
    'python': 'python_ms = {python_ms}, call_ms = {call_ms}, '
              'arrays = {arrays}',
    'work': 'b = {b}, {machine}',
    'step': 'b = {b}, {machine}'}
CHECKS = {part: Check(CASES, partial(run, part), partial(judge, part), right,
                      case=f'k = {{k}}, {NUMBERS[part]}')
          for part, right in RIGHT.items()}
