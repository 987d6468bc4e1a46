"""Keep the processes of a cluster going, and the workers in agreement."""
import contextlib
import itertools
import json
import secrets
import time
from collections import Counter, deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from d2lps import processor
from d2lps.annotations import Message
from d2lps.cluster.processes import sockets
from d2lps.cluster.processes.addresses import LocalPlaces
from d2lps.cluster.processes.calls import Call
from d2lps.cluster.processes.cells import PART
from d2lps.cluster.processes.group import Death, Group
from d2lps.cluster.processes.process import KeeperConnection, Process
from d2lps.cluster.processes.shortage import needs
from d2lps.cluster.store.agreement import Agreement

ANSWER = 30.0  # seconds for the keepers to answer
MOST_MESSAGES = 100  # messages of what is printed between two calls


class Supervisor:
    """The processes of one cluster.

    Args:
        places: where they run, such as `addresses.LocalPlaces`.
        timeout, port: as in `Cluster`.
        deaths: a list, to which those that die are added.

    Attributes:
        failure: why all processes have been ended, or ''.
        died: the deaths that ended the cluster, a list of `Death`.
        num_ready: how many workers wait for calls.

    Methods with an underscore run in the group's thread.
    """

    def __init__(self, places: LocalPlaces, timeout: float, port: int | None,
                 deaths: list[Death]) -> None:
        self.num_workers, self.num_servers = (
            len(places.workers), len(places.servers))
        self.places, self._port, self._deaths = places, port, deaths
        self._timeout = timeout
        self.failure, self.num_ready = '', 0
        self.died: list[Death] = []
        self._calls: dict[int, Call] = {}
        self._numbers = itertools.count()
        # How many calls each worker has not ended.
        self._called: Counter[str] = Counter()
        # After a call: what workers print until the next call.
        self._between: deque[tuple[int, Message]] | None = None
        self._agreement = Agreement(
            self.num_workers, timeout, self._answer, self._met)
        self._checks: list[str | None] = []
        self._checking, self._freed = 0, 0
        self._group = Group(self._hear, self._tick, self._failed)

    def start(self) -> None:
        """Start all processes; OSError or ClusterError if it cannot be."""
        keepers = self.places.keepers
        patience = ANSWER * processor.load()
        self._group.do(lambda: [*map(self._group.keep, keepers)])
        end = time.monotonic() + patience
        while not self._group.failure:  # nor closed
            late: dict[Process | KeeperConnection, str] = {
                keeper: f'did not answer within {patience:.0f} s'
                for keeper in keepers if not keeper.status}
            if not late:
                break
            if time.monotonic() > end:
                self._group.do(partial(self._group.fail_dead, late))
            time.sleep(0.005)
        if not self._group.failure:
            self.places.use_answers()
            if self.num_servers:
                self._group.do(self._start_servers)
            self._group.do(self._start_workers)

    def close(self) -> None:
        """End all processes; may be called twice."""
        self._group.close()
        for call in [*self._calls.values()]:
            call.hear()

    @contextlib.contextmanager
    def calling(self) -> Iterator[Call]:
        """A new `Call`; in this `with` block, it hears what workers say."""
        call = Call(next(self._numbers), self.num_workers)
        self._calls[call.number] = call
        for said in self._between or ():
            call.hear(*said)
        self._between = deque(maxlen=MOST_MESSAGES)
        if self.failure:
            call.hear()
        try:
            yield call
        finally:
            del self._calls[call.number]

    def call_workers(self, number: int, packed: str) -> None:
        """Have all workers call a function; see `calling`."""
        # A keeper that reads a long message sends no sign of life meanwhile.
        *parts, last = [packed[start:start + PART]
                        for start in range(0, len(packed), PART)]

        def send():
            for one in self._members('worker'):
                for part in parts:
                    one.send('part', packed=part)
                one.send('call', number=number, packed=last)
                self._agreement.note_call(one.rank, time.monotonic())
                self._called[one.name] += 1
        self._group.do(send)

    def called(self) -> list[str]:
        """Names of the workers that have not ended all of their calls."""
        return self._group.do(lambda: [
            name for name, calls in self._called.items() if calls])

    def _named(self):
        return {one.name: one for one in (
            *self._group.keepers, *self._group.processes)}

    def pids(self) -> dict[str, int]:
        """The processes that have started: {'scheduler': 4711, …}."""
        return self._group.do(lambda: {
            name: one.pid for name, one in self._named().items()
            if one.pid is not None})

    def signal(self, name: str, number: int) -> None:
        """Send a signal to the process `name`.

        Raises:
            ValueError: if there is none of that name.
        """
        def send():  # nobody is there if all have just ended
            found = self._named()
            if name in found:
                found[name].signal(number)
            elif found:
                raise ValueError(f"name must be one of {', '.join(found)}; "
                                 f'it was {name!r}')
        self._group.do(send)

    def busy(self) -> list[str]:
        """Names of the workers that run a cell or a function."""
        return self._group.do(lambda: [
            f'worker {rank}' for rank, worker
            in enumerate(self._agreement.workers) if worker.busy])

    def fail(self, reason: str) -> None:
        """End all processes because of `reason`."""
        self._group.do(lambda: self._group.fail(reason))

    def _start_workers(self):
        """Start the workers, with what they need to find each other."""
        address, port = self.places.master()
        env = {'WORLD_SIZE': str(self.num_workers),  # as torchrun does
               'MASTER_ADDR': address, 'MASTER_PORT': str(port),
               'D2LPS_PEERS': json.dumps(
                   self.places.peers(self._group.folder)),
               'D2LPS_SECRET': secrets.token_hex(),
               'D2LPS_TIMEOUT': str(self._timeout),
               'GLOO_SOCKET_IFNAME': self.places.card}
        for rank, place in enumerate(self.places.workers):
            place.add('worker', rank, env | {'RANK': str(rank)},
                      store=bool(self.num_servers))

    def _start_servers(self):
        """Start scheduler and servers, and set what workers must know."""
        for process in self._group.processes:
            if process.expected_to_exit:
                process.keeper.remove(process)
        sockets.remove_sockets(self._group.folder)
        head, servers = self.places.head, self.places.servers
        root, *ports = self.places.free_ports(
            1 + self.num_servers + self.num_workers)
        root = self._port or root
        # Write the names first: a full disk then leaves no socket behind.
        names = Path(self._group.folder, 'sockets')
        with needs('no file for the names of the sockets'):
            new = names.with_suffix('.new')
            new.write_text(' '.join(map(sockets.socket_of, (root, *ports))))
        if self._port:
            self.places.reserve(self._port)
        new.rename(names)
        self._env = self.places.env | {
            'DMLC_PS_ROOT_URI': head.address,
            'DMLC_PS_ROOT_PORT': str(root),
            'DMLC_NUM_WORKER': str(self.num_workers),
            'DMLC_NUM_SERVER': str(self.num_servers)}
        head.add('scheduler', 0, self._env_of('scheduler', head, root))
        # MXNet gives ranks in the order of the ports.
        for rank, (place, port) in enumerate(zip(servers, ports)):
            place.add('server', rank, self._env_of('server', place, port))
        self._worker_ports = ports[self.num_servers:]
        self._used, self._joining = False, set()

    def _env_of(self, role, place, port):
        return self._env | {'DMLC_ROLE': role, 'PORT': str(port),
                            'DMLC_NODE_HOST': place.address}

    def _members(self, *roles):
        return [process for process in self._group.processes
                if process.role in roles]

    def _hear(self, one, message):
        """Hand a message of a process to the method for its kind."""
        hear = self.HEARD_BY.get(message.get('kind'))
        if hear:
            return hear(self, one, message)
        self._broken(one, {'text': f'sent an unknown message: {message}'})

    def _ready(self, one, message):
        """A worker waits for calls."""
        self.num_ready += 1

    def _joins(self, one, message):
        """A server or worker is going to register with the scheduler."""
        self._joining.add(one.name)
        if len(self._joining) == self.num_servers + self.num_workers:
            self._members('scheduler')[0].send(do='begin')

    def _hear_call(self, one, message):
        if message['kind'] == 'done':
            self._called[one.name] -= 1
        call = self._calls.get(message['number'])
        if call:  # it is still waited for
            call.hear(one.rank, message)

    def _printed(self, one, message):
        if one.role == 'worker':
            calls = [*self._calls.values()]
            if calls:
                calls[0].hear(one.rank, message)
            elif self._between is not None and message['stream'] == 'stdout':
                self._between.append((one.rank, message))  # of a thread

    def _fault(self, one, message):
        """An update has failed at a server."""
        for worker in self._members('worker'):
            worker.send(do='fault', server=one.name, text=message['text'])

    def _has_freed(self, one, message):
        self._freed += 1
        if self._freed == self.num_workers:
            self._agreement.start_over()

    def _broken(self, one, message):
        self._group.fail(f"{one.label()} {message['text']}", [one])

    def _hear_worker(self, one, message):
        self._agreement.hear(one.rank, message, time.monotonic())

    def _answer(self, rank, number, reply):
        for worker in self._members('worker'):
            if worker.rank == rank:
                worker.send(do='answer', number=number, **reply)

    def _met(self, questions):
        """Do what a collective call needs, and return the replies."""
        if 'create' in questions[0]:
            if self._used:
                self._start_servers()
            self._used, self._freed = True, 0
            return [{'env': self._env_of('worker', *at)} for at in zip(
                self.places.workers, self._worker_ports)]
        if 'close' in questions[0]:
            for one in self._members('scheduler', 'server'):
                one.expected_to_exit = True
            return [{'missing': self._agreement.missing(rank)}
                    for rank in range(self.num_workers)]
        if 'update' in questions[0]:
            self._checks, update = [], max(one['update'] for one in questions)
            self._checking += 1
            for server in self._members('server'):
                server.send(do='check', number=self._checking, update=update)
            return None  # until all have checked it
        return [{}] * self.num_workers

    def _checked(self, server, message):
        """A server has tried to load an optimizer."""
        error = message['error']
        if message['number'] != self._checking:
            return  # it was one that nobody waits for any more
        self._checks.append(error and f'{server.name}: {error}')
        if len(self._checks) == self.num_servers:
            errors = '; '.join(filter(None, self._checks))
            self._agreement.reply_all([
                {'error': f'the servers cannot load it: {errors}'}
                if errors else {}] * self.num_workers, time.monotonic())

    def _tick(self, now):
        self._agreement.check(now)
        if late := self._agreement.overdue(now):
            self._group.fail('; '.join(
                f'worker {rank} got no answer from the servers in '
                f'{self._agreement.workers[rank].call}' for rank in late),
                died=[('servers', 'did not answer in time')])

    def _failed(self, text, now):
        self.died = self._group.died
        self._deaths += self.died
        started = self.num_ready == self.num_workers  # else none was used
        self.failure = '\n'.join([text, *(
            f'worker {rank}: {self._agreement.state(rank, now)}'
            for rank in range(self.num_workers) if started)])
        for call in [*self._calls.values()]:
            call.hear()

    HEARD_BY = {  # who hears each kind of messages.FROM_MEMBER
        'ready': _ready, 'joins': _joins, 'printed': _printed,
        'fault': _fault, 'checked': _checked, 'freed': _has_freed,
        'broken': _broken,
        'state': _hear_worker, 'question': _hear_worker,
        'call': _hear_worker, 'cancel': _hear_worker,
        'part': _hear_call, 'done': _hear_call}
