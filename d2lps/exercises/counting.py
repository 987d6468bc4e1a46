"""Arrays that live on devices and count what is copied between them.

They have MXNet's names, and no MXNet behind them.
"""
import operator

import numpy as np

from d2lps.exercises.checking import Wrong


class Counted:
    """Some numbers on device `ctx`.

    log: a list that all arrays share, with a message [src, dst, numbers,
    way] for each copy. The way is 'sum' once what was copied has been added
    to something, and 'back' if it has only been written.
    """

    def __init__(self, data, ctx, log, message=None):
        self.data, self.ctx, self.log = data, ctx, log
        self.message = message
        self.shape, self.size = data.shape, data.size

    def __len__(self):
        return len(self.data)

    def copyto(self, other):
        """A copy on a device, or into an array, as MXNet's."""
        array = isinstance(other, Counted)
        ctx, message = other.ctx if array else other, self.message
        if ctx != self.ctx:
            message = [self.ctx, ctx, int(self.size), 'back']
            self.log.append(message)
        copy = Counted(self.data.copy(), ctx, self.log, message)
        if array:
            other[:] = copy
        return other if array else copy

    def copy(self):
        return self.copyto(self.ctx)

    def as_in_ctx(self, ctx):
        return self if ctx == self.ctx else self.copyto(ctx)

    def reshape(self, *shape):
        """A copy, as MXNet's: what is written into it stays in it."""
        return Counted(self.data.reshape(*shape).copy(), self.ctx, self.log,
                       self.message)

    def __getitem__(self, key):
        return Counted(self.data[key], self.ctx, self.log, self.message)

    def __setitem__(self, key, other):
        if other is not self:  # `a[:] += b` ends in this
            self.data[key] = self._numbers(other)

    def _numbers(self, other):
        if not isinstance(other, Counted):
            return other
        if other.ctx != self.ctx:
            raise Wrong(f'an array on device {other.ctx} meets one on device '
                        f'{self.ctx}. Copy it to this device first, with '
                        'as_in_ctx.')
        return other.data

    def _added(self, other, add):
        numbers = self._numbers(other)
        for one in self, other:
            if getattr(one, 'message', None):
                one.message[3] = 'sum'
        return add(self.data, numbers)

    def __add__(self, other):
        return Counted(self._added(other, operator.add), self.ctx, self.log)

    __radd__ = __add__

    def __iadd__(self, other):
        self._added(other, operator.iadd)
        return self

    def __truediv__(self, number):
        return Counted(self.data / number, self.ctx, self.log)

    def __itruediv__(self, number):
        self.data /= number
        return self

    def __mul__(self, number):
        return Counted(self.data * number, self.ctx, self.log)


def busiest(messages, k):
    """Numbers over each device's link: {way: (into, out of)}, as lists."""
    found = {way: (np.zeros(k), np.zeros(k)) for way in ('sum', 'back')}
    for src, dst, size, way in messages:
        into, out = found[way]
        into[dst] += size
        out[src] += size
    return found
