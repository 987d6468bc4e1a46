"""A synchronisation schedule as data, and its uses.

Every device starts with an array of its own, cut into chunks, and must
end with the sum over all devices. A `Schedule` says which device sends which
chunk to which device, and when. It can be checked by counting, run on arrays,
timed (see `simulate`) and shown. The strategies are in `strategies`.
"""
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from d2lps.annotations import Array, Node
from d2lps.checks import (checked, function, instance_of, integer, number,
                          refuse)
from d2lps.collectives import execute, limits, reading
from d2lps.collectives.sends import Round, Send
from d2lps.units import several

# Numbers of 8 bytes that `states` makes at a time, and `check` at most.
MOST_COUNTS, MOST_MARKS = 10 ** 8, 3 * 10 ** 8


class ScheduleError(ValueError):
    """A schedule that does not leave the sum on every device."""


def _rounds(name, value):
    """A list of rounds; each is a list."""
    if not isinstance(value, (list, tuple)):
        refuse(name, value, 'a list of rounds')
    for number, sends in enumerate(value, 1):
        if isinstance(sends, Send):
            raise ValueError(f'round {number} is a Send; a round is a list: '
                             'put your Send into [ ]')
        if not isinstance(sends, Sequence) or isinstance(sends, str):
            refuse(f'round {number}', sends, 'a list of Send')
    return value


