"""How long a schedule takes on a topology, as flows that share links.

A send is a flow of bytes along its route. Flows that run at the same time
share every link max-min fairly: nobody can get more without taking it from
somebody who has no more than that (Bertsekas and Gallager 1992, 6.5.2).
"""
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from d2lps.checks import a, checked, flag, list_of, number
from d2lps.collectives import limits
from d2lps.collectives.topology import Topology


class Event(NamedTuple):
    """A send and when it went on: start and end in seconds, round from 1."""
    start: float
    end: float
    round: int
    send: Any


class _Span(NamedTuple):
    """Rounds whose sends go on at the same time, and when they do.

    begin: in s. first: number of their first event. starts, ends: of each
    of their sends, in s after `begin`, arrays that other spans may share.
    """
    begin: float
    first: int
    rounds: tuple
    starts: Any
    ends: Any


class Timing:
    """What `time` found out.

    seconds: when the last byte arrives.
    events: one `Event` per send, in the order of the schedule.
    load: bytes per link that carried any, a dict from (src, dst).
    """

    def __init__(self, schedule, topology, spans, seconds, carried):
        self.schedule, self.topology = schedule, topology
        self.events, self._spans = _Events(schedule, spans), spans
        self.seconds = seconds
        self.load = {link[:2]: nbytes for link, nbytes in
                     zip(topology.links, carried.tolist()) if nbytes}

    def busy(self):
        """How much of what it can carry each link did carry, from 0 to 1.

        A dict from (src, dst); idle links are in it, with 0.
        """
        busy = dict.fromkeys(self.topology.number, 0.0)
        for pair, nbytes in self.load.items():
            link = self.topology.links[self.topology.number[pair]]
            busy[pair] = nbytes / link.bandwidth / self.seconds
        return busy

    def busiest(self):
        """The (src, dst) of the busiest link, None if nothing was sent."""
        return max(self.load, key=self.busy().get, default=None)

    def rates(self):
        """How fast bytes flow, from each moment that changes it to the next.

        Yields (start, end, which, rates): times in seconds, the numbers in
        `events` of the sends that flow then, and their bytes/s, two arrays.
        """
        known = {}
        for span in self._spans:
            if id(span.ends) not in known:
                known[id(span.ends)] = list(self._rates_in(span))
            for start, end, which, rates in known[id(span.ends)]:
                yield (span.begin + start, span.begin + end,
                       span.first + which, rates)

    def _rates_in(self, span):
        place = self.topology.positions(self.schedule.nodes)
        paths = _paths(self.topology, place, span.rounds)
        # No byte flows before the latency is over.
        begin = span.starts + self.topology.latency[paths].sum(axis=1)
        moments, tiny = np.unique([begin, span.ends]), 1e-9 * self.seconds
        for now, then in zip(moments, moments[1:]):
            which, = np.nonzero((begin <= now + tiny) &
                                (span.ends >= then - tiny))
            if then - now > tiny and len(which):
                yield now, then, which, _fill(paths[which],
                                              self.topology.bandwidth)

    def __repr__(self):
        return (f'<{self.schedule.name} on {self.topology.name}: '
                f'{self.seconds * 1e3:.4g} ms, {len(self.events)} sends>')


class _Events(Sequence):
    """Events made when asked for: equal rounds are kept once only."""

    def __init__(self, schedule, spans):
        self._rounds, self._spans = schedule.rounds, spans
        self._first = np.cumsum([0, *map(len, schedule.rounds)]).tolist()

    def __len__(self):
        return self._first[-1]

    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        if not -len(self) <= k < len(self):
            raise IndexError(f'event {k} of {len(self)}')
        k %= len(self)
        number = bisect_right(self._first, k) - 1
        span = self._spans[number % len(self._spans)]  # one, or one per round
        start, end = (span.begin + times[k - span.first]
                      for times in (span.starts, span.ends))
        return Event(start, end, number + 1,
                     self._rounds[number][k - self._first[number]])


@checked(schedule=limits.schedule, nbytes=number, barrier=flag,
         topology=a(Topology, 'a Topology, such as topology.pcie_switch(4)'))
def time(schedule, topology, nbytes, barrier=True):
    """The `Timing` of `schedule` for `nbytes` bytes per device.

    barrier: a round starts when the one before has ended. Without it, a
    send starts as soon as its source has what it is to send, and has sent
    what it had to send to the same node in earlier rounds. (What it replaces
    at its destination does not hold it up: there is a second buffer.)
    A send waits for the latency of its route, then its bytes flow.
    Raises ValueError for nodes or routes that the topology does not have.
    """
    together, inputs = [(sends,) for sends in schedule.rounds], None
    if not barrier and schedule.rounds:
        limits.few('schedule', sum(map(len, schedule.rounds)))
        together, inputs = [schedule.rounds], _inputs(schedule)
    place = topology.positions(schedule.nodes, 'schedule')
    sizes = schedule.chunk_bytes(nbytes)
    equal = (sizes == sizes[0]).all()
    known, solved, times, spans = {}, {}, Counter(), []
    now, first = 0.0, 0
    for rounds in together:
        # Rounds of the same sends, by what they are or by where they go.
        key = tuple(sends.ends for sends in rounds), None if equal else (
            b''.join(sizes[sends.chunk].tobytes() for sends in rounds))
        if key not in known:
            size = np.concatenate([sizes[sends.chunk] for sends in rounds])
            known[key] = _solve(topology, _paths(topology, place, rounds),
                                size, inputs, solved)
        starts, ends, seconds, *_ = known[key]
        spans.append(_Span(now, first, rounds, starts, ends))
        times[key] += 1
        first += len(ends)
        now += seconds
    carried = np.zeros(len(topology.links) + 1)
    for key, count in times.items():
        *_, links, load = known[key]
        carried[links] += count * load
    return Timing(schedule, topology, spans, now, carried)


