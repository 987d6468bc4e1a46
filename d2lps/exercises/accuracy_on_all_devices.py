"""Exercise: the test accuracy, computed on all devices at the same time.

To chapter 1, notebooks/01-data-parallelism.ipynb.
"""
from collections.abc import Callable
from decimal import Decimal
from numbers import Real
from reprlib import repr as short
from typing import NoReturn

import numpy as np

from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      scalar)
from d2lps.exercises.images import (devices, hidden_list, images_of,
                                    judge_images, noted)
from d2lps.figures import describe


class Count:
    """A count of right answers that a device still computes: int() waits.

    wait: notes that Python waits, and returns the number.
    """

    def __init__(self, wait: Callable[[], int]) -> None:
        self._wait = wait

    def __int__(self) -> int:
        return self._wait()

    __index__ = __int__

    def __float__(self) -> float:
        return float(self._wait())

    def __add__(self, other: object) -> NoReturn:
        raise Wrong('counts lie on different devices and cannot be added '
                    'there. int(count) brings one to Python.')

    __radd__ = __truediv__ = __add__


def _data(num_images, seed):
    """Of each image: its label, what LeNet says, and whether it is right."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, num_images)
    right = random.random(num_images) < np.linspace(1, 0.3, num_images)
    return labels, np.where(right, labels, (labels + 1) % 10), right


def run(answer: Answer, num_images: int, k: int, seed: int = 0) -> Notes:
    """What the student's function did, and what it returns for equal parts."""
    notes = _one_run(answer, num_images, k, seed)
    try:
        equal = _one_run(answer, _multiple(num_images, k), k, seed)['accuracy']
    except Exception:  # the student will read of the first run
        equal = None
    return {**notes, 'equal': equal}


