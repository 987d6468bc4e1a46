"""Workers for exercises: threads that take turns, and no network.

One worker runs at a time, until it waits or ends. So each run has the same
order of events. If no worker can go on, the error says at once who waits for
whom. The calls of workers are in `numpygroup` and `torchgroup`.
"""
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from d2lps.annotations import Array
from d2lps.exercises.checking import Wrong

# A worker may compute for so many seconds between two of its calls: of the
# processor's time, and by the clock, in case other programs use the processor.
CPU_LIMIT = 8
WALL_LIMIT = 60


class _Ended(BaseException):
    """Ends a worker because another one has failed."""


class Worker:
    """One worker: its rank, and how it meets others.

    num_workers: of the whole group. events: its calls, as lists such as
    ['all_reduce', 12] with the number of elements.
    """

    def __init__(self, group: 'Group', rank: int) -> None:
        self._group, self.rank = group, rank
        self.events: list[list] = []
        self.waits: Call | None = None
        self.ended, self.returned, self._calls = False, None, 0

    @property
    def num_workers(self) -> int:
        return len(self._group.workers)

    def note(self, *event: Any) -> None:
        self.events.append([*event])

    def can_go_on(self) -> bool:
        return not self.ended and (self.waits is None or
                                   self.waits.is_complete())

    def meet(self, kind: str, array: Array, size: int) -> 'Call':
        """Join the next call of this worker, in which all workers meet.

        array: a copy of its contribution. size: the number of elements.
        """
        calls, k = self._group.calls, self._calls
        self._calls += 1
        if k == len(calls):
            calls.append(Call(kind, k + 1, self.num_workers))
        calls[k].join(self.rank, kind, array, size)
        return calls[k]

    def wait(self, call: 'Call') -> None:
        if not call.is_complete():
            self._group.wait_for(self, call)


