"""A cluster of workers and servers, for a notebook or a script."""
import importlib.util
import os
import queue
import signal
import sys
import time
import weakref
from collections.abc import Callable
from functools import partial
from threading import TIMEOUT_MAX
from typing import Any, NoReturn

import cloudpickle  # noqa: F401  so that its lack is said at once

from d2lps import checks
from d2lps.checks import (boolean, checked, from_zero, instance_of, integer,
                          number, shown, text)
from d2lps.cluster.network import Network, NetworkPlaces
from d2lps.cluster.processes.addresses import (LOOPBACK, LocalPlaces,
                                               unix_socket_places)
from d2lps.cluster.processes.calls import (ClusterError, View, WorkerError,
                                           register_magic)
from d2lps.cluster.processes.cells import FOR_CELLS, close_store, pack, unpack
from d2lps.cluster.processes.restarts import Restarts
from d2lps.cluster.processes.supervisor import Supervisor
from d2lps.missing import NoMXNet, check_fork
from d2lps.units import several

COUNT = partial(integer, most=256)  # processes of a kind
BEGIN = 60.0  # seconds for a call to reach the workers
STOP = 3.0  # seconds for workers to stop, or to free their stores
SIGKILL = getattr(signal, 'SIGKILL', 9)  # names work on Windows, too


class Cluster:
    """Workers and parameter servers, each a process of its own.

    Args:
        num_workers, num_servers: their numbers. Without servers there is
            no store, and MXNet is not needed: see below.
        timeout: seconds for which a worker waits for another worker, or
            for a server. In a `network`, it waits longer for a server while
            bytes travel.
        network: a slow `Network` between workers and servers; by default
            they communicate as fast as this machine can.
        address: '127.0.0.1' lets the processes listen on ports of this
            address, see below; by default they use Unix sockets.
        restarts: how many times, in all, `run` may start all processes anew
            after a death. It then calls the function again from its
            beginning, and the function continues from its checkpoint (see
            `d2lps.recovery`).
        elastic: True continues without a dead worker. See `num_workers`.

    It runs from here to `close()`, or to the end of a `with` block.  In a
    notebook, `%%px` cells then run on all workers, and `view['x']` is a list
    of their variables x; `run` calls a function on all of them.  In a
    worker, `mx.kv.create('dist_sync')` makes its end of the store (see
    `d2lps.cluster.store.worker`).  With or without servers,
    `d2lps.join_peers()` gives a worker a connection to each of the others,
    over which plans travel (`d2lps.collectives.travel`).  RANK, WORLD_SIZE,
    MASTER_ADDR and MASTER_PORT are in its environment, as `torchrun` sets
    them, so that other libraries can connect the workers.

    All processes that a function starts on a worker end with the cluster,
    also daemons and processes in a session of their own.  On a Mac, and if a
    keeper is itself killed, processes that have left the worker's process
    group continue.

    MXNet's servers run the code that any connected program sends.  No other
    user can connect: the processes use Unix sockets in /tmp, which only this
    user (and root) can open, and no port is open.  Without Unix sockets there
    is an OSError.  With `address='127.0.0.1'` the processes listen there,
    where every user of the machine can reach them.  With `network`, they
    listen on addresses that exist only inside that network.

    The workers must start within 120 seconds, or longer on a busy machine:
    120 seconds times the number of processes that want each core.

    Attributes:
        num_workers, num_servers: their numbers now.
        deaths: the processes that died: `who` ('server 1'), `why`, and the
            `seconds` until the function was called again.

    Raises:
        ValueError: for a bad argument.
        OSError: on Windows; or if this machine does not allow Unix sockets, a
            network, or enough open files.
        ClusterError: if it cannot start; and, from `run`, `pids`, `kill`,
            `traffic`, `check` and `%%px`, when a process has died, gives no
            sign of life for 30 s, or is stuck for `timeout`. Then all
            processes have been ended. Also while all processes are started
            anew, except from `run`.
    """

    @checked(num_workers=COUNT, num_servers=partial(COUNT, least=0),
             timeout=partial(number, least=0.1, most=1e6, example=60),
             restarts=from_zero, elastic=boolean)
    def __init__(self, num_workers: int = 2, num_servers: int = 1,
                 timeout: float = 60, network: Network | None = None,
                 address: str | None = None,
                 restarts: int = 0, elastic: bool = False) -> None:
        if elastic and not restarts:
            raise ValueError('elastic needs restarts=, such as restarts=3: '
                             'how often to continue with fewer workers')
        check_fork()
        if num_servers:
            _check_mxnet()
        places = _places(num_workers, num_servers, network, address)
        self.num_servers, self.view = num_servers, View(self)
        self._life = Restarts(places, timeout, restarts, elastic)
        self.deaths = self._life.deaths
        # Also when the cluster has no reference any more, or Python ends.
        self._finalizer = weakref.finalize(self, self._life.close)
        try:
            self._life.start()
            register_magic(self)
        except BaseException:
            self.close()
            raise

    @property
    def num_workers(self) -> int:
        return self._supervisor.num_workers

    @property
    def _supervisor(self) -> Supervisor:
        return self._life.supervisor

    def check(self) -> None:
        """Raise ClusterError if the cluster has ended."""
        self._life.check()

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name: {'scheduler': …, 'server 0': …, …}."""
        self.check()
        return self._supervisor.pids()

    def traffic(self) -> dict[str, tuple[int, int]]:
        """The bytes that each host's link in the network has carried so far.

        Returns {'worker 0': (bytes received, bytes sent), …}, packets'
        headers included.

        Raises:
            ValueError: if the cluster has no network of its own.
        """
        self.check()
        try:
            return self._supervisor.traffic()
        except OSError:
            self.check()
            raise

    @checked(name=text, signal=partial(integer, most=signal.NSIG - 1))
    def kill(self, name: str, signal: int = SIGKILL) -> None:
        """Send a signal to a process of the cluster, such as 'server 0'.

        signal: its number, such as `signal.SIGTERM`.

        Raises:
            ValueError: if the process or the signal does not exist.
        """
        self.check()
        self._supervisor.signal(name, signal)

    def run(self, function: Callable[..., Any], /, *args: Any,
            **kwargs: Any) -> list[Any]:
        """Call `function(*args, **kwargs)` on every worker at once.

        Shows the output of the workers at once. Returns their results in
        the order of the ranks. After a death, see `restarts`.

        Raises:
            ValueError: if the function, an argument or a result cannot be
                sent from process to process.
            WorkerError: if it failed on some workers.
        """
        try:
            return run_on_workers(self._life, function, args, kwargs)
        finally:  # a traceback that somebody keeps must not keep the cluster
            del self

    def interrupt(self) -> None:
        """Send Ctrl-C to the workers; end the cluster if they do not stop."""
        if not self._life.closed:
            interrupt(self._life.supervisor)

    def close(self) -> None:
        """End all processes; may be called twice."""
        if self._life.closed or os.getpid() != self._life.pid:
            return
        try:
            if (self.num_servers and self._finalizer.alive
                    and not self._supervisor.failure
                    and self._supervisor.num_ready == self.num_workers
                    and not self._supervisor.busy()):
                call(self._supervisor, pack((close_store, (), {})), STOP)
        except (ClusterError, WorkerError, queue.Empty):
            pass
        finally:
            self._finalizer()

    def __reduce__(self) -> NoReturn:
        raise TypeError('a Cluster cannot be sent to its workers: leave it '
                        'out of the function and its arguments')

    def __enter__(self) -> 'Cluster':
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ('starting anew' if self._life.starting else
                 'ended after a failure' if self._supervisor.failure else
                 'closed' if self._life.closed else 'running')
        return (f'Cluster({several(self.num_workers, "worker")}, '
                f'{several(self.num_servers, "server")}; {state})')


def run_on_workers(life: Restarts, function: Callable[..., Any],
                   args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Call a function on every worker: see `Cluster.run`."""
    try:
        checks.function('function', function)
        packed, results = pack((function, args, kwargs)), None
        while results is None:  # all have ended
            life.recover()
            if any(function is cell for cell in FOR_CELLS):
                life.begin_cell()
            results = call(life.supervisor, packed)
        return [unpack(result, f'the result of worker {rank}')
                for rank, result in enumerate(results)]
    except KeyboardInterrupt:
        if not life.closed:
            interrupt(life.supervisor)
        raise


