"""Workers for exercises: threads that take turns, and no network.

The main thread lets one worker run at a time, until it waits or ends. So each
run has the same order of events. If no worker can go on, the error says at
once who waits for whom. The calls of workers are in `numpygroup` and
`torchgroup`.
"""
import ctypes
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from d2lps.annotations import Array
from d2lps.exercises.checking import Wrong

# A worker may compute for so many seconds between two of its calls: of this
# program's time, and by the clock, in case other programs use the processor.
CPU_LIMIT = 8
WALL_LIMIT = 60
SAME = 'All workers must make the same calls, in the same order.'


class _Ended(BaseException):
    """Ends a worker because another one has failed, or Ctrl-C came."""


class Worker:
    """One worker: its rank, and how it meets others.

    num_workers: of the whole group. events: its calls, as lists such as
    ['all_reduce', 12] with the number of elements.
    """

    def __init__(self, group: 'Group', rank: int) -> None:
        self._group, self.rank = group, rank
        self.events: list[list] = []
        self.waits: Call | None = None
        self.turn = threading.Semaphore(0)
        self.error: BaseException | None = None
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
        """Let other workers run until all of them have made this call."""
        if not call.is_complete():
            self.waits = call
            self._group.back.release()
            self._group.take_turn(self)
            self.waits = None


class Group:
    """Workers, and the calls in which they meet.

    num_workers: how many, 1 or more. worker: their class.
    """
    worker = Worker

    def __init__(self, num_workers: int) -> None:
        self.workers = [self.worker(self, rank)
                        for rank in range(num_workers)]
        self.calls: list[Call] = []
        self.back = threading.Semaphore(0)  # a worker gives its turn back
        self._stopped = False

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
            last, n = -1, len(threads)
            while not all(worker.ended for worker in self.workers):
                order = [(last + k) % n for k in range(1, n + 1)]
                able = [k for k in order if self.workers[k].can_go_on()]
                if not able:
                    raise Wrong(
                        f'no worker can continue: {self._who_waits()}')
                last = able[0]
                self._let_run(self.workers[last])
            self._check_calls()
        finally:
            self._end([thread for thread in threads if thread.ident])
        return [worker.returned for worker in self.workers]

    def _start(self, function, worker):
        """The body of a worker's thread."""
        try:
            self.take_turn(worker)
            worker.returned = function(worker)
        except _Ended:
            pass
        except BaseException as error:
            worker.error = error
        finally:
            worker.ended = True
            self.back.release()

    def take_turn(self, worker: Worker) -> None:
        """Wait in a worker's thread until the main thread lets it run."""
        worker.turn.acquire()
        if self._stopped:
            raise _Ended

    def _let_run(self, worker):
        """Let a worker run until it waits or ends."""
        start, cpu_before = time.monotonic(), time.process_time()
        worker.turn.release()
        while not self.back.acquire(timeout=CPU_LIMIT / 8):
            waited = time.monotonic() - start
            if waited > WALL_LIMIT or (
                    time.process_time() - cpu_before > CPU_LIMIT):
                raise Wrong(f'rank {worker.rank} has called nothing for '
                            f'{waited:.2g} s, so it was stopped. Is there a '
                            'loop that does not end?')
        if worker.error is not None:
            raise worker.error

    def _end(self, threads):
        """End all threads that still run or wait."""
        self._stopped = True
        for worker in self.workers:
            worker.turn.release()
        for thread in threads:
            thread.join(1)
            if thread.is_alive():  # it is in a loop without calls
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident), ctypes.py_object(_Ended))
                thread.join(1)

    def _who_waits(self):
        parts = []
        for worker in self.workers:
            if worker.ended:
                parts.append(f'rank {worker.rank} has ended')
            else:
                call = worker.waits
                parts.append(f'rank {worker.rank} waits in {call.title} for '
                             f'{ranks_of(call.absent())}')
        return f'{"; ".join(parts)}. {SAME}'

    def _check_calls(self):
        """Raise `Wrong` if some worker has left out a call of the others."""
        for call in self.calls:
            if not call.is_complete():
                raise Wrong(f'{call.title} was made by {ranks_of(call.given)},'
                            f' and never by {ranks_of(call.absent())}. {SAME}')


class Call:
    """The k-th call of every worker. given: contributions, by rank."""

    def __init__(self, kind: str, k: int, num_workers: int) -> None:
        self.title = f'{kind} (call {k})'
        self._k, self._num_workers = k, num_workers
        self.given: dict[int, Array] = {}
        self._signatures: dict[int, list[str]] = {}  # what each rank calls

    def join(self, rank: int, kind: str, array: Array, size: int) -> None:
        mine = [f'{kind} with {size} elements', f' of {array.dtype}']
        for other, theirs in self._signatures.items():
            if mine != theirs:
                first, second = (start + dtype * (mine[0] == theirs[0])
                                 for start, dtype in (theirs, mine))
                raise Wrong(f'in call {self._k}, rank {other} calls {first}, '
                            f'and rank {rank} calls {second}. {SAME}')
        self.given[rank], self._signatures[rank] = array, mine

    def is_complete(self) -> bool:
        return len(self.given) == self._num_workers

    def absent(self) -> list[int]:
        return [rank for rank in range(self._num_workers)
                if rank not in self.given]

    def all(self) -> list[Array]:
        """The contributions, a list by rank."""
        return [self.given[rank] for rank in sorted(self.given)]


def ranks_of(ranks: Iterable[int]) -> str:
    names = [*map(str, ranks)]
    return f'rank{"s" * (len(names) > 1)} {", ".join(names)}'
