"""The other workers, seen from one: messages arrive in the order of the plan.

Every wait has a timeout, and its error names both workers. A message is a
header and an array. Nothing that arrives is ever run.
"""
import contextlib
import hashlib
import json
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from d2lps.checks import checked, integer, list_of, number, refuse, text
from d2lps.cluster.peers.joining import Late, address, join
from d2lps.collectives.execute import IN_PLACE, fitting
from d2lps.collectives.schedule import Schedule
from d2lps.collectives.travel import Connections, Op

PIECE = 1 << 18  # bytes that are received before they are added
# Which plan (0: they still agree on one), run, round, and how many bytes.
HEADER = struct.Struct('!IIIQ')
DIGEST, WORDS = 32, 300  # bytes: a SHA-256, and what is said of a plan


class PeerError(RuntimeError):
    """A worker waited for another one that died, or was late.

    Attributes:
        rank: the worker that says so.
        waits_for: the rank of the one that it waited for.
        round: in which round, from 1; 0 is before the first.
        closed: did that worker close its connection? If not, it was late.
    """

    def __init__(self, words: str, rank: int | None = None,
                 waits_for: int | None = None, round: int = 0,
                 closed: bool = False) -> None:
        # All but the words have defaults, because pickle gives words first.
        super().__init__(words)
        self.rank, self.waits_for = rank, waits_for
        self.round, self.closed = round, closed


class PlanError(ValueError):
    """The workers were asked to run different plans; none of them ran."""


