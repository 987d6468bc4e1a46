"""Exercise: the test accuracy, computed on all devices at the same time.

To chapter 1, notebooks/01-data-parallelism.ipynb.
"""
from decimal import Decimal
from numbers import Real
from reprlib import repr as short
from typing import NoReturn

import numpy as np

from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      scalar)
from d2lps.exercises.images import are_torn, images_of, numbers_of
from d2lps.figures import describe


class Count:
    """A count of right answers that a device still computes: int() waits."""

    def __init__(self, number: int, log: list, right: int) -> None:
        self._number, self._log, self._right = number, log, right

    def __int__(self) -> int:
        self._log.append(['wait', self._number])
        return self._right

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __add__(self, other: object) -> NoReturn:
        raise Wrong('counts lie on different devices and cannot be added '
                    'there. int(count) brings one to Python.')

    __radd__ = __truediv__ = __add__


def _data(num_images, seed):
    """Images that are their own numbers, labels, and what LeNet says."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, num_images)
    good = random.random(num_images) < np.linspace(1, 0.3, num_images)
    return np.arange(num_images), labels, np.where(good, labels,
                                                   (labels + 1) % 10)


def run(answer: Answer, num_images: int, k: int, seed: int = 0) -> Notes:
    """Which device was asked for what, when Python waited, and the result."""
    X, labels, said = _data(num_images, seed)
    asked: list[list] = []
    log: list[list] = []
    torn: list[int] = []

    def begin(i, X_part, y_part):
        rows = numbers_of(X_part)
        given = [int(label) for label in y_part]
        if are_torn(X_part):
            torn.append(len(asked))
        log.append(['begin', len(asked)])
        asked.append([int(i), rows, given])
        return Count(len(asked) - 1, log, sum(
            int(said[row] == label) for row, label in zip(rows, given)))

    images, y = images_of(X), labels.copy()
    before = images.copy()
    returned = answer(images, y, k, begin)
    changed = not (np.array_equal(images, before) and
                   np.array_equal(y, labels))
    accuracy: str | float = short(returned)
    returned = scalar(returned)
    if isinstance(returned, (Real, Decimal)):
        accuracy = float(returned)
    return {'asked': asked, 'log': log, 'accuracy': accuracy,
            'changed': changed, 'torn': torn}


def judge_accuracy(notes: Notes, num_images: int, k: int,
                   seed: int = 0) -> None:
    """Every image once, and the share of right answers."""
    _, labels, said = _data(num_images, seed)
    accuracies, given = [], notes['accuracy']
    seen: dict[int, int] = {}
    for number, (device, rows, y) in enumerate(notes['asked']):
        if not 0 <= device < k:
            raise Wrong(f'there is no device {device}; the devices are 0 to '
                        f'{k - 1}.')
        if len(rows) != len(y):
            raise Wrong(f'device {device} got {len(rows)} images and '
                        f'{len(y)} labels.')
        if number in notes['torn']:
            raise Wrong(f'the images that device {device} got are no longer '
                        'those of X, with all their pixels.')
        for row, label in zip(rows, y):
            if row in seen:
                raise Wrong(f'image {row} was tested on device {seen[row]} '
                            f'and again on device {device}.')
            seen[row] = device
            if label != labels[row]:
                raise Wrong(f'image {row} came to device {device} with the '
                            f'label {label}; the right label is '
                            f'{labels[row]}.')
    if isinstance(given, str):
        raise Wrong(f'your function returned {given}; a number from 0 to 1 is '
                    'wanted.')
    if notes['changed']:
        raise Wrong('your function has changed X or y. The next test uses '
                    'the same arrays. Make a copy, and change the copy.')
    missing = sorted({*range(num_images)} - {*seen})
    if missing:
        raise Wrong(f'{len(missing)} of {num_images} images are tested on no '
                    f'device, for example image {missing[0]}. If k does not '
                    'divide the number of images, do your parts still cover '
                    'all of them?')
    right = labels == said
    for device in range(k):
        mine = [row for row in seen if seen[row] == device]
        if mine:
            accuracies.append(right[mine].mean())
    truth = right.mean()
    if abs(given - truth) < 1e-6:  # a float32 has no more digits
        return
    if abs(given - 100 * truth) < 1e-3:
        raise Wrong(f'you returned {given:g}, the accuracy in percent. A '
                    f'number from 0 to 1 is wanted, {truth:.4f}.')
    rounded = [round(truth, digits) for digits in range(1, 6)]
    if min(abs(given - one) for one in (*rounded, float(np.float16(truth)))
           ) < 1e-9:
        raise Wrong(f'you returned {given:g}: {truth:.6f}, rounded. All '
                    'digits are wanted.')
    if given == right.sum() // num_images:
        raise Wrong(f'you returned {given:g}: the accuracy, {truth:.4f}, '
                    'without the digits after the point. `//` and `int` cut '
                    'them off; `/` keeps them.')
    if min(abs(given - np.mean(accuracies)),
           abs(given - np.sum(accuracies) / k)) < 1e-6:
        raise Wrong(f'you returned {given:.4f}, the mean of the devices\' '
                    f'accuracies; the accuracy is {truth:.4f}. A device with '
                    'fewer images must count less.')
    if abs(given - right.sum()) < 1e-9:
        raise Wrong(f'you returned {given:g}, the number of right answers. '
                    f'The share of right answers in all {num_images} images '
                    'is wanted.')
    raise Wrong(f'you returned {given:.4f}; {right.sum()} of {num_images} '
                f'answers are right, so the accuracy is {truth:.4f}. Does '
                'your sum have each count once, and do you divide it by '
                f'{num_images}?')


def _timeline(notes, k):
    """[device, start, end] of all work, [start, end] of Python's waiting."""
    now, free, work, waits = 0, [0] * k, [], []
    for what, number in notes['log']:
        device, rows, _ = notes['asked'][number]
        if what == 'begin':
            start = max(now, free[device])
            free[device] = start + len(rows)
            work.append([device, start, free[device]])
        elif work[number][2] > now:
            waits.append([now, work[number][2]])
            now = work[number][2]
    return work, waits


