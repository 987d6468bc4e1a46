"""Plans that travel: each worker is a process, and holds one array.

All carry out the same `Schedule`, each its own part of it. There is no
barrier between rounds: a worker goes on when it has sent and received what
its round has for it. The sockets are in `d2lps.cluster.peers`.
"""
from weakref import WeakKeyDictionary

import numpy as np

from d2lps.checks import instance_of, checked, function, refuse, shown
from d2lps.collectives import limits, simulate
from d2lps.collectives.schedule import Send

# Of plans that were checked, what takes longer than to send a small array:
_known = WeakKeyDictionary()  # {(rank, size): (part, cuts)}


@checked(peers=limits.peers,
         plan=limits.schedule, op=function, events=instance_of(list, 'a list'))
def run(peers, plan, array, op=np.add, events=None):
    """Carry out this worker's part of `plan` on its `array`, in place.

    All workers must call it, with the same plan, shape, dtype and op.

    peers: the `Peers` of this worker. Rank k is node k of the plan; those
        behind its devices are its helpers, whose arrays count as empty.
    array: a NumPy array of numbers, any shape.
    op(a, b): a commutative, associative reduction, element by element. It
        gets pieces of a chunk, one after the other.
    events: a list; for each message that this worker receives, an `Event`
        is added: when its first and its last byte came, by
        `time.monotonic()`, in seconds.

    Raises:
        ValueError: for a bad argument; before anything is sent.
        ScheduleError: for a send without meaning; before anything is sent.
        PlanError: if the workers do not run the same; nothing is changed.
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
    with peers.running(plan, array, op):
        carry_out(part, peers, chunks, op, filled,
                  [] if events is None else events)
    if not np.may_share_memory(flat, array):
        array[...] = flat.reshape(array.shape)


def part_of(plan, rank):
    """What one worker does: a pair (outgoing, incoming) for each round.

    outgoing: what it sends, a list of (dst, chunk). incoming: what it gets,
    a list of (src, chunk, reduce). Both in the order of the plan.
    """
    part = []
    for sends in plan.rounds:
        moves = [*zip(*sends.columns())]
        outgoing = [(dst, c) for src, dst, c, _ in moves if src == rank]
        incoming = [(src, c, reduce) for src, dst, c, reduce in moves
                    if dst == rank]
        part.append((outgoing, incoming))
    return part


def carry_out(part, peers, chunks, op, filled, events):
    """Carry out a worker's part on its chunks, a list of arrays, in place.

    filled: which chunks hold something; to others nothing can be added.
    """
    for outgoing, incoming in part:
        peers.begin_round()  # what was sent before has left the chunks
        send_all(outgoing, incoming, peers, chunks)
        receive_all(incoming, peers, chunks, op, filled, events)
    peers.begin_round()


def send_all(outgoing, incoming, peers, chunks):
    """Send what a worker has for others in a round, without waiting."""
    changing = {c for _, c, _ in incoming}
    for dst, c in outgoing:
        # They get what was there when the round began.
        chunk = chunks[c].copy() if c in changing else chunks[c]
        peers.send(dst, chunk)


def receive_all(incoming, peers, chunks, op, filled, events):
    """Receive what others have for a worker in a round; add it, or keep it."""
    for src, c, reduce in incoming:
        adds = reduce and c in filled
        start, end = peers.receive(src, chunks[c], op if adds else None)
        filled.add(c)
        send = Send(src, peers.rank, c, reduce)
        events.append(simulate.Event(start, end, peers.round, send))


def check(peers, plan, array):
    """Raise ValueError for what does not fit together."""
    if len(plan.nodes) != peers.num_workers:
        raise ValueError(
            f'plan must be for {peers.num_workers} nodes, as there are so '
            f'many workers; {plan.name} has {len(plan.nodes)}')
    if type(array) not in (np.ndarray, np.memmap) or (
            array.dtype.kind not in 'biufc'):
        refuse('array', array, 'a NumPy array of numbers')
    if not array.flags.writeable:
        raise ValueError(f'array is read-only ({shown(array)}); pass a copy')
