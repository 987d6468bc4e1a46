"""Checks of what schedules and topologies are made from, with their limits."""
from collections.abc import Sequence
from functools import partial

import numpy as np

from d2lps.checks import (BOOL, list_of, number, positive, refuse, text,
                          whole)

# How many devices, where sends or links grow with n, and with n * n.
LINE, SQUARE = partial(whole, most=100_000), partial(whole, most=4096)
MOST_SENDS = 40_000_000  # of about 25 bytes each
MOST_CHUNKS = 1_000_000


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


def few_nodes(machines, devices, servers, **_):
    """Refuse a cluster of more nodes than one switch may have."""
    if machines * (devices + 1) + servers > LINE.keywords['most']:
        raise ValueError('machines, devices and servers must be fewer: at '
                         f'most {LINE.keywords["most"]:,} nodes together')


def graph(name, value):
    """A graph of networkx, which takes too long to import for a check."""
    if not hasattr(value, 'to_directed') or not hasattr(value, 'edges'):
        refuse(name, value, 'a graph of networkx')
    return value


def positions(name, value, most):
    """An array of whole numbers from 0 to most - 1."""
    if getattr(value, 'dtype', np.dtype(object)).kind not in 'iu' or (
            value.ndim != 1 or value.size and not
            0 <= value.min() <= value.max() < most):
        refuse(name, value, f'an array of integers from 0 to {most - 1}')
    return value


def rounds(name, value):
    """A list of rounds, each a list of sends."""
    if not isinstance(value, (list, tuple)) or not all(
            isinstance(sends, Sequence) for sends in value):
        refuse(name, value, 'a list of rounds, each a list of Send')
    return value


def columns(name, send, position):
    """A `Send` as four arrays of one shape; its nodes by their position."""
    if not isinstance(send, tuple) or len(send) != 4:
        refuse(name, send, 'a Send(src, dst, chunk, reduce)')
    found = [position(send[0]), position(send[1]), *send[2:]]
    for k, (kinds, must) in enumerate(3 * [('iu', 'a whole number')] + [
            ('b', 'True or False')]):
        try:
            found[k] = np.asarray(found[k])
        except ValueError:  # a list of lists that do not fit
            refuse(name, send, 'made of numbers or of arrays')
        if found[k].size and found[k].dtype.kind not in kinds:
            what = 'src', 'dst', 'chunk', 'reduce'
            refuse(f'{name}.{what[k]}', send[k], f'{must}, or an array of it')
    try:
        return np.broadcast_arrays(*found)
    except ValueError:
        refuse(name, send, 'made of arrays of one length')


def helpers(name, value):
    """Different names of nodes, each a text."""
    value = list_of(text, 'a list of names', least=0)(name, value)
    if len({*value}) < len(value):
        refuse(name, value, 'a list of different names')
    return value


def schedule(name, value):
    """A Schedule; its module imports this one, so the name must do."""
    if type(value).__name__ != 'Schedule':
        refuse(name, value, 'a Schedule, such as schedule.ring(4)')
    return value


def array(ndim, kinds='iuf', least=0):
    """A check for an array of numbers, or a list of them.

    least: 0; or None for numbers above 0, of which infinity is one.
    kinds: letters for types of NumPy: 'iu' for whole numbers.
    """
    def check(name, value):
        try:
            found = np.asarray(value, None if np.size(value) else int)
            good = found.ndim == ndim and found.dtype.kind in kinds and (
                (found > 0) | (found == least)).all() and (
                least is None or (found < np.inf).all())
        except (TypeError, ValueError):
            good = False
        if not good:
            refuse(name, value, f'an array of {ndim} dimensions, of numbers '
                   f'{"above 0" if least is None else "of 0 or more"}')
        return found if kinds == 'iu' else found.astype(float)
    return check


def weights(name, value):
    """Sizes of chunks as an array of floats, not all of them 0."""
    sizes = array(1)(name, value)
    if not 0 < sizes.sum() < np.inf:
        refuse(name, value, 'a list of numbers of 0 or more, and not all 0')
    return sizes


def inputs(name, value):
    """For each flow a list of the flows that it waits for."""
    if not isinstance(value, (list, tuple)) or not all(
            isinstance(needed, (list, tuple)) for needed in value):
        refuse(name, value, 'a list with a list of numbers for each flow')
    return value


def flows(paths, capacity, **columns):
    """Refuse flows that do not go together."""
    if paths.size and paths.max() >= len(capacity):
        raise ValueError(f'paths names link {paths.max()}; capacity has none')
    if not np.isfinite(capacity[paths].min(axis=1, initial=np.inf)).all():
        raise ValueError('paths must each have a link of finite capacity')
    for name, column in columns.items():
        if column is not None and len(column) != len(paths):
            raise ValueError(f'{name} must have {len(paths)} entries, one for '
                             'each flow')
