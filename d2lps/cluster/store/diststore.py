"""A worker's end of MXNet's distributed store, made safe.

MXNet answers many a wrong call with a dead server, a wait without end or a
wrong sum.  So each call is checked here before anything is sent, and what
only the other workers can know is asked of the cluster first.
"""
import os
from collections.abc import Callable
from typing import Any, NoReturn

from mxnet.kvstore import KVStoreBase

from d2lps.annotations import Array, Key
from d2lps.checks import checked, function, instance_of, integer
from d2lps.cluster.messages import Freed, Question
from d2lps.cluster.store.arguments import (by_mxnet, compression, groups,
                                           names, packed)
from d2lps.cluster.store.client import (StoreClient, StoreError, defer_sigint,
                                        single_threaded)
from d2lps.engine import mx
from d2lps.kvstore.store_arguments import Keys, Values
from d2lps.units import several

KINDS = 'dist_sync', 'dist_async'
SET_UPDATE = 0  # the number of the command "run this for each push"


class DistStore(KVStoreBase):
    """MXNet's distributed store, with every call checked; see `worker`.

    Keys are whole numbers or strings, but only one of these; arrays are
    float32.  One value, or a list of values from several devices, belongs to
    one key; a list of keys takes a list of these.  `value` is never changed
    (MXNet's own store overwrites it in the next pull).

    All methods raise:
        ValueError: for a bad argument. Nothing was sent.
        StoreError: if other workers do not do their part in the cluster's
            `timeout`, or cannot any more; or if a server failed in an
            update. The store stays usable.
        RuntimeError: in a second thread, or a forked process.
    """

    # Attributes here, properties in the base class; `__init__` sets them.
    type: str = ''
    rank: int = 0
    num_workers: int = 0

    def __init__(self, kind: str, create: Callable[[str], Any],
                 client: StoreClient) -> None:
        self.type = kind
        self._client = client
        self._buffers: dict[Key, Array] = {}
        self._shapes: dict[Key, tuple[int, ...]] = {}
        # How many values a key had in its first push of several.
        self._max_values: dict[Key, int] = {}
        self._pushed: set[Key] = set()  # keys that were not pulled since
        # Arrays that were pulled and not waited for.
        self._pending_pulls: dict[Key, list[Array]] = {}
        self._updates = False  # do the servers have an update?
        self._fails_at_once = False  # or never, that update
        self._verified_keys: set[Key] = set()  # with these it did not fail
        answer = client.meet(f'create({kind!r})', create=True, faults=False)
        client.faults.clear()  # they were in a store that is gone
        os.environ.update(answer.env)
        self._kv = client.inside(create, kind)
        self.rank, self.num_workers = self._kv.rank, self._kv.num_workers

    def __repr__(self) -> str:
        return (f'DistStore({self.type!r}: rank {self.rank} of '
                f'{several(self.num_workers, "worker")}, '
                f'{several(len(self._buffers), "key")})')

    def __reduce__(self) -> NoReturn:
        raise TypeError('a store cannot leave its worker; send arrays')

    def _groups(self, name, keys, values, new=False, priority=0):
        if self._kv is None:
            raise ValueError('this store is closed; create a new one')
        integer('priority', priority, -2 ** 31, 2 ** 31 - 1)
        return groups(name, keys, values, self._shapes, new)

    @single_threaded
    def init(self, key: Keys, value: Values) -> None:
        """Give keys their first values; rank 0's count.

        All workers have to do it, with the same keys in the same order and
        the same shapes.
        """
        given = self._groups('value', key, value, new=True)
        shapes = [(key, arrays[0].shape) for key, arrays in given.items()]
        text = ', '.join(f'{key!r}, shape {shape}' for key, shape in shapes)
        self._client.meet(f'init({text})', same=shapes)
        # What MXNet sends, it overwrites in the next pull: send a copy.
        first = {key: value.as_nd_ndarray().copy()
                 for key, [value] in given.items()}
        self._client.inside(self._kv.init, list(first), list(first.values()))
        self._buffers.update(first)
        self._shapes.update(shapes)

    @single_threaded
    def push(self, key: Keys, value: Values, priority: int = 0) -> None:
        """Send values to the servers, which sum over workers and devices.

        It waits only if a key's last push is not complete: with 'dist_sync'
        no worker can be ahead of another by more than a push.
        """
        given = self._groups('value', key, value, priority=priority)
        keys = [*given]
        call = f'push({names(keys)})'
        again = self._pushed.intersection(keys)
        if self.type == 'dist_async':
            if not self._updates:
                raise ValueError("a push to a 'dist_async' store is an "
                                 'update: call set_optimizer first, for '
                                 'example with mx.optimizer.SGD()')
            self._client.check_faults()
            self._client.tell(call=call)
        elif again:
            self._client.ask(Question(call, push=keys))
        else:
            self._client.check_faults()
        with defer_sigint():  # what the cluster has counted must be sent
            if self.type == 'dist_sync' and not again:
                self._client.tell(call=call, push=keys)
            self._pushed.update(keys)
            self._send(given, priority)

    def _send(self, given, priority=0):
        values = []
        for key, arrays in given.items():
            arrays = [array.as_nd_ndarray() for array in arrays]
            if len(arrays) == 1:
                arrays = [arrays[0].copyto(self._buffers[key])]
            else:  # MXNet crashes if there are more than the first time
                most = self._max_values.setdefault(key, len(arrays))
                for extra in arrays[most:]:
                    arrays[0] = arrays[0] + extra.copyto(arrays[0].ctx)
                arrays = arrays[:most]
            values.append(arrays)
        self._kv.push([*given], values, priority)

    @single_threaded
    def pull(self, key: Keys, out: Values, priority: int = 0,
             wait: bool = True, ignore_sparse: bool = True) -> None:
        """Fetch the keys' values into the arrays `out`.

        With 'dist_sync', a worker that has pushed a key waits for all
        others to push it, too; one that has not gets the value of before.

        `wait=False` returns once MXNet has the request. The key's next pull
        waits for it; until then, only ended or silent processes are noticed.
        """
        given = self._groups('out', key, out, priority=priority)
        keys = [*given]
        call, pushed = f'pull({names(keys)})', self._pushed.intersection(keys)
        if self.type == 'dist_sync' and pushed:
            self._client.ask(Question(call, pull=keys))
            self._pushed.difference_update(keys)
        else:
            self._client.check_faults()
            self._client.tell(call=call, inside=True)
        outs = [[array.as_nd_ndarray() for array in arrays]
                for arrays in given.values()]
        for name in keys:
            for array in self._pending_pulls.pop(name, []):
                array.wait_to_read()  # not later: `out` may be the same array
        self._kv.pull(keys, outs, priority)
        for array in sum(outs if wait else [], []):
            array.wait_to_read()
        if not wait:
            self._pending_pulls.update(zip(keys, outs))
        elif self._updates and not self._verified_keys.issuperset(keys):
            # By now servers have reported faults.
            self._client.ask(Question(call))
            if self._fails_at_once:
                self._verified_keys.update(pushed)
            return
        self._client.tell()

    @single_threaded
    def pushpull(self, key: Keys, value: Values, out: Values | None = None,
                 priority: int = 0, wait: bool = True) -> None:
        """Push `value`, then pull into `out` (by default into `value`)."""
        if out is None:
            self._groups('value', key, value)
        else:
            self._groups('out', key, out)
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority, wait)

    @single_threaded
    def broadcast(self, key: Keys, value: Values, out: Values,
                  priority: int = 0) -> None:
        """Initialise keys with rank 0's values and pull them into `out`."""
        self.init(key, value)
        self.pull(key, out, priority)

    @checked(optimizer=instance_of(mx.optimizer.Optimizer, (
        'one of mx.optimizer, such as mx.optimizer.SGD()')))
    def set_optimizer(self, optimizer: Any) -> None:
        """Let the servers update values with an optimizer of MXNet's.

        All workers have to do it. Doing it again starts anew: momentum is
        forgotten. A change of the optimizer in the worker does not reach
        the servers.
        """
        self._set_update(
            f'set_optimizer({type(optimizer).__name__})', optimizer)

    @checked(updater=function)
    def set_updater(self,
                    updater: Callable[[Key, Array, Array], None]) -> None:
        """Let the servers call `updater(key, gradient, value)` for a push.

        It changes the array `value` in place; string keys arrive as their
        number in the order of `init`. All workers have to do it.
        """
        name = getattr(updater, '__name__', type(updater))
        self._set_update(f'set_updater({name})', updater)

    @single_threaded
    def _set_update(self, call, update):
        body = packed(call, update)
        self._client.meet(call, update=body if self.rank == 0 else '')
        if self.rank == 0:
            self._client.inside(self._kv._send_command_to_servers,
                                SET_UPDATE, body)
        self._client.meet(f'{call}, which is being sent')
        self._updates = True
        self._verified_keys.clear()
        self._fails_at_once = by_mxnet(update)

    @checked(params=compression)
    @single_threaded
    def set_gradient_compression(self, params: dict[str, Any]) -> None:
        """Push two bits a number: {'type': '2bit', 'threshold': 0.5}.

        Values become -threshold, 0 or threshold; what is left over is added
        to the next push. All workers have to do it, before `init`.
        """
        if self._buffers:
            raise ValueError('compression must be set before init; there is '
                             f'key {names([*self._buffers])} already')
        self._client.meet('set_gradient_compression', same=params)
        self._client.inside(self._kv.set_gradient_compression, params)
        self._client.meet('set_gradient_compression, which is being sent')

    @single_threaded
    def barrier(self) -> None:
        """Wait until all workers are here."""
        self._client.meet('barrier()')

    def is_capable(self, capability: str) -> bool:
        """Whether servers can run an optimizer: yes.

        Gluon's Trainer and `mxnet.model` ask that.
        """
        return capability.lower() == KVStoreBase.OPTIMIZER

    def save_optimizer_states(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise StoreError: it is on the servers, and must stay there."""
        raise StoreError('the servers keep the state; MXNet cannot fetch it')

    load_optimizer_states = save_optimizer_states

    @single_threaded
    def close(self, report: bool = True) -> None:
        """Free the store, on all workers; the servers then end.

        With `report`, an update that failed meanwhile is an error then.
        """
        if self._kv is not None:
            answer = self._client.meet('close()', close=True, faults=False)
            # A push that waits for others would never let the store go.
            for key, times in answer.missing:
                for _ in range(times):
                    self._send({key: [mx.nd.zeros_like(
                        self._buffers[key])]})
            self._client.inside(self._kv._barrier)
            self._client.inside(mx.base._LIB.MXKVStoreFree, self._kv.handle)
            self._kv.handle, self._kv = None, None
            self._client.send(Freed())
            if report:
                self._client.ask(Question('close()'))
