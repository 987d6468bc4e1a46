"""Checks of the arguments of a store."""
from functools import partial
from threading import TIMEOUT_MAX
from typing import Any, TypeAlias

from d2lps.annotations import Array, Key
from d2lps.checks import (MOST_NAME, either, from_zero, function, number,
                          one_of, refuse, shown, integer)

# A key, or several; an array, or a list with one of each device; or a list of
# these, in the order of the keys.
Keys: TypeAlias = Key | list[Key] | tuple[Key, ...]
Values: TypeAlias = Array | list | tuple

# Workers, or servers: each of these is a device of its own.
up_to_1000 = partial(integer, most=1000)
updater_or_none = either(function, one_of(None), must=(
    'a function of (key, sum, stored) or None'))
how_consistent = either(one_of('sync', 'async'), from_zero, must=(
    "'sync', 'async', or how many steps a worker may be ahead, such as 4"))
how_far = either(one_of('async'), integer, must=(
    "'async', or how many steps a worker may be ahead, such as 4"))
any_priority = partial(integer, least=-2**31)
time_limit = partial(number, least=1e-3, most=TIMEOUT_MAX, example=10)


def store_key(name: str, value: Any) -> Key:
    """A check: a key of a store, which is an int or a str."""
    if type(value) is int or type(value) is str and value.isprintable() and (
            len(value) <= MOST_NAME):
        return value
    refuse(name, value, "an int or a str, such as 0 or 'weight', of at most "
           f'{MOST_NAME} characters')


def by_key(keys: Keys, values: Values, kind: type | tuple[type, ...],
           name: str = 'value') -> dict[Key, list[Array]]:
    """{key: [arrays]} from a key or a list; one that comes twice has all.

    kind: the class of MXNet's arrays, or the classes of more arrays.
    """
    if not isinstance(keys, (list, tuple)):
        keys, values = [keys], [values]
    if not keys:
        raise ValueError('key must be a key or a list of keys; it was []')
    if not isinstance(values, (list, tuple)) or len(values) != len(keys):
        raise ValueError(f'key is a list, so {name} must be a list with an '
                         f'entry for each of the {len(keys)} keys; it was '
                         f'{shown(values)}')
    groups: dict[Key, list[Array]] = {}
    for key, arrays in zip(keys, values):
        store_key('key', key)
        arrays = arrays if isinstance(arrays, (list, tuple)) else [arrays]
        if not arrays or not all(isinstance(a, kind) for a in arrays):
            must = ('an mxnet.np array' if isinstance(kind, type) else
                    'an array of MXNet or NumPy')
            raise ValueError(f'{name} of key {key!r} must be {must} or a list '
                             f'of them; it was {shown(arrays)}')
        groups.setdefault(key, []).extend(arrays)
    return groups
