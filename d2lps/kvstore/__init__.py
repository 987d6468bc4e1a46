"""A key-value store from scratch, and training through any store.

`store`: push, pull, and who waits. `server`: what a server does with a push,
also with a bound on the delay (`BoundedServer`); `place` cuts large values.
"""
from d2lps.kvstore.server import BoundedServer, Server, Shard, place
from d2lps.kvstore.store import KVStore, Stopped
from d2lps.kvstore.training import (prepare_store, store_step,
                                    train_batch_store)
