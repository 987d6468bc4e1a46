"""Checks and rules for the arrays of a training step."""
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as onp

from d2lps.annotations import Array, Device
from d2lps.checks import number, positive, refuse
from d2lps.engine import array


# Larger rates make parameters overflow in one step. The loss would not show
# it, because MXNet's ReLU makes nan 0.
learning_rate = partial(positive, least=1e-30, most=1e10, example=0.1)
rate_or_zero = partial(number, most=1e10, example=0.1)


def byte_images(name: str, value: Any) -> onp.ndarray:
    """A check: images as they stay in memory."""
    if not (_is_unmasked(value) and value.dtype == 'uint8'
            and value.ndim == 3 and value.size
            and value.shape[1:] == (28, 28)):
        refuse(name, value, 'a NumPy array of bytes (uint8) of shape '
               '(n, 28, 28)')
    return value


def _is_unmasked(value):
    return isinstance(value, onp.ndarray) and not isinstance(
        value, onp.ma.MaskedArray)


def class_numbers(name: str, value: Any) -> onp.ndarray:
    """A check: the labels of images, whole numbers (n,) from 0 to 9."""
    if not (_is_unmasked(value) and value.dtype.kind in 'iu'
            and value.ndim == 1 and value.size):
        refuse(name, value, 'an array of whole numbers of shape (n,)')
    if not 0 <= value.min() <= value.max() < 10:
        raise ValueError(f'{name} must be from 0 to 9; they '
                         f'were from {value.min()} to {value.max()}')
    return value


def one_label_each_image(images: onp.ndarray, labels: onp.ndarray,
                         name: str = 'labels', **_: object) -> None:
    """A rule: as many labels as images."""
    if len(images) != len(labels):
        raise ValueError(f'{name} must be one for each of the {len(images):,}'
                         f' images; there were {len(labels):,}')


def class_labels(name: str, value: Array) -> Array:
    """A check: labels (b,) from 0 to 9. It waits for these labels only."""
    class_numbers(name, array(name, value).asnumpy())
    return value


def finite(name: str, value: Array) -> Array:
    """A check: an array without nan and inf. It waits for this array only.

    MXNet's ReLU makes nan 0, so the loss would not show it.
    """
    if not onp.isfinite(array(name, value).asnumpy()).all():
        raise ValueError(f'{name} must have finite numbers only; some are nan '
                         'or inf')
    return value


def minibatches(name: str, value: Any) -> Iterator[tuple[Array, Array]]:
    """A check: something that a `for X, y in` can go through.

    It returns an iterator that checks each minibatch before it yields it.
    """
    fits = hasattr(value, '__iter__') and not (
        hasattr(value, 'shape') or isinstance(value, (str, dict)))
    if fits and isinstance(value, (list, tuple)):
        fits = all(isinstance(pair, (list, tuple)) and len(pair) == 2
                   for pair in value)
    if not fits:
        refuse(name, value, 'an iterator over minibatches X, y, such as '
               'd2lps.load_data(256)[1]')
    return _each_checked(name, value)


def _each_checked(name, batches):
    for pair in batches:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            refuse(f'a minibatch of {name}', pair, 'a pair X, y')
        X, y = pair
        yield finite(f'X of {name}', X), class_labels(f'y of {name}', y)


def agree(**dimensions: str) -> Callable[..., None]:
    """A rule for `checked`: arrays that can be computed with together.

    dimensions: a name for each dimension of an argument, as in 'b c h w'.
    One name stands for one size in all arguments, a number for itself; 'n*'
    is all that is left, multiplied. Labels `y` are whole numbers, all else
    is one kind of float, and all is on one device.
    """
    def rule(**arguments):
        sizes, [first, *_] = {}, dimensions
        for name, letters in dimensions.items():
            _has_shape(name, arguments[name], letters.split(), sizes)
            _is_like(name, arguments[name], first, arguments[first])
    return rule


def _has_shape(name, array, letters, sizes):
    """Compare with the `sizes` that letters have, and add to them."""
    shape, last = array.shape, len(letters) - 1
    if letters[last].endswith('*') and len(shape) > last:
        shape = *shape[:last], math.prod(shape[last:])
    letters = [letter.rstrip('*') for letter in letters]
    for letter, size in zip(letters, shape):
        if letter.isdigit():
            sizes[letter] = int(letter)
        elif size > 0:
            sizes.setdefault(letter, size)
    wanted = tuple(sizes.get(letter, letter) for letter in letters)
    if shape != wanted:
        refuse(name, array,
               f'an array of shape ({", ".join(map(str, wanted))})')


def _is_like(name, array, first, other):
    """The same kind of number on the same device as the `first` array."""
    kind, wanted = onp.dtype(array.dtype), onp.dtype(other.dtype)
    if name == 'y' and kind.kind not in 'iu':
        refuse(name, array, 'whole numbers, such as int32')
    if name != 'y' and kind.kind != 'f':
        refuse(name, array, 'floats, such as float32')
    if array.ctx != other.ctx or name != 'y' and kind != wanted:
        raise ValueError(f'{name} must be {wanted} on {other.ctx}, as {first} '
                         f'is; it was {kind} on {array.ctx}')


def alike(**arrays: Sequence[Array]) -> None:
    """A rule: all in a list of arrays have one shape and one dtype."""
    [(name, [first, *others])] = arrays.items()
    for i, other in enumerate(others, start=1):
        if (other.shape, other.dtype) != (first.shape, first.dtype):
            refuse(f'{name}[{i}]', other, f'of shape {first.shape} and dtype '
                   f'{onp.dtype(first.dtype).name}, as {name}[0] is')


def one_label_each(X: Array, y: Array, **_: object) -> None:
    """A rule: there are examples, each with a label."""
    if X.ndim == 0 or len(X) == 0:
        raise ValueError('X has no examples')
    if y.ndim == 0 or len(X) != len(y):
        raise ValueError(f'X has {len(X)} examples, but y has '
                         f'{len(y) if y.ndim else "no"} labels; there must '
                         'be one label for each example')


def params_on_each(devices: Sequence[Device], data_iter: object = None,
                   **params: Sequence[Sequence[Array]]) -> None:
    """A rule: a list of parameters for each device, which lie on it."""
    [(name, parts)] = params.items()
    if len(parts) != len(devices):
        raise ValueError(
            f'{name} must have a list of parameters for each of the '
            f'{len(devices)} devices; it had {len(parts)}')
    for i, (part, device) in enumerate(zip(parts, devices)):
        for param in part:
            if param.ctx != device:
                raise ValueError(f'{name}[{i}] must be on {device}, as '
                                 f'devices[{i}] is; it was on {param.ctx}')


def ready_to_learn(X: Array, y: Array, devices: Sequence[Device],
                   **params: Sequence[Sequence[Array]]) -> None:
    """A rule: labelled examples, and parameters that get gradients."""
    one_label_each(X, y)
    params_on_each(devices, **params)
    [(name, parts)] = params.items()
    owners: dict[int, int] = {}
    for i, part in enumerate(parts):
        if owners.setdefault(id(part[0]), i) != i:
            raise ValueError(f'{name}[{i}] must be a copy, not the arrays of '
                             f'{name}[{owners[id(part[0])]}]: get_params '
                             'makes one, also on the same device')
        if any(param.grad is None for param in part):
            raise ValueError(f'{name}[{i}] must have gradients: make it with '
                             'get_params, or a function that calls it')
