"""Images that are their own numbers, for exercises of chapter 1."""
import numpy as np


def images_of(numbers):
    """Shape (n, 1, 2, 2): all pixels of an image are its number."""
    return np.asarray(numbers)[:, None, None, None] * np.ones((1, 2, 2))


def numbers_of(images):
    """Which images these are, by their first pixels."""
    first = np.reshape(images, (len(images), -1))[:, 0] if len(images) else ()
    return [int(number) for number in first]


def are_torn(images):
    """Are some of these no longer whole, or scaled?"""
    return len(images) > 0 and not np.array_equal(
        images, images_of(numbers_of(images)))
