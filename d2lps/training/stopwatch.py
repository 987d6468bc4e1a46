"""How long something took, and whether the machine was free meanwhile."""
import os
import resource
import time

import psutil

from d2lps.engine import cores, npx


def _seconds_of_processors():
    """What this process used, with what it started, and what all used."""
    children, all_used = os.times(), psutil.cpu_times()
    return (time.process_time() + children.children_user
            + children.children_system,
            all_used.user + all_used.nice + all_used.system
            + getattr(all_used, 'steal', 0))


class Stopwatch:
    """Time what a `with` block does on all devices.

    MXNet hands work out and goes on, so the watch starts when all work from
    before is done, and stops when all from the block is.

    Attributes:
        seconds: how long it took.
        free_cores: processor cores that other programs left to us, on
            average; a rough figure for less than a tenth of a second.
        page_faults: how often the operating system had to hand out a page
            of memory.
    """

    def __enter__(self):
        npx.waitall()
        self._used = _seconds_of_processors()
        self._faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exception):
        npx.waitall()
        self.seconds = time.perf_counter() - self._start
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self.page_faults = faults - self._faults
        ours, all_used = (end - start for start, end in zip(
            self._used, _seconds_of_processors()))
        self.free_cores = psutil.cpu_count() - (all_used - ours) / self.seconds

    def two_cores_were_free(self):
        """Whether what was measured may be compared; says why if not."""
        if cores() > 1 and self.free_cores > 1.7:
            return True
        print('not checked:', 'other programs were running' if cores() > 1
              else 'there is only one core')
        return False
