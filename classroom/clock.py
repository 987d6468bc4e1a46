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


class Clock:
    """Counts the own seconds of a process and of all that it has started.

    Its own seconds are those in which it ran, or waited for something else
    than the machine, such as for the end of `sleep`. Who starts many
    processes makes them wait for each other. So what one thread has computed
    counts in any case, and so does what all have computed, divided by the
    number of processors. Own time never runs faster than the clock on the
    wall.
    """

    def __init__(self, pid):
        self.seconds, self._pid, self._owed = 0., pid, 0.
        self._seen = _Noted(pid)

    def look(self):
        """Count until now: the own seconds so far."""
        before, now = self._seen, _Noted(self._pid)
        self._seen = now
        # Our own process may have had to wait, too: then nobody has looked.
        passed = min(now.at - before.at, 2 * LOOK)
        delayed = now.stalled - before.stalled + sum(
            _more(before.delays, now.delays))
        # What was noted a moment too late belongs to the next look.
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

    used: processor time of all, of those that have ended as well. ran,
    delays: from a thread to how long it ran, and how long it was ready and had
    to wait. stalled: how long memory and disks made wait.
    """

    def __init__(self, pid):
        self.used, self.ran, self.delays = 0., {}, {}
        self.stalled = sum(map(_stalled, ('memory', 'io')))
        for one in family(pid):
            place = Path('/proc', str(one))
            try:
                # Bytes, since a program gives itself any name that it likes.
                numbers = (place / 'stat').read_bytes().rpartition(b')')[2]
                self.used += sum(map(int, numbers.split()[11:15])) / TICK
                for thread in os.listdir(place / 'task'):
                    told = (place / 'task' / thread / 'schedstat').read_text()
                    self.ran[thread], self.delays[thread] = (
                        int(number) / 1e9 for number in told.split()[:2])
            except OSError:  # it has just ended, or nothing is noted here
                continue
        self.at = time.monotonic()


def family(pid):
    """The numbers of a process and of all that it and they have started."""
    found = [pid]
    for one in found:
        try:
            for thread in os.listdir(f'/proc/{one}/task'):
                found += map(int, Path(
                    f'/proc/{one}/task/{thread}/children').read_text().split())
        except OSError:
            continue
    return found


def _stalled(what):
    try:
        some = Path('/proc/pressure', what).read_text().split('\n')[0]
        return int(some.partition('total=')[2]) / 1e6
    except OSError:  # Linux can be told to note none
        return 0.
