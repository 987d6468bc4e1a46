"""Are these keys, arrays and updates fit for a store of MXNet's?"""
import base64
from collections.abc import Sequence
from typing import Any

import cloudpickle
import numpy as onp

from d2lps.annotations import Array, Key
from d2lps.checks import refuse
from d2lps.engine import mx
from d2lps.kvstore.store_arguments import by_key


def names(keys: Sequence[Key]) -> str:
    """The first few keys, in words."""
    shown = ', '.join(map(repr, keys[:3]))
    return shown + (', …' if len(keys) > 3 else '') if keys else 'none'


def groups(name: str, keys: Key | list[Key] | tuple[Key, ...], values: Any,
           known: dict[Key, tuple[int, ...]],
           new: bool = False) -> dict[Key, list[Array]]:
    """Check a call's keys and arrays; return {key: [arrays], …}.

    Args:
        name: what the caller calls `values`.
        keys, values: as in `d2lps.kvstore.store_arguments.by_key`.
        known: the shape of each key that the store has.
        new: True if none of the keys may be in the store yet (`init`);
            False if all of them must be.

    Raises:
        ValueError: if something does not fit.
    """
    given = by_key(keys, values, mx.nd.NDArray, name)
    for key in given:
        if type(key) is int and not 0 <= key < 2 ** 31:
            raise ValueError('key must be from 0 to 2**31 - 1, or a string; '
                             f'it was {key!r}')
        if new and key in known:
            raise ValueError(f'key {key!r} is initialised already; push to '
                             'it, or create a new store')
        if not new and key not in known:
            raise ValueError(f'key {key!r} is not initialised; first call '
                             f'init({key!r}, value) on every worker (so far: '
                             f'{names([*known])})')
    if len({type(key) for key in [*given, *known]}) > 1:
        raise ValueError('key must be of one type in a store, numbers or '
                         f'strings; it was {names([*given])}, and so far '
                         f'there is {names([*known])}')
    for key, arrays in given.items():
        if new and len(arrays) > 1:
            raise ValueError(f'{name} for key {key!r} must be one array; '
                             f'there are {len(arrays)}')
        for array in arrays:
            check_array(f'{name} for key {key!r}', array,
                        known[key] if key in known else arrays[0].shape)
    return given


def check_array(name: str, array: Array, shape: tuple[int, ...]) -> None:
    """Refuse an array that MXNet's servers cannot take."""
    if array.stype != 'default':
        raise ValueError(f'{name} must be an array of mxnet.np; it was a '
                         f'{type(array).__name__}')
    actual = array.shape  # MXNet is asked once: this is done in every step
    if 0 in actual:
        raise ValueError(f'{name} must have elements; its shape is {actual}')
    if onp.dtype(array.dtype) != 'float32':
        raise ValueError(
            f'{name} must have elements of float32, for example '
            f"{name.split()[0]}.astype('float32'); it has {array.size} of "
            f'{onp.dtype(array.dtype)}')
    if actual != shape:
        raise ValueError(f'{name} must have shape {shape}; it was {actual}')


def compression(name: str, value: Any) -> dict[str, Any]:
    """A check for the parameters of gradient compression."""
    threshold = value.get('threshold', 0.5) if isinstance(value, dict) else 0
    if (not isinstance(threshold, (int, float)) or isinstance(threshold, bool)
            or not threshold > 0 or value.get('type') != '2bit'
            or set(value) - {'type', 'threshold'}):
        refuse(name, value, "like {'type': '2bit', 'threshold': 0.5}")
    return value


def packed(call: str, update: Any) -> str:
    """An update as a text for the servers.

    By value, so that classes from a notebook reach the servers, too.
    """
    try:
        return base64.b64encode(cloudpickle.dumps(update)).decode()
    except Exception as error:
        raise ValueError(f'{call}: it cannot be sent to the servers '
                         f'({type(error).__name__}: {error})') from None


def by_mxnet(update: Any) -> bool:
    """Is all of it MXNet's own, which fails at once or not at all?"""
    parts = update, getattr(update, 'lr_scheduler', None) or update
    return all(type(part).__module__.startswith('mxnet.') for part in parts)
