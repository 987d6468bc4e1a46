"""Are these keys and arrays fit for a store of MXNet's?"""
import numpy as onp

from d2lps.engine import mx
from d2lps.kvstore.store import by_key


def names(keys):
    """The first few keys, in words."""
    shown = ', '.join(map(repr, keys[:3]))
    return shown + (', …' if len(keys) > 3 else '') if keys else 'none'


def groups(name, keys, values, known, new=False):
    """Check a call's keys and arrays; return {key: [arrays], …}.

    Args:
        name: what the caller calls `values`.
        keys, values: as in `d2lps.kvstore.store.by_key`.
        known: the shape of each key that the store has.
        new: the keys must not be in the store, rather than be in it.

    Raises:
        ValueError: if something does not fit.
    """
    found = by_key(keys, values, name, mx.nd.NDArray)
    for key in found:
        _check_key(key, known, new)
    if len({type(key) for key in [*found, *known]}) > 1:
        raise ValueError('key must be of one type in a store, numbers or '
                         f'strings; it was {names([*found])}, and so far '
                         f'there is {names([*known])}')
    for key, arrays in found.items():
        if new and len(arrays) > 1:
            raise ValueError(f'{name} for key {key!r} must be one array; '
                             f'there are {len(arrays)}')
        for array in arrays:
            _check_array(name, key, array)
            wanted = known.get(key, arrays[0].shape)
            if array.shape != wanted:
                raise ValueError(f'{name} for key {key!r} must have shape '
                                 f'{wanted}; it was {array.shape}')
    return found


def _check_key(key, known, new):
    if type(key) is int and not 0 <= key < 2 ** 31:
        raise ValueError('key must be from 0 to 2**31 - 1, or a string; it '
                         f'was {key!r}')
    if new and key in known:
        raise ValueError(f'key {key!r} is initialised already; push to it, '
                         'or create a new store')
    if not new and key not in known:
        raise ValueError(f'key {key!r} is not initialised; first call '
                         f'init({key!r}, value) on every worker (so far: '
                         f'{names([*known])})')


def _check_array(name, key, array):
    if array.stype != 'default':
        raise ValueError(f'{name} for key {key!r} must be an array of '
                         f'mxnet.np; it was a {type(array).__name__}')
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
