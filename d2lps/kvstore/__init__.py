"""A key-value store from scratch, and training through any store.

`store`: the workers' calls, and who waits. `server`: what holds and sums, also
with a bound on the delay. `places`: large values are cut over the servers.
"""
from d2lps.lazy import lazy

__getattr__, __dir__ = lazy(__name__, {
    '.placement': ('place',),
    '.server': ('BoundedServer', 'Server', 'Shard'),
    '.store': ('KVStore', 'Stopped'),
    '.store_training': ('prepare_store', 'store_step', 'train_batch_store')})
