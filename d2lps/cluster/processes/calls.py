"""The reader's end of the calls that workers make."""
import queue
import sys
import weakref
from collections.abc import Callable, Iterable
from threading import TIMEOUT_MAX
from typing import Any, Protocol, TypeAlias

from d2lps.cluster import messages
from d2lps.cluster.processes import cells

# Whom a worker waited for, in which round, and whether that one had closed
# its connection.
Wait: TypeAlias = tuple[int, int, bool]
FromCall: TypeAlias = messages.Printed | messages.ResultPart | messages.Done
REPORT_PATIENCE = 2.0  # seconds until the reader hears who waits in vain


class HasRun(Protocol):
    """A `Cluster`, or what stands for one."""

    def run(self, function: Callable[..., Any], /, *args: Any,
            **kwargs: Any) -> list[Any] | None:
        """Call a function on every worker."""


class ClusterError(RuntimeError):
    """A process of the cluster died or hung, and the rest was ended."""


class WorkerError(RuntimeError):
    """A cell or a function failed on some workers.

    Attributes:
        errors: {rank: the worker's error in words}; these are its text.
        first: the worker that was late or failed first, by the reports of
            the workers that waited in a plan; None if none waited.
        reports: its three arguments, of which a record makes it again.
    """

    def __init__(self, errors: dict[int, str], tracebacks: Iterable[str] = (),
                 waits: dict[int, Wait] | None = None) -> None:
        self.errors, self.first = errors, first_of(waits)
        self.reports = errors, [*tracebacks], waits or {}
        lines = [f'worker {rank}: {text}' for rank, text in errors.items()]
        if self.first is not None:
            lines.append('The chain of waiting workers leads to worker '
                         f'{self.first}.')
        super().__init__('\n'.join(lines))
        for rank, text in zip(errors, self.reports[1]):
            self.add_note(f'On worker {rank}:\n{text.rstrip()}')

    def _render_traceback_(self):
        """The lines that a notebook shows, without those of `%%px` itself."""
        return [*self.__notes__, '', f'WorkerError: {self}']


def first_of(waits: dict[int, Wait] | None) -> int | None:
    """Find the rank of the worker that was late first.

    waits: {rank: (the rank that it waited for, in which round, and whether
    that one closed its connection)}.
    A worker sends all messages of a round as the round begins. So a worker
    that is late in a round has not reached it: it waits in an earlier round,
    or it is the first, also if it found a closed connection when it came at
    last. A worker that closed its connection knows why.
    """
    if not waits:
        return None
    rank = min(waits, key=lambda rank: waits[rank][1:])
    for _ in waits:  # back in time; if not, what they say contradicts
        other, round, closed = waits[rank]
        if other not in waits or not closed and (
                waits[other][2] or waits[other][1] >= round):
            break
        rank = other
    return other


def show(text: str, stream: str = 'stdout', end: str = '\n') -> None:
    """Print for the reader, at once."""
    print(text, end=end, file=getattr(sys, stream), flush=True)


class Call:
    """A function that all workers are asked to call."""

    def __init__(self, number: int, num_workers: int) -> None:
        self.number = number
        self._parts: list[list[str]] = [[] for _ in range(num_workers)]
        self._heard: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def hear(self, rank: int | None = None,
             message: FromCall | None = None) -> None:
        """A worker has said something; without a message, all have ended."""
        self._heard.put((rank, message))

    def results(self, seconds: float = TIMEOUT_MAX) -> list[str] | None:
        """Show what workers print, and return what they return, packed.

        Returns None if they have ended instead.

        Raises:
            WorkerError: if some workers failed.
            queue.Empty: if nothing is heard for so many seconds.
        """
        missing = set(range(len(self._parts)))
        failed: dict[int, messages.Done] = {}
        unsaid: dict[int, str] = {}  # errors that were not shown yet
        while missing:
            try:
                rank, message = self._heard.get(timeout=(
                    min(REPORT_PATIENCE, seconds) if unsaid else seconds))
            except queue.Empty:
                if not unsaid:
                    raise
                show('\n'.join(unsaid.values()), 'stderr')
                unsaid = {}  # the others may take long
                continue
            if message is None:
                return None
            match message:
                case messages.Printed():
                    # A notebook takes a millisecond for each print.
                    show('\n'.join(f'[worker {rank}] {line}'
                                   for line in message.lines), message.stream)
                case messages.ResultPart():
                    self._parts[rank].append(message.text)
                case messages.Done():
                    missing.discard(rank)
                    if message.error:
                        failed[rank] = message
                    if message.wait:
                        unsaid[rank] = f'[worker {rank}] {message.error}'
        if failed:
            raise WorkerError(
                {rank: failed[rank].error for rank in sorted(failed)},
                [failed[rank].traceback for rank in sorted(failed)],
                {rank: done.wait for rank, done in failed.items()
                 if done.wait})
        return [''.join(parts) for parts in self._parts]


class View:
    """The variables of the workers' cells: `view['x']` is a list of them."""

    def __init__(self, cluster: HasRun) -> None:
        self._cluster = weakref.ref(cluster)

    def __repr__(self) -> str:
        return f'View({self._cluster() or "of a cluster that is closed"})'

    def __getitem__(self, name: str) -> list[Any] | None:
        return _open(self._cluster).run(cells.get, name)


def _open(reference):
    """The cluster that a weak reference leads to."""
    cluster = reference()
    if cluster is None:
        raise ClusterError('this cluster is closed; start a new one')
    return cluster


def register_magic(cluster: HasRun) -> None:
    """In a notebook, let `%%px` run a cell on the workers of this cluster."""
    shell = ('IPython' in sys.modules
             and sys.modules['IPython'].get_ipython())
    if not shell:
        return
    reference = weakref.ref(cluster)  # the magic must not keep it alive

    def px(line, cell=None):
        """Run a cell on all workers; with --local, then here as well."""
        here = cell is not None and line.strip() == '--local'
        if cell is not None and line.strip() and not here:
            raise ValueError('after %%px, there may be --local or nothing; '
                             f'it was {line!r}')
        _open(reference).run(cells.execute, line if cell is None else cell)
        if here:
            shell.run_cell(cell).raise_error()
    shell.register_magic_function(px, 'line_cell', 'px')
