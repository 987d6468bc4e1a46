"""Exercise: an allreduce that sums a chunk of the array on each device.

To chapter 1, notebooks/01-data-parallelism.ipynb, and chapter 3.
"""
from collections.abc import Sequence
from math import prod

import numpy as np

from d2lps.exercises.checking import Answer, Check, Notes, Picture, Wrong
from d2lps.exercises.counting import Counted, busiest

GB_PER_S = 16  # of each device's link, each way; a number counts as 1 MB


def _factors(shape):
    """What tells a number from its neighbours: no multiples of each other."""
    return 1 + np.arange(prod(shape)) % 7 / 1024


def run(answer: Answer, k: int, shape: Sequence[int]) -> Notes:
    """The messages, and what every array holds in the end."""
    factors, log = _factors(shape), list[list]()
    # On device i: 8 to the power of i, times each number's factor.
    numbers = [(8.0 ** i * factors).reshape(shape) for i in range(k)]
    answer([Counted(array, i, log) for i, array in enumerate(numbers)])
    return {'log': log, 'ends': [array.reshape(-1) for array in numbers]}


def judge_sum(notes: Notes, k: int, shape: Sequence[int]) -> None:
    """On every device the sum of all."""
    size, own = prod(shape), 8.0 ** np.arange(k)[:, None]
    ends = np.array(notes['ends'], float) / _factors(shape)
    for i, end in enumerate(ends):
        wrong = np.flatnonzero(end != own.sum())
        if len(wrong):
            first = wrong[0]
            hint = ''
            if (ends == own).all():
                hint = (' None of the arrays has changed. What reshape '
                        'returns is a copy. Write the sums into the arrays, '
                        'with [:] =.')
            elif (ends[:, first] == own[:, 0]).all():
                hint = ' This number has not changed on any device.'
            raise Wrong(f'on device {i} the first wrong number is number '
                        f'{first} of {size}; wrong numbers: {len(wrong)}. '
                        f'{_held(end[first], k)}{hint}')
    # All gradients but one leave their devices; all sums but one arrive.
    copied = sum(numbers for _, _, numbers, _ in notes['log'])
    least = 2 * (k - 1) * size
    if copied < least:
        raise Wrong(f'the sums are there, but only {copied} MB were copied '
                    'by as_in_ctx or copyto. Every way needs at least '
                    f'{least} MB.')


def _held(value, k):
    """Which gradients are in a sum of powers of 8."""
    if value % 1 or not 0 <= value < 8.0 ** k:
        share = value / sum(8.0 ** d for d in range(k))
        return f'It is {share:.4g} times the sum.'
    often = [int(value) // 8 ** d % 8 for d in range(k)]
    return (f'The gradients of devices 0 to {k - 1} are {often} times in it; '
            'each should be in it once.')


def _times(log, k):
    """Milliseconds to sum and back: the busiest link's, either way."""
    return [float(max(map(np.max, links))) / GB_PER_S
            for links in busiest(log, k).values()]


def judge_time(notes: Notes, k: int, shape: Sequence[int]) -> None:
    """No device has more to do than the one with the largest chunk."""
    size, times = prod(shape), _times(notes['log'], k)
    largest, took = -(-size // k), sum(times)
    target = 2 * (k - 1) * largest / GB_PER_S
    # Forgotten numbers cost the points of the part `sum` alone.
    least = (k - 1) * (size // k or size / k) / GB_PER_S
    for seen, fewest, what in ((times[0], least, 'the way to the sums'),
                               (took, 2 * least, 'the way there and back')):
        if seen < fewest * (1 - 1e-9):
            raise Wrong(f'{what} takes {seen:g} ms. It needs at least '
                        f'{fewest:g} ms. Is something not summed, or not '
                        'sent back? The message of the other check says '
                        'more.')
    if took <= target * (1 + 1e-9):
        return
    text = f'it takes {took:g} ms; the target is {target:g}. '
    for device in range(k):
        if all(device in message[:2] for message in notes['log']):
            raise Wrong(f'{text}All messages go into or out of device '
                        f'{device}, so its link has all the work while the '
                        'other links are idle.')
    src, dst, most, _ = max(notes['log'], key=lambda message: message[2])
    if most > largest:
        raise Wrong(f'{text}The largest copy, from device {src} to device '
                    f'{dst}, has {most} of the {size} MB. '
                    + ('Cut first, then copy: send a device only the chunk '
                       'that it sums, and send only the sum back.'
                       if most == size else
                       f'If {k} chunks of the flat array are as equal as '
                       f'possible, the largest has {largest} MB.'))
    into = [int(one) for one in busiest(notes['log'], k)['sum'][0]]
    raise Wrong(f'{text}To sum, the devices receive {into} MB. Each should '
                f'sum one chunk, and receive {(k - 1) * largest} MB or less.')


def picture(answer: Answer) -> Picture:
    """The bytes over each link, with the student's function."""
    from d2lps.figures import format_number
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    from d2lps.pictures.style import ink_on
    k, size = 4, 160
    log = run(answer, k, [size])['log']
    first = [[i, 0, size, 'sum'] for i in range(1, k)] + [
        [0, i, size, 'back'] for i in range(1, k)]
    ways = {'all on device 0': first, 'yours': log}
    names = [f'device {i} {way}' for i in range(k)
             for way in ('receives', 'sends')]
    figure = new_figure(WIDE, 1 + 0.28 * 2 * k)
    for ax, (name, messages) in zip(
            figure.subplots(1, 2, sharex=True, sharey=True), ways.items()):
        links, left = busiest(messages, k), np.zeros(2 * k)
        for part, label, color in (('sum', 'to sum', BLUE),
                                   ('back', 'the sum back', ORANGE)):
            sizes = np.transpose(links[part]).ravel()
            bars = ax.barh(range(2 * k), sizes, left=left, color=color,
                           label=label)
            ax.bar_label(bars, [format_number(one) if one else ''
                                for one in sizes],
                         label_type='center', color=ink_on(color))
            left += sizes
        ax.bar_label(bars, [*map(format_number, left)], padding=4,
                     weight='bold')
        ax.set_yticks(range(2 * k), names)
        ax.set(title=f'{name}: {sum(_times(messages, k)):g} ms',
               xlabel='MB over the link')
        ax.grid(False, axis='y')
    ax.invert_yaxis()
    legend_below(ax)
    return figure


CHECKS = {
    'sum': Check([{'k': k, 'shape': shape} for k, shape in (
        (2, [6]), (4, [4, 10]), (3, [11]), (4, [5, 5]), (4, [2]))],
        run, judge_sum, 'every array holds the sum over all devices.'),
    'time': Check([{'k': k, 'shape': shape} for k, shape in (
        (4, [160]), (4, [2, 80]), (3, [1, 140]), (2, [80, 2]), (4, [3, 7]))],
        run, judge_time,
        'all links share the work: 15 ms with four devices.')}
