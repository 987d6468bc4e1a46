"""A kernel's own time, on which the load of the machine has no influence.

Linux notes for each thread how long it was ready to run and had to wait for a
processor (`run_delay` in Documentation/scheduler/sched-stats.rst), and for the
machine how long some process had to wait for memory or for a disk
(Documentation/accounting/psi.rst). A kernel's own time leaves both out. Where
the system notes neither, own time is the time of the clock on the wall.
"""
import os
import time
from pathlib import Path

LOOK = 0.2  # seconds between two looks at the clock
CORES = os.cpu_count() or 1
TICK = os.sysconf('SC_CLK_TCK')  # of these a second has so many
BUSY = 0, 1, 2, 5, 6, 7  # in /proc/stat: all but idle, and waiting for disks
NICE, POLICY = 16, 38  # in a thread's stat, from its state on
OURS = os.nice(0), os.sched_getscheduler(0) if hasattr(
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

    def __init__(self, pid):
        self.seconds, self._pid = 0., pid
        self._seen = _Noted(pid)
        # Seconds that others have used, and for which no thread has waited
        # yet; seconds of waiting that are longer than the looks they came in.
        self._others, self._owed = 0., 0.

    def look(self):
        """Count until now: the own seconds so far."""
        before, now = self._seen, _Noted(self._pid)
        self._seen = now
        # A longer time means that the grading itself had to wait for a
        # processor, as the kernel had, too.
        passed = min(now.at - before.at, 2 * LOOK)
        # Linux may note a wait one look later than what ran meanwhile.
        self._others = min(self._others, passed) + max(
            0, now.busy - before.busy - now.used + before.used)
        waited = min(self._others, sum(_more(before.delays, now.delays)))
        self._others -= waited
        delayed = now.stalled - before.stalled + waited
        # A wait that is noted too late is taken from the next look.
        free = passed - delayed - self._owed
        self._owed = min(max(0, -free), passed)
        self.seconds += min(passed, max(
            0, free, (now.used - before.used) / CORES,
            *_more(before.ran, now.ran)))
        return self.seconds


def _more(before, now):
    """By how much the seconds of each thread have grown."""
    return [max(0, seconds - before.get(thread, 0))
            for thread, seconds in now.items()]


class _Noted:
    """What the system has noted until now, in seconds.

    used: processor time of all processes, also of those that have ended.
    busy: processor time of the whole machine. ran, delays: dictionaries, from
    a thread to how long it ran, and how long it was ready and had to wait.
    stalled: how long some process had to wait for memory or for a disk.
    """

    def __init__(self, pid):
        self.used, self.ran, self.delays = 0., {}, {}
        self.stalled = sum(map(_stalled, ('memory', 'io')))
        self.busy = _busy()
        for one in family(pid):
            place = Path('/proc', str(one))
            try:
                self.used += sum(map(int, _stat(place)[11:15])) / TICK
                for thread in os.listdir(place / 'task'):
                    told = (place / 'task' / thread / 'schedstat').read_text()
                    ran, delay = (int(one) / 1e9 for one in told.split()[:2])
                    self.ran[thread] = ran
                    numbers = _stat(place / 'task' / thread)
                    if int(numbers[NICE]) <= OURS[0] and (
                            int(numbers[POLICY]) == OURS[1]):
                        self.delays[thread] = delay
            except OSError:  # it has just ended, or nothing is noted here
                continue
        self.at = time.monotonic()


def family(pid):
    """The ids of a process and of all that it and they have started.

    (psutil would look at every process of the machine, five times a second.)
    """
    found = [pid]
    for one in found:
        try:
            for thread in os.listdir(f'/proc/{one}/task'):
                found += map(int, Path(
                    f'/proc/{one}/task/{thread}/children').read_text().split())
        except OSError:
            continue
    return found


def _stat(place):
    """What the system tells of a process or thread, from its state on."""
    # Bytes, since a program gives itself any name that it likes.
    return (place / 'stat').read_bytes().rpartition(b')')[2].split()


def _busy():
    """Seconds that all processors were at work, or, if unknown, could be."""
    try:
        numbers = Path('/proc/stat').read_text().split('\n')[0].split()[1:]
        return sum(int(numbers[k]) for k in BUSY) / TICK
    except (OSError, IndexError):
        return time.monotonic() * CORES


def _stalled(what):
    try:
        some = Path('/proc/pressure', what).read_text().split('\n')[0]
        return int(some.partition('total=')[2]) / 1e6
    except OSError:  # Linux can be told to note none
        return 0.