class Peers(Connections):
    """The workers of one run, seen from one of them.

    Making it waits until all others have made theirs.

    Args:
        rank: this worker's, from 0.
        addresses: where each of them listens, own one included: a path for
            a Unix socket, or 'address:port' for TCP.
        timeout: seconds that this worker waits for another one, to join or
            for its next bytes.
        secret: a text that all know, and no stranger; TCP needs one.

    Attributes:
        rank, num_workers: this worker's rank, and how many there are.
        round: that of the plan which is carried out now, from 1.
        strangers: how many were refused while the workers joined.

    Raises:
        ValueError: for a bad argument.
        OSError: if this worker cannot listen at its address.
        PeerError: if another one does not join in time.
    """

    @checked(rank=partial(integer, least=0),
             addresses=list_of(address, "a list such as ['/tmp/mine/0', "
                               "'/tmp/mine/1']"),
             timeout=partial(number, least=0.1, most=1e6, example=60),
             secret=partial(text, least=0))
    def __init__(self, rank: int, addresses: Sequence[str],
                 timeout: float = 60.0, secret: str = '') -> None:
        if rank >= len(addresses):
            refuse('rank', rank, f'below {len(addresses)}, the number of '
                   'addresses')
        if len({*addresses}) < len(addresses):
            refuse('addresses', addresses, 'a list of different addresses')
        if not secret and not all(one.startswith('/') for one in addresses):
            raise ValueError('secret must be a text that no stranger knows, '
                             'such as secrets.token_hex(), for TCP; it was '
                             f'{secret!r}')
        self.rank, self.num_workers = rank, len(addresses)
        self.timeout, self.round, self._why_closed = timeout, 0, ''
        self._plan, self._run, self._name = 0, 0, 'the plan'
        self._lost = None  # the first error of a send
        self._pid = os.getpid()
        # The number of each plan that all run: by its description, and, which
        # is faster, {plan: {(shape, dtype, meaning of op): number}}.
        self._agreed: dict[bytes, int] = {}
        self._numbers: WeakKeyDictionary[Schedule, dict[tuple, int]] = (
            WeakKeyDictionary())
        self._sending: dict[int, Future[None]] = {}
        self._turn = threading.Lock()
        self._room = memoryview(bytearray(PIECE))
        try:
            self._connections, self.strangers = join(
                rank, addresses, timeout, secret.encode())
        except Late as late:
            other, why = late.args
            raise self._error(f'waited {timeout:g} s for worker {other} to '
                              f'join ({why})', other) from None
        self._senders = {other: ThreadPoolExecutor(1)
                         for other in self._connections}

    def __repr__(self) -> str:
        state = f'closed: {self._why_closed}' if self._why_closed else 'open'
        return f'<worker {self.rank} of {self.num_workers}; {state}>'

    # One run of a plan.

    @contextlib.contextmanager
    def running(self, plan: Schedule, array: np.ndarray,
                op: Op) -> Iterator[None]:
        """All workers are about to run this; see `travel.run`.

        After an error nobody knows which bytes are still in the connections.
        So they are closed, and the other workers get an error, too.
        """
        if os.getpid() != self._pid:
            raise RuntimeError('peers work only in the worker itself, not in '
                               'a process that was forked from it')
        if not self._turn.acquire(blocking=False):
            raise RuntimeError('another thread of this worker runs a plan; '
                               'run all plans in one thread')
        try:
            if self._why_closed:
                raise RuntimeError(
                    f'worker {self.rank} cannot run {plan.name}: its peers '
                    f'are closed ({self._why_closed}); join again')
            self.round, self._run, self._lost = 0, self._run + 1, None
            self._agree(plan, array, op)
            yield
            if self._lost:
                raise self._lost
        except PlanError:
            raise
        except BaseException as error:
            self.close(f'{type(error).__name__} in round {self.round}')
            raise
        finally:
            self._turn.release()

    def _agree(self, plan, array, op):
        """Compare plans with all others, the first time for each."""
        self._name = plan.name
        known = self._numbers.setdefault(plan, {})
        kind = array.shape, array.dtype.str, meaning(op)
        if kind not in known:
            known[kind] = self._number(plan, array, op)
        self._plan = known[kind]

    def _number(self, plan, array, op):
        """The same for equal plans; the others are asked if it is new."""
        words = (f'{plan.name} on {array.dtype.name} of shape {array.shape}, '
                 f'{getattr(op, "__name__", "an op")}')
        mine = digest(plan, array.dtype, words + meaning(op)) + words.encode()
        mine = mine.ljust(DIGEST + WORDS)[:DIGEST + WORDS]
        if mine in self._agreed:
            return self._agreed[mine]
        self._plan, said = 0, {self.rank: mine}
        message = np.frombuffer(mine, np.uint8)
        for other in self._connections:
            self.send(other, message)
        for other in self._connections:
            theirs = np.empty_like(message)
            self.receive(other, theirs)
            said[other] = theirs.tobytes()
        self.begin_round()
        if len({*said.values()}) > 1:
            raise PlanError('all workers must run the same plan on arrays of '
                            'the same kind, with the same op: ' + '; '.join(
                                f'worker {rank} runs {readable(said[rank])}'
                                for rank in sorted(said)))
        self.round = 0
        return self._agreed.setdefault(mine, 1 + len(self._agreed))

    def begin_round(self) -> None:
        """Wait until all that was sent has left this worker's array."""
        self.round += 1
        for other, sending in self._sending.items():
            sending.result()
        self._sending.clear()

    def send(self, dst: int, chunk: np.ndarray) -> None:
        """Send a contiguous array to a worker, and go on at once.

        What finds no room in the socket goes on in a thread.
        """
        if not chunk.size:
            return
        data = chunk.view(np.uint8).data
        parts = [HEADER.pack(self._plan, self._run, self.round, len(data)),
                 data]
        if dst not in self._sending:
            parts = self._push(dst, parts)
        if parts:
            self._sending[dst] = self._senders[dst].submit(
                self._push_all, dst, parts, self.round,
                self._sending.get(dst))

    def _push(self, dst, parts):
        """Send what finds room now; return what is left."""
        try:
            sent = self._connections[dst].sendmsg(parts)
        except BlockingIOError:
            return parts
        except OSError as error:  # a worker that waits for it says so first
            self._lost = self._lost or self._gone(dst, error)
            return []
        rest = []
        for part in parts:
            if sent < len(part):
                rest.append(memoryview(part)[sent:])
            sent = max(0, sent - len(part))
        return rest

    def _push_all(self, dst, parts, round, before):
        if before:
            before.result()  # nothing is sent after a failure
        while parts := self._push(dst, parts):
            self._wait(dst, select.POLLOUT, round + 1)

    def receive(self, src: int, chunk: np.ndarray,
                op: Op | None = None) -> tuple[float, float]:
        """Receive an array from a worker into `chunk`, or op it onto that.

        Returns when the first and the last byte came, in seconds.
        """
        if not chunk.size:
            return (time.monotonic(),) * 2
        header = memoryview(bytearray(HEADER.size))
        self._read(src, header)
        start = time.monotonic()
        self._check(src, HEADER.unpack(header), chunk.nbytes)
        if op is None:
            self._read(src, chunk.view(np.uint8).data)
            return start, time.monotonic()
        step = PIECE // chunk.itemsize
        for first in range(0, chunk.size, step):
            mine = chunk[first:first + step]
            data = self._room[:mine.nbytes]
            self._read(src, data)
            combine(op, mine, np.frombuffer(data, mine.dtype))
        return start, time.monotonic()

    def _read(self, src, view):
        """Fill a memoryview of bytes with what comes from a worker."""
        connection = self._connections[src]
        while view:
            try:
                count = connection.recv_into(view)
            except BlockingIOError:
                self._wait(src, select.POLLIN, self.round)
                continue
            except OSError as error:
                raise self._gone(src, error) from None
            if not count:
                raise self._gone(src)
            view = view[count:]

    def _check(self, src, header, nbytes):
        """Is this the message that comes next?"""
        if header == (self._plan, self._run, self.round, nbytes):
            return
        plan, run, round, size = header
        at = f'in round {round}' if plan else 'at the beginning'
        raise self._error(
            f'got {size} bytes from worker {src}, which is {at} of its run '
            f'{run}, instead of {nbytes} bytes of round {self.round} of run '
            f'{self._run}, {self._name}: it runs another plan', src)

    def _wait(self, other, event, round):
        poll = select.poll()
        poll.register(self._connections[other], event)
        if not poll.poll(self.timeout * 1e3):
            verb = 'for' if event == select.POLLIN else 'to send to'
            raise self._error(f'waited {self.timeout:g} s {verb} worker '
                              f'{other}', other, round) from None

    def _gone(self, other, error=None):
        why = f' ({error.strerror or error})' if error else ''
        return self._error(f'waited for worker {other}, which has closed its '
                           f'connection{why}', other, closed=True)

    def _error(self, words, waits_for, round=None, closed=False):
        round = self.round if round is None else round
        at = f'in round {round} of {self._name}: ' if round else ''
        return PeerError(f'{at}worker {self.rank} {words}', self.rank,
                         waits_for, round, closed)

    def close(self, why: str = 'close() was called') -> None:
        """Close the connections; the others' runs end with an error."""
        self._why_closed = self._why_closed or why
        for connection in self._connections.values():
            with contextlib.suppress(OSError):  # the other end may be closed
                if os.getpid() == self._pid:  # not in a forked process
                    connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for sender in self._senders.values():
            sender.shutdown(wait=False)

    def __enter__(self) -> 'Peers':
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def combine(op: Op, mine: np.ndarray, theirs: np.ndarray) -> None:
    """op(mine, theirs), in the place of mine."""
    if op in IN_PLACE:
        op(mine, theirs, out=mine)
        return
    mine[...] = fitting(op(mine, theirs), mine)


