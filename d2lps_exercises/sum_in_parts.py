"""Exercise: an allreduce that sums different parameters on different devices.

To chapter 1, notebooks/01-data-parallelism.ipynb, and chapter 3.
"""
import numpy as np

from d2lps_exercises.checking import Check, Wrong
from d2lps_exercises.counting import Counted, busiest

GB_PER_S = 16  # each way, of each device's link; an MB is a number here


def _gradients(k, MB):
    """A power of 8 from each device, times the parameter's number + 1."""
    return [[np.full(_shape(j, size), 8.0 ** i * (j + 1))
             for j, size in enumerate(MB)] for i in range(k)]


def _shape(j, size):
    """A shape of `size` numbers; len() is not the size of every second."""
    return (1, size) if j % 2 else (size,)


def run(answer, k, MB):
    """The messages, and what every array holds in the end."""
    log = []
    arrays = [[Counted(numbers, i, log) for numbers in row]
              for i, row in enumerate(_gradients(k, MB))]
    answer([[*row] for row in arrays])
    return {'log': log, 'ends': [[one.data for one in row] for row in arrays]}


def judge_sum(notes, k, MB):
    """On every device the sum of all, of every parameter."""
    left = [j for j in range(len(MB)) if k > 1 and all(
        np.array_equal(notes['ends'][i][j], first)
        for i, row in enumerate(_gradients(k, MB)) for first in [row[j]])]
    if left and len(left) < len(MB):
        raise Wrong(f'nobody has summed parameter {left[0]} of {len(MB)}: it '
                    'is what it was, on all devices.')
    for j in range(len(MB)):
        ends = [np.array(notes['ends'][i][j], float) for i in range(k)]
        for i, end in enumerate(ends):
            if end.shape != _shape(j, MB[j]):
                raise Wrong(f'parameter {j} of device {i} has another shape.')
            wrong = end[end != (j + 1) * sum(8.0 ** d for d in range(k))]
            if len(wrong):
                raise Wrong(f'on device {i}, parameter {j} of '
                            f'{len(MB)}: {_why(wrong[0] / (j + 1), i, k)}')
    # Each gradient but one has to leave its device, and each sum to come.
    copied, least = sum(size for _, _, size, _ in notes['log']), (
        2 * (k - 1) * sum(MB))
    if copied < least:
        raise Wrong(f'the sums are there, but only {copied} MB were copied '
                    f'by as_in_ctx or copyto, and no way needs less than '
                    f'{least}.')


def _why(value, own, k):
    """What is wrong with a sum of powers of 8."""
    if value == 8.0 ** own and k > 1:
        return ('it still has its own gradient alone. Must the sum not be '
                'written into this array, with [:] =?')
    if abs(value * k - sum(8.0 ** d for d in range(k))) < 1e-6:
        return 'it has the mean. The sum is wanted.'
    if value != int(value) or not 0 <= value < 8.0 ** k:
        return f'{value:g} is no sum of the gradients.'
    often = [int(value) // 8 ** d % 8 for d in range(k)]
    for d, count in enumerate(often):
        if count > 1:
            return f'the gradient of device {d} is counted {count} times.'
    missing = [d for d, count in enumerate(often) if not count]
    return f'the gradient of device {missing[0]} is missing.'


def _times(log, k):
    """Milliseconds to sum and back: the busiest link's, either way."""
    return [float(max(map(np.max, links))) / GB_PER_S
            for links in busiest(log, k).values()]


def judge_time(notes, k, MB):
    """Device 0 has no more to do than others.

    The target is that of parameters of equal size; of others, half the time
    that device 0 alone would need.
    """
    took, equal = sum(_times(notes['log'], k)), len({*MB}) == 1
    target = (k - 1) * sum(MB) / GB_PER_S
    summed = sum(MB) / 2
    if equal:
        target = 2 * (k - 1) * -(-len(MB) // k) * MB[0] / GB_PER_S
        summed = max(len(MB) // k * k, 1) * MB[0]
    least = 2 * (k - 1) * summed / k / GB_PER_S
    if took < least * (1 - 1e-9):
        raise Wrong(f'it took {took:g} ms, and no way needs less than '
                    f'{least:g} ms. Is something not summed, or not sent '
                    'back? The other check tells.')
    if took <= target * (1 + 1e-9):
        return
    totals = sum(into + out for into, out in busiest(notes['log'],
                                                     k).values())
    device = int(np.argmax(totals))
    text = f'it takes {took:g} ms; the target is {target:g}. '
    if all(device in message[:2] for message in notes['log']):
        raise Wrong(f'{text}All messages go into or out of device {device}, '
                    'so its link has all the work while others are idle.')
    raise Wrong(f'{text}Over the links of the devices go '
                f'{totals.astype(int).tolist()} MB. Each device should sum '
                f'its share of the {len(MB)} parameters, and every gradient '
                'should go only to where it is summed.')


def picture(answer):
    """The bytes over each link, with the student's function."""
    from d2lps_pictures import BLUE, ORANGE, Row, plot_bars
    k, MB = 4, [40] * 4
    log = run(answer, k, MB)['log']
    first = [[i, 0, 160, 'sum'] for i in range(1, k)] + [
        [0, i, 160, 'back'] for i in range(1, k)]
    ways = {'all on device 0': first, 'yours': log}
    loads = {name: {f'device {i} {way}': [
        int(busiest(messages, k)[part][side][i]) for part in ('sum', 'back')]
        for i in range(k) for side, way in enumerate(('receives', 'sends'))}
        for name, messages in ways.items()}
    most = max(sum(parts) for load in loads.values()
               for parts in load.values())
    return Row(*(
        plot_bars(loads[name], 'MB over the link', stacked=True, width=352,
                  title=f'{name}: {sum(_times(messages, k)):g} ms',
                  columns=['to sum', 'the sum back'], until=1.2 * most,
                  colors=[BLUE, ORANGE])
        for name, messages in ways.items()))


CHECKS = {
    'sum': Check([{'k': k, 'MB': MB} for k, MB in (
        (2, [3, 2]), (4, [4, 4, 4, 4]), (3, [2, 5, 1, 3]), (4, [2, 1]))],
        run, judge_sum, 'every array holds the sum over all devices.'),
    'time': Check([{'k': k, 'MB': MB} for k, MB in (
        (4, [40] * 4), (4, [20] * 8), (3, [20] * 7), (2, [80] * 2),
        (4, [30, 10, 20, 40]))], run,
        judge_time, 'all links share the work: 15 ms with four devices.')}
