"""Checks and rules for the arrays of a training step."""
from collections.abc import Sequence
from functools import partial

import numpy as onp

from d2lps.annotations import Array, Device
from d2lps.checks import number, positive, refuse
from d2lps.engine import array


# Larger rates make parameters overflow in one step. The loss would not show
# it, because MXNet's ReLU makes nan 0.
learning_rate = partial(positive, least=1e-30, most=1e10, example=0.1)
rate_or_zero = partial(number, most=1e10, example=0.1)


def class_labels(name: str, value: Array) -> Array:
    """A check: labels (b,) from 0 to 9. It waits for these labels only."""
    labels = array(name, value).asnumpy()
    if labels.dtype.kind not in 'iu' or labels.ndim != 1 or not labels.size:
        refuse(name, value, 'an array of whole numbers of shape (n,)')
    if not 0 <= labels.min() <= labels.max() < 10:
        raise ValueError(f'{name} must be from 0 to 9; they were from '
                         f'{labels.min()} to {labels.max()}')
    return value


def finite(name: str, value: Array) -> Array:
    """A check: an array without nan and inf. It waits for this array only.

    MXNet's ReLU makes nan 0, so the loss would not show it.
    """
    if not onp.isfinite(array(name, value).asnumpy()).all():
        raise ValueError(f'{name} must have finite numbers only; some are nan '
                         'or inf')
    return value


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