def _multiple(num_images, k):
    """About as many images, so that all devices can have equally many."""
    return max(num_images // k, 1) * k


def _one_run(answer, num_images, k, seed):
    """When which device began with what, and when Python waited for it."""
    y, said, _ = _data(num_images, seed)
    X = images_of(np.arange(num_images))
    before = X.copy(), y.copy()
    note, log = hidden_list()

    def begin(i, X_part, y_part):
        number, batch = len(log()), noted(X_part, y_part)
        note(('begin', int(i), batch))

        def wait():
            note(('wait', number))
            return sum(int(said[row] == label)
                       for row, label in zip(*batch[:2]))
        return Count(wait)

    accuracy = scalar(answer(X, y, k, begin))
    number = isinstance(accuracy, (Real, Decimal))
    return {'log': log(),
            'accuracy': float(accuracy) if number else short(accuracy),
            'changed': not all(map(np.array_equal, (X, y), before))}


def _parts(notes: Notes, k: int) -> list:
    """Of each part: the device, and the images with their labels."""
    parts = [one[1:] for one in notes['log'] if one[0] == 'begin']
    for device, _ in parts:
        if not 0 <= device < k:
            raise Wrong(f'there is no device {device}; the devices are 0 to '
                        f'{k - 1}.')
    return parts


def judge_accuracy(notes: Notes, num_images: int, k: int,
                   seed: int = 0) -> None:
    """Every image once, and the share of right answers."""
    labels, _, is_right = _data(num_images, seed)
    judge_images([(f'the part of device {device}', batch)
                  for device, batch in _parts(notes, k)], labels,
                 num_images // k)
    if notes['changed']:
        raise Wrong('your function has changed X or y. The next test uses '
                    'the same arrays. Make a copy, and change the copy.')
    given, truth = notes['accuracy'], is_right.mean()
    if isinstance(given, str):
        raise Wrong(f'your function returned {given}; a number from 0 to 1 is '
                    'wanted.')
    if not _near(given, truth):
        raise Wrong(f'you returned {given:.6g}; right answers: '
                    f'{is_right.sum()} of {num_images}, so the accuracy is '
                    f'{truth:.6g}.{_hint(notes, truth, num_images, k, seed)}')


def _near(given, truth):
    return abs(given - truth) < 1e-6  # a float32 has no more digits


def _hint(notes, truth, num_images, k, seed):
    """The unit, a count that was not taken, or that equal parts are right."""
    for unit, times in ('the accuracy in percent', 100), (
            'the number of right answers', num_images):
        if _near(notes['accuracy'] / times, truth):
            return f' Yours is {unit}.'
    taken = {one[1] for one in notes['log'] if one[0] == 'wait'}
    for number, (what, device, *batch) in enumerate(notes['log']):
        if what == 'begin' and number not in taken and batch[0][0]:
            return f' Your function never took the count of device {device}.'
    many, equal = _multiple(num_images, k), notes['equal']
    if isinstance(equal, float) and _near(equal, _data(many, seed)[2].mean()):
        return (f' For {many} images, equally many on each of {devices(k)}, '
                'your accuracy would be right. Here the devices have '
                f'{_sizes(notes, k)} images, and every image counts '
                'equally.')
    return ''


def _sizes(notes, k):
    """How many images each device has."""
    return [sum(len(rows) for device, (rows, *_) in _parts(notes, k)
                if device == i) for i in range(k)]


def _timeline(notes, k):
    """[device, start, end] of all work, [start, end] of Python's waiting."""
    now, free, work, waits = 0, [0] * k, {}, []
    for number, (what, *one) in enumerate(notes['log']):
        if what == 'begin':
            device, (rows, *_) = one
            start = max(now, free[device])
            free[device] = start + len(rows)
            work[number] = device, start, free[device]
        elif work[one[0]][2] > now:
            waits.append([now, work[one[0]][2]])
            now = work[one[0]][2]
    return [*work.values()], waits


def judge_time(notes: Notes, num_images: int, k: int, seed: int = 0) -> None:
    """An image takes a millisecond; all devices work side by side."""
    sizes = _sizes(notes, k)
    if not any(sizes) and num_images < k:
        return  # nothing was tested; the first check says so
    if sum(sizes) < num_images / 2:  # the first check tells of a few left out
        raise Wrong(f'images that were tested: {sum(sizes)} of {num_images}.')
    work, waits = _timeline(notes, k)
    if not waits:
        raise Wrong('int() never took a count, so Python never waited for a '
                    'device.')
    end, target = max(one[2] for one in work), -(-num_images // k)
    if end <= target:
        return
    text = f'the test took {end} ms; the target is {target}. '
    if max(sizes) > target:
        raise Wrong(f'{text}The devices have {sizes} images. Divide the '
                    f'images so that no device has more than {target}.')
    device, start, _ = max(work, key=lambda one: one[1])
    raise Wrong(f'{text}Device {device} began only after {start} ms. Until '
                'then Python was waiting for another device. Where do you '
                'call int()?')


def picture(answer: Answer) -> Picture:
    """Who worked when, with the student's function."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, draw_bars, new_figure, row_axes
    notes, k = run(answer, 449, 4), 4
    _parts(notes, k)  # says if there is no such device
    accuracy = notes['accuracy']
    if isinstance(accuracy, float):
        accuracy = f'{accuracy:.3f}'
    work, waits = _timeline(notes, k)
    last = max([end for *_, end in work], default=0)
    title = f'accuracy {accuracy} after {last} ms; dotted: the target'
    told = '; '.join(f'device {device} from {start} to {end} ms'
                     for device, start, end in work)
    figure = new_figure(WIDE, 2.3)
    ax = row_axes(
        ['Python waits', *(f'device {i}' for i in range(k))],
        1.1 * max(last, 113), ax=figure.subplots(), title=title,
        xlabel='time / ms')
    describe(ax, f'{title}, 113 ms. At work: {told}.')
    draw_bars(ax, [(start, end, 0) for start, end in waits], ORANGE,
              hatch='//')
    draw_bars(ax, [(start, end, device + 1) for device, start, end in work],
              BLUE)
    ax.axvline(113, color='gray', linestyle=':')
    return figure


CASES = [{'num_images': n, 'k': k} for n, k in (
    (12, 2), (449, 4), (10, 3), (2, 4))]
CHECKS = {
    'accuracy': Check(CASES, run, judge_accuracy,
                      'every image is tested once, and the accuracy is '
                      'right.'),
    'time': Check(CASES, run, judge_time,
                  'all devices work at the same time: 113 ms with four '
                  'devices.')}
