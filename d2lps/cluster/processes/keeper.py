"""A keeper starts, watches and ends the processes of a cluster.

Each cluster has one. It makes the slow network if there is one, and forks the
processes (see `member`). It passes messages between them and the reader's
process, and ends all of them when the reader's process has ended. MXNet takes
a second to load, so it is loaded here once, before the first fork.

Importing this module does not load MXNet.
"""
import ctypes
import functools
import os
import select
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from d2lps.cluster import messages
from d2lps.cluster.processes import descendants, member, namespaces
from d2lps.cluster.processes.lines import Inlet, Outlet, serve
from d2lps.cluster.processes.shortage import or_end
from d2lps.cluster.processes.sockets import tidy

TICK = 0.1  # seconds between two looks at the processes
BUSY = 0.1  # of a core: who uses more computes, and does not hang


class Child:
    """A process of this keeper; messages name it by its `number`."""

    def __init__(self, number: int, pid: int, outlet: Outlet,
                 inlets: Sequence[Inlet]) -> None:
        self.number, self.pid = number, pid
        self.outlet, self._inlets = outlet, inlets
        self.code: int | None = None
        self._used = 0.0, time.monotonic()  # seconds of a core, until when

    def has_ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        if self.code is None:
            _, status = os.waitpid(self.pid, 0)
            self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def computes(self) -> bool:
        """Whether it uses a core or waits for one, now or since the last look.

        While C code computes without releasing Python's lock, no thread of
        the process can send a sign of life.
        """
        if descendants.runs(self.pid):
            return True
        try:
            import psutil
            used = sum(psutil.Process(self.pid).cpu_times()[:2])
        except Exception:  # it has just ended, or psutil is not here
            return False
        before, now = self._used, time.monotonic()
        self._used = used, now
        return used - before[0] > BUSY * (now - before[1])

    def signal_all(self, number: int) -> bool:
        """Send a signal to it and its group; returns if anybody is in that."""
        if self.code is None:
            with suppress(OSError):  # it may have left its group
                os.kill(self.pid, number)
        try:
            os.killpg(self.pid, number)
            return True
        except (ProcessLookupError, PermissionError):
            return False

    def kill(self) -> int:
        """End it and what it has started; return its exit code."""
        for _ in range(50):
            if not self.signal_all(signal.SIGKILL):
                break
            self.wait()
            time.sleep(0.001)
        return self.wait()

    def close(self) -> None:
        """Read what is left in its pipes, and close them."""
        for inlet in self._inlets:
            inlet.drain()
            inlet.close()
        self.outlet.close()


