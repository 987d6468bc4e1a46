"""Workers for the exercises with PyTorch: threads, and no network.

One runs at a time, until it waits or ends. So all happens in the same order
in each run, and if nobody can go on, it is known at once who waits for whom.
"""
import ctypes
import threading

from d2lps_exercises.checking import Wrong, the_torch

torch = the_torch()
LIMIT = 8  # seconds that a worker may compute without a call


class _Ended(BaseException):
    """Ends a worker because another one has failed."""


class Group:
    """Workers, and the calls in which they meet.

    num_workers: how many, 1 or more.
    """

    def __init__(self, num_workers):
        self.workers = [Worker(self, rank) for rank in range(num_workers)]
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
            self._watch()
        finally:
            self._end([thread for thread in threads if thread.ident])
        if self._error is not None:
            raise self._error
        return [worker.returned for worker in self.workers]

    def _start(self, function, worker):
        """What a thread does."""
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

    def _watch(self):
        """Wait for all to end, or for one to fail, or to call nothing."""
        with self._changed:
            while self._error is None and not all(
                    worker.ended for worker in self.workers):
                if not self._changed.wait_for(
                        lambda seen=self._beats: self._beats != seen, LIMIT):
                    self._fail(Wrong(
                        f'rank {self._turn} computed for {LIMIT} s and called '
                        'nothing: is there a loop that does not end?'))
        if self._error is None:
            self._look_back()

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
                absent = _ranks(one.waits.absent())
                words.append(f'rank {one.rank} waits in {one.waits.title} '
                             f'for {absent}')
        return (f'{"; ".join(words)}. All workers must make the same calls, '
                'in the same order.')

    def _look_back(self):
        """Raise `Wrong` if a call was not made by all."""
        for call in self.calls:
            if not call.is_complete():
                raise Wrong(
                    f'{call.title} was made by {_ranks(call.given)}, and '
                    f'never by {_ranks(call.absent())}. All workers must make '
                    'the same calls, in the same order.')


class Worker:
    """One worker: its rank, and what it can call.

    num_workers: of the whole group. events: what it did, as lists, such as
    ['all_reduce', 12], the last being the number of elements.
    """

    def __init__(self, group, rank):
        self._group, self.rank = group, rank
        self.events, self.waits, self.ended = [], None, False
        self.returned, self._calls, self._sums = None, 0, 0

    @property
    def num_workers(self):
        return len(self._group.workers)

    def note(self, *event):
        self.events.append([*event])

    def can_go_on(self):
        return not self.ended and (self.waits is None or
                                   self.waits.is_complete())

    def all_reduce(self, tensor):
        """Sum a flat tensor over all workers, in place. Returns at once.

        tensor: of one dimension. Until `wait()` of the handle that is
        returned, its numbers are nan, as nobody may use them.
        """
        self._look_at('all_reduce', tensor=tensor)
        if tensor.dim() != 1:
            raise Wrong(f'rank {self.rank} calls all_reduce with a tensor of '
                        f'shape {tuple(tensor.shape)}. A flat one is wanted, '
                        'of one dimension.')
        self.note('all_reduce', tensor.numel())
        call = self._meet('all_reduce', tensor)
        tensor.detach().fill_(float('nan'))
        self._sums += 1
        return Handle(self, call, tensor, self._sums)

    def reduce_scatter(self, output, input):
        """Sum `input` over all workers; a part of the sum for each.

        input: num_workers times as many elements as output, which gets the
        part of this rank. Returns when that is there.
        """
        self._look_at('reduce_scatter', output=output, input=input)
        n = self.num_workers
        if input.numel() != n * output.numel():
            raise Wrong(f'{self._sizes("reduce_scatter", output, input)} '
                        f'input must have {n} times as many as output.')
        self.note('reduce_scatter', input.numel())
        call = self._meet('reduce_scatter', input)
        self.wait(call)
        part = call.total().flatten().tensor_split(n)[self.rank]
        output.detach().copy_(part.view_as(output))

    def all_gather(self, output, input):
        """The `input` of all workers, one after the other, into `output`.

        output: num_workers times as many elements as input, rank 0's first.
        Returns when they are there.
        """
        self._look_at('all_gather', output=output, input=input)
        n = self.num_workers
        if output.numel() != n * input.numel():
            raise Wrong(f'{self._sizes("all_gather", output, input)} '
                        f'output must have {n} times as many as input.')
        self.note('all_gather', input.numel())
        call = self._meet('all_gather', input)
        self.wait(call)
        output.detach().copy_(call.all().flatten().view_as(output))

    def wait(self, call):
        if not call.is_complete():
            self._group.wait_for(self, call)

    def _sizes(self, kind, output, input):
        return (f'rank {self.rank} calls {kind} with {output.numel()} '
                f'elements of output and {input.numel()} of input:')

    def _look_at(self, kind, **tensors):
        """Raise `Wrong` for what PyTorch would refuse, too."""
        for name, one in tensors.items():
            if not isinstance(one, torch.Tensor):
                raise Wrong(f'rank {self.rank} calls {kind} with a '
                            f'{type(one).__name__} as {name}. A tensor is '
                            'wanted.')
            if not one.is_floating_point() or not one.is_contiguous():
                raise Wrong(f'rank {self.rank} calls {kind}: {name} must be '
                            'contiguous, and of floating-point numbers.')
        kinds = {str(one.dtype) for one in tensors.values()}
        if len(kinds) > 1:
            raise Wrong(f'rank {self.rank} calls {kind} with tensors of '
                        f'{" and ".join(sorted(kinds))}. They must be of one '
                        'dtype.')

    def _meet(self, kind, tensor):
        """This worker's next call: the same for all."""
        calls, k = self._group.calls, self._calls
        self._calls += 1
        if k == len(calls):
            calls.append(_Call(kind, k + 1, len(self._group.workers)))
        calls[k].join(self.rank, kind, tensor.detach().clone())
        return calls[k]


