"""Workers for the exercises with PyTorch: threads, and no network."""
from d2lps.annotations import Array
from d2lps.exercises import worker_threads
from d2lps.exercises.checking import Wrong, the_torch

torch = the_torch()
# The first optimizer imports PyTorch's compiler, which takes seconds. Make it
# here, at the start of a notebook, so that no student's answer waits for it.
torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1)


class Worker(worker_threads.Worker):
    """A worker with collective calls for tensors."""

    def __init__(self, group: worker_threads.Group, rank: int) -> None:
        super().__init__(group, rank)
        self._num_sums = 0

    def all_reduce(self, tensor: Array) -> 'Handle':
        """Sum a tensor over all workers, in place. Returns a handle at once.

        tensor: one-dimensional. Its numbers are nan until `wait()` of the
        handle returns, because nobody may use them before.
        """
        self._check_tensors('all_reduce', tensor=tensor)
        if tensor.dim() != 1:
            raise Wrong(f'rank {self.rank} calls all_reduce with a tensor of '
                        f'shape {tuple(tensor.shape)}; one dimension is '
                        'right.')
        self.note('all_reduce', tensor.numel())
        call = self._meet('all_reduce', tensor)
        tensor.detach().fill_(float('nan'))
        self._num_sums += 1
        return Handle(self, call, tensor, self._num_sums)

    def reduce_scatter(self, output: Array, input: Array) -> None:
        """Sum `input` over all workers; each gets its part in `output`.

        input: num_workers times as many elements as output. Returns when the
        part is there.
        """
        self._check_tensors('reduce_scatter', output=output, input=input)
        n = self.num_workers
        if input.numel() != n * output.numel():
            raise Wrong(f'{self._sizes("reduce_scatter", output, input)} '
                        f'input of {n * output.numel()} is right.')
        self.note('reduce_scatter', input.numel())
        call = self._meet('reduce_scatter', input)
        self.wait(call)
        part = _stack(call).sum(0).flatten().tensor_split(n)[self.rank]
        output.detach().copy_(part.view_as(output))

    def all_gather(self, output: Array, input: Array) -> None:
        """Write the `input` of all workers into `output`, by rank.

        output: num_workers times as many elements as input. Returns when all
        are there.
        """
        self._check_tensors('all_gather', output=output, input=input)
        n = self.num_workers
        if output.numel() != n * input.numel():
            raise Wrong(f'{self._sizes("all_gather", output, input)} '
                        f'output of {n * input.numel()} is right.')
        self.note('all_gather', input.numel())
        call = self._meet('all_gather', input)
        self.wait(call)
        output.detach().copy_(_stack(call).flatten().view_as(output))

    def _sizes(self, kind, output, input):
        return (f'rank {self.rank} calls {kind} with output of '
                f'{output.numel()} elements and input of {input.numel()};')

    def _check_tensors(self, kind, **tensors):
        """Raise `Wrong` for tensors that PyTorch would refuse, too."""
        for name, tensor in tensors.items():
            if not isinstance(tensor, torch.Tensor):
                raise Wrong(f'rank {self.rank} calls {kind} with a '
                            f'{type(tensor).__name__} as {name}; a tensor is '
                            'right.')
            if not tensor.is_floating_point() or not tensor.is_contiguous():
                fault = ('not contiguous' if tensor.is_floating_point()
                         else tensor.dtype)
                raise Wrong(f'rank {self.rank} calls {kind}, and {name} is '
                            f'{fault}; a contiguous tensor of floating-point '
                            'numbers is right.')
        kinds = {str(tensor.dtype) for tensor in tensors.values()}
        if len(kinds) > 1:
            raise Wrong(f'rank {self.rank} calls {kind} with tensors of '
                        f'{" and ".join(sorted(kinds))}; one dtype is right.')

    def _meet(self, kind, tensor):
        return self.meet(kind, tensor.detach().clone(), tensor.numel())


class Group(worker_threads.Group):
    """Workers with tensors: `Group(n).run(function)`."""
    worker = Worker


class Handle:
    """An all-reduce under way; `wait()` returns when it is done."""

    def __init__(self, worker: Worker, call: worker_threads.Call,
                 tensor: Array, number: int) -> None:
        self._worker, self._call, self._tensor = worker, call, tensor
        self._number, self._done = number, False

    def wait(self) -> bool:
        if self._done:
            return True
        self._worker.note('wait', self._number)
        self._worker.wait(self._call)
        if not self._tensor.isnan().all():
            raise Wrong(
                f'rank {self._worker.rank} writes into the tensor of its '
                f'all_reduce {self._number} before wait() has returned; '
                'after it is right.')
        self._tensor.detach().copy_(_stack(self._call).sum(0))
        self._done = True
        return True


def _stack(call):
    """The tensors of a call, by rank: shape (num_workers, ...)."""
    return torch.stack(call.all())
