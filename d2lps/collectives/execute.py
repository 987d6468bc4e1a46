"""Carry a schedule out on real arrays: NumPy's, or MXNet's on devices."""
import numpy as np

from d2lps.checks import checked, function, shown
from d2lps.collectives import limits

# With these, a result goes to memory that is there already. (MXNet takes
# NumPy's functions for its own, but knows only a few of them with `out`.)
IN_PLACE = np.add, np.multiply, np.maximum, np.minimum


@checked(schedule=limits.schedule, op=function)
def run(schedule, arrays, op):
    """What `Schedule.run` does, see there.

    A place is a pair (node, chunk). `home` has the slices of the arrays,
    where sums end up; `held` has what is at a place now. MXNet never works
    on two slices of one array at the same time, so whatever moves on gets
    an array of its own: then its place is in `moved`.
    """
    where = check_arrays(schedule, arrays)
    schedule.check_sends()
    flat = [_flat(array) for array in arrays]
    share = np.cumsum(schedule.weights) / schedule.weights.sum()
    cut = [0, *np.rint(share * flat[0].size).astype(int).tolist()]
    home = {(node, c): one[cut[c]:cut[c + 1]]
            for node, one in enumerate(flat) for c in range(len(cut) - 1)
            if cut[c] < cut[c + 1]}
    held, moved = dict(home), set()
    # Out of reach while in use: another thread's run makes its own.
    size = cut[-1], str(arrays[0].dtype), str(where)
    kept = schedule.buffers.pop(size, {})
    last_use = _last_use(schedule)

    def copy(value, node, *name):
        """A copy on `node`, in the memory that the last run used for it.

        New memory is slow: the system hands it out page by page.
        """
        name = node, *name
        if name in kept:
            _copy(value, kept[name])
        elif where[node] is None:
            kept[name] = value.copy()
        else:
            kept[name] = value.copyto(where[node])
        return kept[name]

    def combine(mine, value, place):
        if op in IN_PLACE:
            kept[place] = op(mine, value, out=kept.get(place))
            return kept[place]
        both = op(mine, value)  # which may be of another type, such as bool
        if getattr(both, 'shape', None) != mine.shape:
            raise ValueError('op must work element by element: of two arrays '
                             f'of shape {mine.shape} it made {shown(both)}')
        return both if both.dtype == mine.dtype else both.astype(mine.dtype)

    for number, sends in enumerate(schedule.rounds):
        moves = [move for move in zip(*sends.columns())
                 if cut[move[2]] < cut[move[2] + 1]]
        changing = moved & {(dst, c) for _, dst, c, _ in moves}
        values = []
        for src, dst, c, reduce in moves:
            value = held[src, c]
            # What is about to change, or out of reach, is copied first.
            if (src, c) in changing or (
                    reduce and not _reach(where[src], where[dst])):
                value = copy(value, dst, c, src)
            values.append(value)
        for (_, dst, c, reduce), value in zip(moves, values):
            place = dst, c
            if reduce and place in held:
                held[place] = combine(held[place], value, place)
            elif place not in home or last_use[place] >= number:
                held[place] = copy(value, *place)
            else:  # nobody asks for it again: straight to where it ends up
                _copy(value, home[place])
                moved.discard(place)
                continue
            moved.add(place)
    for place in moved & set(home):
        _copy(held[place], home[place])
    for array, one in zip(arrays, flat):
        if isinstance(array, np.ndarray) and (
                not np.may_share_memory(array, one)):
            array[...] = one.reshape(array.shape)
    schedule.buffers[size] = kept


@checked(schedule=limits.schedule)
def check_arrays(schedule, arrays):
    """Raise ValueError for arrays that do not fit; else list their contexts.

    The list goes on with contexts for the helpers; it has None for NumPy.
    """
    if not isinstance(arrays, (list, tuple)) or (
            len(arrays) != schedule.devices):
        raise ValueError(f'arrays: {schedule.name} needs {schedule.devices}, '
                         f'one per device, in a list; it was {shown(arrays)}')
    kinds = [_kind(array) for array in arrays]
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
            if _crowded(array) or any(_overlap(array, other)
                                      for other in arrays[:k]):
                raise ValueError(f'arrays[{k}] shares memory with another, or '
                                 'its elements do; pass a copy')
    where = [getattr(array, 'ctx', None) for array in arrays]
    # Each helper is a CPU context of its own, so that it has its own queue.
    return where + [where[0] and type(where[0])('cpu', node) for node
                    in range(schedule.devices, len(schedule.nodes))]


def _kind(array):
    """What `array` is, in words; 'numpy…' or 'mxnet…' if it can be used."""
    shape, dtype = (getattr(array, name, None) for name in ('shape', 'dtype'))
    words = f'.ndarray of shape {shape}, dtype '
    if type(array) in (np.ndarray, np.memmap) and dtype.kind in 'biufcO':
        return f'numpy{words}{dtype.name}'
    if hasattr(array, 'ctx') and hasattr(array, '__array_ufunc__'):
        return f'mxnet{words}{np.dtype(dtype).name}'
    return f'a {type(array).__name__}' + (shape is not None) * (
        f' of shape {shape}, dtype {dtype}')


def _crowded(array):
    """Do elements of one NumPy array lie on each other?"""
    span = sum((n - 1) * abs(step) for n, step in zip(
        array.shape, array.strides))
    return array.size > 1 and span + array.itemsize < array.nbytes


def _overlap(one, other):
    """Do two NumPy arrays have an element in common?"""
    try:
        return np.shares_memory(one, other, max_work=10_000)
    except RuntimeError:  # too hard to say
        return True


def _last_use(schedule):
    """For each place the number of the last round that needs what is there."""
    last = {(node, c): -1 for node in range(len(schedule.nodes))
            for c in range(len(schedule.weights))}
    for number, sends in enumerate(schedule.rounds):
        for src, dst, c, reduce in zip(*sends.columns()):
            last[src, c] = number
            if reduce:
                last[dst, c] = number
    return last


def _flat(array):
    """One-dimensional view (a copy, if a NumPy array has gaps)."""
    return getattr(array, 'reshape_view', array.reshape)(-1)


def _copy(value, to):
    if isinstance(to, np.ndarray):
        to[...] = value
    else:
        value.copyto(to)


def _reach(here, there):
    """Can code on `there` read memory of `here`? CPU contexts share it."""
    return here == there or here.device_type == there.device_type == 'cpu'
