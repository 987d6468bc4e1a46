"""Measure a time, on all devices."""
import resource
import time

from d2lps.engine import npx
from d2lps.units import SHORT_TIMES, with_unit


class Stopwatch:
    """Measure the time of a `with` block on all devices.

    MXNet starts operations and does not wait for them. So the watch starts
    when all earlier operations are done, and stops when all operations of the
    block are done.

    Attributes:
        seconds: how long it took.
        page_faults: how often the operating system had to hand out a page
            of memory.
    """

    seconds: float | None = None
    page_faults: int | None = None

    def __repr__(self) -> str:
        return ('Stopwatch(no time yet)' if self.seconds is None else
                f'Stopwatch({with_unit(self.seconds, SHORT_TIMES)})')

    def __enter__(self) -> 'Stopwatch':
        npx.waitall()
        self._faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        npx.waitall()
        self.seconds = time.perf_counter() - self._start
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self.page_faults = faults - self._faults
