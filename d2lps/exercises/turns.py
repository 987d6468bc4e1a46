"""Workers for exercises: threads that take turns, and no network.

One runs at a time, until it waits or ends. So all happens in the same order
in each run, and if nobody can go on, it is known at once who waits for whom.
What workers can call is in `numpygroup` and `torchgroup`.
"""
import ctypes
import sys
import threading
import time

from d2lps.exercises.checking import Wrong

LIMIT = 8  # seconds that a worker may compute without a call
LONGEST = 60  # seconds that this may take, should others need the processors


class _Ended(BaseException):
    """Ends a worker because another one has failed."""


class Worker:
    """One worker: its rank, and how it meets others.

    num_workers: of the whole group. events: what it did, as lists, such as
    ['all_reduce', 12], the last being the number of elements.
    """

    def __init__(self, group, rank):
        self._group, self.rank = group, rank
        self.events, self.waits, self.ended = [], None, False
        self.returned, self._calls = None, 0

    @property
    def num_workers(self):
        return len(self._group.workers)

    def note(self, *event):
        self.events.append([*event])

    def can_go_on(self):
        return not self.ended and (self.waits is None or
                                   self.waits.is_complete())

    def meet(self, kind, array, size):
        """This worker's next call: the same for all.

        array: what it gives, a copy; size: of how many elements.
        """
        calls, k = self._group.calls, self._calls
        self._calls += 1
        if k == len(calls):
            calls.append(Call(kind, k + 1, self.num_workers))
        calls[k].join(self.rank, kind, array, size)
        return calls[k]

    def wait(self, call):
        if not call.is_complete():
            self._group.wait_for(self, call)


class Group:
    """Workers, and the calls in which they meet.

    num_workers: how many, 1 or more. worker: their class.
    """
    worker = Worker

    def __init__(self, num_workers):
        self.workers = [self.worker(self, rank)
                        for rank in range(num_workers)]
        self.calls, self._error = [], None
        self._changed = threading.Condition()
        self._turn, self._beats = 0, 0

    def run(self, function):
        """Let every worker run `function(worker)`: a list of what it returned.

        An error of one worker ends all, and is raised here. So is `Wrong`, if
        some worker waits for one that does not come.
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
        """What a thread does."""
        if 'mxnet' in sys.modules:  # it keeps this for each thread
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
        """Wait for all to end, or for one to fail, or to call nothing."""
        with self._changed:
            while self._error is None and not all(
                    worker.ended for worker in self.workers):
                self._watch_turn(threads[self._turn])
        if self._error is None:
            self._look_back()

    def _watch_turn(self, thread):
        """Wait for the next call; `thread` is whose turn it is."""
        seen, start = self._beats, time.monotonic()
        computed_before = _computed(thread)
        while not self._changed.wait_for(lambda: self._beats != seen,
                                         LIMIT / 8):
            waited = time.monotonic() - start
            if _computed(thread) - computed_before > LIMIT or (
                    waited > LONGEST):
                self._fail(Wrong(
                    f'rank {self._turn} has called nothing for {waited:.2g} '
                    's: is there a loop that does not end?'))

    def _end(self, threads):
        """Nobody goes on after this."""
        with self._changed:
            if not all(worker.ended for worker in self.workers):
                self._fail(_Ended())  # we were interrupted
        for thread in threads:
            thread.join(1)
            if thread.is_alive():  # it computes, and waits for nobody
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident), ctypes.py_object(_Ended))
                thread.join(1)

    def _fail(self, error):
        with self._changed:
            if self._error is None:
                self._error = error
            self._beats += 1
            self._changed.notify_all()

    def _take_turn(self, worker):
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or
                                   self._turn == worker.rank)
            if self._error is not None:
                raise _Ended

    def _pass_on(self, worker):
        """The next one that can go on does so; that may be the same."""
        n = len(self.workers)
        turns = [(worker.rank + k) % n for k in range(1, n + 1)]
        able = [rank for rank in turns if self.workers[rank].can_go_on()]
        if able:
            self._turn = able[0]
        elif not all(one.ended for one in self.workers):
            self._fail(Wrong(f'nobody can go on: {self._who_waits()}'))
        self._beats += 1
        self._changed.notify_all()

    def wait_for(self, worker, call):
        """Let others go on until all have made this call."""
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

    def _look_back(self):
        """Raise `Wrong` if a call was not made by all."""
        for call in self.calls:
            if not call.is_complete():
                raise Wrong(
                    f'{call.title} was made by {ranks_of(call.given)}, and '
                    f'never by {ranks_of(call.absent())}. All workers must '
                    'make the same calls, in the same order.')


class Call:
    """The k-th call of every worker; given: their arrays, by rank."""

    def __init__(self, kind, k, num_workers):
        self.kind, self.title = kind, f'{kind} (call {k})'
        self._k, self._num_workers, self.given = k, num_workers, {}
        self._size = None

    def join(self, rank, kind, array, size):
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

    def is_complete(self):
        return len(self.given) == self._num_workers

    def absent(self):
        return [rank for rank in range(self._num_workers)
                if rank not in self.given]

    def all(self):
        """What was given, a list by rank."""
        return [self.given[rank] for rank in sorted(self.given)]


def _computed(thread):
    """Seconds that a thread, which has not ended, has had a processor."""
    if hasattr(time, 'pthread_getcpuclockid'):
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
    return time.monotonic()


def ranks_of(ranks):
    ranks = [*map(str, ranks)]
    return f'rank{"s" * (len(ranks) > 1)} {", ".join(ranks)}'
