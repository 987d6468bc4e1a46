"""Exercise: an allreduce that sums a chunk of the array on each device.

To chapter 1, notebooks/01-data-parallelism.ipynb, and chapter 3.
"""
from collections.abc import Sequence
from math import prod
from typing import TypedDict

import numpy as np

from d2lps.exercises.charts import bar_chart
from d2lps.exercises.checking import Answer, Check, Differs, Picture, Wrong
from d2lps.exercises.counting import Counted, busiest
from d2lps.explaining import brief

GB_PER_S = 16  # of each device's link, each way; a number counts as 1 MB


def _factors(shape):
    """Factors that tell a number from its neighbours."""
    return 1 + np.arange(prod(shape)) % 7 / 1024


class Summed(TypedDict):
    """The messages, see `Counted`, and all numbers of each array."""
    log: list[list]
    ends: list


def run(answer: Answer, k: int, shape: Sequence[int]) -> Summed:
    """The messages, and what every array holds in the end."""
    factors, log = _factors(shape), list[list]()
    # On device i: 8 to the power of i, times each number's factor.
    numbers = [(8.0 ** i * factors).reshape(shape) for i in range(k)]
    answer([Counted(array, i, log) for i, array in enumerate(numbers)])
    return {'log': log, 'ends': [array.reshape(-1) for array in numbers]}


def judge_sum(notes: Summed, k: int, shape: Sequence[int]) -> None:
    """The sum of all gradients on every device."""
    size, own = prod(shape), 8.0 ** np.arange(k)[:, None]
    ends = np.array(notes['ends'], float) / _factors(shape)
    wrong = ends != own.sum()
    for i, j in np.argwhere(wrong):
        raise Differs(
            f'number {j} on device {i} {_held(ends[i, j], k)}', ends.tolist(),
            np.full_like(ends, own.sum()).tolist(), near=1e-12,
            values={'k': k}, known=_known(ends, own, wrong),
            place=_place(ends[:, j], own[:, 0], wrong[:, j]), summed='k')
    # All gradients but one leave their devices; all sums but one arrive.
    copied = sum(numbers for _, _, numbers, _ in notes['log'])
    least = 2 * (k - 1) * size
    if copied < least:
        raise Wrong('the sums are there, but as_in_ctx and copyto copied '
                    f'{copied} MB; a sum needs at least {least} MB.')


def _held(value, k):
    """Words about a number: of which gradients it is the sum."""
    if value % 1 or not 0 <= value < 8.0 ** k:
        return f'is {value / sum(8.0 ** d for d in range(k)):.4g} of the sum'
    inside = np.repeat(np.arange(k), [int(value) // 8 ** d % 8
                                      for d in range(k)])
    if len(inside) == 1:
        return f'is that of device {inside[0]} alone; the sum of {k} is right'
    return f'adds up devices {brief(inside)}; {brief([*range(k)])} is right'


def _known(ends, own, wrong):
    """Facts about the numbers of all devices."""
    k, size = ends.shape
    rest = size % k
    known = {}
    if (ends == own).all():
        known['unchanged',] = ('No array has changed. `array[:] = …` changes '
                               'one.')
    if rest and wrong[:, -rest:].all() and not wrong[:, :-rest].any():
        known['rest',] = (f'Only the last {rest} of {size} are wrong, and '
                          f'{size} is no multiple of {k}.')
    return known


def _place(number, own, wrong):
    """Words about one number on all devices."""
    if not wrong.all():
        return f'Device {wrong.argmin()} has its sum.'
    return 'It has changed on no device.' * bool((number == own).all())


def _times(log, k):
    """Milliseconds to sum and back: the busiest link's, either way."""
    return [float(max(map(np.max, links))) / GB_PER_S
            for links in busiest(log, k).values()]


def judge_time(notes: Summed, k: int, shape: Sequence[int]) -> None:
    """No device has more to do than the one with the largest chunk."""
    size, times = prod(shape), _times(notes['log'], k)
    largest, took = -(-size // k), sum(times)
    target = 2 * (k - 1) * largest / GB_PER_S
    # Forgotten numbers cost the points of the part `sum` alone.
    least = (k - 1) * (size // k or size / k) / GB_PER_S
    for seen, fewest, way in ((times[0], least, 'the way to the sums'),
                              (took, 2 * least, 'the way there and back')):
        if seen < fewest * (1 - 1e-9):
            raise Wrong(f'{way} takes {seen:g} ms; a sum needs at least '
                        f'{fewest:g} ms.')
    if took > target * (1 + 1e-9):
        raise Wrong(f'it takes {took:g} ms; the target is {target:g} ms. '
                    + _why(notes['log'], k, size, largest))


def _why(log, k, size, largest):
    """Words about the link or the copy that takes too long."""
    for device in range(k):
        if all(device in message[:2] for message in log):
            return f'All messages go into or out of device {device}.'
    src, dst, most, _ = max(log, key=lambda message: message[2])
    if most > largest:
        return (f'The copy from device {src} to device {dst} has {most} of '
                f'{size} MB; a chunk has at most {largest} MB.')
    into = busiest(log, k)['sum'][0]
    return (f'To sum, device {into.argmax()} receives {into.max():g} MB; '
            f'{(k - 1) * largest} MB are enough.')


def picture(answer: Answer) -> Picture:
    """The bytes over each link, with the student's function."""
    import pandas as pd

    from d2lps.pictures.rows import WIDE, new_figure
    k, size = 4, 160
    first = [[i, 0, size, 'sum'] for i in range(1, k)] + [
        [0, i, size, 'back'] for i in range(1, k)]
    logs = {'all on device 0': first,
            'yours': run(answer, k, [size])['log']}
    names = [f'device {i} {way}' for i in range(k)
             for way in ('receives', 'sends')]
    tables = [pd.DataFrame({
        label: np.transpose(busiest(log, k)[way]).ravel() for way, label in (
            ('sum', 'to sum'), ('back', 'the sum back'))}, names)
        for log in logs.values()]
    longest = max(table.sum(axis=1).max() for table in tables)
    axes = new_figure(WIDE, 1 + 0.28 * 2 * k).subplots(1, 2, sharey=True)
    for ax, table, (name, log) in zip(axes, tables, logs.items()):
        bar_chart(table, ax, stacked=True, xlabel='MB over the link',
                  title=f'{name}: {sum(_times(log, k)):g} ms')
        ax.set_xlim(0, 1.2 * longest)
    return ax.figure


CASE = 'k = {k}, shape {shape}'
CHECKS = {
    'sum': Check([{'k': k, 'shape': shape} for k, shape in (
        (2, [6]), (4, [4, 10]), (3, [11]), (4, [5, 5]), (4, [2]))],
        run, judge_sum, 'every array holds the sum over all devices.',
        case=CASE),
    'time': Check([{'k': k, 'shape': shape} for k, shape in (
        (4, [160]), (4, [2, 80]), (3, [1, 140]), (2, [80, 2]), (4, [3, 7]))],
        run, judge_time,
        'all links share the work: 15 ms with four devices.', case=CASE)}
