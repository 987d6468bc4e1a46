"""Checks of what schedules and topologies are made from, with their limits."""
from functools import partial

import numpy as np

from d2lps.checks import BOOL, number, positive, refuse, whole

# How many devices, where sends or links grow with n, and with n * n.
LINE, SQUARE = partial(whole, most=100_000), partial(whole, most=4096)
MOST_SENDS = 40_000_000  # of about 25 bytes each


def few(name, sends):
    """Refuse a plan that memory would not hold, before it is made."""
    if sends > MOST_SENDS:
        raise ValueError(f'{name} must be smaller: this plan would have '
                         f'{sends:,} sends, and at most {MOST_SENDS:,} fit')


def among_devices(n, root):
    """Refuse a root that is none of n devices."""
    if root not in range(n) and not isinstance(root, str):
        refuse('root', root, f"a device, 0 to {n - 1}, or a name such as "
               "'cpu'")


def hosts(name, value):
    """A count, or a list of names that are all different, as a sequence."""
    if not isinstance(value, (list, tuple)):
        return range(LINE(name, value))
    if not value or len({*names(name, value)}) < len(value):
        refuse(name, value, 'how many, or a list of different names')
    return value


def matrix(name, value):
    """A symmetric matrix of counts as an array, of 3 rows or more."""
    try:
        table = np.asarray(value)
        good = (table.dtype.kind in 'iu' and len(table) > 2
                and (table == table.T).all() and not table.diagonal().any()
                and table.min() >= 0)
    except (TypeError, ValueError):
        good = False
    if not good:
        refuse(name, value, 'a symmetric matrix of whole numbers, 0 on its '
               'diagonal, of 3 rows or more')
    return table


def names(name, value):
    """Names of nodes: a list, tuple or set; a str would be its letters."""
    if not isinstance(value, (list, tuple, set, frozenset)):
        refuse(name, value, "a list of names, such as ['switch']")
    for one in value:
        node(name, one)
    return value


def node(name, value):
    """A name of a node: what can be a key, and is no bool."""
    if not isinstance(value, (str, int, tuple, np.integer)) or (
            isinstance(value, BOOL) or value == ''):
        refuse(name, value, "a name of a node, such as 0 or 'cpu'")
    return value


def links(name, value):
    """Links from `topology`, no two of them between the same nodes."""
    if not isinstance(value, (list, tuple)) or any(
            type(link).__name__ != 'Link' for link in value):
        refuse(name, value, 'a list of Link, such as both_ways(0, 1, 16e9)')
    for k, link in enumerate(value):
        for end in link[:2]:
            node(f'{name}[{k}]', end)
        if link.src == link.dst:
            raise ValueError(f'{name}[{k}] joins {link.src!r} to itself')
        positive(f'{name}[{k}].bandwidth', link.bandwidth)
        number(f'{name}[{k}].latency', link.latency)
    if len({link[:2] for link in value}) < len(value):
        raise ValueError(f'{name}: two of them join the same nodes; make '
                         'them one link with the sum of the bandwidths')
    return value


def switches_joined(links, switches, **_):
    """Refuse switches that no link goes to."""
    lost = {*switches} - {end for link in links for end in link[:2]}
    if lost:
        raise ValueError(f'switches: no link goes to {lost.pop()!r}')
