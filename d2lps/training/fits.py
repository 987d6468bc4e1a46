"""What fits together: checks and rules for the arrays of a training step."""
import math

import numpy as onp

from d2lps.checks import refuse
from d2lps.engine import array


def byte_images(name, value):
    """A check: images as they stay in memory."""
    if not (isinstance(value, onp.ndarray) and value.dtype == 'uint8'
            and value.ndim == 3 and value.size
            and value.shape[1:] == (28, 28)):
        refuse(name, value, 'a NumPy array of bytes (uint8) of shape '
               '(n, 28, 28)')
    return value


def class_numbers(name, value):
    """A check: the labels of images, whole numbers (n,) from 0 to 9."""
    if not (isinstance(value, onp.ndarray) and value.dtype.kind in 'iu'
            and value.ndim == 1 and value.size):
        refuse(name, value, 'an array of whole numbers of shape (n,)')
    if not 0 <= value.min() <= value.max() < 10:
        raise ValueError(f'{name} must be from 0 to 9; they '
                         f'were from {value.min()} to {value.max()}')
    return value


def one_label_each_image(images, labels, **_):
    if len(images) != len(labels):
        raise ValueError(f'labels must be one for each of the {len(images):,}'
                         f' images; there were {len(labels):,}')


def class_labels(name, value):
    """A check: labels (b,) from 0 to 9. It waits for them and no more."""
    class_numbers(name, array(name, value).asnumpy())
    return value


def minibatches(name, value):
    """A check: something that a `for X, y in` can go through."""
    if (not hasattr(value, '__iter__') or hasattr(value, 'shape')
            or isinstance(value, (str, dict))
            or isinstance(value, (list, tuple)) and any(
                not isinstance(pair, (list, tuple)) or len(pair) != 2
                for pair in value)):
        refuse(name, value, 'an iterator over minibatches X, y, such as '
               'd2lps.load_data(256)[1]')
    return value


def agree(**dimensions):
    """A rule for `checked`: arrays that can be computed with together.

    dimensions: a name for each dimension of an argument, as in 'b c h w'.
    One name stands for one size in all arguments, a number for itself; 'n*'
    is all that is left, multiplied. Labels `y` are whole numbers, all else
    is one kind of float, and all is on one device.
    """
    def rule(**arguments):
        known, first = {}, None
        for name, letters in dimensions.items():
            value, letters = arguments[name], letters.split()
            shape, last = value.shape, len(letters) - 1
            if letters[-1].endswith('*') and len(shape) > last:
                shape = *shape[:last], math.prod(shape[last:])
            keys = [letter.rstrip('*') for letter in letters]
            wanted = tuple(int(key) if key.isdigit() else
                           known.setdefault(key, size or 'n')
                           for key, size in zip(keys, shape))
            if shape != wanted or len(shape) != len(keys):
                sizes = ', '.join(str(known.get(key, key)) for key in keys)
                refuse(name, value, f'an array of shape ({sizes})')
            kind = onp.dtype(value.dtype)
            first = first or (kind.name, value.ctx, name)
            if kind.kind not in ('iu' if name == 'y' else 'f'):
                refuse(name, value, 'whole numbers, such as int32' if
                       name == 'y' else 'floats, such as float32')
            if value.ctx != first[1] or name != 'y' and kind.name != first[0]:
                raise ValueError(f'{name} must be {first[0]} on {first[1]}, '
                                 f'as {first[2]} is; it was {kind.name} on '
                                 f'{value.ctx}')
    return rule


def one_label_each(X, y, **_):
    if X.ndim == 0 or len(X) == 0:
        raise ValueError('X has no examples')
    if y.ndim == 0 or len(X) != len(y):
        raise ValueError(f'X has {len(X)} examples, but y has '
                         f'{len(y) if y.ndim else "no"} labels; there must '
                         'be one label for each example')


def one_copy_each(device_params, devices, **_):
    """A rule: there is a copy of the parameters on each device."""
    if len(device_params) != len(devices):
        raise ValueError(
            f'device_params must have a copy of the parameters for each of '
            f'the {len(devices)} devices; it had {len(device_params)}')
    for i, (params, device) in enumerate(zip(device_params, devices)):
        for param in params:
            if param.ctx != device:
                raise ValueError(f'device_params[{i}] must be on {device}, '
                                 f'as devices[{i}] is; it was on {param.ctx}')


def ready_to_learn(X, y, device_params, devices):
    one_label_each(X, y)
    one_copy_each(device_params, devices)
    for i, params in enumerate(device_params):
        if any(param.grad is None for param in params):
            raise ValueError(f'device_params[{i}] must have gradients: make '
                             'it with get_params')


def alike(**arrays):
    """A rule: all in a list of arrays have one shape and one dtype."""
    [(name, [first, *others])] = arrays.items()
    for i, one in enumerate(others, start=1):
        if (one.shape, one.dtype) != (first.shape, first.dtype):
            refuse(f'{name}[{i}]', one, f'of shape {first.shape} and dtype '
                   f'{onp.dtype(first.dtype).name}, as {name}[0] is')
