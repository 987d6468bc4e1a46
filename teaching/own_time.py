"""A kernel's own time, on which the load of the machine has no influence.

Linux counts for each thread how long it was ready to run and had to wait for
a processor (`run_delay` in Documentation/scheduler/sched-stats.rst). For the
machine it counts how long some process had to wait for memory or for a disk
(Documentation/accounting/psi.rst). A kernel's own time leaves both out. Where
the system counts neither, own time is the time of the clock on the wall.
"""
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

LOOK = 0.2  # seconds between two looks at the clock
CORES = os.cpu_count() or 1
TICKS = os.sysconf('SC_CLK_TCK')  # a second, the unit of times in stat files
BUSY = 0, 1, 2, 5, 6, 7  # in /proc/stat: all but idle, and waiting for disks
# Fields in the stat file of a process or thread, counted from its state on.
USED = slice(11, 15)  # processor time, its own and that of ended children
NICE, POLICY = 16, 38
OUR_NICE = os.nice(0)
OUR_POLICY = os.sched_getscheduler(0) if hasattr(
    os, 'sched_getscheduler') else 0


class Clock:
    """Counts the own seconds of a process and of all that it has started.

    Its own seconds are those in which it ran, or waited for something else
    than the machine, such as for the end of `sleep`. A student's processes
    could wait for each other, and so stop the clock. Therefore the seconds
    that one thread has computed count in any case, and so do the seconds that
    all threads have computed, divided by the number of processors. Own time
    never runs faster than the clock on the wall.

    Waiting for the student's own processes does not stop the clock either: all
    threads together cannot have waited for others longer than others have used
    processors, and the wait of a thread that has asked to come after others
    (`nice`, SCHED_IDLE) does not count.
    """

    def __init__(self, pid: int) -> None:
        self.seconds, self._pid = 0., pid
        self._last = _counters(pid)
        # Processor seconds of others for which no thread has waited yet.
        self._others = 0.
        # Seconds of waiting that did not fit into the last look.
        self._owed = 0.

    def look(self) -> float:
        """Count until now: the own seconds so far."""
        before, now = self._last, _counters(self._pid)
        self._last = now
        # A longer time means that the grading itself had to wait for a
        # processor, as the kernel had, too.
        passed = min(now.at - before.at, 2 * LOOK)

        # Leave out the waiting. What is too much is left out at the next look.
        delayed = (now.stalled - before.stalled
                   + self._waited(before, now, passed))
        free = passed - delayed - self._owed
        self._owed = min(max(0, -free), passed)

        # What was computed counts in any case.
        computed = [(now.used - before.used) / CORES,
                    *_growth(before.ran, now.ran)]
        self.seconds += min(passed, max(0, free, *computed))
        return self.seconds

    def _waited(self, before, now, passed):
        """The seconds for which threads waited for processes of others."""
        used_by_others = (now.busy - before.busy) - (now.used - before.used)
        # Linux may count a wait one look later than the process that ran
        # meanwhile. So the others' seconds of one look are carried over.
        self._others = min(self._others, passed) + max(0, used_by_others)
        waited = min(self._others, sum(_growth(before.delays, now.delays)))
        self._others -= waited
        return waited


def _growth(before: Mapping[str, float],
            now: Mapping[str, float]) -> list[float]:
    """By how much the seconds of each thread have grown."""
    return [max(0, seconds - before.get(thread, 0))
            for thread, seconds in now.items()]


class _Counters(NamedTuple):
    """What the system has counted until now, in seconds.

    at: the clock on the wall. used: processor time of all processes, also of
    those that have ended. busy: processor time of the whole machine. ran,
    delays: from a thread to how long it ran, and how long it was ready and
    had to wait. stalled: how long some process of the machine had to wait for
    memory or for a disk.
    """
    at: float
    used: float
    busy: float
    ran: dict[str, float]
    delays: dict[str, float]
    stalled: float


def _counters(pid: int) -> _Counters:
    """Read the counters of a process, of all that it has started, and of the
    machine."""
    used = 0.
    ran: dict[str, float] = {}
    delays: dict[str, float] = {}
    stalled = _stalled('memory') + _stalled('io')
    busy = _busy()
    for process in family(pid):
        folder = Path('/proc', str(process))
        try:
            used += sum(map(int, _stat(folder)[USED])) / TICKS
            for thread in os.listdir(folder / 'task'):
                _count_thread(folder / 'task' / thread, ran, delays)
        except OSError:  # it has just ended, or nothing is counted here
            continue
    return _Counters(time.monotonic(), used, busy, ran, delays, stalled)


def _count_thread(folder, ran, delays):
    """Enter the seconds of a thread into `ran` and `delays`."""
    nanoseconds = (folder / 'schedstat').read_text().split()
    ran[folder.name] = int(nanoseconds[0]) / 1e9
    fields = _stat(folder)
    if int(fields[NICE]) <= OUR_NICE and int(fields[POLICY]) == OUR_POLICY:
        delays[folder.name] = int(nanoseconds[1]) / 1e9


def family(pid: int) -> list[int]:
    """The ids of a process and of all that it and they have started.

    (psutil would look at every process of the machine, five times a second.)
    """
    found = [pid]
    for process in found:  # which grows meanwhile
        try:
            for thread in os.listdir(f'/proc/{process}/task'):
                children = Path(f'/proc/{process}/task/{thread}/children')
                found += map(int, children.read_text().split())
        except OSError:
            continue
    return found


def _stat(folder):
    """The fields in the stat file of a process or thread, from its state on.
    """
    # Bytes, since a program gives itself any name that it likes.
    return (folder / 'stat').read_bytes().rpartition(b')')[2].split()


def _busy():
    """Seconds that all processors were at work, or, if unknown, could be."""
    try:
        fields = Path('/proc/stat').read_text().split('\n')[0].split()[1:]
        return sum(int(fields[k]) for k in BUSY) / TICKS
    except (OSError, IndexError):
        return time.monotonic() * CORES


def _stalled(what):
    """Seconds that some process had to wait for 'memory' or for 'io'."""
    try:
        some = Path('/proc/pressure', what).read_text().split('\n')[0]
        return int(some.partition('total=')[2]) / 1e6
    except OSError:  # Linux can be told to count none
        return 0.