class Group:
    """Workers, and the calls in which they meet.

    num_workers: how many, 1 or more. worker: their class.
    """
    worker = Worker

    def __init__(self, num_workers: int) -> None:
        self.workers = [self.worker(self, rank)
                        for rank in range(num_workers)]
        self.calls: list[Call] = []
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._turn, self._progress = 0, 0

    def run(self, function: Callable[[Any], Any]) -> list:
        """Run `function(worker)` in every worker; return a list of results.

        An error in one worker ends all workers and is raised here. `Wrong` is
        raised if a worker waits for another that never makes the same call.
        """
        threads = [threading.Thread(target=self._start, daemon=True,
                                    args=(function, worker))
                   for worker in self.workers]
        try:
            for thread in threads:
                thread.start()
            self._watch(threads)
        finally:
            self._end([thread for thread in threads if thread.ident])
        if self._error is not None:
            raise self._error
        return [worker.returned for worker in self.workers]

    def _start(self, function, worker):
        """The body of a worker's thread."""
        if 'mxnet' in sys.modules:  # each thread has this setting of its own
            sys.modules['mxnet'].npx.set_np()
        try:
            self._take_turn(worker)
            worker.returned = function(worker)
        except _Ended:
            pass
        except BaseException as error:
            self._fail(error)
        finally:
            with self._changed:
                worker.ended = True
                self._pass_on(worker)

    def _watch(self, threads):
        """Wait until all workers have ended or one has failed."""
        with self._changed:
            while self._error is None and not all(
                    worker.ended for worker in self.workers):
                self._watch_turn(threads[self._turn])
        if self._error is None:
            self._check_calls()

    def _watch_turn(self, thread):
        """Wait for the next call; fail if it does not come in time.

        thread: the thread of the worker whose turn it is.
        """
        seen, start = self._progress, time.monotonic()
        cpu_before = _cpu_seconds(thread)
        while not self._changed.wait_for(lambda: self._progress != seen,
                                         CPU_LIMIT / 8):
            waited = time.monotonic() - start
            if _cpu_seconds(thread) - cpu_before > CPU_LIMIT or (
                    waited > WALL_LIMIT):
                self._fail(Wrong(
                    f'rank {self._turn} has called nothing for {waited:.2g} '
                    's: is there a loop that does not end?'))

    def _end(self, threads):
        """End all threads."""
        with self._changed:
            if not all(worker.ended for worker in self.workers):
                self._fail(_Ended())  # Ctrl-C came
        for thread in threads:
            thread.join(1)
            if thread.is_alive():  # it is in a loop without calls
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident), ctypes.py_object(_Ended))
                thread.join(1)

    def _fail(self, error):
        with self._changed:
            if self._error is None:
                self._error = error
            self._progress += 1
            self._changed.notify_all()

    def _take_turn(self, worker):
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or
                                   self._turn == worker.rank)
            if self._error is not None:
                raise _Ended

    def _pass_on(self, worker):
        """Give the turn to the next worker that can go on."""
        n = len(self.workers)
        turns = [(worker.rank + k) % n for k in range(1, n + 1)]
        able = [rank for rank in turns if self.workers[rank].can_go_on()]
        if able:
            self._turn = able[0]
        elif not all(one.ended for one in self.workers):
            self._fail(Wrong(f'no worker can continue: {self._who_waits()}'))
        self._progress += 1
        self._changed.notify_all()

    def wait_for(self, worker: Worker, call: 'Call') -> None:
        """Let other workers run until all of them have made this call."""
        with self._changed:
            worker.waits = call
            self._pass_on(worker)
        self._take_turn(worker)
        worker.waits = None

    def _who_waits(self):
        words = []
        for one in self.workers:
            if one.waits is None or one.waits.is_complete():
                words.append(f'rank {one.rank} has ended')
            else:
                absent = ranks_of(one.waits.absent())
                words.append(f'rank {one.rank} waits in {one.waits.title} '
                             f'for {absent}')
        return (f'{"; ".join(words)}. All workers must make the same calls, '
                'in the same order.')

    def _check_calls(self):
        """Raise `Wrong` if some worker has left out a call of the others."""
        for call in self.calls:
            if not call.is_complete():
                raise Wrong(
                    f'{call.title} was made by {ranks_of(call.given)}, and '
                    f'never by {ranks_of(call.absent())}. All workers must '
                    'make the same calls, in the same order.')


class Call:
    """The k-th call of every worker. given: contributions, by rank."""

    def __init__(self, kind: str, k: int, num_workers: int) -> None:
        self.kind, self.title = kind, f'{kind} (call {k})'
        self._k, self._num_workers = k, num_workers
        self.given: dict[int, Array] = {}
        self._size: int | None = None

    def join(self, rank: int, kind: str, array: Array, size: int) -> None:
        for other, theirs in self.given.items():
            if (kind, size, array.dtype) != (self.kind, self._size,
                                             theirs.dtype):
                raise Wrong(
                    f'in call {self._k}, rank {other} calls {self.kind} '
                    f'with {self._size} elements of {theirs.dtype}, and '
                    f'rank {rank} calls {kind} with {size} of '
                    f'{array.dtype}. All workers must make the same calls, '
                    'in the same order.')
        self.given[rank], self._size = array, size

    def is_complete(self) -> bool:
        return len(self.given) == self._num_workers

    def absent(self) -> list[int]:
        return [rank for rank in range(self._num_workers)
                if rank not in self.given]

    def all(self) -> list[Array]:
        """The contributions, a list by rank."""
        return [self.given[rank] for rank in sorted(self.given)]


def _cpu_seconds(thread):
    """Seconds of processor time that a living thread has used."""
    if hasattr(time, 'pthread_getcpuclockid'):
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
    return time.monotonic()


def ranks_of(ranks: Iterable[int]) -> str:
    words = [*map(str, ranks)]
    return f'rank{"s" * (len(words) > 1)} {", ".join(words)}'
