"""Keep the processes of a cluster going, and the workers in agreement."""
import contextlib
import itertools
import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import assert_never

from d2lps.cluster import messages
from d2lps.cluster.processes import sockets
from d2lps.cluster.processes.addresses import LocalPlaces, Place
from d2lps.cluster.processes.calls import Call
from d2lps.cluster.processes.cells import PART
from d2lps.cluster.processes.group import Death, Group
from d2lps.cluster.processes.process import (Heard, KeeperConnection,
                                             Process)
from d2lps.cluster.store.agreement import Agreement

QUIET = 5.0  # seconds without a transfer, until a late call is given up
PROBES = 4000  # bytes that TCP may send in that time though nothing moves


class Supervisor:
    """The processes of one cluster.

    Args:
        places: where they run, such as `addresses.LocalPlaces`.
        timeout: as in `Cluster`.
        deaths: a list, to which those that die are added.
        cwd: the folder in which the processes start.

    Attributes:
        failure: why all processes have been ended, or ''.
        died: the deaths that ended the cluster, a list of `Death`.
        num_ready: how many workers wait for calls.

    Methods with an underscore run in the group's thread.
    """

    def __init__(self, places: LocalPlaces, timeout: float,
                 deaths: list[Death], cwd: str) -> None:
        self.num_workers, self.num_servers = (
            len(places.workers), len(places.servers))
        self.places, self._timeout, self._deaths = places, timeout, deaths
        self.failure, self.num_ready = '', 0
        self.died: list[Death] = []
        self._calls: dict[int, Call] = {}
        self._numbers = itertools.count()
        # How many calls each worker has not ended.
        self._called: Counter[str] = Counter()
        self._agreement = Agreement(
            self.num_workers, timeout, self._answer, self._met)
        self._checks: list[str] = []
        self._checking, self._freed = 0, 0
        # The bytes that the network had carried when they last increased, and
        # the time of that; None if no call of MXNet is late.
        self._moved: tuple[int, float] | None = None
        self._group = Group(places.name, places.network, cwd, self._hear,
                            self._tick, self._failed)

    def start(self, seconds: float) -> None:
        """Start all processes; OSError or ClusterError if it cannot be.

        seconds: how long the keeper may take to make the network.
        """
        keeper, end = self._group.keeper, time.monotonic() + seconds
        while keeper.problem is None and not self._group.failure:
            if time.monotonic() > end:
                self.fail(f'{keeper.label()} did not answer in {seconds:.0f} '
                          's')
            time.sleep(0.005)
        if keeper.problem:
            raise OSError(keeper.problem)
        if not self._group.failure:  # nor closed
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
        if self.failure:
            call.hear()
        try:
            yield call
        finally:
            del self._calls[call.number]

    def call_workers(self, number: int, packed: str) -> None:
        """Have all workers call a function; see `calling`."""
        # A keeper that reads a long message sends no sign of life meanwhile.
        parts = [messages.CallPart(number, packed[start:start + PART],
                                   last=start + PART >= len(packed))
                 for start in range(0, len(packed), PART)]

        def send() -> None:
            for worker in self._members('worker'):
                for part in parts:
                    worker.send(part)
                self._agreement.note_call(worker.rank, time.monotonic())
                self._called[worker.name] += 1
        self._group.do(send)

    def called(self) -> list[str]:
        """Names of the workers that have not ended all of their calls."""
        return self._group.do(lambda: [
            name for name, calls in self._called.items() if calls])

    def _named(self) -> dict[str, Process | KeeperConnection]:
        started: list[Process | KeeperConnection] = [
            self._group.keeper, *self._group.processes]
        return {process.name: process for process in started}

    def traffic(self) -> dict[str, tuple[int, int]]:
        """The bytes on each link so far: see `Cluster.traffic`."""
        pid = self._group.keeper.pid
        assert pid  # it has been started
        return self.places.traffic(pid)

    def pids(self) -> dict[str, int]:
        """The processes that have started: {'scheduler': 4711, …}."""
        return self._group.do(lambda: {
            name: process.pid for name, process in self._named().items()
            if process.pid is not None})

    def signal(self, name: str, number: int) -> None:
        """Send a signal to the process `name`.

        Raises:
            ValueError: if there is none of that name.
        """
        def send() -> None:
            named = self._named()
            if name in named:
                named[name].signal(number)
            elif not self._group.failure:  # then all have just ended
                raise ValueError(f"name must be one of {', '.join(named)}; "
                                 f'it was {name!r}')
        self._group.do(send)

    def busy(self) -> dict[str, float]:
        """The workers that run a cell or a function, and since when."""
        return self._group.do(lambda: {
            f'worker {rank}': worker.since for rank, worker
            in enumerate(self._agreement.workers) if worker.busy})

    def fail(self, reason: str) -> None:
        """End all processes because of `reason`."""
        self._group.do(lambda: self._group.fail(reason))

    def _start_workers(self) -> None:
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
            self._group.keeper.add('worker', rank, env | {'RANK': str(rank)},
                                   place.host, store=bool(self.num_servers))

    def _start_servers(self) -> None:
        """Start scheduler and servers, and set what workers must know."""
        keeper = self._group.keeper
        for process in self._group.processes:
            if process.expected_to_exit:
                keeper.remove(process)
        sockets.remove_sockets(self._group.folder)
        head, servers = self.places.head, self.places.servers
        root, *ports = self.places.free_ports(
            1 + self.num_servers + self.num_workers)
        # Write the names first: a full disk then leaves no socket behind.
        Path(self._group.folder, 'sockets').write_text(
            ' '.join(map(sockets.socket_of, (root, *ports))), 'utf-8')
        self._env = self.places.env | {
            'DMLC_PS_ROOT_URI': head.address,
            'DMLC_PS_ROOT_PORT': str(root),
            'DMLC_NUM_WORKER': str(self.num_workers),
            'DMLC_NUM_SERVER': str(self.num_servers)}
        keeper.add('scheduler', 0, self._env_of('scheduler', head, root),
                   head.host)
        # MXNet gives ranks in the order of the ports.
        for rank, (place, port) in enumerate(zip(servers, ports)):
            keeper.add('server', rank, self._env_of('server', place, port),
                       place.host)
        self._worker_ports = ports[self.num_servers:]
        self._used, self._joining = False, set[str]()

    def _env_of(self, role: str, place: Place, port: int) -> dict[str, str]:
        return self._env | {'DMLC_ROLE': role, 'PORT': str(port),
                            'DMLC_NODE_HOST': place.address}

    def _members(self, *roles: str) -> list[Process]:
        return [process for process in self._group.processes
                if process.role in roles]

    def _hear(self, process: Process, message: Heard) -> None:
        """Do what a message of a process asks for."""
        match message:
            case messages.Ready():
                self.num_ready += 1
            case messages.Joins():
                self._joining.add(process.name)
                if len(self._joining) == self.num_servers + self.num_workers:
                    [scheduler] = self._members('scheduler')
                    scheduler.send(messages.BeginScheduler())
            case messages.Printed():
                calls = [*self._calls.values()]
                if calls and process.role == 'worker':
                    calls[0].hear(process.rank, message)
            case (messages.State() | messages.Question()
                  | messages.StoreCall() | messages.Cancel()):
                self._agreement.hear(process.rank, message, time.monotonic())
            case messages.ResultPart() | messages.Done():
                if isinstance(message, messages.Done):
                    self._called[process.name] -= 1
                call = self._calls.get(message.number)
                if call:  # it is still waited for
                    call.hear(process.rank, message)
            case messages.Fault():
                for worker in self._members('worker'):
                    worker.send(message)
            case messages.Checked():
                self._checked(process, message)
            case messages.Freed():
                self._freed += 1
                if self._freed == self.num_workers:
                    self._agreement.start_over()
            case messages.Broken():
                self._group.fail(f'{process.label()} {message.text}',
                                 [process])
            case messages.Beat():
                pass  # the keeper's connection has noted it
            case _:
                assert_never(message)

    def _answer(self, rank: int, answer: messages.Answer) -> None:
        for worker in self._members('worker'):
            if worker.rank == rank:
                worker.send(answer)

    def _met(self, questions: Sequence[messages.Question]
             ) -> list[messages.Answer] | None:
        """Do what a collective call needs, and return the answers."""
        if questions[0].create:
            if self._used:
                self._start_servers()
            self._used, self._freed = True, 0
            return [messages.Answer(env=self._env_of('worker', place, port))
                    for place, port in zip(self.places.workers,
                                           self._worker_ports)]
        if questions[0].close:
            for process in self._members('scheduler', 'server'):
                process.expected_to_exit = True
            return [messages.Answer(missing=self._agreement.missing(rank))
                    for rank in range(self.num_workers)]
        if questions[0].update is not None:
            # That of rank 0; the others' are ''.
            update = max(question.update or '' for question in questions)
            self._checks, self._checking = [], self._checking + 1
            for server in self._members('server'):
                server.send(messages.Check(self._checking, update))
            return None  # until all have checked it
        return [messages.Answer()] * self.num_workers

    def _checked(self, server: Process, message: messages.Checked) -> None:
        """A server has tried to load an optimizer."""
        if message.number != self._checking:
            return  # it was one that nobody waits for any more
        self._checks.append(
            message.error and f'{server.name}: {message.error}')
        if len(self._checks) == self.num_servers:
            errors = '; '.join(filter(None, self._checks))
            answer = messages.Answer(
                error=errors and f'the servers cannot load it: {errors}')
            self._agreement.answer_all([answer] * self.num_workers,
                                       time.monotonic())

    def _tick(self, now: float) -> None:
        self._agreement.check(now)
        late = self._agreement.overdue(now)
        if not late:
            self._moved = None
        elif not self._moves(now):
            self._group.fail('; '.join(
                f'worker {rank} got no answer from the servers in '
                f'{self._agreement.workers[rank].call}' for rank in late),
                died=[('servers', 'did not answer in time')])

    def _moves(self, now: float) -> bool:
        """Do bytes travel in the slow network? Else a late call is a death.

        It asks for all hosts: a worker may wait for what another one sends.
        """
        if self.places.network is None:
            return False
        try:
            carried = sum(map(sum, self.traffic().values()))
        except OSError:  # the keeper has ended
            return False
        if self._moved is None or carried - self._moved[0] > PROBES:
            self._moved = carried, now
        return now - self._moved[1] < min(QUIET, self._timeout)

    def _failed(self, text: str, now: float, died: list[Death]) -> None:
        self.died = died
        self._deaths += died
        started = self.num_ready == self.num_workers  # else none was used
        self.failure = '\n'.join([text, *(
            f'worker {rank}: {self._agreement.state(rank, now)}'
            for rank in range(self.num_workers) if started)])
        for call in [*self._calls.values()]:
            call.hear()