def call(supervisor: Supervisor, packed: str,
         seconds: float = TIMEOUT_MAX) -> list[str] | None:
    """The workers' results, packed; None if they have ended instead.

    seconds: for which nothing may be heard: see `Call.results`.
    """
    with supervisor.calling() as calling:
        supervisor.call_workers(calling.number, packed)
        return calling.results(seconds)


def interrupt(supervisor: Supervisor) -> None:
    """Send Ctrl-C to the workers; see `Cluster.interrupt`."""
    end = time.monotonic() + BEGIN
    why = f'did not begin the call within {BEGIN:.0f} s'
    signalled: set[tuple[str, float]] = set()
    try:
        # A worker that has not begun its call ignores the signal. When it has
        # ended one call, it may begin another, and needs another signal.
        while not supervisor.failure and supervisor.called():
            for name, since in {*supervisor.busy().items()} - signalled:
                supervisor.signal(name, signal.SIGINT)
                signalled.add((name, since))
                end = time.monotonic() + STOP
                why = f'did not stop within {STOP:.0f} s'
            if time.monotonic() > end:
                names = ', '.join(supervisor.called())
                supervisor.fail(f'{names} {why} after the interruption')
            time.sleep(0.02)
    except KeyboardInterrupt:  # the user does not want to wait
        supervisor.fail('it was interrupted twice')
        raise


def _check_mxnet() -> None:
    """Check that MXNet is installed; only the cluster's processes load it.

    If a notebook has loaded MXNet, `mx.kv.create` from now on refuses stores
    of several processes outside of workers.
    """
    try:
        importlib.util.find_spec('mxnet')
        if 'mxnet' in sys.modules:
            importlib.import_module('d2lps.cluster.store.worker')
    except NoMXNet as error:
        raise NoMXNet(error.why, 'A cluster with num_servers=0 needs no MXNet.'
                      ) from None


def _places(num_workers: int, num_servers: int, network: Network | None,
            address: str | None) -> LocalPlaces:
    """Choose where the processes run: see the arguments of `Cluster`."""
    if address is not None and str(address) != LOOPBACK:
        raise ValueError(f"address must be '{LOOPBACK}', or be left out; it "
                         f'was {shown(address)}')
    if address is not None and network is not None:
        raise ValueError('network has addresses of its own; leave out network '
                         'or address')
    if address is not None:
        return LocalPlaces(num_workers, num_servers)
    if network is None:
        return unix_socket_places(num_workers, num_servers)
    is_network = instance_of(Network, 'a Network such as Network(delay=0.001)')
    is_network('network', network)
    return NetworkPlaces(network, num_workers, num_servers)
