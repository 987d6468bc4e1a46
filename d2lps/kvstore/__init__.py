"""A key-value store from scratch, and training through any store.

`store`: the workers' calls, and which of them wait. `server`: stores and sums,
also with a bound on the delay. `placement`: large values are split over the
servers. `store_training`: a training step through a store.
"""
from d2lps.lazy_names import lazy

__getattr__, __dir__ = lazy(__name__, {
    '.placement': ('place',),
    '.server': ('BoundedServer', 'Server', 'Shard'),
    '.store': ('KVStore', 'Stopped'),
    '.store_training': ('prepare_store', 'store_step', 'train_batch_store')})
