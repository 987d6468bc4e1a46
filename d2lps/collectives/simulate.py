"""The time of a schedule on a topology: a send is a flow of bytes.

Alone, a message takes the latencies of its route and its bytes divided by the
least bandwidth. `timing` adds up rounds; `flows.flow` plays each of them.
"""
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias, overload

import numpy as np

from d2lps.annotations import Node
from d2lps.checks import boolean, checked, instance_of, number
from d2lps.collectives import limits
from d2lps.collectives.flows import fair_rates, flow
from d2lps.collectives.schedule import Schedule, any_schedule
from d2lps.collectives.sends import Round, Send
from d2lps.collectives.topology import Topology
from d2lps.units import SHORT_TIMES, several, with_unit


Pair: TypeAlias = tuple[Node, Node]  # the ends of a link, src and dst


class TimedSend(NamedTuple):
    """A send with its start and end in seconds; rounds count from 1."""
    start: float
    end: float
    round: int
    send: Send


class Timing:
    """Start and end of each send of a schedule, as `timing` computes them.

    seconds: when the last byte arrives.
    events: one `TimedSend` per send, in the order of the schedule.
    load: bytes per link that carried any, a dict from (src, dst).
    """

    def __init__(self, schedule: Schedule, topology: Topology,
                 spans: Sequence[tuple], seconds: float,
                 carried: np.ndarray) -> None:
        # A span, (begin, rounds, starts, ends), has rounds that go on at the
        # same time. starts, ends: of each send, in s after `begin`.
        self.schedule, self.topology = schedule, topology
        self.events, self._spans = _TimedSends(schedule, spans), spans
        self.seconds = seconds
        self.load = {link[:2]: nbytes for link, nbytes in
                     zip(topology.links, carried.tolist()) if nbytes}

    def busy(self) -> dict[Pair, float]:
        """The used share of each link's capacity, from 0 to 1.

        A dict from (src, dst); idle links are in it, with 0.
        """
        busy = dict.fromkeys(self.topology.number, 0.0)
        for pair, nbytes in self.load.items():
            link = self.topology.links[self.topology.number[pair]]
            if self.seconds:  # else these were too few bytes for a float
                busy[pair] = nbytes / link.bandwidth / self.seconds
        return busy

    def rates(self) -> Iterator[tuple[float, float, np.ndarray, np.ndarray]]:
        """The rates of all sends, from each change of a rate to the next.

        Yields (start, end, which, rates): times in seconds, the numbers in
        `events` of the sends that flow then, and their bytes/s, two arrays.
        """
        place = self.topology.positions(self.schedule.nodes)
        tiny = 1e-9 * self.seconds
        for first, (begin, rounds, *times) in zip(
                self.events.first, self._spans):
            paths = _paths(self.topology, place, rounds)
            begin, end = begin + np.array(times)
            begin += self.topology.latency[paths].sum(axis=1)  # no byte yet
            moments = np.unique([begin, end])
            for now, then in zip(moments, moments[1:]):
                which, = np.nonzero((begin <= now + tiny) &
                                    (end >= then - tiny))
                if then - now > tiny and len(which):
                    yield now, then, first + which, fair_rates(
                        paths[which], self.topology.bandwidth)

    def __repr__(self) -> str:
        return (f'<{self.schedule.name} on {self.topology.name}: '
                f'{with_unit(self.seconds, SHORT_TIMES)}, '
                f'{several(len(self.events), "send")}>')


class _TimedSends(Sequence[TimedSend]):
    """The events, made when they are read: equal rounds are stored once."""

    def __init__(self, schedule: Schedule, spans: Sequence[tuple]) -> None:
        self._rounds, self._spans = schedule.rounds, spans
        self.first = np.cumsum([0, *map(len, schedule.rounds)]).tolist()

    def __len__(self) -> int:
        return self.first[-1]

    def __repr__(self) -> str:
        return f'<{several(len(self), "timed send")}>'

    @overload
    def __getitem__(self, k: int) -> TimedSend: ...

    @overload
    def __getitem__(self, k: slice) -> list[TimedSend]: ...

    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        k = range(len(self))[k]  # from the end, or an IndexError
        number = bisect_right(self.first, k) - 1
        which = number % len(self._spans)  # there is one, or one per round
        begin, _, starts, ends = self._spans[which]
        place = k - self.first[which]
        return TimedSend(begin + starts[place], begin + ends[place],
                         number + 1,
                         self._rounds[number][k - self.first[number]])


@checked(schedule=any_schedule, nbytes=number, barrier=boolean,
         topology=instance_of(
             Topology, 'a Topology, such as topology.pcie_switch(4)'),
         overhead=number)
