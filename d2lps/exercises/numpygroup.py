"""Workers with NumPy's arrays: threads, and no network."""
import numpy as np

from d2lps.exercises import worker_threads
from d2lps.exercises.checking import Missing, Wrong
from d2lps.missing import IN_A_TAB

if IN_A_TAB:
    raise Missing('The workers of this exercise are threads, which a browser '
                  'tab does not have: run the notebook on a computer, where '
                  '"make lab" opens it.')


class Worker(worker_threads.Worker):
    """A worker with collective calls for NumPy arrays."""

    def all_gather(self, shard: np.ndarray) -> np.ndarray:
        """The shards of all workers, joined by rank in a new array.

        shard: one-dimensional, of the same length in each worker.
        """
        shard = self._flat('all_gather', shard)
        self.note('all_gather', shard.size)
        return np.concatenate(self._gather('all_gather', shard))

    def reduce_scatter(self, array: np.ndarray) -> np.ndarray:
        """This worker's part of the sum over all workers, in a new array.

        array: one-dimensional; its length is a multiple of num_workers. Rank 0
        gets the first part of the sum, rank 1 the next.
        """
        array, n = self._flat('reduce_scatter', array), self.num_workers
        if array.size % n:
            raise Wrong(f'rank {self.rank} calls reduce_scatter with '
                        f'{array.size} numbers; a multiple of {n} is right.')
        self.note('reduce_scatter', array.size)
        total = sum(self._gather('reduce_scatter', array))
        return np.split(total, n)[self.rank].copy()

    def _gather(self, kind, array):
        """The arrays of all workers in this call, by rank."""
        call = self.meet(kind, array, array.size)
        self.wait(call)
        return call.all()

    def _flat(self, kind, array):
        """A copy of a one-dimensional array of floats; else raise `Wrong`."""
        if not isinstance(array, np.ndarray):
            raise Wrong(f'rank {self.rank} calls {kind} with a '
                        f'{type(array).__name__}; a NumPy array is right.')
        if array.ndim != 1 or array.dtype.kind != 'f':
            raise Wrong(f'rank {self.rank} calls {kind} with an array of '
                        f'shape {array.shape} and of {array.dtype}; a flat '
                        'array of floating-point numbers is right.')
        return array.copy()


class Group(worker_threads.Group):
    """Workers with NumPy's arrays: `Group(n).run(function)`."""
    worker = Worker
