"""A synchronisation plan as data, and what can be done with it.

Every device starts with an array of its own, cut into chunks, and has to
end with the sum over all devices. A `Schedule` says who sends which chunk
to whom and when. It can be checked by counting, run on arrays, timed
(see `simulate`) and shown. The strategies are in `strategies`.
"""
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from d2lps.checks import a, checked, function, list_of, number, whole
from d2lps.collectives import execute, limits


class ScheduleError(ValueError):
    """A schedule that does not leave the sum on every device."""


class Send(NamedTuple):
    """One message: `src` sends its `chunk` to `dst`.

    `dst` adds it to its own (`reduce=True`) or replaces its own by it.
    Fields may be arrays of integers: one `Send` then stands for many.
    """
    src: Any
    dst: Any
    chunk: Any
    reduce: Any


class Round(Sequence):
    """Sends that happen at the same time; reads as a tuple of `Send`.

    Kept as four columns, `src`, `dst`, `chunk`, `reduce`, arrays with an entry
    per send, since many tuples are slow; a node there is its place in `nodes`.
    """

    @checked(sends=a(Sequence, 'a list of Send'), position=function,
             nodes=a(tuple, "a tuple such as (0, 1, 'cpu')"))
    def __init__(self, sends, nodes, position):
        rows = [limits.columns(f'sends[{k}]', send, position)
                for k, send in enumerate(sends)]
        if not rows:
            raise ValueError('sends is empty, and a round has one or more')
        self.src, self.dst, self.chunk, self.reduce = (
            np.concatenate([column.ravel() for column in columns]).astype(kind)
            for columns, kind in zip(zip(*rows), (int, int, int, bool)))
        self.nodes = nodes

    def __len__(self):
        return len(self.src)

    def __getitem__(self, k):
        if isinstance(k, slice):
            return tuple(self[i] for i in range(*k.indices(len(self))))
        return Send(self.nodes[self.src[k]], self.nodes[self.dst[k]],
                    int(self.chunk[k]), bool(self.reduce[k]))

    def __repr__(self):
        more = f', and {len(self) - 4} more' if len(self) > 4 else ''
        return f'Round({", ".join(map(repr, self[:4]))}{more})'

    def columns(self):
        """The sends as four lists of plain numbers, for fast loops."""
        return [column.tolist() for column in
                (self.src, self.dst, self.chunk, self.reduce)]


