"""A key-value store from scratch, and training through any store.

`store`: the workers' calls, and who waits. `server`: what holds and sums, also
with a bound on the delay; `place` cuts large values over the servers.
"""
from d2lps.kvstore.server import BoundedServer, Server, Shard, place
from d2lps.kvstore.store import KVStore, Stopped
from d2lps.kvstore.training import (prepare_store, store_step,
                                    train_batch_store)
