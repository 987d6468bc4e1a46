"""Exercise: from a minibatch of b to one of k * b.

To chapter 1, notebooks/01-data-parallelism.ipynb.
"""
from functools import partial
from typing import TypedDict

import numpy as np

from d2lps.exercises.charts import bar_chart
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      number, returned, scalar, unchanged)
from d2lps.exercises.images import images_of, judge_images, noted
from d2lps.explaining import Facts, brief
from d2lps.units import several


def _examples(num_images):
    """Images, and labels that tell which is which, up to ten neighbours."""
    numbers = np.arange(num_images)
    return images_of(numbers), numbers * 7 % 10


def _train_batch(steps, X_batch, y_batch, rate):
    steps.append((noted(X_batch, y_batch), float(rate)))


class Epoch(TypedDict):
    """The images and the rate of each step, and the result."""
    steps: list[tuple]
    told: float


def run_steps(answer: Answer, num_images: int, k: int, b: int) -> Epoch:
    """The images of each step, and the number of steps that was returned."""
    steps = list[tuple]()
    X, y = _examples(num_images)
    with unchanged(X=X, y=y):
        told = returned(answer, X, y, k, b, 0.1, partial(_train_batch, steps))
    number(told, 'the number of steps is right')
    return {'steps': steps, 'told': scalar(told)}


def judge_steps(notes: Epoch, num_images: int, k: int, b: int) -> None:
    """Every image once, with its label, k * b in a step."""
    batches = [(f'step {number}', batch)
               for number, (batch, _) in enumerate(notes['steps'], 1)]
    judge_images(batches, _examples(num_images)[1], 'k * b', k * b)
    for where, (rows, *_) in batches:
        size = len(rows)
        if not rows:
            raise Wrong(f'{where} has no images; {-(-num_images // (k * b))} '
                        'steps are right.')
        if size > k * b or size < k * b and where != batches[-1][0]:
            raise Differs(f'{where} has {several(size, "image")}; k * b = '
                          f'{k * b} is right', size, k * b,
                          values={'k': k, 'b': b})
    if notes['told'] != len(batches):
        raise Differs(f'you return {brief(notes["told"])}; {len(batches)} is '
                      'right, the number of your steps', notes['told'],
                      len(batches), values={'k': k, 'b': b})


def run_rate(answer: Answer, num_images: int, k: int, b: int, lr: float
             ) -> list[tuple]:
    """The images of each step, and its learning rate."""
    steps = list[tuple]()
    answer(*_examples(num_images), k, b, lr, partial(_train_batch, steps))
    return steps


def judge_rate(steps: list[tuple], num_images: int, k: int, b: int, lr: float
               ) -> None:
    """Each image counts lr / b, in the last step as well."""
    sizes = [len(rows) for (rows, *_), _ in steps]
    if sum(sizes) < num_images / 2:  # of a few, judge_steps tells
        raise Differs(f'you train {sum(sizes)} of '
                      f'{several(num_images, "image")}', None)
    for step, (size, (_, rate)) in enumerate(zip(sizes, steps), 1):
        if size and not abs(rate / size * b / lr - 1) <= 1e-6:  # it can be nan
            known: Facts = {}
            if all(one == lr for _, one in steps):
                known = {('lr',): 'Your rate is `lr` in each step.'}
            elif step == len(steps) and size < k * b:
                known = {('last',): 'Only the last step, which is smaller, is '
                                    'wrong.'}
            raise Differs(
                f'in step {step} each image counts {rate:.6g} / {size} = '
                f'{rate / size:.6g}; lr / b = {lr / b:.6g} is right', rate,
                lr * size / b, values={'k': k, 'b': b}, known=known)


def picture(answer: Answer) -> Picture:
    """Train an epoch on one and two devices with the student's loop."""
    import time

    import pandas as pd

    import d2lps
    from d2lps.engine import mx
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, new_figure
    train, test = d2lps.load_data(256)
    order = np.random.default_rng(0).permutation(len(train.labels))[:6000]
    X, y = train.images[order, None] / np.float32(255), train.labels[order]
    rows = {}
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
        seconds = time.perf_counter() - start
        rows[f'{several(k, "device")}, {len(seen)} steps'] = (
            d2lps.evaluate_accuracy(test, copies, places), sum(seen) / seconds)
    table = pd.DataFrame(rows, ['test accuracy', 'images per second']).T
    axes = new_figure(WIDE, 1.4).subplots(1, 2, sharey=True)
    for ax, name, color in zip(axes, table, (BLUE, ORANGE)):
        bar_chart(table[[name]], ax, colors=[color], xlabel=name)
    return ax.figure


CASES = [{'num_images': n, 'k': k, 'b': b}
         for n, k, b in ((24, 2, 4), (24, 1, 4), (50, 3, 4), (5, 2, 4))]
CASE = 'N = {num_images}, k = {k}, b = {b}'
CHECKS = {
    'steps': Check(CASES, run_steps, judge_steps,
                   'every image is in one step, with b on each device.',
                   case=CASE),
    'rate': Check([{**case, 'lr': 0.1} for case in CASES], run_rate,
                  judge_rate, 'every image counts lr / b, as on one device.',
                  case=CASE)}