class Schedule:
    """A tuple of rounds; each round is a tuple of `Send`.

    rounds: per round a list of `Send`; rounds without any are dropped.
    devices: how many hold an array; they are called 0, 1, 2, ...
    helpers: names (strings) of nodes that take part but start empty.
    weights: relative sizes of the chunks; all equal if left out.

    Within a round every send reads what was there when the round began.
    Raises ValueError for a send that names no known node or chunk.
    """

    @checked(rounds=list_of(a(Sequence, 'a list of Send'), 'a list of rounds',
                            least=0), devices=partial(whole, most=1_000_000),
             helpers=limits.helpers, weights=limits.weights,
             name=a(str, 'a text'))
    def __init__(self, rounds, devices, helpers=(), weights=None, name=''):
        self.devices, self.name = devices, name or 'schedule'
        self.nodes = (*range(self.devices), *helpers)
        helper = {name: self.devices + k for k, name in enumerate(helpers)}

        def position(node):
            if not isinstance(node, str):
                return node
            if node not in helper:
                raise ValueError(f'rounds: {node!r} is no helper; name it')
            return helper[node]

        rounds = (Round(sends, self.nodes, position)
                  for sends in rounds if len(sends))
        self.rounds = tuple(sends for sends in rounds if len(sends))
        self.weights = weights
        if weights is None:
            last = max((r.chunk.max() for r in self.rounds), default=0)
            self.weights = np.ones(min(1 + max(last, 0), limits.MOST_CHUNKS))
        self.buffers = {}  # of `run`
        for number, sends in enumerate(self.rounds, 1):
            for what, column, limit in (
                    ('node', sends.src, len(self.nodes)),
                    ('node', sends.dst, len(self.nodes)),
                    ('chunk', sends.chunk, len(self.weights))):
                if column.min() < 0 or column.max() >= limit:
                    raise ValueError(f'rounds: number {number} names a {what} '
                                     f'outside 0 to {limit - 1}')
            if (sends.src == sends.dst).any():
                raise ValueError(f'rounds: in {number} a node sends to itself')

    def __repr__(self):
        return (f'<{self.name}: {self.devices} devices, {len(self.weights)} '
                f'chunks, {len(self.rounds)} rounds, '
                f'{sum(map(len, self.rounds))} sends>')

    @checked(nbytes=number)
    def chunk_bytes(self, nbytes):
        """Size in bytes of each chunk of `nbytes` bytes: floats (chunks,)."""
        return nbytes * self.weights / self.weights.sum()

    def states(self):
        """Who holds what before round 1 and after every round.

        Yields integer arrays (nodes, chunks, devices): how many times the
        contribution of each device is in each chunk at each node.
        """
        n, chunks = self.devices, len(self.weights)
        if len(self.nodes) * chunks * n > 10 ** 8:
            raise ValueError(f'{self!r} is too large to count: nodes x '
                             'chunks x devices must be at most 10 ** 8')
        held = np.zeros((len(self.nodes), chunks, n), int)
        held[range(n), :, range(n)] = 1
        yield held.copy()
        for sends in self.rounds:
            arriving = held[sends.src, sends.chunk]
            fresh = ~sends.reduce
            held[sends.dst[fresh], sends.chunk[fresh]] = 0
            np.add.at(held, (sends.dst, sends.chunk), arriving)
            yield held.copy()

    def check(self):
        """Raise `ScheduleError` unless every device ends with the sum.

        The sum means: each device's contribution exactly once. The message
        names the first wrong place. Returns the schedule itself.
        """
        self.check_sends()
        for end in self.states():
            pass
        wrong = end[:self.devices] != 1
        if not wrong.any():
            return self
        written = np.zeros(wrong.shape[:2], int)
        for number, sends in enumerate(self.rounds, 1):
            real = sends.dst < self.devices
            written[sends.dst[real], sends.chunk[real]] = number
        # Later rounds only copy a mistake on: look where it was made.
        places = np.argwhere(wrong)
        node, chunk, who = min(places, key=lambda p: written[p[0], p[1]])
        after, times = written[node, chunk], end[node, chunk, who]
        if times > 1:
            for after, held in enumerate(self.states()):
                if held[:, chunk, who].max() > 1:
                    node = held[:, chunk, who].argmax()
                    break
        what = f'counted {times} times' if times > 1 else 'missing'
        name = self.nodes[node]
        name = name if isinstance(name, str) else f'device {name}'
        raise ScheduleError(f'{self.name}: after round {after}, {name}, chunk '
                            f'{chunk}: the part of device {who} is {what}')

    def check_sends(self):
        """Raise `ScheduleError` if a send has no defined meaning."""
        chunks = len(self.weights)
        filled = np.arange(len(self.nodes) * chunks) < self.devices * chunks
        for number, sends in enumerate(self.rounds, 1):
            place = sends.dst * chunks + sends.chunk
            hits = np.bincount(place, minlength=len(filled))
            for bad, why in (
                    (~filled[sends.src * chunks + sends.chunk],
                     '{0} sends chunk {2}, of which it has nothing yet'),
                    (~sends.reduce & (hits[place] > 1),
                     'chunk {2} of {1} is replaced, and another send to it '
                     'arrives at the same time')):
                if bad.any():
                    raise ScheduleError(f'{self.name}: in round {number}, ' +
                                        why.format(*sends[bad.argmax()]))
            filled[place] = True

    @checked(op=function)
    def run(self, arrays, op=np.add):
        """Carry the schedule out on `arrays`, in place.

        arrays: one per device, all of one shape and dtype; NumPy arrays, or
        MXNet arrays on their devices. A chunk is a stretch of the flattened
        array; it may be empty. No two arrays may share memory: NumPy arrays
        that do are refused; MXNet's cannot be asked without waiting.
        op(a, b): any commutative, associative reduction, element by element,
        that changes neither a nor b. NumPy's add, multiply, maximum and
        minimum are fastest, for MXNet arrays too; others need new memory
        for every result.

        Waits for nothing: MXNet's engine sees what depends on what. Buffers
        for chunks on the move are kept, one set per array size, for the next
        run; runs at the same time have their own. Raises ValueError for
        arrays that do not fit and `ScheduleError` for a send without
        meaning, before anything is changed.
        """
        execute.run(self, arrays, op)
