"""Workers for the exercises with PyTorch: threads, and no network."""
from d2lps.exercises import turns
from d2lps.exercises.checking import Wrong, the_torch

torch = the_torch()
# Whoever makes the first optimizer imports PyTorch's compiler, for seconds.
# That is here, where a notebook begins, and no student's answer waits for it.
torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1)


class Worker(turns.Worker):
    """One worker, and what it can call; all else is in `turns`."""

    def __init__(self, group, rank):
        super().__init__(group, rank)
        self._sums = 0

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
        part = _all(call).sum(0).flatten().tensor_split(n)[self.rank]
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
        output.detach().copy_(_all(call).flatten().view_as(output))

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
        return self.meet(kind, tensor.detach().clone(), tensor.numel())


class Group(turns.Group):
    """Workers with tensors: `Group(n).run(function)`."""
    worker = Worker


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
        self._tensor.detach().copy_(_all(self._call).sum(0))
        self._done = True
        return True


def _all(call):
    """Shape (num_workers, ...), by rank."""
    return torch.stack(call.all())
