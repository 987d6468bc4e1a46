"""Checks of the arguments of schedules and topologies, with size limits."""
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from d2lps.annotations import Node
from d2lps.checks import (BOOL, MOST_NAME, Check, as_array, integer, list_of,
                          refuse, text)

T = TypeVar('T')

# Checks of a number of devices n: for plans and machines with about n sends or
# links, and for those with about n * n.
up_to_100_000 = partial(integer, most=100_000)
up_to_4096 = partial(integer, most=4096)
MOST_CHUNKS = 1_000_000


def check_size(name: str, count: int, most: int = 40_000_000,
               things: str = 'sends') -> None:
    """Raise ValueError for an object that would not fit into memory."""
    if count > most:
        raise ValueError(f'{name} must be smaller: that would be {count:,} '
                         f'{things}, and at most {most:,} fit')


def known_root(n: int, root: Node) -> None:
    """A rule: the root is one of n devices, or has a name of its own."""
    if isinstance(root, str):
        node('root', root)
    if root not in range(n) and not isinstance(root, str):
        refuse('root', root, f"a device, 0 to {n - 1}, or a name such as "
               "'cpu'")


def node(name: str, value: T) -> T:
    """A check: a name of a node, which has to be a key of dicts."""
    if not isinstance(value, (str, int, tuple, np.integer)) or (
            isinstance(value, BOOL) or value == '') or (
            isinstance(value, (str, tuple)) and len(value) > MOST_NAME):
        refuse(name, value, "a name of a node, such as 0 or 'cpu', of at most "
               f'{MOST_NAME} characters')
    return value


def names(name: str, value: Any, check: Check = node) -> list[Node]:
    """Different names of nodes: a list, tuple or set."""
    if isinstance(value, (set, frozenset)):
        value = list(value)
    value = list_of(check, 'a list of names', least=0)(name, value)
    if len({*value}) < len(value):
        refuse(name, value, 'a list of different names')
    return value


def _helper(name, value):
    return node(name, text(name, value))


helpers = partial(names, check=_helper)


def hosts(name: str, value: Any) -> int | list[Node]:
    """A count, or a list of different names."""
    if isinstance(value, (list, tuple)) and value:
        return names(name, value)
    return up_to_100_000(name, value)


def array(ndim: int, kinds: str = 'iuf') -> Callable[[str, Any], np.ndarray]:
    """A check for an array of numbers of 0 or more, or a list of them.

    kinds: letters for types of NumPy: 'iu' for whole numbers.
    """
    def check(name, value):
        try:
            numbers = as_array(value)
            if not numbers.size:
                numbers = numbers.astype(int)  # NumPy makes [] floats
            if numbers.dtype == object and {*map(type, numbers.flat)} == {int}:
                numbers = as_array(value, float)  # too large for int64
            good = numbers.ndim == ndim and numbers.dtype.kind in kinds and (
                (numbers >= 0) & (numbers < np.inf)).all()
        except (TypeError, ValueError):
            good = False
        if not good:
            whole = 'whole ' if kinds == 'iu' else ''
            refuse(name, value, f'an array of {ndim} dimensions, of {whole}'
                   'numbers of 0 or more')
        return numbers if kinds == 'iu' else numbers.astype(float)
    return check


def weights(name: str, value: Any) -> np.ndarray:
    """Sizes of chunks as an array of floats, not all of them 0."""
    sizes = array(1)(name, value)
    if not 0 < sizes.sum() < np.inf:
        refuse(name, value, 'a list of numbers of 0 or more, and not all 0')
    return sizes


def matrix(name: str, value: Any) -> np.ndarray:
    """A symmetric matrix of counts as an array, of 2 rows or more."""
    table = array(2, 'iu')(name, value)
    if len(table) < 2 or table.shape != table.T.shape or (
            table != table.T).any() or table.diagonal().any():
        refuse(name, value, 'a symmetric matrix of whole numbers, 0 on its '
               'diagonal, of 2 rows or more')
    return table
