"""Images whose pixels are their own numbers, for exercises to chapter 1."""
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from d2lps.annotations import Array
from d2lps.exercises.checking import Wrong

# The numbers of images, their labels, and whether pixels have changed.
Batch: TypeAlias = tuple[list[int], list[int], bool]


def images_of(numbers: Sequence[int] | np.ndarray) -> np.ndarray:
    """Images with these numbers as pixels: shape (n, 1, 2, 2)."""
    return np.asarray(numbers)[:, None, None, None] * np.ones((1, 2, 2))


def noted(images: Array, labels: Array) -> Batch:
    """What came, in plain numbers."""
    first = np.reshape(images, (len(images), -1))[:, 0] if len(images) else ()
    numbers = [int(number) for number in first]
    return (numbers, [int(label) for label in labels],
            len(images) > 0 and not np.array_equal(images, images_of(numbers)))


def judge_images(batches: Iterable[tuple[str, Batch]],
                 labels: Sequence[int] | np.ndarray, size: int,
                 changed: bool) -> None:
    """Raise `Wrong` unless each image comes once, with its label.

    batches: where each is, such as 'step 1', and what `noted` returned.
    labels: of all images. size: how many images a full batch has. changed:
    whether the answer has changed the arrays X and y that it was given.
    """
    seen: dict[int, str] = {}
    for where, (rows, given, torn) in batches:
        if torn or not {*rows} <= {*range(len(labels))}:
            raise Wrong(f'the images of {where} are no longer those of X, '
                        'with all their pixels.')
        if len(rows) != len(given):
            raise Wrong(f'{where} has {counted(len(rows), "image")} and '
                        f'{counted(len(given), "label")}.')
        for row, label in zip(rows, given, strict=True):
            if row in seen:
                raise Wrong(f'image {row} is in {seen[row]} and again in '
                            f'{where}: it counts twice.')
            seen[row] = where
            if label != labels[row]:
                raise Wrong(f'in {where} image {row} comes with label '
                            f'{label}, and {labels[row]} is right. Images '
                            'and labels must have the same order.')
    missing = sorted({*range(len(labels))} - {*seen})
    if missing:
        left = len(labels) % max(size, 1)
        why = (f' Full parts of {counted(size, "image")} leave {left}. '
               f'{"It" if left == 1 else "They"} must count, too.')
        raise Wrong(f'{len(missing)} of {len(labels)} images '
                    f'{"is" if len(missing) == 1 else "are"} used nowhere, '
                    f'for example image {missing[0]}.'
                    f'{why if len(missing) == left else ""}')
    if changed:
        raise Wrong('your function has changed X or y. The next call needs '
                    'the same arrays. Make a copy, and change the copy.')


def counted(number: int, what: str) -> str:
    """'1 image', '2 images' and so on."""
    return f'{number} {what}' + 's' * (number != 1)


def devices(k: int) -> str:
    return counted(k, 'device')