def judge_time(notes: Notes, num_images: int, k: int, seed: int = 0) -> None:
    """An image takes a millisecond; all devices work side by side."""
    for device, *_ in notes['asked']:
        if not 0 <= device < k:
            raise Wrong(f'device {device} could not begin: there are devices '
                        f'0 to {k - 1}.')
    tested = sum(len(rows) for _, rows, _ in notes['asked'])
    if not tested and num_images < k:
        return  # nothing was tested; the first check says so
    if tested < num_images / 2:  # the first check tells of a few left out
        raise Wrong(f'{tested} of {num_images} images were tested.')
    if not any(what == 'wait' for what, _ in notes['log']):
        raise Wrong('int() never took a count, so Python never waited for a '
                    'device.')
    work, waits = _timeline(notes, k)
    end, target = max(one[2] for one in work), -(-num_images // k)
    if end <= target:
        return
    text = f'the test took {end} ms; the target is {target}. '
    sizes = [sum(b - a for device, a, b in work if device == i)
             for i in range(k)]
    if max(sizes) > target:
        raise Wrong(f'{text}The devices have {sizes} images each. Divide the '
                    f'images so that no device has more than {target}.')
    late = max(work, key=lambda one: one[1])
    raise Wrong(f'{text}Device {late[0]} began only after {late[1]} ms. '
                'Until then Python was waiting for another device. Where do '
                'you call int()?')


def picture(answer: Answer) -> Picture:
    """Who worked when, with the student's function."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, draw_bars, new_figure, row_axes
    notes, k = run(answer, 449, 4), 4
    if not all(0 <= device < k for device, *_ in notes['asked']):
        raise Wrong(f'there are devices 0 to {k - 1} in this picture.')
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
