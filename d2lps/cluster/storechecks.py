"""Are these keys and arrays fit for a store of MXNet's?"""
import numpy as onp

from d2lps.engine import mx


def names(keys):
    """The first few keys, in words."""
    shown = ', '.join(map(repr, keys[:3]))
    return shown + (', …' if len(keys) > 3 else '') if keys else 'none'


def pairs(name, keys, values, known, new=False):
    """Check a call's keys and arrays; return [(key, list of arrays), …].

    Args:
        name: what the caller calls `values`.
        keys: a key, or a list of them.
        values: an array or (from several devices) a list of arrays; for a
            list of keys, a list of these.
        known: the shape of each key that the store has.
        new: the keys must not be in the store, rather than be in it.

    Raises:
        ValueError: if something does not fit.
    """
    if not isinstance(keys, (list, tuple)):
        keys, values = [keys], [values]
    if not isinstance(values, (list, tuple)) or len(keys) != len(values):
        raise ValueError(f'{name} must be a list of {len(keys)}, one for '
                         f'each key; it was {values!r}')
    for key in keys:
        _check_key(key, known, new)
    if not keys or len(set(keys)) < len(keys):
        raise ValueError('key must be one key, or several different ones; it '
                         f'was {keys!r}')
    if len({type(key) for key in [*keys, *known]}) > 1:
        raise ValueError('key must be of one type in a store, numbers or '
                         f'strings; it was {names(keys)}, and so far there '
                         f'is {names([*known])}')
    pairs = [(key, list(value) if isinstance(value, (list, tuple))
              else [value]) for key, value in zip(keys, values)]
    for key, arrays in pairs:
        if not arrays:
            raise ValueError(f'{name} for key {key!r} is an empty list')
        for array in arrays:
            _check_array(name, key, array)
            wanted = known.get(key, arrays[0].shape)
            if array.shape != wanted:
                raise ValueError(f'{name} for key {key!r} must have shape '
                                 f'{wanted}; it was {array.shape}')
    return pairs


def _check_key(key, known, new):
    if type(key) not in (int, str) or (
            type(key) is int and not 0 <= key < 2 ** 31):
        raise ValueError("key must be a string such as 'w' or a whole number "
                         f'from 0 to 2**31 - 1; it was {key!r}, of type '
                         f'{type(key).__name__}')
    if new and key in known:
        raise ValueError(f'key {key!r} is initialised already; push to it, '
                         'or create a new store')
    if not new and key not in known:
        raise ValueError(f'key {key!r} is not initialised; first call '
                         f'init({key!r}, value) on every worker (so far: '
                         f'{names([*known])})')


def _check_array(name, key, array):
    if not isinstance(array, mx.nd.NDArray) or array.stype != 'default':
        raise ValueError(f'{name} for key {key!r} must be an array of '
                         f'mxnet.np; it was of type {type(array).__name__}')
    if onp.dtype(array.dtype) != 'float32' or array.size == 0:
        raise ValueError(
            f'{name} for key {key!r} must have elements of float32, for '
            f"example {name}.astype('float32'); it has {array.size} of "
            f'{onp.dtype(array.dtype)}')


def check_compression(params, known):
    """Are these parameters fit for a store that has the keys `known`?"""
    threshold = (params.get('threshold', 0.5) if isinstance(params, dict)
                 else None)
    if (not isinstance(threshold, (int, float)) or not threshold > 0
            or params.get('type') != '2bit'
            or set(params) - {'type', 'threshold'}):
        raise ValueError("params must be like {'type': '2bit', 'threshold': "
                         f'0.5}}; it was {params!r}')
    if known:
        raise ValueError('compression must be set before init; there is key '
                         f'{names([*known])} already')
