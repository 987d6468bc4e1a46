"""Exercise: the test accuracy, computed on all devices at the same time.

To chapter 1, notebooks/01-data-parallelism.ipynb.
"""
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      number)
from d2lps.exercises.images import images_of, judge_images, noted
from d2lps.figures import describe


class Count:
    """A count of right answers that a device still computes: int() waits.

    wait: notes that Python waits, and returns the number.
    """

    def __init__(self, wait: Callable[[], int]) -> None:
        self._wait = wait

    def __index__(self) -> int:  # int() and float() call it
        return self._wait()

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
    """When which device began with what, and when Python waited for it."""
    y, said, _ = _data(num_images, seed)
    X = images_of(np.arange(num_images))
    before, log = (X.copy(), y.copy()), list[tuple]()

    def begin(i, X_part, y_part):
        if i not in range(k):
            raise Wrong(f'there is no device {i}; the devices are 0 to '
                        f'{k - 1}.')
        place, batch = len(log), noted(X_part, y_part)
        log.append(('begin', int(i), batch))

        def wait():
            log.append(('wait', place))
            return sum(int(said[row] == label)
                       for row, label in zip(*batch[:2]))
        return Count(wait)

    accuracy = number(answer(X, y, k, begin),
                      'A number from 0 to 1 is wanted.')
    return {'log': log, 'accuracy': accuracy,
            'changed': not all(map(np.array_equal, (X, y), before))}


def _images(notes, k):
    """The numbers of the images that each device tests."""
    images = [[] for _ in range(k)]
    for what, device, *batch in notes['log']:
        if what == 'begin':
            images[device] += batch[0][0]
    return images


def judge_accuracy(notes: Notes, num_images: int, k: int,
                   seed: int = 0) -> None:
    """Every image once, and the share of right answers."""
    labels, _, is_right = _data(num_images, seed)
    judge_images([(f'the part of device {one[1]}', one[2])
                  for one in notes['log'] if one[0] == 'begin'], labels,
                 num_images // k, notes['changed'])
    given, truth = notes['accuracy'], is_right.mean()
    if not _near(given, truth):
        raise Wrong(f'you returned {given:.6g}; right answers: '
                    f'{is_right.sum()} of {num_images}, so the accuracy is '
                    f'{truth:.6g}.{_hint(notes, is_right, k)}')


def _near(given, truth):
    return abs(given - truth) < 1e-6  # a float32 has no more digits


def _hint(notes, is_right, k):
    """The unit, a count that was not taken, or the mean of the devices."""
    for unit, times in ('the accuracy in percent', 100), (
            'the number of right answers', len(is_right)):
        if _near(notes['accuracy'] / times, is_right.mean()):
            return f' Yours is {unit}.'
    taken = {one[1] for one in notes['log'] if one[0] == 'wait'}
    for place, (what, device, *batch) in enumerate(notes['log']):
        if what == 'begin' and place not in taken and batch[0][0]:
            return f' Your function never took the count of device {device}.'
    images = _images(notes, k)
    shares = [is_right[rows].mean() if rows else 0 for rows in images]
    if _near(notes['accuracy'], np.mean(shares)):
        return (f' Yours is the mean of the accuracies of {k} devices. They '
                f'have {[*map(len, images)]} images, and every image counts '
                'equally.')
    return ''


def _timeline(notes, k):
    """[device, start, end] of all work, [start, end] of Python's waiting."""
    now, free, work, waits = 0, [0] * k, {}, []
    for place, (what, *one) in enumerate(notes['log']):
        if what == 'begin':
            device, (rows, *_) = one
            start = max(now, free[device])
            free[device] = start + len(rows)
            work[place] = device, start, free[device]
        elif work[one[0]][2] > now:
            waits.append([now, work[one[0]][2]])
            now = work[one[0]][2]
    return [*work.values()], waits


def judge_time(notes: Notes, num_images: int, k: int, seed: int = 0) -> None:
    """An image takes a millisecond; all devices work side by side."""
    sizes = [*map(len, _images(notes, k))]
    work, waits = _timeline(notes, k)
    if not waits or sum(sizes) < num_images / 2:
        # The first check tells of a few that are left out.
        raise Wrong(f'{sum(sizes)} of {num_images} images were tested, and '
                    f'int() waited {len(waits)} times for a device.')
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


def says_time(notes: Notes, num_images: int, k: int, seed: int = 0) -> str:
    work, _ = _timeline(notes, k)
    return (f'With {k} devices, the test of {num_images} images takes '
            f'{max(end for *_, end in work)} ms.')


def picture(answer: Answer) -> Picture:
    """Who worked when, with the student's function."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, draw_bars, new_figure, row_axes
    k, target = 4, 113
    notes = run(answer, 449, k)
    work, waits = _timeline(notes, k)
    last = max([end for *_, end in work], default=0)
    title = (f'accuracy {notes["accuracy"]:.3f} after {last} ms; dotted: the '
             'target')
    told = '; '.join(f'device {device} from {start} to {end} ms'
                     for device, start, end in work)
    figure = new_figure(WIDE, 2.3)
    ax = row_axes(
        ['Python waits', *(f'device {i}' for i in range(k))],
        1.1 * max(last, target), ax=figure.subplots(), title=title,
        xlabel='time / ms')
    describe(ax, f'{title}, {target} ms. At work: {told}.')
    draw_bars(ax, [(start, end, 0) for start, end in waits], ORANGE,
              hatch='//')
    draw_bars(ax, [(start, end, device + 1) for device, start, end in work],
              BLUE)
    ax.axvline(target, color='gray', linestyle=':')
    return figure


CASES = [{'num_images': n, 'k': k} for n, k in (
    (12, 2), (449, 4), (10, 3))]
CHECKS = {
    'accuracy': Check([*CASES, {'num_images': 2, 'k': 4}], run, judge_accuracy,
                      'every image is tested once, and the accuracy is '
                      'right.'),
    'time': Check([*CASES, {'num_images': 11, 'k': 4}], run, judge_time,
                  'all devices work at the same time.', says_time)}
