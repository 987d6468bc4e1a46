"""Checks of what schedules and topologies are made from, with their limits."""
from functools import partial

import numpy as np

from d2lps.checks import (BOOL, MOST_NAME, as_array, list_of, number,
                          positive, refuse, text, integer)

# How many devices, where sends or links grow with n, and with n * n.
LINE, SQUARE = partial(integer, most=100_000), partial(integer, most=4096)
MOST_CHUNKS = 1_000_000


def few(name, count, most=40_000_000, what='sends'):
    """Refuse what memory would not hold, before it is made."""
    if count > most:
        raise ValueError(f'{name} must be smaller: that would be {count:,} '
                         f'{what}, and at most {most:,} fit')


def among_devices(n, root):
    """Refuse a root that is none of n devices."""
    if isinstance(root, str):
        node('root', root)
    if root not in range(n) and not isinstance(root, str):
        refuse('root', root, f"a device, 0 to {n - 1}, or a name such as "
               "'cpu'")


def node(name, value):
    """A name of a node: what can be a key, and is no bool."""
    if not isinstance(value, (str, int, tuple, np.integer)) or (
            isinstance(value, BOOL) or value == '') or (
            isinstance(value, (str, tuple)) and len(value) > MOST_NAME):
        refuse(name, value, "a name of a node, such as 0 or 'cpu', of at most "
               f'{MOST_NAME} characters')
    return value


def names(name, value, check=node):
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


def hosts(name, value):
    """A count, or a list of different names, as a sequence."""
    if isinstance(value, (list, tuple)) and value:
        return names(name, value)
    return range(LINE(name, value))


def links(name, value):
    """Links from `topology`, no two of them between the same nodes."""
    if not isinstance(value, (list, tuple)) or any(
            type(link).__name__ != 'Link' for link in value):
        refuse(name, value, 'a list of Link, such as both_ways(0, 1, 16e9)')
    for k, link in enumerate(value):
        ends = [node(f'{name}[{k}]', end) for end in link[:2]]
        if ends[0] == ends[1]:
            raise ValueError(f'{name}[{k}] joins {link.src!r} to itself')
        positive(f'{name}[{k}].bandwidth', link.bandwidth)
        number(f'{name}[{k}].latency', link.latency)
    if len({link[:2] for link in value}) < len(value):
        raise ValueError(f'{name}: two of them join the same nodes; make '
                         'them one link with the sum of the bandwidths')
    return value


def schedule(name, value):
    """A Schedule; its module imports this one, so the name must do."""
    if 'Schedule' not in [kind.__name__ for kind in type(value).__mro__]:
        refuse(name, value, 'a Schedule, such as strategies.ring(4)')
    return value


def peers(name, value):
    """A worker's Peers; they are made by a package that builds on this."""
    if not hasattr(value, 'begin_round'):
        refuse(name, value, 'the Peers that d2lps.join_peers() returns')
    return value


def array(ndim, kinds='iuf'):
    """A check for an array of numbers of 0 or more, or a list of them.

    kinds: letters for types of NumPy: 'iu' for whole numbers.
    """
    def check(name, value):
        try:
            found = as_array(value)
            if not found.size:
                found = found.astype(int)  # no numbers are whole numbers
            if found.dtype == object and {*map(type, found.flat)} == {int}:
                found = as_array(value, float)  # too large for whole numbers
            good = found.ndim == ndim and found.dtype.kind in kinds and (
                (found >= 0) & (found < np.inf)).all()
        except (TypeError, ValueError):
            good = False
        if not good:
            refuse(name, value, f'an array of {ndim} dimensions, of numbers '
                   'of 0 or more')
        return found if kinds == 'iu' else found.astype(float)
    return check


def weights(name, value):
    """Sizes of chunks as an array of floats, not all of them 0."""
    sizes = array(1)(name, value)
    if not 0 < sizes.sum() < np.inf:
        refuse(name, value, 'a list of numbers of 0 or more, and not all 0')
    return sizes


def matrix(name, value):
    """A symmetric matrix of counts as an array, of 3 rows or more."""
    table = array(2, 'iu')(name, value)
    if len(table) < 3 or table.shape != table.T.shape or (
            table != table.T).any() or table.diagonal().any():
        refuse(name, value, 'a symmetric matrix of whole numbers, 0 on its '
               'diagonal, of 3 rows or more')
    return table
