"""Use of the processor's cores by other programs while a cell ran."""
import sys
import time
from importlib.util import find_spec
from typing import NamedTuple


class Usage(NamedTuple):
    """The time, and the seconds of processors used by us and by all."""
    now: float
    ours: float
    all: float


def usage() -> Usage:
    """The use until now, by our processes and by the whole machine.

    Our processes are this process and all processes that it started, such as
    the workers and servers of a cluster.
    """
    import psutil
    this = psutil.Process()
    ours = 0
    for process in (this, *this.children(recursive=True)):
        try:
            ours += sum(process.cpu_times()[:4])  # its ended children, too
        except psutil.Error:  # it has ended, and its parent counts it
            pass
    used = psutil.cpu_times()
    # Time that the host of a virtual machine took counts as used by others.
    return Usage(time.perf_counter(), ours, used.user + used.system +
                 getattr(used, 'nice', 0) + getattr(used, 'steal', 0))


class _Cells:
    """Notes the processor time when a notebook's cells begin and end."""

    def __init__(self) -> None:
        self.begun: Usage | None = None
        self.last: tuple[Usage, Usage] | None = None  # the last cell's ends

    def begin(self, _: object = None) -> None:
        self.begun = usage()

    def end(self, _: object = None) -> None:
        if self.begun:
            self.last = self.begun, usage()

    def used_by_others(self) -> float:
        """The number of cores that others used in this cell or the last one.

        The larger of the two.
        """
        spans = [self.last] if self.last else []
        if self.begun:
            spans.append((self.begun, usage()))
        shares = [((end.all - start.all) - (end.ours - start.ours))
                  / (end.now - start.now) for start, end in spans
                  if end.now - start.now > 0.05]  # the clocks are coarse
        return max(shares, default=0)


CELLS = _Cells()


def watch_cells() -> None:
    """In a notebook, look from now on when its cells begin and end."""
    shell = getattr(sys.modules.get('IPython'), 'get_ipython', lambda: None)()
    if shell is not None and find_spec('psutil'):
        shell.events.register('pre_run_cell', CELLS.begin)
        shell.events.register('post_run_cell', CELLS.end)
