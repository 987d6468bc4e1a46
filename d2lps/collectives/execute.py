"""Run a schedule on real arrays: NumPy's, or MXNet's on devices."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from d2lps.annotations import Array, Device, Node
from d2lps.checks import shown
from d2lps.collectives.sends import Round

# These functions can write their result into existing memory. (MXNet accepts
# NumPy's functions, but only a few of them with `out`.)
IN_PLACE = np.add, np.multiply, np.maximum, np.minimum


class Plan(Protocol):
    """The parts of a `Schedule` that its execution needs."""
    name: str
    num_devices: int
    nodes: tuple[Node, ...]
    rounds: tuple[Round, ...]
    weights: np.ndarray

    def cuts(self, size: int) -> list[int]: ...

    def check_sends(self) -> None: ...


class Executor:
    """Carries out a schedule on arrays, any number of times.

    New memory is slow, because the system provides it page by page. So one
    run keeps its arrays for travelling chunks in `buffers`, for the next
    run: a set for each size, type and place of arrays.
    """

    def __init__(self) -> None:
        self.buffers: dict[tuple, dict[tuple, Array]] = {}

    def run(self, schedule: Plan, arrays: Sequence[Array],
            op: Callable[..., Array]) -> None:
        """Carry out `schedule`, always the same one: see `Schedule.run`."""
        where = check_arrays(schedule, arrays)
        schedule.check_sends()
        flat = [_flattened(array) for array in arrays]
        kind = flat[0].size, str(flat[0].dtype), str(where)
        # Taken out while in use, so that another thread makes its own.
        buffers = self.buffers.pop(kind, {})
        _Run(schedule, flat, where, op, buffers).run()
        self.buffers[kind] = buffers
        for array, result in zip(arrays, flat):
            if isinstance(array, np.ndarray) and (
                    not np.may_share_memory(array, result)):
                array[...] = result.reshape(array.shape)


class _Run:
    """One run on flat arrays. A place is a pair (node, chunk).

    home: the slice of an array for each place, where the sum ends up.
    held: the array that is at each place now.
    moved: places whose chunk has an array of its own. MXNet never works on
        two slices of one array at the same time, so a chunk that is sent on
        must not be a slice.
    """

    def __init__(self, schedule: Plan, flat: list[Array],
                 where: list[Device | None], op: Callable[..., Array],
                 buffers: dict[tuple, Array]) -> None:
        self.schedule, self.where, self.op = schedule, where, op
        cuts = schedule.cuts(flat[0].size)
        self.chunks = {c for c, end in enumerate(cuts[1:]) if cuts[c] < end}
        self.home = {(node, c): array[cuts[c]:cuts[c + 1]]
                     for node, array in enumerate(flat) for c in self.chunks}
        self.held = dict(self.home)
        self.moved: set[tuple[int, int]] = set()
        self.buffers, self.last_use = buffers, _last_use(schedule)

    def run(self):
        for number, sends in enumerate(self.schedule.rounds):
            moves = [move for move in zip(*sends.columns())
                     if move[2] in self.chunks]  # no empty ones
            changing = self.moved & {(dst, c) for _, dst, c, _ in moves}
            values = [self.read(*move, changing) for move in moves]
            for (_, dst, c, reduce), value in zip(moves, values):
                self.apply((dst, c), reduce, value, number)
        for place in self.moved & set(self.home):
            _copy(self.held[place], self.home[place])

    def read(self, src, dst, c, reduce, changing):
        """The array of a send: a copy, if the place is about to change.

        It is also a copy if the destination cannot read the original.
        """
        value = self.held[src, c]
        here, there = self.where[src], self.where[dst]
        if (src, c) in changing or (
                reduce and not _shares_memory(here, there)):
            return self.copy(value, dst, c, src)
        return value

    def apply(self, place, reduce, value, number):
        """Add the array of a send in a round to a place, or store it."""
        if reduce and place in self.held:
            self.held[place] = self.combine(place, value)
        elif place not in self.home or self.last_use[place] >= number:
            self.held[place] = self.copy(value, *place)
        else:  # no later round reads it: copy it to its final place
            _copy(value, self.home[place])
            self.moved.discard(place)
            return
        self.moved.add(place)

    def copy(self, value, node, *name):
        """A copy on `node`, in the buffer of that name if there is one."""
        name = node, *name
        if name in self.buffers:
            _copy(value, self.buffers[name])
        elif self.where[node] is None:
            self.buffers[name] = value.copy()
        else:
            self.buffers[name] = value.copyto(self.where[node])
        return self.buffers[name]

    def combine(self, place, value):
        """The reduction of the array at a place and the arriving array."""
        mine = self.held[place]
        if self.op in IN_PLACE:
            self.buffers[place] = self.op(mine, value,
                                          out=self.buffers.get(place))
            return self.buffers[place]
        both = fitting(self.op(mine, value), mine)
        return both if both.dtype == mine.dtype else both.astype(mine.dtype)


def fitting(both: Any, mine: Array) -> Array:
    """Return `both`, the result of op, if it can replace `mine`.

    Its type may differ, such as bool, if nothing is cut off. ValueError if it
    cannot.
    """
    if getattr(both, 'shape', None) != mine.shape:
        raise ValueError('op must work element by element: for two arrays '
                         f'of shape {mine.shape} it returned {shown(both)}')
    made, kind = np.dtype(both.dtype), np.dtype(mine.dtype)
    if not np.can_cast(made, kind, 'same_kind'):
        raise ValueError(f'op returned {made} for two arrays of {kind}, which '
                         f'cannot hold {made}: convert the arrays to {made} '
                         'first')
    return both


def _last_use(schedule):
    """For each node and chunk, the last round that reads it."""
    last = np.full((len(schedule.nodes), len(schedule.weights)), -1)
    for number, sends in enumerate(schedule.rounds):
        last[sends.src, sends.chunk] = number
        last[sends.dst[sends.reduce], sends.chunk[sends.reduce]] = number
    return last


def check_arrays(schedule: Plan, arrays: Sequence[Array]
                 ) -> list[Device | None]:
    """Raise ValueError for arrays that do not fit; else list their contexts.

    The contexts of the helpers come after these; None for NumPy.
    """
    if not isinstance(arrays, (list, tuple)) or (
            len(arrays) != schedule.num_devices):
        raise ValueError(
            f'arrays: {schedule.name} needs {schedule.num_devices}, one per '
            f'device, in a list; it was {shown(arrays)}')
    kinds = [_description(array) for array in arrays]
    for k, array in enumerate(arrays):
        if not kinds[k].startswith(('numpy', 'mxnet')):
            raise ValueError(f'arrays[{k}] is {kinds[k]}; it must be a NumPy '
                             'array of numbers or an array of mxnet.np')
        if kinds[k] != kinds[0]:
            raise ValueError(f'arrays[{k}] is {kinds[k]}, and arrays[0] '
                             f'{kinds[0]}; all must be arrays of one kind')
        if any(array is other for other in arrays[:k]):
            raise ValueError(f'arrays[{k}] is in the list twice; pass a copy')
        if isinstance(array, np.ndarray):
            if not array.flags.writeable:
                raise ValueError(f'arrays[{k}] is read-only; pass a copy')
            if _overlaps(array, arrays[:k]):
                raise ValueError(f'arrays[{k}] shares memory with another, or '
                                 'its elements do; pass a copy')
    where = [getattr(array, 'ctx', None) for array in arrays]
    # Each helper is a CPU context of its own, so that it has its own queue.
    return where + [where[0] and type(where[0])('cpu', node) for node
                    in range(schedule.num_devices, len(schedule.nodes))]


def _description(array):
    """A description of `array`: 'numpy…' or 'mxnet…' if it can be used."""
    shape, dtype = (getattr(array, name, None) for name in ('shape', 'dtype'))
    details_of = f'.ndarray of shape {shape}, dtype '
    if type(array) in (np.ndarray, np.memmap) and dtype.kind in 'biufcO':
        return f'numpy{details_of}{dtype.name}'
    if hasattr(array, 'ctx') and hasattr(array, '__array_ufunc__'):
        return f'mxnet{details_of}{np.dtype(dtype).name}'
    details = '' if shape is None else f' of shape {shape}, dtype {dtype}'
    return f'a {type(array).__name__}{details}'


def _overlaps(array, others):
    """Does a NumPy array share memory with itself or with another one?"""
    span = sum((n - 1) * abs(step) for n, step in zip(
        array.shape, array.strides))
    try:
        return array.size > 1 and span + array.itemsize < array.nbytes or any(
            np.shares_memory(array, other, max_work=10_000)
            for other in others)
    except RuntimeError:  # too hard to say
        return True


def _flattened(array):
    """One-dimensional view (a copy, if a NumPy array has gaps)."""
    return getattr(array, 'reshape_view', array.reshape)(-1)


def _copy(value, to):
    if isinstance(to, np.ndarray):
        to[...] = value
    else:
        value.copyto(to)


def _shares_memory(here, there):
    """Can code on `there` read the memory of `here`? CPU contexts can."""
    return here == there or here.device_type == there.device_type == 'cpu'