def _paths(topology, place, rounds):
    """Numbers of the links that each send of some rounds goes through."""
    return topology.routes(
        *(place[np.concatenate([getattr(sends, end) for sends in rounds])]
          for end in ('src', 'dst')))


def _inputs(schedule):
    """For each send, the earlier ones that must have ended before it starts.

    They brought what it sends, or use the same connection.
    """
    brought, sent, inputs = {}, {}, []
    for sends in schedule.rounds:
        moves = list(enumerate(zip(*sends.columns()), len(inputs)))
        inputs += [brought.get((src, c), ()) + sent.get((src, dst), ())
                   for _, (src, dst, c, _) in moves]
        sent.update({(src, dst): () for _, (src, dst, _, _) in moves})
        for k, (src, dst, c, reduce) in moves:
            sent[src, dst] += k,
            brought[dst, c] = (brought.get((dst, c), ()) if reduce else ()) + (
                k,)
    return inputs


def _solve(topology, paths, size, inputs, solved):
    """Starts and ends in s, the last end; links used and bytes on each.

    solved: what was found before, for flows that share links in the same
    way; most schedules do much the same in many places and rounds.
    """
    links, which = np.unique(paths, return_inverse=True)
    paths = which.reshape(paths.shape)
    delay = topology.latency[links][paths].sum(axis=1)
    flows = paths, size, delay, topology.bandwidth[links]
    key = tuple(map(np.ndarray.tobytes, flows))
    if key not in solved:
        starts, ends = flow(*flows, inputs)
        solved[key] = starts, ends, float(ends.max())
    load = np.bincount(paths.ravel(), np.repeat(size, paths.shape[1]),
                       len(links))
    return *solved[key], links, load


@checked(limits.flows, paths=limits.array(2, 'iu'), size=limits.array(1),
         delay=limits.array(1), capacity=limits.array(1, least=None),
         inputs=list_of(a((list, tuple), 'a list of flows'), least=0))
def flow(paths, size, delay, capacity, inputs=None):
    """Let flows run until the last has ended, from event to event.

    paths: numbers of the links of each flow, (flows, longest path).
    size, delay: bytes, and seconds before the first byte, (flows,).
    capacity: bytes/s of each link, (links,).
    inputs: for each flow those that must have ended before it starts.
    Returns the times when each starts and ends, in s, two arrays (flows,).
    Raises ValueError for flows that wait for each other in a circle.
    """
    starts, ends = np.zeros((2, len(size)))
    left, begin = size.astype(float), delay.astype(float)
    wanted_by, missing = {}, [len(needed) for needed in inputs or ()]
    for k, needed in enumerate(inputs or ()):
        if needed:
            begin[k] = np.inf  # until they are there
        for other in needed:
            wanted_by.setdefault(other, []).append(k)
    now, running = 0.0, np.array([], int)
    while len(running) or np.isfinite(begin).any():
        rates = _fill(paths[running], capacity)
        finish = now + left[running] / rates
        then = min(finish.min(initial=np.inf), begin.min())
        left[running] -= rates * (then - now)
        now = then
        # Rounding must not make many events of what is one.
        soon = now * (1 + 1e-9)
        done = running[finish <= soon]
        ends[done] = now
        for k in done.tolist() if wanted_by else ():
            for other in wanted_by.get(k, ()):
                missing[other] -= 1
                if not missing[other]:
                    starts[other], begin[other] = now, now + delay[other]
        fresh = np.flatnonzero(begin <= soon)
        begin[fresh] = np.inf
        running = np.concatenate([running[finish > soon], fresh])
    for k, count in enumerate(missing):
        if count:
            raise ValueError(f'inputs: flow {k} waits for {inputs[k]}, of '
                             'which one never ends: a circle, or no flow')
    return starts, ends


@checked(limits.flows, paths=limits.array(2, 'iu'),
         capacity=limits.array(1, least=None))
def fair_rates(paths, capacity):
    """Max-min fair rates in bytes/s, (flows,), by progressive filling.

    All rates grow together until a link is full; its flows stay at that
    rate, and the others go on growing. For paths and capacity see `flow`.
    """
    return _fill(paths, capacity)


def _fill(paths, capacity):
    """What `fair_rates` does, without checks."""
    rates, free = np.zeros(len(paths)), capacity.copy()
    growing = np.arange(len(paths))
    while len(growing):
        users = np.bincount(paths[growing].ravel(), minlength=len(free))
        level = np.divide(free, users, out=np.full(len(free), np.inf),
                          where=users > 0)
        full = level <= level.min() * (1 + 1e-9)
        stop = full[paths[growing]].any(axis=1)
        stopped = growing[stop]
        rates[stopped] = level.min()
        free -= level.min() * np.bincount(paths[stopped].ravel(),
                                          minlength=len(free))
        growing = growing[~stop]
    return rates
