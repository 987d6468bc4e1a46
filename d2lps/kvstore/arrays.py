"""The arrays of a store: MXNet's, or NumPy's, which need no MXNet.

The servers' code is written for MXNet's arrays. An array of NumPy is seen as a
`HostArray` instead, which has the few calls that they make.
"""
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from d2lps.annotations import Array, Device
from d2lps.checks import instance_of, list_of, refuse
from d2lps.missing import NoMXNet

HOST = 'cpu(0)'  # where NumPy's arrays lie, and the only device without MXNet


class HostArray(np.ndarray):
    """An array of NumPy, with the calls by which MXNet copies between devices.

    There is one memory, so `as_in_ctx` has nothing to copy.
    """
    ctx = HOST

    def as_in_ctx(self, ctx: Device) -> 'HostArray':
        return self

    def copyto(self, other: Any) -> 'HostArray':
        """Into another array, or into a new one on a device."""
        if not isinstance(other, np.ndarray):
            return self.copy()
        other[...] = self
        return self


def seen(value: Array) -> Array:
    """An array of NumPy as a HostArray, in the same memory."""
    return value.view(HostArray) if type(value) is np.ndarray else value


def kinds() -> tuple[type, ...]:
    """The classes of arrays; without `import mxnet` there are none of MXNet's.
    """
    mxnet = sys.modules.get('mxnet')
    return (np.ndarray, mxnet.np.ndarray) if mxnet else (np.ndarray,)


def array(name: str, value: Any) -> Array:
    """A check: an array of MXNet, or of NumPy, which becomes a HostArray."""
    if not isinstance(value, kinds()) or isinstance(value, np.ma.MaskedArray):
        refuse(name, value, 'an MXNet array, such as mxnet.np.ones(3), or one '
               'of NumPy')
    return seen(value)


def array_list(name: str, value: Any) -> list[Array]:
    """A check: a list of arrays, on devices that go together."""
    arrays = list_of(array, 'a list of arrays')(name, value)
    if all(isinstance(entry, HostArray) for entry in arrays):
        return arrays
    from d2lps.engine import array_list
    return array_list(name, arrays)


def device(name: str, value: Device) -> Device:
    """A check: a device of this machine; 'cpu(0)' needs no MXNet."""
    if value == HOST:
        return server_device(0)
    from d2lps.engine import device
    return device(name, value)


def server_device(number: int) -> Device:
    """The device on which server `number` keeps its values."""
    try:
        from d2lps.engine import mx
        return mx.cpu(number)
    except NoMXNet:
        return HOST


def an_optimizer(name: str, value: Any) -> Any:
    """A check: an optimizer of MXNet."""
    from d2lps.engine import mx
    return instance_of(mx.optimizer.Optimizer, (
        'one of mx.optimizer, such as mx.optimizer.SGD()'))(name, value)


def begin_thread() -> None:
    """MXNet keeps for each thread that its arrays are like NumPy's."""
    if 'mxnet' in sys.modules:
        sys.modules['mxnet'].npx.set_np()


def alike(**arrays: Sequence[Array]) -> None:
    """A rule: all in a list are of one kind, one shape and one dtype."""
    [(name, [first, *others])] = arrays.items()
    for i, other in enumerate(others, start=1):
        if not same_kind(first, other):
            refuse(f'{name}[{i}]', other, f'of shape {first.shape} and dtype '
                   f'{np.dtype(first.dtype).name}, as {name}[0] is')


def same_kind(array: Array, other: Array) -> bool:
    return (type(array), array.shape, array.dtype) == (
        type(other), other.shape, other.dtype)


def nbytes(array: Array) -> int:
    """The size of an array's elements together, in bytes."""
    return array.size * np.dtype(array.dtype).itemsize