def timing(schedule: Schedule, topology: Topology, nbytes: float,
           barrier: bool = True, overhead: float = 0.0) -> Timing:
    """The `Timing` of `schedule` for `nbytes` bytes per device.

    barrier: a round starts when the previous round has ended. Without it, a
    send starts as soon as its source has received the chunk, and has sent
    all messages of earlier rounds to the same node. A send never waits for
    its destination, because there is a second buffer.
    overhead: seconds that a message costs each of its ends (LogGP's o,
    Alexandrov et al. 1995). An end handles the messages of a round one after
    the other; all that a node sends to another in a round is one message.
    A send waits for the latency of its route, then its bytes flow.
    Raises ValueError for nodes or routes that the topology does not have.
    """
    place = topology.positions(schedule.nodes, 'schedule')
    sizes = schedule.chunk_bytes(nbytes)
    together: list[Sequence[Round]] = [(sends,) for sends in schedule.rounds]
    inputs = None
    if not barrier and schedule.rounds:
        limits.check_size('schedule', sum(map(len, schedule.rounds)))
        together, inputs = [schedule.rounds], _inputs(schedule)
    equal = (sizes == sizes[0]).all()

    def alike(sends):
        """A key: rounds with equal keys take the same time."""
        return (id(sends.src), id(sends.dst),
                None if equal else sizes[sends.chunk].tobytes())

    known: dict[tuple, tuple] = {}
    solved: dict[tuple, tuple] = {}
    times: Counter[tuple] = Counter()
    spans, now = [], 0.0
    for rounds in together:
        key = tuple(map(alike, rounds))
        if key not in known:
            size = np.concatenate([sizes[sends.chunk] for sends in rounds])
            handling = np.zeros(len(size))
            if overhead:
                handling += overhead * np.concatenate([*map(_turns, rounds)])
            known[key] = _solve(topology, _paths(topology, place, rounds),
                                size, handling, inputs, solved)
        starts, ends, seconds, *_ = known[key]
        spans.append((now, rounds, starts, ends))
        times[key] += 1
        now += seconds
    carried = np.zeros(len(topology.links) + 1)
    for key, count in times.items():
        *_, links, load = known[key]
        carried[links] += count * load
    return Timing(schedule, topology, spans, now, carried)


def _turns(sends):
    """The turn, from 1 on, in which both ends of each send handle it."""
    turns, sent, received = {}, Counter(), Counter()
    pairs = [*zip(sends.src.tolist(), sends.dst.tolist())]
    for src, dst in dict.fromkeys(pairs):
        sent[src] += 1
        received[dst] += 1
        turns[src, dst] = max(sent[src], received[dst])
    return [turns[pair] for pair in pairs]


def _paths(topology, place, rounds):
    """Numbers of the links that each send of some rounds goes through."""
    src, dst = np.hstack([(sends.src, sends.dst) for sends in rounds])
    return topology.routes(place[src], place[dst])


def _inputs(schedule):
    """For each send, the earlier sends that must end before it starts.

    They carried the same chunk to its source, or use the same connection.
    """
    brought, sent, inputs = {}, {}, []
    for sends in schedule.rounds:
        moves = list(enumerate(zip(*sends.columns()), len(inputs)))
        inputs += [brought.get((src, c), ()) + sent.get((src, dst), ())
                   for _, (src, dst, c, _) in moves]
        sent.update({(src, dst): () for _, (src, dst, _, _) in moves})
        for k, (src, dst, c, reduce) in moves:
            before = brought.get((dst, c), ()) if reduce else ()
            brought[dst, c] = (*before, k)
            sent[src, dst] = (*sent[src, dst], k)
    return inputs


def _solve(topology, paths, size, handling, inputs, solved):
    """Starts and ends in s, the last end; links used and bytes on each.

    handling: the wait of each send for its two ends, in s.
    solved: earlier results for flows that share links in the same way,
    because most schedules repeat themselves in many places and rounds.
    """
    links, which = np.unique(paths, return_inverse=True)
    paths = which.reshape(paths.shape)
    delay = handling + topology.latency[links][paths].sum(axis=1)
    flows = paths, size, delay, topology.bandwidth[links]
    key = tuple(map(np.ndarray.tobytes, (*flows, handling)))
    if key not in solved:
        starts, ends = flow(*flows, inputs)
        # Flows that end at nearly the same time end at once in `flow`, which
        # may be a little before the last byte of handling.
        starts = np.minimum(starts + handling, ends)
        solved[key] = starts, ends, float(ends.max())
    load = np.bincount(paths.ravel(), np.repeat(size, paths.shape[1]),
                       len(links))
    return *solved[key], links, load
