"""A worker's store: there is one at a time."""
import ctypes
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from mxnet.kvstore import KVStoreBase

from d2lps.checks import checked, one_of
from d2lps.cluster.messages import Fault, Joins
from d2lps.cluster.store.client import Channel, StoreClient
from d2lps.cluster.store.diststore import KINDS, DistStore
from d2lps.engine import mx

_client: StoreClient | None = None  # in workers only
_store: DistStore | None = None  # a process can have one at a time


def attach(channel: Channel, faults: list[Fault]) -> None:
    """Make this process a worker; `processes.member` calls this."""
    global _client
    _client = StoreClient(channel, faults)


class DistStores(dict):
    """The table that `mx.kv.create` reads: {kind: function for a store}.

    All kinds with 'dist' in their name are ours, be they misspelt: MXNet
    would wait for others that never come, or does not say what is missing.
    But what MXNet's own launcher has started is not ours.
    """

    def __contains__(self, kind: Any) -> bool:
        ours = _client is not None or 'DMLC_ROLE' not in os.environ
        return 'dist' in kind and ours or super().__contains__(kind)

    def __missing__(self, kind: str) -> Callable[..., DistStore]:
        return partial(create_store, kind)


# `mx.kv.create` with 'dist_…' makes a checked store, or says why it cannot.
KVStoreBase.kv_registry = DistStores(KVStoreBase.kv_registry)


def native_store(kind: str) -> Any:
    """MXNet's own store, in a worker."""
    assert _client is not None
    os.umask(0o077)  # its socket is our own, whatever a cell has set
    # The scheduler waits for this: see `processes.mxnet_server.serve`.
    _client.send(Joins())
    handle = mx.base.KVStoreHandle()
    mx.base.check_call(mx.base._LIB.MXKVStoreCreate(
        mx.base.c_str(kind), ctypes.byref(handle)))
    return mx.kvstore.KVStore(handle)


@checked(kind=one_of(*KINDS))
def create_store(kind: str = 'dist_sync') -> DistStore:
    """Create this worker's `DistStore`; all workers have to do it.

    Args:
        kind: 'dist_sync' (a pull waits for all workers' pushes) or
            'dist_async' (the server updates with every push).

    A store that this worker has already is closed, so that a cell can be
    run again; the new one is empty.

    Raises:
        ValueError: for another kind.
        RuntimeError: in a process that is not a cluster's worker.
        StoreError: if the other workers do not create it, too.
    """
    global _store
    if _client is None:
        raise RuntimeError(
            f'a {kind!r} store works in the workers of a cluster only: write '
            '%%px above the cell, use Cluster.run, or run the script with '
            'd2lps cluster script.py')
    close_store(report=False)
    _store = DistStore(kind, native_store, _client)
    return _store


def close_store(report: bool = True) -> None:
    """Close this worker's store, if there is one; all workers must do it.

    With `report`, an update that failed at a server meanwhile is an error.
    """
    global _store
    if _store is not None:
        _store.close(report)
        _store = None