class Schedule:
    """A plan in `rounds`; each round is a tuple of `Send`.

    rounds: per round a list of `Send`; rounds without any are dropped.
        Arrays are copied, except read-only arrays.
    num_devices: how many hold an array; they are called 0, 1, 2, ...
    helpers: names (strings) of nodes that take part but start empty.
    weights: relative sizes of the chunks; all equal if left out.

    Within a round every send reads the chunk as it was before the round.
    Raises ValueError for a send that names no known node or chunk.
    """

    @checked(rounds=_rounds,
             num_devices=partial(integer, most=1_000_000),
             helpers=limits.helpers, weights=limits.weights,
             name=instance_of(str, 'a text'))
    def __init__(self, rounds: Sequence[Sequence[Send]], num_devices: int,
                 helpers: Iterable[Node] = (),
                 weights: Sequence[float] | np.ndarray | None = None,
                 name: str = '') -> None:
        self.num_devices, self.name = num_devices, name or 'schedule'
        self.nodes = (*range(self.num_devices), *helpers)
        reader = reading.Reader(self.nodes, num_devices, weights)
        columns = [reader.columns(number, sends)
                   for number, sends in enumerate(rounds, 1) if len(sends)]
        self.rounds = tuple(Round(four, self.nodes)
                            for four in columns if len(four[0]))
        self.weights = (np.ones(1 + reader.last_chunk) if weights is None
                        else np.asarray(weights))
        self.executor = execute.Executor()

    def __repr__(self) -> str:
        counts = {'device': self.num_devices, 'chunk': len(self.weights),
                  'round': len(self.rounds),
                  'send': sum(map(len, self.rounds))}
        counted = ', '.join(several(counts[noun], noun) for noun in counts)
        return f'<{self.name}: {counted}>'

    @checked(nbytes=number)
    def chunk_bytes(self, nbytes: float) -> np.ndarray:
        """Size in bytes of each chunk of `nbytes` bytes: floats (chunks,)."""
        return float(nbytes) * self.weights / self.weights.sum()

    def cuts(self, size: int) -> list[int]:
        """Chunk c of `size` elements goes from cuts[c] to cuts[c + 1]."""
        share = np.cumsum(self.weights) / self.weights.sum()
        return [0, *np.rint(share * size).astype(int).tolist()]

    def states(self) -> Iterator[np.ndarray]:
        """The contents of all nodes before round 1 and after every round.

        Yields integer arrays (nodes, chunks, devices): how many times the
        contribution of each device is in each chunk at each node.
        """
        if self._places() * self.num_devices > MOST_COUNTS:
            raise ValueError(f'{self!r} is too large to count: nodes x chunks '
                             f'x devices must be at most {MOST_COUNTS:,}')
        for held in self._follow(np.eye(self.num_devices)):
            yield held.astype(int)

    def _places(self):
        return len(self.nodes) * len(self.weights)

    def _follow(self, marks):
        """The sums of `marks` at all nodes; each device starts with a mark.

        Yields the same array (nodes, chunks, ...) before round 1 and after
        every round: of floats, because integers overflow after 64 doublings.
        """
        held = np.zeros((len(self.nodes), len(self.weights),
                         *marks.shape[1:]))
        held[:self.num_devices] = marks[:, None]
        yield held
        for sends in self.rounds:
            dst, chunk, fresh = sends.dst, sends.chunk, ~sends.reduce
            arriving = held[sends.src, chunk]
            held[dst[fresh], chunk[fresh]] = 0
            if _all_differ(dst):
                held[dst, chunk] += arriving
            else:  # slower, but right where several arrive at one place
                np.add.at(held, (dst, chunk), arriving)
            yield held

    def check(self) -> 'Schedule':
        """Raise `ScheduleError` unless every device ends with the sum.

        The sum means: each device's contribution exactly once. The message
        names the first wrong place. Returns the schedule itself. In one too
        large for `states`, random numbers take the place of counts, see
        `carry_marks`.
        """
        self.check_sends()
        marks, end = self.carry_marks()
        wrong = end[:self.num_devices] != marks.sum(axis=0)
        if wrong.any():
            mistake = self._first_mistake(end, wrong) if marks.ndim == 2 else (
                'in the end, device {}, chunk {}: not the sum'.format(
                    *np.unravel_index(wrong.argmax(), wrong.shape)))
            raise ScheduleError(f'{self.name}: {mistake}')
        return self

    def carry_marks(self) -> tuple[np.ndarray, np.ndarray]:
        """A mark for each device, and the sums of marks that the plan leaves.

        Returns marks (devices, devices), which count the contributions of each
        device, and their sums (nodes, chunks, devices). A schedule too large
        for `states` is carried out on random numbers of 32 bits instead,
        (devices,), with sums (nodes, chunks): a wrong one leaves the right
        sums with a chance of at most 1 in 4 * 10 ** 9.
        """
        small = self._places() * self.num_devices <= MOST_COUNTS
        marks = np.eye(self.num_devices) if small else (
            np.random.default_rng().integers(1 << 32, size=self.num_devices))
        for end in self._follow(marks):
            pass
        return marks, end

    def _first_mistake(self, end, wrong):
        """A sentence that says where the first mistake was made."""
        written = np.zeros(wrong.shape[:2], int)
        for number, sends in enumerate(self.rounds, 1):
            real = sends.dst < self.num_devices
            written[sends.dst[real], sends.chunk[real]] = number
        # Later rounds only copy a mistake: find the round that made it.
        places = np.argwhere(wrong)
        node, chunk, device = min(places, key=lambda p: written[p[0], p[1]])
        after, times = written[node, chunk], end[node, chunk, device]
        if not after:
            return f'in the end, device {node}, chunk {chunk}: nothing arrived'
        if times > 1:
            for after, held in enumerate(self.states()):
                if held[:, chunk, device].max() > 1:
                    node = held[:, chunk, device].argmax()
                    times = held[node, chunk, device]
                    break
        fault = f'counted {times} times' if times > 1 else 'missing'
        return (f'after round {after}, {reading.node_name(self.nodes[node])}, '
                f'chunk {chunk}: the contribution of device {device} is '
                f'{fault}')

    def check_sends(self) -> None:
        """Raise `ScheduleError` if a send has no defined meaning."""
        chunks = len(self.weights)
        limits.check_size(self.name, self._places(), MOST_MARKS,
                          'chunks at nodes')
        filled = np.zeros(self._places(), bool)
        filled[:self.num_devices * chunks] = True
        for number, sends in enumerate(self.rounds, 1):
            chunk, place = sends.chunk, sends.dst * chunks + sends.chunk
            for bad, why in (
                    (~filled[sends.src * chunks + chunk],
                     '{0} sends chunk {2}, of which it has nothing yet'),
                    (~sends.reduce & _shares_place(sends.dst, place),
                     'chunk {2} of {1} is replaced, and another send to it '
                     'arrives at the same time')):
                if bad.any():
                    src, dst, *rest = sends[bad.argmax()]
                    raise ScheduleError(
                        f'{self.name}: in round {number}, ' + why.format(
                            *map(reading.node_name, (src, dst)), *rest))
            filled[place] = True

    @checked(op=function)
    def run(self, arrays: Sequence[Array],
            op: Callable[..., Array] = np.add) -> None:
        """Carry the schedule out on `arrays`, in place.

        arrays: one per device, all of one shape and dtype; NumPy arrays, or
        MXNet arrays on their devices. A chunk is a stretch of the flattened
        array; it may be empty. No two arrays may share memory: NumPy arrays
        that do are refused; MXNet's cannot be asked without waiting.
        op(a, b): any commutative, associative reduction, element by element,
        that changes neither a nor b. NumPy's add, multiply, maximum and
        minimum are fastest, for MXNet arrays too; others need new memory
        for every result.

        Waits for nothing: MXNet's engine knows which operation depends on
        which. Buffers for travelling chunks are kept for the next run, one
        set per array size; simultaneous runs have buffers of their own.
        Raises ValueError for arrays that do not fit and `ScheduleError` for
        a send without meaning, before anything is changed.
        """
        self.executor.run(self, arrays, op)


any_schedule = instance_of(Schedule, 'a Schedule, such as strategies.ring(4)')


def _all_differ(dst):
    """Does each node get at most one of the sends to these nodes?"""
    return np.bincount(dst).max() == 1


def _shares_place(dst, place):
    """A mask of the sends to a node and chunk that get another send."""
    if _all_differ(dst):
        return np.zeros(len(place), bool)
    _, which, sends = np.unique(place, return_inverse=True, return_counts=True)
    return sends[which] > 1
