"""Exercise: the test accuracy, computed on all devices at the same time.

To chapter 1, notebooks/01-data-parallelism.ipynb.
"""
from collections.abc import Callable
from typing import NoReturn, TypedDict

import numpy as np

from d2lps.exercises.charts import row_chart
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      number, returned, unchanged)
from d2lps.exercises.images import images_of, judge_images, noted
from d2lps.explaining import brief, same
from d2lps.units import several


class Count:
    """A count of right answers that a device still computes: int() waits.

    wait: notes that Python waits, and returns the number.
    """

    def __init__(self, wait: Callable[[], int]) -> None:
        self._wait = wait

    def __index__(self) -> int:  # int() and float() call it
        return self._wait()

    def __add__(self, other: object) -> NoReturn:
        raise Wrong('you add or divide a count; int(count) is the number. '
                    'Counts lie on different devices.', anywhere=True)

    __radd__ = __truediv__ = __add__


def _data(num_images, seed):
    """Labels of all images, the answers of LeNet, and which are right."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, num_images)
    right = random.random(num_images) < np.linspace(1, 0.3, num_images)
    return labels, np.where(right, labels, (labels + 1) % 10), right


class Tested(TypedDict):
    """The accuracy that a test returned, and its log.

    log: ('begin', device, batch), or ('wait', k) for the count of entry k.
    """
    log: list[tuple]
    accuracy: float


def run(answer: Answer, num_images: int, k: int, seed: int = 0) -> Tested:
    """A log of the begins and waits, and the accuracy."""
    y, said, _ = _data(num_images, seed)
    X, log = images_of(np.arange(num_images)), list[tuple]()

    def begin(i, X_part, y_part):
        if i not in range(k):
            raise Wrong(f'you call `begin` for device {brief(i)}; 0 to k - 1 '
                        f'= {k - 1} are right.')
        place, batch = len(log), noted(X_part, y_part)
        log.append(('begin', int(i), batch))

        def wait():
            log.append(('wait', place))
            return sum(int(said[row] == label)
                       for row, label in zip(*batch[:2]))
        return Count(wait)

    with unchanged(X=X, y=y):
        accuracy = number(returned(answer, X, y, k, begin),
                          'a number from 0 to 1 is right')
    return {'log': log, 'accuracy': accuracy}


def _images(notes, k):
    """The numbers of the images that each device tests."""
    images = [[] for _ in range(k)]
    for kind, device, *batch in notes['log']:
        if kind == 'begin':
            images[device] += batch[0][0]
    return images


def judge_accuracy(notes: Tested, num_images: int, k: int,
                   seed: int = 0) -> None:
    """Every image once, and the share of right answers."""
    labels, _, is_right = _data(num_images, seed)
    judge_images([(f'the part of device {event[1]}', event[2])
                  for event in notes['log'] if event[0] == 'begin'], labels,
                 'k', k)
    given, truth = notes['accuracy'], is_right.mean()
    if not same(given, truth, 1e-6):  # a float32 has no more digits
        raise Differs(
            f'you return {given:.6g}; {is_right.sum()} / {num_images} = '
            f'{truth:.6g} is right', given, truth, 1e-6,
            {'k': k, 'len(X)': num_images}, _facts(notes, is_right, k),
            unit='share')


def _facts(notes, is_right, k):
    """A count that was not taken, or the wrong number to divide by."""
    taken = {event[1] for event in notes['log'] if event[0] == 'wait'}
    for place, (kind, device, *batch) in enumerate(notes['log']):
        if kind == 'begin' and place not in taken and batch[0][0]:
            return {('not taken',): 'You never call `int` on the count of '
                                    f'device {device}.'}
    given, images = notes['accuracy'], [*filter(None, _images(notes, k))]
    sizes, shares = [*map(len, images)], [is_right[rows].mean()
                                          for rows in images]
    for n in k, len(images):
        if same(given, sum(shares) / n, 1e-6):
            return {('mean',): 'Yours is the mean of the accuracies of '
                               f'devices with {min(sizes)} to {max(sizes)} '
                               'images.'}
    for n in sizes:
        if same(given, is_right.sum() / n, 1e-6):
            return {('one',): f'You divide by {n}, the images of one device.'}
    return {}


def _timeline(notes, k):
    """[device, start, end] of all work, [start, end] of Python's waiting."""
    now, free, work, waits = 0, [0] * k, {}, []
    for place, (kind, *rest) in enumerate(notes['log']):
        if kind == 'begin':
            device, (rows, *_) = rest
            start = max(now, free[device])
            free[device] = start + len(rows)
            work[place] = device, start, free[device]
        elif work[rest[0]][2] > now:
            waits.append([now, work[rest[0]][2]])
            now = work[rest[0]][2]
    return [*work.values()], waits


def judge_time(notes: Tested, num_images: int, k: int, seed: int = 0) -> None:
    """An image takes a millisecond; all devices work side by side."""
    sizes = [*map(len, _images(notes, k))]
    work, waits = _timeline(notes, k)
    if sum(sizes) < num_images / 2:  # of a few, judge_accuracy tells
        raise Differs(f'the devices test {sum(sizes)} of '
                      f'{several(num_images, "image")}', None)
    if not waits:
        raise Differs('you never call `int` on a count; once for each device '
                      'is right', None)
    device, _, end = max(work, key=lambda task: task[2])
    target = -(-num_images // k)
    if end > target:
        start = f'the test takes {end} ms; the target is {target} ms. '
        if max(sizes) > target:
            raise Wrong(f'{start}Device {sizes.index(max(sizes))} tests '
                        f'{max(sizes)} images.')
        raise Wrong(f'{start}Device {device} is idle for '
                    f'{end - sizes[device]} ms, while Python waits in `int` '
                    'for another device.')


def says_time(notes: Tested, num_images: int, k: int, seed: int = 0) -> str:
    work, _ = _timeline(notes, k)
    return (f'With {k} devices, the test of {num_images} images takes '
            f'{max(end for *_, end in work)} ms.')


def picture(answer: Answer) -> Picture:
    """Times at which each device works and Python waits."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import draw_bars
    k, target = 4, 113
    notes = run(answer, 449, k)
    work, waits = _timeline(notes, k)
    last = max([end for *_, end in work], default=0)
    title = (f'accuracy {notes["accuracy"]:.3f} after {last} ms; dotted: the '
             'target')
    told = '; '.join(f'device {device} works from {start} to {end} ms'
                     for device, start, end in work)
    ax = row_chart(
        ['Python waits', *(f'device {i}' for i in range(k))],
        1.1 * max(last, target), f'{title}, {target} ms. {told}.',
        title=title, xlabel='time / ms')
    draw_bars(ax, [(start, end, 0) for start, end in waits], ORANGE,
              hatch='//')
    draw_bars(ax, [(start, end, device + 1) for device, start, end in work],
              BLUE)
    ax.axvline(target, color='gray', linestyle=':')
    return ax.figure


CASES = [{'num_images': n, 'k': k} for n, k in (
    (12, 2), (449, 4), (10, 3))]
CASE = 'N = {num_images}, k = {k}'
CHECKS = {
    'accuracy': Check([*CASES, {'num_images': 2, 'k': 4}], run, judge_accuracy,
                      'every image is tested once, and the accuracy is '
                      'right.', case=CASE),
    'time': Check([*CASES, {'num_images': 11, 'k': 4}], run, judge_time,
                  'all devices work at the same time.', says_time, CASE)}
