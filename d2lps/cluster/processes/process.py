"""Processes of a cluster, and the lines to those that keep them."""
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from d2lps.cluster.processes import messages
from d2lps.cluster.processes.lines import Inlet, Outlet
from d2lps.cluster.processes.shortage import needs
from d2lps.cluster.processes.sockets import sweep

LINES, LONG = 12, 1000  # of what a process printed are kept; characters
# Memory that glibc asks the system for anew costs a store more time than its
# copying: let it keep what it has, in pages of 2 MB where the system permits
# (glibc 2.35; a user's own settings go last, and so they count).
MEMORY = {'MALLOC_MMAP_MAX_': '0', 'MALLOC_TRIM_THRESHOLD_': str(1 << 40),
          'MALLOC_ARENA_MAX': '1', 'GLIBC_TUNABLES': ':'.join(filter(None, (
              'glibc.malloc.hugetlb=1', os.environ.get('GLIBC_TUNABLES'))))}


def start_here():
    """The command that starts a keeper on this machine."""
    return [sys.executable, '-u', '-c', 'import sys; sys.path[0] = '
            f'{str(Path(__file__).parents[3])!r}; '
            'from d2lps.cluster.processes.keeper import main; main()']


def how_it_ended(code):
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
    pid = code = None  # until its keeper says so

    def __init__(self, role, rank, keeper, number):
        self.role, self.rank, self.keeper = role, rank, keeper
        self.name = role if role == 'scheduler' else f'{role} {rank}'
        self.printed, self.beat = deque(maxlen=LINES), time.monotonic()
        self.expected_to_exit = False
        self._number = number

    def label(self):
        words = [f'process {self.pid}' if self.pid else '', self.keeper.where]
        return f"{self.name} ({' '.join(filter(None, words))})"

    def fate(self):
        return how_it_ended(self.code)

    def drain(self):
        """Its keeper has sent its last words; its first may be there, too."""
        self.keeper.drain_errors()

    def tell_keeper(self, do, **message):
        self.keeper.send(do=do, number=self._number, **message)

    def send(self, do, **fields):
        messages.check(messages.TO_MEMBER, do, fields)
        self.tell_keeper('pass', message={'do': do, **fields})

    def signal(self, number):
        self.tell_keeper('signal', signal=number)


class KeeperLine:
    """The line to a keeper; like a process of the cluster, it can end.

    Args:
        name: what it is called in errors.
        command: what starts it.
        begin: what it is told first, see `messages`.

    Attributes:
        status: what the keeper has said of itself and of its place.
        processes: those that it keeps, by number.
        where: ' on lab1', say, in errors about them; '' on this machine.
        cwd: the folder in which it starts, by default the reader's.
    """
    where, cwd = '', None
    expected_to_exit = False
    sweep = staticmethod(sweep)

    def __init__(self, name, command, **begin):
        self.name, self._command, self._begin = name, command, begin
        self.status, self.processes = {}, {}
        self._started = self._pinged = 0
        self.printed = deque(maxlen=LINES)

    def start(self, selector, heard, folder):
        """Start it; what processes say goes to `heard(process, message)`."""
        with needs(f'{self.name} could not be started'):
            self._process = subprocess.Popen(
                self._command, env=os.environ | MEMORY, bufsize=0,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, cwd=self.cwd,
                # Ctrl-C is for the reader's process, which then decides.
                start_new_session=True)
        self.beat, self._heard = time.monotonic(), heard
        try:
            self._out = Outlet(selector, self._process.stdin)
            self._in = [Inlet(selector, self._process.stdout, self._hear),
                        Inlet(selector, self._process.stderr,
                              self.printed.extend, cut=True)]
        except BaseException:
            with self._process:  # waits for its end, and closes its pipes
                self._process.kill()
            raise
        # Another machine has a folder of its own.
        self.send(do='begin', folder='' if self.where else folder,
                  **self._begin)

    @property
    def pid(self):
        return self._process.pid

    @property
    def code(self):  # None while it runs
        return self._process.poll()

    def label(self):
        return f'{self.name} (process {self.pid})'

    def fate(self):
        return how_it_ended(self.code)

    def signal(self, number):
        self._process.send_signal(number)

    def send(self, do, **fields):
        messages.check(messages.TO_KEEPER, do, fields)
        self._out.send({'do': do, **fields})

    def ping(self, now):
        """A keeper that hears nothing for long may end its processes."""
        if now - self._pinged > 1:
            self._pinged = now
            self.send(do='ping')

    def add(self, role, rank, **job):
        """Have a process started."""
        number, self._started = self._started, self._started + 1
        process = self.processes[number] = Process(role, rank, self, number)
        process.tell_keeper('start', job=job | {
            'role': role, 'rank': rank, 'name': process.name})
        return process

    def remove(self, process):
        """Have a process ended, and forget it."""
        process.tell_keeper('end')
        self.processes = {number: one for number, one
                          in self.processes.items() if one is not process}

    def _hear(self, lines):
        self.beat = time.monotonic()
        for line in lines:
            if line.startswith('{"keeper"'):
                self._sort(**json.loads(line)['keeper'])
            elif line.strip():  # a shell's greeting, say
                self.printed.append(line)

    def _sort(self, number=None, said=(), printed=(), stream='', beat=None,
              **status):
        # A beat says nothing but that it came: it may be the first word.
        process = self.processes.get(number)
        if number is None:
            self.status |= status
            if 'loading' in status:  # nobody could be heard meanwhile
                for process in self.processes.values():
                    process.beat = self.beat
        elif process:  # and not forgotten
            process.beat = self.beat
            vars(process).update(status)  # its id, how it ended
            process.printed.extend(line[:LONG] for line in printed)
            if printed:
                self._heard(process, {'kind': 'printed', 'stream': stream,
                                      'lines': printed})
            for message in said:
                self._heard(process, message)

    def drain_errors(self):
        """Read what it, or what it has just forked, wrote as an error."""
        self._in[1].drain()

    def drain(self):
        """Read its last words."""
        for inlet in self._in:
            inlet.drain()

    def close_stdin(self):
        """Have it end its processes, tidy up, and end."""
        self._out.close()

    def end(self):
        """It has ended, or has not done so in time.

        What it has left is removed; if another program does that, returns it.
        """
        code = self.code
        if code != 0:
            self._process.kill()
            self._process.wait()
        for inlet in self._in:
            inlet.close()
        if code != 0 and 'folder' in self.status:
            return self.sweep(self.status['folder'], [self.status['pid'], *(
                one.pid for one in self.processes.values() if one.pid)])
