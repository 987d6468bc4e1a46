"""Plans that travel: each worker is a process, and holds one array.

All workers run the same `Schedule`, each worker its own part. There is no
barrier between rounds: a worker begins its next round when it has sent and
received all messages of its round. The sockets are in `d2lps.cluster.peers`.
"""
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from d2lps.checks import checked, function, instance_of, refuse, shown
from d2lps.collectives import simulate
from d2lps.collectives.schedule import Schedule, any_schedule
from d2lps.collectives.sends import Send

Op: TypeAlias = Callable[..., np.ndarray]  # a reduction of two arrays
# The messages that one worker sends in a round, (dst, chunk), and those that
# it receives, (src, chunk, reduce).
Outgoing: TypeAlias = list[tuple[int, int]]
Incoming: TypeAlias = list[tuple[int, int, bool]]
Part: TypeAlias = tuple[Outgoing, Incoming]

# Of plans that were checked, what takes longer than to send a small array:
_known: WeakKeyDictionary[Schedule, dict] = (
    WeakKeyDictionary())  # {(rank, size): (part, cuts)}


class Connections(ABC):
    """One worker's connections to all others, as `run` needs them.

    rank, num_workers: this worker's rank, and how many workers there are.
    round: the number of the round that is carried out now, from 1.
    """
    rank: int
    num_workers: int
    round: int

    @abstractmethod
    def running(self, plan: Schedule, array: np.ndarray,
                op: Op) -> AbstractContextManager:
        """A context for one run, which all workers enter with one plan."""

    @abstractmethod
    def begin_round(self) -> None:
        """Wait until the arrays of all sent chunks can be changed."""

    @abstractmethod
    def send(self, dst: int, chunk: np.ndarray) -> None:
        """Send a chunk to a worker, and go on at once."""

    @abstractmethod
    def receive(self, src: int, chunk: np.ndarray,
                op: Op | None) -> tuple[float, float]:
        """Receive a chunk, or reduce it with the chunk in its place.

        Returns when its first and its last byte came, in seconds.
        """


@checked(peers=instance_of(
    Connections, 'the Peers that d2lps.join_peers() returns'),
         plan=any_schedule, op=function, events=instance_of(list, 'a list'),
         before_round=function)
def run(peers: Connections, plan: Schedule, array: np.ndarray,
        op: Op = np.add, events: list[simulate.TimedSend] | None = None,
        before_round: Callable[[], object] | None = None) -> None:
    """Carry out this worker's part of `plan` on its `array`, in place.

    All workers must call it, with the same plan, shape, dtype and op.

    peers: the `Peers` of this worker. Rank k is node k of the plan; those
        behind its devices are its helpers, whose arrays count as empty.
    array: a NumPy array of numbers, any shape.
    op(a, b): a commutative, associative reduction, element by element. It
        gets pieces of a chunk, one after the other.
    events: a list; for each message that this worker receives, a `TimedSend`
        is added: when its first and its last byte came, by
        `time.monotonic()`, in seconds.
    before_round: a function without arguments, which this worker calls
        before it begins a round. It may sleep, for example. What it returns
        is ignored; an error that it raises ends the run.

    Raises:
        ValueError: for a bad argument; before anything is sent.
        ScheduleError: for a send without meaning; before anything is sent.
        PlanError: if the workers run different plans, or pass different
            kinds of arrays, or ops that can be told apart; nothing is changed.
        PeerError: if one died or was late. The array then has sums of some
            workers in some places: begin again from a copy.
    """
    check(peers, plan, array)
    if plan not in _known:
        plan.check_sends()
        _known[plan] = {}
    flat = np.ascontiguousarray(array).reshape(-1)  # a copy, if it has gaps
    known, key = _known[plan], (peers.rank, flat.size)
    if key not in known:
        known[key] = part_of(plan, peers.rank), plan.cuts(flat.size)
    part, cuts = known[key]
    chunks = [flat[start:end] for start, end in zip(cuts, cuts[1:])]
    filled = set(range(len(chunks)) if peers.rank < plan.num_devices else ())
    steps = part if before_round is None else preceded(part, before_round)
    with peers.running(plan, array, op):
        carry_out(steps, peers, chunks, op, filled,
                  [] if events is None else events)
    if not np.may_share_memory(flat, array):
        array[...] = flat.reshape(array.shape)


def part_of(plan: Schedule, rank: int) -> list[Part]:
    """The part of a worker: a pair (outgoing, incoming) for each round.

    outgoing: the sent messages, a list of (dst, chunk). incoming: the
    received messages, a list of (src, chunk, reduce). Both in plan order.
    """
    part = []
    for sends in plan.rounds:
        moves = [*zip(*sends.columns())]
        outgoing = [(dst, c) for src, dst, c, _ in moves if src == rank]
        incoming = [(src, c, reduce) for src, dst, c, reduce in moves
                    if dst == rank]
        part.append((outgoing, incoming))
    return part


def preceded(part: Iterable[Part],
             before_round: Callable[[], object]) -> Iterator[Part]:
    """The rounds of a part; before each of them, the function is called."""
    for sends in part:
        before_round()
        yield sends


def carry_out(part: Iterable[Part], peers: Connections,
              chunks: list[np.ndarray], op: Op, filled: set[int],
              events: list[simulate.TimedSend]) -> None:
    """Carry out a worker's part on its chunks, a list of arrays, in place.

    filled: the chunks that hold a value; others cannot be added to.
    """
    for outgoing, incoming in part:
        peers.begin_round()  # the chunks that were sent can be changed now
        send_all(outgoing, incoming, peers, chunks)
        receive_all(incoming, peers, chunks, op, filled, events)
    peers.begin_round()


def send_all(outgoing: Outgoing, incoming: Incoming, peers: Connections,
             chunks: list[np.ndarray]) -> None:
    """Send a worker's messages of a round, without waiting."""
    changing = {c for _, c, _ in incoming}
    for dst, c in outgoing:
        # These messages have the values from before the round.
        chunk = chunks[c].copy() if c in changing else chunks[c]
        peers.send(dst, chunk)


def receive_all(incoming: Incoming, peers: Connections,
                chunks: list[np.ndarray], op: Op, filled: set[int],
                events: list[simulate.TimedSend]) -> None:
    """Receive a worker's messages of a round; add them, or store them."""
    for src, c, reduce in incoming:
        adds = reduce and c in filled
        start, end = peers.receive(src, chunks[c], op if adds else None)
        filled.add(c)
        send = Send(src, peers.rank, c, reduce)
        events.append(simulate.TimedSend(start, end, peers.round, send))


def check(peers: Connections, plan: Schedule, array: np.ndarray) -> None:
    """Raise ValueError for arguments that contradict each other."""
    if len(plan.nodes) != peers.num_workers:
        raise ValueError(
            f'plan must be for {peers.num_workers} nodes, as there are so '
            f'many workers; {plan.name} has {len(plan.nodes)}')
    if type(array) not in (np.ndarray, np.memmap) or (
            array.dtype.kind not in 'biufc'):
        refuse('array', array, 'a NumPy array of numbers')
    if not array.flags.writeable:
        raise ValueError(f'array is read-only ({shown(array)}); pass a copy')
