"""A key-value store from scratch, and training through any store."""
from d2lps.kvstore.server import BoundedServer, Server, Shard, place
from d2lps.kvstore.store import KVStore, Stopped
from d2lps.kvstore.training import (prepare_store, store_step,
                                    train_batch_store)
