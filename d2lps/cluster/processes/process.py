"""The reader's end: a cluster's processes, and the pipes to their keeper."""
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from selectors import BaseSelector
from typing import Any, TypeAlias

from d2lps.cluster import messages
from d2lps.cluster.processes.lines import Inlet, Outlet
from d2lps.cluster.processes.sockets import end_groups

# What the reader's process hears from a member, or of what it has printed.
Heard: TypeAlias = messages.FromMember | messages.Printed
LINES, CHARACTERS = 12, 1000  # kept of what a process printed; of each line
# To get new memory from the system costs a store more time than to copy it.
# So glibc keeps freed memory, in pages of 2 MB where the system permits that
# (glibc 2.35). A user's own settings stand last, so they win.
MEMORY = {'MALLOC_MMAP_MAX_': '0', 'MALLOC_TRIM_THRESHOLD_': str(1 << 40),
          'MALLOC_ARENA_MAX': '1', 'GLIBC_TUNABLES': ':'.join(filter(None, (
              'glibc.malloc.hugetlb=1', os.environ.get('GLIBC_TUNABLES'))))}


def keeper_command() -> list[str]:
    """The command that starts a keeper."""
    return [sys.executable, '-u', '-c', 'import sys; sys.path[0] = '
            f'{str(Path(__file__).parents[3])!r}; '
            'from d2lps.cluster.processes.keeper import main; main()']


def how_it_ended(code: int) -> str:
    """Describe how a process with this exit code ended."""
    if code >= 0:
        return f'ended with exit code {code}'
    try:
        return f'was ended by {signal.Signals(-code).name}'
    except ValueError:  # a real-time signal has no name
        return f'was ended by signal {-code}'


class Watched:
    """A process that is watched: a `Process` or a `KeeperConnection`.

    Attributes:
        name: what it is called, such as 'server 1'.
        pid: its process id; None before its start.
        printed: the last lines that it has written.
        beat: the time of its last sign of life, of `time.monotonic`.
    """
    pid: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.printed: deque[str] = deque(maxlen=LINES)
        self.beat = time.monotonic()

    def label(self) -> str:
        return f'{self.name} (process {self.pid})' if self.pid else self.name


class Process(Watched):
    """A member: the scheduler, a server or a worker; it has a `rank`."""
    code: int | None = None  # while it runs
    expected_to_exit = False

    def __init__(self, job: messages.Start,
                 keeper: 'KeeperConnection') -> None:
        super().__init__(job.name)
        self.role, self.rank = job.role, job.rank
        self.keeper, self.number = keeper, job.number

    def drain(self) -> None:
        """Read its last errors, if it has died as it was forked."""
        self.keeper.drain_errors()

    def send(self, message: messages.ToMember) -> None:
        self.keeper.send(messages.Pass(self.number, messages.to_line(message)))

    def signal(self, number: int) -> None:
        self.keeper.send(messages.Signal(self.number, number))


class KeeperConnection(Watched):
    """The reader's end of the pipes to the keeper, which starts here.

    Args:
        name: what it is called in errors.
        network: the slow network that it makes, see `messages.Begin`.
        cwd: the folder in which it starts.
        folder: where it finds the cluster's files.
        heard: is called as `heard(process, message)` for what members say.

    Attributes:
        problem: why it cannot make the network, or ''; None before it says.
        loading: whether it loads MXNet just now, and so cannot write.
        processes: the members, by number.
    """

    def __init__(self, name: str, network: dict[str, Any] | None, cwd: str,
                 folder: str, selector: BaseSelector,
                 heard: Callable[[Process, Heard], None]) -> None:
        super().__init__(name)
        self.problem: str | None = None
        self.loading = False
        self.processes: dict[int, Process] = {}
        self._heard, self._num_started = heard, 0
        self._process = subprocess.Popen(
            keeper_command(), env=os.environ | MEMORY, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd=cwd,
            # Ctrl-C is for the reader's process, which then decides.
            start_new_session=True)
        self.pid = self._process.pid
        into, out, err = (self._process.stdin, self._process.stdout,
                          self._process.stderr)
        assert into and out and err  # they are pipes
        self._out = Outlet(selector, into)
        self._in = [Inlet(selector, out, self._hear_lines),
                    Inlet(selector, err, self.printed.extend, cut=True)]
        self.send(messages.Begin(folder, sys.path[:], network))

    @property
    def code(self) -> int | None:  # None while it runs
        return self._process.poll()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def send(self, message: messages.ToKeeper) -> None:
        self._out.send(messages.to_line(message))

    def add(self, role: str, rank: int, env: dict[str, str], host: int,
            store: bool = True) -> None:
        """Have a process started; for the arguments see `messages.Start`."""
        job = messages.Start(self._num_started, role, rank, env, host, store)
        self._num_started += 1
        self.processes[job.number] = Process(job, self)
        self.send(job)

    def remove(self, process: Process) -> None:
        """Have a process ended, and forget it."""
        self.send(messages.End(process.number))
        del self.processes[process.number]

    def _hear_lines(self, lines: list[str]) -> None:
        self.beat = time.monotonic()
        for line in filter(None, lines):
            try:
                message = messages.from_line(line)
            except ValueError:  # a `sitecustomize`, say, has printed it
                self.printed.append(line)
            else:
                self._hear(message)

    def _hear(self, message: messages.FromKeeper) -> None:
        match message:
            case messages.Beat():
                pass  # `beat` has it already
            case messages.Begun():
                self.problem = message.problem
            case messages.Loading():
                self.loading = message.loading
                for process in self.processes.values():  # nor could they
                    process.beat = self.beat
            case _:
                member = self.processes.get(message.number)
                if member:  # it has not been removed
                    self._hear_of(member, message)

    def _hear_of(self, process: Process, message: (
            messages.Started | messages.Printed | messages.Said
            | messages.Computes | messages.Ended)) -> None:
        process.beat = self.beat
        match message:
            case messages.Started():
                process.pid = message.pid
            case messages.Printed():
                process.printed.extend(
                    line[:CHARACTERS] for line in message.lines)
                self._heard(process, message)
            case messages.Said():
                for line in message.lines:
                    self._heard(process, messages.from_line(line))
            case messages.Ended():
                process.code = message.code

    def drain_errors(self) -> None:
        """Read the errors of the keeper, or of a process just forked."""
        self._in[1].drain()

    def drain(self) -> None:
        """Read what is left in the pipes."""
        for inlet in self._in:
            inlet.drain()

    def close_stdin(self) -> None:
        """Have it end its processes, tidy up, and end."""
        self._out.close()

    def end(self) -> None:
        """Kill the keeper unless it has ended well, and what it has left."""
        self.close_stdin()
        code = self.code
        if code != 0:
            self._process.kill()
            self._process.wait()
        for inlet in self._in:
            inlet.close()
        if code != 0:
            end_groups([self._process.pid, *(
                process.pid for process in self.processes.values()
                if process.pid)])
