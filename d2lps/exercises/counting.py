"""Arrays on devices that log each copy from one device to another.

Their methods have MXNet's names; the numbers are NumPy's.
"""
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from d2lps.exercises.checking import Wrong


class Counted:
    """An array on device `ctx`.

    log: the messages of all arrays together, [src, dst, numbers, way]. The
    way is 'sum' if the copy was added to an array, and 'back' if it was only
    written into one. message: the copy that this array is.
    """

    def __init__(self, data: np.ndarray, ctx: int, log: list[list],
                 message: list | None = None) -> None:
        self.data, self.ctx, self.log = data, ctx, log
        self.message = message
        self.shape, self.size = data.shape, data.size

    def __len__(self) -> int:
        return len(self.data)

    def copyto(self, other: 'Counted | int') -> 'Counted':
        """Copy to a device, or into an array, as in MXNet."""
        ctx = other.ctx if isinstance(other, Counted) else other
        message = self.message
        if ctx != self.ctx:
            message = [self.ctx, ctx, self.size, 'back']
            self.log.append(message)
        copy = Counted(self.data.copy(), ctx, self.log, message)
        if not isinstance(other, Counted):
            return copy
        other[:] = copy
        return other

    def copy(self) -> 'Counted':
        return self.copyto(self.ctx)

    def as_in_ctx(self, ctx: int) -> 'Counted':
        return self if ctx == self.ctx else self.copyto(ctx)

    def reshape(self, *shape: Any) -> 'Counted':
        """A copy, as in MXNet: writing into it leaves this array alone."""
        return Counted(self.data.reshape(*shape).copy(), self.ctx, self.log,
                       self.message)

    def __getitem__(self, key: Any) -> 'Counted':
        return Counted(self.data[key], self.ctx, self.log, self.message)

    def __setitem__(self, key: Any, other: Any) -> None:
        if other is not self:  # Python ends `a[:] += b` with a[:] = a
            self.data[key] = self._numbers(other)

    def _numbers(self, other):
        if not isinstance(other, Counted):
            return other
        if other.ctx != self.ctx:
            raise Wrong(f'an array on device {other.ctx} meets an array on '
                        f'device {self.ctx}. Copy one of them first, with '
                        'as_in_ctx.')
        return other.data

    def _added(self, other, add):
        numbers = self._numbers(other)
        for array in self, other:
            if getattr(array, 'message', None) is not None:
                array.message[3] = 'sum'
        return add(self.data, numbers)

    def __add__(self, other: Any) -> 'Counted':
        return Counted(self._added(other, operator.add), self.ctx, self.log)

    __radd__ = __add__

    def __iadd__(self, other: Any) -> 'Counted':
        self._added(other, operator.iadd)
        return self

    def __itruediv__(self, number: float) -> 'Counted':
        self.data /= number
        return self


def busiest(messages: Iterable[Sequence],
            k: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Numbers over the link of each of k devices: {way: (into, out of)}."""
    links = {way: (np.zeros(k), np.zeros(k)) for way in ('sum', 'back')}
    for src, dst, size, way in messages:
        into, out = links[way]
        into[dst] += size
        out[src] += size
    return links
