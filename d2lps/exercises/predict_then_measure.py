"""Exercise: predict a training step, then measure it on one's own machine.

To chapter 1, notebooks/01-data-parallelism.ipynb, and chapter 4. What is
checked are predictions for machines in a table; a time is never judged.
"""
import copy
import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, number)
from d2lps.units import several

PARTS = 'compute', 'allreduce', 'python', 'work', 'step'
NEAR = 1e-3  # the largest relative error of a part
PRICES = 'ms', 'python_ms', 'call_ms', 'copy_ms', 'add_ms'


def shards_of(k: int, b: int) -> list[int]:
    """How many of b images each of k devices gets, as in chapter 1."""
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


def _dearer(m, price):
    """The measurements, with one price 1 ms higher."""
    return {**m, price: [ms + 1 for ms in m['ms']] if price == 'ms' else
            m[price] + 1}


def run(part: str, predict: Answer, machine: str, k: int, b: int,
        **m: Any) -> dict[str, dict[str, float]]:
    """The student's parts, also if one of `PRICES` is higher, by its name."""
    return {price: _parts(part, predict, k, b,
                          _dearer(m, price) if price else m)
            for price in ('', *PRICES)}


def _parts(part, predict, k, b, m):
    mine = copy.deepcopy(m)
    with forbidding(model, line, shards_of):
        found = predict(k, b, mine)
    if mine != m:
        raise Wrong('your function has changed `m`. The caller still needs '
                    'the old one. Make a copy, and change the copy.')
    if not hasattr(found, 'keys') or part not in found.keys():
        raise Wrong(f'predict returned {shown(found)}. A dictionary is '
                    f'wanted, with {", ".join(map(repr, PARTS))}.')
    wanted = 'One number is wanted, in ms.'
    parts = {part: number(found[part], wanted, f'{part} is')}
    for name in PARTS:
        try:
            parts[name] = number(found[name], wanted)
        except (KeyError, Wrong):  # it has a check of its own
            continue
    return parts


def judge(part: str, found: Notes, machine: str, k: int, b: int,
          **m: Any) -> None:
    """One part, of which the others may be wrong."""
    mine, right = found[''][part], model(k, b, m, found[''])[part]
    if _near(mine, right):
        return
    text = f'{part!r} is {mine:.5g} ms, and {right:.5g} is right.'
    if part in ('compute', 'work'):
        text += f' (images = {m["images"]}, ms = {m["ms"]})'
    if _near(mine * 1e3, right):
        raise Wrong(f'{text} All times here are in ms.')
    if math.isfinite(mine):
        text += f' {_hint(part, found, k, b, m)}'
    raise Wrong(text)


def _near(mine, right):
    return abs(mine - right) <= NEAR * abs(right) + 1e-9


def _hint(part, found, k, b, m):
    """Which price counts too often or not at all, and what is in the part."""
    made_of = _made_of(part, found[''], k, b, m)
    for price in PRICES if part != 'step' else ():
        mine = found[price][part] - found[''][part]
        right = (model(k, b, _dearer(m, price), found[price])[part]
                 - model(k, b, m, found[''])[part])
        if not _near(mine, right):
            what = 'both times of `ms` are' if price == 'ms' else (
                f'`{price}` is')
            return (f'If {what} 1 ms longer, your {part!r} grows by '
                    f'{mine:.4g} ms, and {right:.4g} ms is right. {made_of}')
    return made_of


def _made_of(part, own, k, b, m):
    """Words about what is in a part."""
    parts = {name: _time(own.get(name), right)
             for name, right in model(k, b, m, own).items()}
    sizes, n, ms = shards_of(k, b), m['images'], m['ms']
    images = f'{b} images on {k} devices are {", ".join(map(str, sizes))}.'
    if part == 'compute':
        mine = n[0] + (own[part] - ms[0]) / (ms[1] - ms[0]) * (n[1] - n[0])
        return (f'{images} On the straight line, {own[part]:.5g} ms are the '
                f'time of {mine:.4g} images.')
    shards = sum(line(n, ms, size) for size in sizes)
    return {
        'allreduce': f'Other devices: {k - 1}. For each of them there are a '
        'copy to device 0, an addition, and a copy back.',
        'python': f'One program calls {k} steps, and for each of {k - 1} '
        f'other devices and {m["arrays"]} arrays a copy, an addition, and a '
        'copy back.',
        'work': f'{images} These shards take {shards:.5g} ms together, '
        f'Python {parts["python"]:.5g} and the all-reduce '
        f'{parts["allreduce"]:.5g}. The work is shared by {m["cores"]} cores.',
        'step': f'By your other parts, Python needs {parts["python"]:.5g} ms, '
        'the largest shard and then the all-reduce '
        f'{parts["compute"] + parts["allreduce"]:.5g}, and all work on the '
        f'cores {parts["work"]:.5g}. They go on at the same time, and the '
        'last of them ends the step.'}[part]


def measured_parts(seconds: float = 3) -> dict[str, Any]:
    """What `predict` needs to know of this machine; needs MXNet."""
    import d2lps
    from d2lps.engine import mx
    from d2lps.processor import cores
    start = d2lps.init_params('xavier', 0)
    mine, total, other = [[param.copyto(mx.cpu(i)) for param in start]
                          for i in (0, 0, 1)]

    def copy_all():
        for one, target in zip(other, mine):
            one.copyto(target)

    def add_all():
        for one, target in zip(mine, total):
            target += one

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

    from d2lps.figures import format_number
    from d2lps.pictures import BLUE, GREEN, ORANGE, PURPLE
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    m = measured_parts()
    print('Measured here:', ', '.join(f'{name} = {_short(value)}'
                                      for name, value in m.items()))
    cases = [(k, b) for b in sizes for k in counts]
    predicted = {(k, b): {part: _parts(part, predict, k, b, m)[part]
                          for part in PARTS} for k, b in cases}
    names = [several(k, 'device') for k in counts]
    for b in sizes:
        steps = [predicted[k, b]['step'] for k in counts]
        print(f'Your prediction for {b} images: ' + '; '.join(
            f'{name}: {ms:.1f} ms, {steps[0] / ms:.2f} times as fast'
            for name, ms in zip(names, steps)))
    took = _in_turns({case: _step(*case) for case in cases}, 6)
    figure = new_figure(WIDE, 3.2 * len(sizes))
    for b, ax in zip(sizes, figure.subplots(len(sizes), squeeze=False)[:, 0]):
        parts = pd.DataFrame([predicted[k, b] for k in counts])
        table = pd.DataFrame({
            'Python': parts.python,
            'largest shard + all-reduce': parts.compute + parts.allreduce,
            'all work on the cores': parts.work,
            'measured': [took[k, b][0] for k in counts]})
        table.index = names
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