class Handle:
    """An all-reduce that is under way; `wait()` ends when it is done."""

    def __init__(self, worker, call, tensor, number):
        self._worker, self._call, self._tensor = worker, call, tensor
        self._number, self._done = number, False

    def wait(self):
        if self._done:
            return True
        self._worker.note('wait', self._number)
        self._worker.wait(self._call)
        if not self._tensor.isnan().all():
            raise Wrong(
                f'rank {self._worker.rank} wrote into the tensor of its '
                f'all_reduce {self._number} while that was under way. Nobody '
                'may read or write it before wait() has returned.')
        self._tensor.detach().copy_(self._call.total())
        self._done = True
        return True


class _Call:
    """The k-th call of every worker; given: their tensors, by rank."""

    def __init__(self, kind, k, num_workers):
        self.kind, self.title = kind, f'{kind} (call {k})'
        self._k, self._num_workers, self.given = k, num_workers, {}

    def join(self, rank, kind, tensor):
        for other, theirs in self.given.items():
            if (kind, theirs.numel(), theirs.dtype) != (
                    self.kind, tensor.numel(), tensor.dtype):
                raise Wrong(
                    f'in call {self._k}, rank {other} calls {self.kind} '
                    f'with {theirs.numel()} elements of {theirs.dtype}, and '
                    f'rank {rank} calls {kind} with {tensor.numel()} of '
                    f'{tensor.dtype}. All workers must make the same calls, '
                    'in the same order.')
        self.given[rank] = tensor

    def is_complete(self):
        return len(self.given) == self._num_workers

    def absent(self):
        return [rank for rank in range(self._num_workers)
                if rank not in self.given]

    def all(self):
        """Shape (num_workers, ...), by rank."""
        return torch.stack([self.given[rank] for rank in sorted(self.given)])

    def total(self):
        return self.all().sum(0)


def _ranks(ranks):
    ranks = [*map(str, ranks)]
    return f'rank{"s" * (len(ranks) > 1)} {", ".join(ranks)}'