def meaning(op: Op) -> str:
    """A text that tells most ops apart, and is the same in every process.

    All lambdas have the same name, so the text also has an op's bytecode,
    names and plain constants. Ops have the same text if they differ only in
    the functions that they call by one name, in defaults, or in values that
    they close over. An op without bytecode of its own, such as a
    `functools.partial`, is known by its name or its class.
    """
    name = getattr(op, '__name__', type(op).__name__)
    code = getattr(op, '__code__', None)
    if code is None:
        return name
    constants = [one for one in code.co_consts
                 if isinstance(one, (int, float, complex, str))]
    return f'{name} {code.co_code.hex()} {code.co_names} {constants}'


def digest(plan: Schedule, dtype: np.dtype, words: str) -> bytes:
    """A plan and the kind of an array in 32 bytes (SHA-256)."""
    found = hashlib.sha256(f'{words} {dtype.str} {plan.nodes} '
                           f'{plan.num_devices}'.encode())
    found.update(np.asarray(plan.weights, '<f8').tobytes())
    for sends in plan.rounds:
        for column in sends.src, sends.dst, sends.chunk, sends.reduce:
            found.update(np.asarray(column, '<i8').tobytes())
        found.update(b'round')
    return found.digest()


def readable(said: bytes) -> str:
    """What a worker said of its plan, and a few letters of its digest."""
    words = said[DIGEST:].decode(errors='replace').strip()
    return f'{words} (digest {said[:3].hex()})'


@checked(ranks=list_of(partial(integer, least=0), 'a list of ranks'))
def join_peers(timeout: float | None = None,
               ranks: Sequence[int] | None = None) -> Peers | None:
    """The `Peers` of this worker, in a process that a cluster has started.

    All workers must call it. Those it had before are closed.
    timeout: as in `Peers`; by default, that of the cluster.
    ranks: those of the cluster's workers that take part, if not all do; the
        first of them becomes rank 0, and so on. The others get None.
    """
    global _joined
    if 'D2LPS_PEERS' not in os.environ:
        raise RuntimeError('join_peers works in the workers of a cluster '
                           'only: write %%px above the cell, or use '
                           'Cluster.run')
    rank, addresses = (json.loads(os.environ[name])
                       for name in ('RANK', 'D2LPS_PEERS'))
    ranks = [*range(len(addresses))] if ranks is None else ranks
    if len({*ranks}) < len(ranks) or max(ranks) >= len(addresses):
        refuse('ranks', ranks, 'different ranks, from 0 to '
               f'{len(addresses) - 1}')
    if timeout is None:
        timeout = float(os.environ['D2LPS_TIMEOUT'])
    if _joined is not None:
        _joined.close('its worker has joined again')
        _joined = None
    if rank in ranks:
        _joined = Peers(ranks.index(rank), [addresses[k] for k in ranks],
                        timeout, os.environ['D2LPS_SECRET'])
    return _joined


_joined: Peers | None = None  # a worker listens at one address