class Keeper:
    """All processes of a cluster."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._children: dict[int, Child] = {}
        self._hosts: list[int] = []  # namespaces of a slow network
        self._folder = ''
        self._selector = selectors.DefaultSelector()
        self._input = Inlet(self._selector, os.fdopen(0, 'rb', 0),
                            self._listen)

    def run(self) -> NoReturn:
        """Pass messages on until standard input ends."""
        beat = 0.0
        while True:
            serve(self._selector, TICK)
            self._check()
            for child in [*self._children.values()]:
                if child.has_ended():
                    self._reap(child)
            descendants.bury([child.pid for child in self._children.values()])
            if time.monotonic() - beat > 1:
                beat = time.monotonic()
                self.tell(messages.Beat())
                for child in self._children.values():
                    if child.computes():
                        self.tell(messages.Computes(child.number))

    def tell(self, message: messages.FromKeeper) -> None:
        """Send a message, even if the reader's process reads slowly."""
        # Something else may have printed a line without its end.
        line = memoryview(f'\n{messages.to_line(message)}\n'.encode())
        try:
            while line:
                if select.select([], [1], [], TICK)[1]:
                    line = line[os.write(1, line[:select.PIPE_BUF]):]
                else:
                    self._check()
        except OSError:  # the reader's process is gone
            self.end()

    def _check(self) -> None:
        """End if the reader's process is gone."""
        if self._input.closed or os.getppid() != self._parent:
            self.end()

    def _listen(self, lines: list[str]) -> None:
        for line in lines:
            self._hear(messages.from_line(line))

    def _hear(self, message: messages.ToKeeper) -> None:
        match message:
            case messages.Begin():
                self._begin(message)
            case messages.Start():
                self._start(message)
            case _:
                child = self._children.get(message.number)
                if child:  # it has not just ended
                    self._hear_for(child, message)

    def _hear_for(self, child: Child, message: (
            messages.Pass | messages.Signal | messages.End)) -> None:
        match message:
            case messages.Pass():
                child.outlet.send(message.line)
            case messages.Signal():
                os.kill(child.pid, message.signal)
            case messages.End():
                self._reap(child)

    def _begin(self, message: messages.Begin) -> None:
        sys.path[:] = map(os.path.abspath, message.path)
        self._folder, network, problem = message.folder, message.network, ''
        if network:
            problem = namespaces.problem(
                lambda: self._hosts.extend(namespaces.build(**network)))
        self.tell(messages.Begun(problem))

    def _start(self, job: messages.Start) -> None:
        number = job.number
        if member.may_be_forked(job.store):
            self.tell(messages.Loading(True))
            with suppress(Exception):  # the process will report the error
                member.load(job.store)
            self.tell(messages.Loading(False))
        with or_end(f'{job.name} could not be started'):
            hears, tell = os.pipe()
            heard, says = os.pipe()
            out, stdout = os.pipe()
            err, stderr = os.pipe()
            theirs = hears, says, stdout, stderr
            pid = os.fork()
        if not pid:
            host = self._hosts[job.host] if self._hosts else None
            become_member(job, theirs, host)
        with suppress(OSError):  # it may have done this itself, and ended
            os.setpgid(pid, pid)
        for end in theirs:
            os.close(end)
        printed = [Inlet(self._selector, os.fdopen(end, 'rb', 0),
                         functools.partial(self._pass_printed, number, stream),
                         cut=True)
                   for stream, end in (('stdout', out), ('stderr', err))]

        def pass_on(lines: list[str]) -> None:  # each line is a message
            for inlet in printed:  # first pass on what was printed before
                inlet.ready()
            self.tell(messages.Said(number, lines))
        # A server's fault must arrive before a worker's next question.
        said = Inlet(self._selector, os.fdopen(heard, 'rb', 0), pass_on,
                     urgent=job.role == 'server')
        outlet = Outlet(self._selector, os.fdopen(tell, 'wb', 0))
        self._children[number] = Child(number, pid, outlet, [said, *printed])
        self.tell(messages.Started(number, pid))

    def _pass_printed(self, number: int, stream: str,
                      lines: list[str]) -> None:
        self.tell(messages.Printed(number, stream, lines))

    def _reap(self, child: Child) -> None:
        """End a process if it still runs, and report its exit code."""
        code = child.kill()
        child.close()
        self.tell(messages.Ended(child.number, code))
        del self._children[child.number]

    def end(self, code: int = 0) -> NoReturn:
        """End all processes, tidy up, and end."""
        for child in self._children.values():
            child.signal_all(signal.SIGKILL)
        for child in self._children.values():
            child.kill()
        descendants.end_children()
        if self._folder:
            tidy(self._folder)
        os._exit(code)


def become_member(job: messages.Start, pipes: Sequence[int],
                  host: int | None) -> NoReturn:
    """Be the new process; it must never go on with its keeper's work."""
    try:
        member.main(job, pipes, host)
    except SystemExit as end:
        print(end, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def main() -> NoReturn:
    for name in [*os.environ]:  # they are of another cluster
        if name.startswith(('DMLC_', 'PS_', 'PORT')):
            del os.environ[name]
    os.umask(0o077)  # other users cannot open our sockets and files
    if sys.platform == 'linux':  # wake up, even if stopped, as the reader ends
        ctypes.CDLL(None).prctl(member.PR_SET_PDEATHSIG, signal.SIGCONT)
    descendants.adopt()  # daemons of workers end with the cluster, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('it had to end'))
    keeper = Keeper()
    try:
        keeper.run()
    except SystemExit as end:
        print(end, file=sys.stderr)
        keeper.end(1)
    except BaseException:
        traceback.print_exc()
        keeper.end(1)
