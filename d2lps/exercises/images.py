"""Images whose pixels are their own numbers, for exercises to chapter 1."""
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from d2lps.annotations import Array
from d2lps.exercises.checking import Differs, Wrong
from d2lps.units import several

# The numbers of images, their labels, and what is wrong with their pixels.
Batch: TypeAlias = tuple[list[int], list[int], str]
CHANGED = 'changed pixels; those of X are right'


def images_of(numbers: Sequence[int] | np.ndarray) -> np.ndarray:
    """Images with these numbers as pixels: shape (n, 1, 2, 2)."""
    return np.asarray(numbers)[:, None, None, None] * np.ones((1, 2, 2))


def noted(images: Array, labels: Array) -> Batch:
    """A batch in plain numbers."""
    first = np.reshape(images, (len(images), -1))[:, 0] if len(images) else ()
    numbers, shape = [int(number) for number in first], np.shape(images)[1:]
    wrong = '' if not numbers else (
        f'images of shape {shape}; (1, 2, 2) is right'
        if shape != (1, 2, 2) else
        '' if np.array_equal(images, images_of(numbers)) else CHANGED)
    return numbers, [int(label) for label in labels], wrong


def judge_images(batches: Iterable[tuple[str, Batch]],
                 labels: Sequence[int] | np.ndarray, divisor: str,
                 size: int) -> None:
    """Raise `Wrong` unless each image comes once, with its label.

    batches: where each is, such as 'step 1', and what `noted` returned.
    labels: of all images. divisor, size: name and value of the number that
    a rest is left of, if images are divided without care.
    """
    batches, n = [*batches], len(labels)
    seen: dict[int, str] = {}
    for where, (rows, given, wrong) in batches:
        if wrong or not {*rows} <= {*range(n)}:
            raise Wrong(f'{where} has {wrong or CHANGED}.')
        if len(rows) != len(given):
            raise Wrong(f'{where} has {several(len(rows), "image")} and '
                        f'{several(len(given), "label")}; a label for each '
                        'image is right.')
        for row, label in zip(rows, given):
            if row in seen:
                raise Differs(f'image {row} is in {seen[row]} and again in '
                              f'{where}; once is right', None)
            seen[row] = where
            if label != labels[row]:
                raise Differs(f'in {where}, image {row} has label {label}; '
                              f'{labels[row]} is right', None,
                              place=_orders(batches, labels))
    missing = [row for row in range(n) if row not in seen]
    if missing:
        raise Differs(
            f'you leave out {several(len(missing), "image")} of {n}, the '
            f'first is image {missing[0]}', None, known={
                ('rest',): f'{n} is no multiple of `{divisor}`, {size}.'}
            if missing == [*range(n - n % size, n)] else {})


def _orders(batches, labels):
    """Words about images or labels, if only one has another order."""
    rows, given = (sum((batch[k] for _, batch in batches), [])
                   for k in range(2))
    if sorted(given) != sorted(labels):
        return ''
    return {(False, True): 'You reorder `X`, but not `y`.',
            (True, False): 'You reorder `y`, but not `X`.'}.get(
                (rows == [*range(len(labels))], given == [*labels]), '')
