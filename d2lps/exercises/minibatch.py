"""Exercise: from a minibatch of b to one of k * b.

To chapter 1, notebooks/01-data-parallelism.ipynb.
"""
from numbers import Real
from reprlib import repr as short
from typing import Any

import numpy as np

from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      scalar)
from d2lps.exercises.images import (counted, devices, images_of,
                                    judge_images, noted)


def _labels(num_images):
    """Labels that tell which image is which, up to ten neighbours."""
    return np.arange(num_images) * 7 % 10


def run(answer: Answer, num_images: int, k: int, b: int,
        lr: float = 0.1) -> Notes:
    """Of each step what was trained, and with which learning rate."""
    steps: list[tuple] = []

    def train_batch(X_batch, y_batch, rate):
        if len(X_batch) != len(y_batch):
            raise Wrong(f'step {len(steps) + 1} has '
                        f'{counted(len(X_batch), "image")} and '
                        f'{counted(len(y_batch), "label")}.')
        steps.append((noted(X_batch, y_batch), float(rate)))

    X = images_of(np.arange(num_images, dtype='float32'))
    y = _labels(num_images)
    before = X.copy(), y.copy()
    returned = scalar(answer(X, y, k, b, lr, train_batch))
    return {'steps': steps,
            'changed': not all(map(np.array_equal, (X, y), before)),
            'returned': returned if isinstance(returned, Real) else
            short(returned)}


def judge_steps(notes: Notes, num_images: int, k: int, b: int,
                **_: Any) -> None:
    """Every image once, with its label, k * b in a step."""
    batches = [(f'step {number}', batch) for number, (batch, _)
               in enumerate(notes['steps'], 1)]
    judge_images(batches, _labels(num_images), k * b, notes['changed'])
    for where, (rows, *_) in batches:
        size = len(rows)
        if not rows:
            raise Wrong(f'{where} has no images. There are {len(batches)} '
                        f'steps for {counted(num_images, "image")}.')
        if size > k * b or size < k * b and where != batches[-1][0]:
            raise Wrong(f'{where} has {counted(size, "image")} for '
                        f'{devices(k)}, {size / k:.3g} on each; {b} on each '
                        f'are wanted, so {k * b} in the minibatch. Only the '
                        'last step may be smaller.')
    if notes['returned'] != len(batches):
        raise Wrong(f'your function took {counted(len(batches), "step")} and '
                    f'returned {notes["returned"]}; the number of steps is '
                    'wanted.')


def judge_rate(notes: Notes, num_images: int, k: int, b: int,
               lr: float) -> None:
    """Each image counts lr / b, in the last step as well."""
    steps = notes['steps']
    trained = sum(len(rows) for (rows, *_), _ in steps)
    if trained < num_images / 2:  # of a few that are left out, judge_steps
        raise Wrong(f'images that were trained: {trained} of {num_images}.')
    for number, ((rows, *_), rate) in enumerate(steps, 1):
        # The first check tells of steps without images. A rate can be nan.
        if rows and not abs(rate / len(rows) * b / lr - 1) <= 1e-6:
            last = ' It is the last step, which is smaller.' * (
                number == len(steps) and len(rows) < k * b)
            raise Wrong(
                f'step {number} has {counted(len(rows), "image")} and a '
                f'learning rate of {rate:.6g}. train_batch divides the sum '
                f'of the gradients by {len(rows)}, so each image counts '
                f'{rate / len(rows):.6g}. With {counted(b, "image")} on one '
                f'device it counted {lr} / {b} = {lr / b:.6g}.{last}')


def picture(answer: Answer) -> Picture:
    """Train an epoch on one and two devices with the student's loop."""
    import time

    import d2lps
    from d2lps.engine import mx
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, new_figure
    train, test = d2lps.load_data(256)
    order = np.random.default_rng(0).permutation(len(train.labels))[:6000]
    X, y = train.images[order, None] / np.float32(255), train.labels[order]
    names, accuracy, speed = [], [], []
    for k in 1, 2:
        places = d2lps.devices(k)
        copies = [d2lps.get_params(d2lps.init_params('xavier', 0), device)
                  for device in places]
        seen = []

        def train_batch(X_batch, y_batch, rate):
            d2lps.train_batch(
                mx.np.array(X_batch, 'float32'), mx.np.array(
                    y_batch, 'int32'),
                copies, places, float(rate))  # noqa: B023
            seen.append(len(X_batch))  # noqa: B023
        start = time.perf_counter()
        answer(X.copy(), y.copy(), k, 64, 0.1, train_batch)
        mx.nd.waitall()
        speed.append(sum(seen) / (time.perf_counter() - start))
        accuracy.append(d2lps.evaluate_accuracy(test, copies, places))
        names.append(f'{devices(k)}, {len(seen)} steps')
    figure = new_figure(WIDE, 1.4)
    left, right = figure.subplots(1, 2, sharey=True)
    for ax, values, fmt, color, label in (
            (left, accuracy, '%.3f', BLUE, 'test accuracy'),
            (right, speed, '%.0f', ORANGE, 'images per second')):
        ax.bar_label(ax.barh(names, values, color=color), fmt=fmt, padding=4)
        ax.set_xlabel(label)
        ax.margins(x=0.2)
        ax.grid(False, axis='y')
    left.invert_yaxis()
    return figure


CASES = [{'num_images': n, 'k': k, 'b': b}
         for n, k, b in ((24, 2, 4), (24, 1, 4), (50, 3, 4), (5, 2, 4))]
CHECKS = {
    'steps': Check(CASES, run, judge_steps,
                   'every image is in one step, with b on each device.'),
    'rate': Check([{**case, 'lr': 0.1} for case in CASES], run, judge_rate,
                  'every image counts lr / b, as on one device.')}
