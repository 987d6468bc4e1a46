"""Workers with NumPy's arrays: threads, and no network."""
import numpy as np

from d2lps.exercises import turns
from d2lps.exercises.checking import Wrong


class Worker(turns.Worker):
    """One worker, and what it can call; all else is in `turns`."""

    def all_gather(self, shard):
        """The shards of all workers, one after the other: a new array.

        shard: of one dimension, and as many numbers in each worker.
        """
        shard = self._flat('all_gather', shard)
        self.note('all_gather', shard.size)
        return np.concatenate(self._all('all_gather', shard))

    def reduce_scatter(self, array):
        """The part of this worker of the sum over all workers: a new array.

        array: of one dimension, with a multiple of num_workers numbers. The
        first part of the sum is for rank 0, the next one for rank 1.
        """
        array, n = self._flat('reduce_scatter', array), self.num_workers
        if array.size % n:
            raise Wrong(
                f'rank {self.rank} calls reduce_scatter with {array.size} '
                f'numbers, which make no {n} equal parts. What fills up the '
                'last one?')
        self.note('reduce_scatter', array.size)
        total = sum(self._all('reduce_scatter', array))
        return np.split(total, n)[self.rank].copy()

    def _all(self, kind, array):
        """What all workers give in this call, by rank."""
        call = self.meet(kind, array, array.size)
        self.wait(call)
        return call.all()

    def _flat(self, kind, array):
        """A copy; raises `Wrong` for what is no flat array of numbers."""
        if not isinstance(array, np.ndarray):
            raise Wrong(f'rank {self.rank} calls {kind} with a '
                        f'{type(array).__name__}. A NumPy array is wanted.')
        if array.ndim != 1 or array.dtype.kind != 'f':
            raise Wrong(f'rank {self.rank} calls {kind} with an array of '
                        f'shape {array.shape} and of {array.dtype}. One '
                        'dimension and floating-point numbers are wanted.')
        return array.copy()


class Group(turns.Group):
    """Workers with NumPy's arrays: `Group(n).run(function)`."""
    worker = Worker
