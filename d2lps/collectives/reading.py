"""A `Schedule` reads its sends with this module."""
from collections.abc import Sequence, Sized

import numpy as np

from d2lps.annotations import Node
from d2lps.checks import as_array, refuse
from d2lps.collectives import limits

FIELDS = 'src', 'dst', 'chunk', 'reduce'
WAYS = {'src': 'comes from', 'dst': 'goes to', 'chunk': 'carries'}


def node_name(node: Node) -> str:
    """'device 3', or the name of a helper."""
    return node if isinstance(node, str) else f'device {node}'


class Reader:
    """Checks sends and makes them arrays; equal arrays are kept once.

    A writable array is copied, so that nobody can change a schedule later.
    A read-only array is kept without a copy and read once, because a large
    ring has thousands of rounds and few arrays.

    last_chunk: the highest number of a chunk so far.
    """

    def __init__(self, nodes: Sequence[Node], devices: int,
                 weights: Sized | None) -> None:
        self.last_chunk = 0
        self._nodes, self._devices = nodes, devices
        self._helpers = dict(zip(nodes[devices:], range(devices, len(nodes))))
        chunks = limits.MOST_CHUNKS if weights is None else len(weights)
        self._most = dict(src=len(nodes), dst=len(nodes), chunk=chunks)
        # Copies, by their type, shape and bytes.
        self._kept: dict[tuple, np.ndarray] = {}
        # Results for read-only arrays, see _remembered.
        self._done: dict[tuple, tuple] = {}

    def columns(self, number: int, sends: Sequence[tuple]
                ) -> list[np.ndarray]:
        """A list of `Send` as four arrays, with an entry for each.

        number: of the round, from 1, for errors.
        """
        parts = [self._columns(f'in round {number}, message {k}', send)
                 for k, send in enumerate(sends, 1)]
        if len(parts) == 1:
            return parts[0]
        return [self._keep(np.concatenate(column)) for column in zip(*parts)]

    def _columns(self, where, send):
        if not isinstance(send, tuple) or len(send) != 4:
            refuse(where, send, 'a Send(src, dst, chunk, reduce)')
        fields = [self._field(value, field, where)
                  for field, value in zip(FIELDS, send)]
        try:
            shape = np.broadcast(*fields).shape
        except ValueError:
            refuse(where, send, 'made of numbers, or of arrays of one length')
        columns = [self._spread(field, shape) for field in fields]
        src, dst = columns[:2]
        if self._remembered('equal', [src, dst], lambda: (src == dst).any()):
            node = self._nodes[src[(src == dst).argmax()]]
            raise ValueError(f'{where} goes from {node_name(node)} to itself')
        return columns

    def _remembered(self, question, arrays, work):
        """The result of work(), or its earlier result for these arrays."""
        key = question, *map(id, arrays)
        if key not in self._done:
            # With the arrays: no other gets the id of one that is kept.
            self._done[key] = arrays, work()
        return self._done[key][1]

    def _field(self, value, field, where):
        """The array that a field of a `Send` stands for."""
        if isinstance(value, np.ndarray) and _is_constant(value):
            return self._remembered(field, [value],
                              lambda: self._read(value, field, where))
        return self._read(value, field, where)

    def _read(self, value, field, where):
        kinds, must = ('b', 'True or False') if field == 'reduce' else (
            'iu', 'a whole number')
        if isinstance(value, str) and field in ('src', 'dst'):
            if value not in self._helpers:
                raise ValueError(
                    f'{where} {WAYS[field]} {value!r}, which is no helper. '
                    'Helpers are named in Schedule(..., helpers='
                    f'[{value!r}])')
            value = self._helpers[value]
        try:
            numbers = as_array(value)
            good = not numbers.size or numbers.dtype.kind in kinds
        except ValueError:  # such as lists that are not of one length
            good = False
        if not good:
            refuse(f'{where}: {field}', value, f'{must}, or an array of them')
        if field == 'reduce':
            return self._keep(numbers.astype(bool, copy=False))
        numbers = self._keep(numbers.astype(int, copy=False))
        last, most = int(numbers.max(initial=0)), self._most[field]
        if numbers.min(initial=0) < 0 or last >= most:
            bad = numbers[(numbers < 0) | (numbers >= most)]
            noun = 'chunk' if field == 'chunk' else 'device'
            last = most - 1 if field == 'chunk' else self._devices - 1
            also = ', '.join(map(repr, self._helpers))
            also = f', and there are helpers: {also}' if also else ''
            raise ValueError(f'{where} {WAYS[field]} {noun} {bad.flat[0]}; '
                             f'{noun}s are 0 to {last}'
                             f'{also if noun == "device" else ""}')
        if field == 'chunk':
            self.last_chunk = max(self.last_chunk, last)
        return numbers

    def _spread(self, field, shape):
        if field.shape == shape and len(shape) == 1:
            return field
        return self._remembered(shape, [field], lambda: self._keep(
            np.broadcast_to(field, shape).flatten()))

    def _keep(self, array):
        """The array, or one that is equal to it and is kept already."""
        if _is_constant(array):
            return array
        array = array.copy()
        array.flags.writeable = False
        kind = array.dtype, array.shape, array.tobytes()
        return self._kept.setdefault(kind, array)


def _is_constant(array):
    """Is it impossible to write to the array's memory?"""
    owner = array if array.base is None else array.base
    return not getattr(owner, 'flags', array.flags).writeable
