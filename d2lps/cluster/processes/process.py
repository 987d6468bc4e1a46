"""The reader's end: processes of a cluster, and the pipes to their keepers."""
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from selectors import BaseSelector
from typing import Any

from d2lps.annotations import Message
from d2lps.cluster.processes import messages
from d2lps.cluster.processes.lines import Inlet, Outlet
from d2lps.cluster.processes.shortage import needs
from d2lps.cluster.processes.sockets import end_groups

LINES, LONG = 12, 1000  # kept of what a process printed; characters each
# To get new memory from the system costs a store more time than to copy it.
# So glibc keeps freed memory, in pages of 2 MB where the system permits that
# (glibc 2.35). A user's own settings stand last, so they win.
MEMORY = {'MALLOC_MMAP_MAX_': '0', 'MALLOC_TRIM_THRESHOLD_': str(1 << 40),
          'MALLOC_ARENA_MAX': '1', 'GLIBC_TUNABLES': ':'.join(filter(None, (
              'glibc.malloc.hugetlb=1', os.environ.get('GLIBC_TUNABLES'))))}


def start_here() -> list[str]:
    """The command that starts a keeper on this machine."""
    return [sys.executable, '-u', '-c', 'import sys; sys.path[0] = '
            f'{str(Path(__file__).parents[3])!r}; '
            'from d2lps.cluster.processes.keeper import main; main()']


def how_it_ended(code: int | None) -> str | None:
    """How a process ended, in words; None while it runs."""
    if code is None:
        return None
    if code >= 0:
        return f'ended with exit code {code}'
    try:
        return f'was ended by {signal.Signals(-code).name}'
    except ValueError:  # a real-time signal has no name
        return f'was ended by signal {-code}'


class Process:
    """One process: `role` and `rank`, what it printed last, how it ended."""
    pid: int | None = None  # until its keeper says it
    code: int | None = None  # while it runs

    def __init__(self, role: str, rank: int, keeper: 'KeeperConnection',
                 number: int) -> None:
        self.role, self.rank, self.keeper = role, rank, keeper
        self.name = role if role == 'scheduler' else f'{role} {rank}'
        self.printed: deque[str] = deque(maxlen=LINES)
        self.beat = time.monotonic()
        self.expected_to_exit = False
        self._number = number

    def label(self) -> str:
        return f'{self.name} (process {self.pid})' if self.pid else self.name

    def fate(self) -> str | None:
        return how_it_ended(self.code)

    def drain(self) -> None:
        """Read the errors that its keeper has passed on."""
        self.keeper.drain_errors()

    def tell_keeper(self, do: str, **message: Any) -> None:
        self.keeper.send(do=do, number=self._number, **message)

    def send(self, do: str, **fields: Any) -> None:
        messages.check(messages.TO_MEMBER, do, fields)
        self.tell_keeper('pass', message={'do': do, **fields})

    def signal(self, number: int) -> None:
        self.tell_keeper('signal', signal=number)


class KeeperConnection:
    """The reader's end of the pipes to a keeper.

    Args:
        name: what it is called in errors.
        command: what starts it.
        begin: what it is told first, see `messages`.

    Attributes:
        status: what the keeper has said of itself and of its place.
        processes: those that it keeps, by number.
        cwd: the folder in which it starts, by default the reader's.
    """
    cwd = None
    expected_to_exit = False

    def __init__(self, name: str, command: Sequence[str],
                 **begin: Any) -> None:
        self.name, self._command, self._begin = name, command, begin
        self.status: Message = {}
        self.processes: dict[int, Process] = {}
        self.printed: deque[str] = deque(maxlen=LINES)
        self._started = 0

    def start(self, selector: BaseSelector,
              heard: Callable[[Process, Message], None], folder: str) -> None:
        """Start it; what processes say goes to `heard(process, message)`."""
        with needs(f'{self.name} could not be started'):
            self._process = subprocess.Popen(
                self._command, env=os.environ | MEMORY, bufsize=0,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, cwd=self.cwd,
                # Ctrl-C is for the reader's process, which then decides.
                start_new_session=True)
        self.beat, self._heard = time.monotonic(), heard
        into, out, err = (self._process.stdin, self._process.stdout,
                          self._process.stderr)
        assert into and out and err  # they are pipes
        try:
            self._out = Outlet(selector, into)
            self._in = [Inlet(selector, out, self._hear),
                        Inlet(selector, err, self.printed.extend, cut=True)]
        except BaseException:
            with self._process:  # waits for its end, and closes its pipes
                self._process.kill()
            raise
        self.send(do='begin', folder=folder, **self._begin)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:  # None while it runs
        return self._process.poll()

    def label(self) -> str:
        return f'{self.name} (process {self.pid})'

    def fate(self) -> str | None:
        return how_it_ended(self.code)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def send(self, do: str, **fields: Any) -> None:
        messages.check(messages.TO_KEEPER, do, fields)
        self._out.send({'do': do, **fields})

    def add(self, role: str, rank: int, **job: Any) -> Process:
        """Have a process started."""
        number, self._started = self._started, self._started + 1
        process = self.processes[number] = Process(role, rank, self, number)
        process.tell_keeper('start', job=job | {
            'role': role, 'rank': rank, 'name': process.name})
        return process

    def remove(self, process: Process) -> None:
        """Have a process ended, and forget it."""
        process.tell_keeper('end')
        self.processes = {number: one for number, one
                          in self.processes.items() if one is not process}

    def _hear(self, lines):
        self.beat = time.monotonic()
        for line in lines:
            if line.startswith('{"keeper"'):
                self._sort(**json.loads(line)['keeper'])
            elif line.strip():  # of a `sitecustomize`, say
                self.printed.append(line)

    def _sort(self, kind, number=None, **fields):
        """Take note of a message of `messages.FROM_KEEPER`."""
        if kind in ('place', 'loading'):
            self.status |= fields
        if kind == 'loading':  # no process could be heard meanwhile
            for process in self.processes.values():
                process.beat = self.beat
        process = self.processes.get(number)
        if process is None:  # the message is the keeper's, or the process
            return           # is forgotten
        process.beat = self.beat
        if kind == 'started':
            process.pid = fields['pid']
        elif kind == 'ended':
            process.code = fields['code']
        elif kind == 'printed':
            process.printed.extend(line[:LONG] for line in fields['lines'])
            self._heard(process, {'kind': 'printed'} | fields)
        elif kind == 'said':
            for message in fields['messages']:
                self._heard(process, message)

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
        code = self.code
        if code != 0:
            self._process.kill()
            self._process.wait()
        for inlet in self._in:
            inlet.close()
        if code != 0:
            end_groups([self.pid, *(
                one.pid for one in self.processes.values() if one.pid)])
