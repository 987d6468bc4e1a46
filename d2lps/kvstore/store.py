"""A key-value store from scratch, with the calls of MXNet's stores."""
import copy
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Condition
from typing import Any, Literal

import numpy as onp

from d2lps.annotations import Key
from d2lps.checks import checked, function, integer
from d2lps.kvstore.arrays import (an_optimizer, begin_thread, kinds, seen,
                                  server_device)
from d2lps.kvstore.placement import place
from d2lps.kvstore.server import (BoundedServer, Server, Updater, parts,
                                  total)
from d2lps.kvstore.store_arguments import (Keys, Values, any_priority, by_key,
                                           how_consistent, store_key,
                                           time_limit, up_to_1000,
                                           updater_or_none)
from d2lps.units import several


def _arrays(keys, values, name='value'):
    return {key: [*map(seen, arrays)] for key, arrays in by_key(
        keys, values, kinds(), name).items()}


def _of(kind):
    return ' of NumPy' if issubclass(kind, onp.ndarray) else ''


class Stopped(RuntimeError):
    """Ends the calls of other workers when one has failed: `KVStore.run`."""


class KVStore:
    """A store with MXNet's calls. This object is worker 0's handle.

    Args:
        num_workers: threads that push, at most 1,000; see `consistency`.
        num_servers: length of the list `servers`, at most 1,000; they live
            on cpu(0), ...
        consistency: how far apart the workers may be.
            'sync': one push of each worker is summed into one update. A pull
            waits until all workers have pushed as often as its worker. Without
            a push of its worker it does not wait.
            'async': each push is an update, and no pull waits.
            k: each push is an update, and a pull waits while this worker is
            more than k steps ahead of the slowest: stale-synchronous
            parallel (Ho et al. 2013). 0 is 'sync'.
        timeout: seconds that a call waits, longer if an updater takes longer.
        split_from: values of this many elements are split; see `place`.

    A value is one array, or a list with one of each device: of MXNet, or of
    NumPy, which needs no MXNet. A list of keys takes a list of values. Unlike
    MXNet's, it refuses another shape or dtype at once, and never shares memory
    with the caller's array.

    Raises, from every call:
        ValueError: for a bad argument; nothing has changed then.
        TimeoutError: after `timeout` seconds, with the names of the missing
            workers. Pushed arrays stay, and a later pull can succeed.
    """

    servers: list[Server]
    # {key: (kind of array, shape, dtype)}
    _kinds: dict[Key, tuple[type, tuple[int, ...], type]]
    _places: dict[Key, list[tuple[int, int, int]]]  # as `place` says
    _inits: set[tuple[int, Key]]  # rank, key
    _ended: list[bool]  # has something when `run` has ended

    @checked(num_workers=up_to_1000, num_servers=up_to_1000,
             consistency=how_consistent, timeout=time_limit,
             split_from=integer)
    def __init__(self, num_workers: int = 1, num_servers: int = 1,
                 consistency: int | Literal['sync', 'async'] = 'sync',
                 timeout: float = 60, split_from: int = 1_000_000) -> None:
        self.rank, self.num_workers = 0, num_workers
        self._together = consistency in ('sync', 0)
        self.servers = []
        for device in map(server_device, range(num_servers)):
            if consistency == 'sync' or consistency == 0:
                self.servers.append(Server(device, num_workers))
            else:
                self.servers.append(BoundedServer(device, num_workers,
                                                  consistency))
        self.consistency, self.timeout = consistency, timeout
        self.split_from = split_from
        self._kinds, self._places = {}, {}
        self._last = [('none since the start', time.monotonic())] * num_workers
        self._inits, self._ended = set(), []
        self._changed = Condition()  # held by one call at a time

    def __repr__(self) -> str:
        return (f'KVStore({self.type!r}: '
                f'{several(self.num_workers, "worker")}, '
                f'{several(len(self.servers), "server")}, '
                f'{several(len(self._kinds), "key")})')

    @property
    def type(self) -> str:
        """The name of MXNet's store that does the same, if there is one."""
        if self._together:
            return 'dist_sync' if self.num_workers > 1 else 'local'
        return ('dist_async' if self.consistency == 'async' else
                f'at most {self.consistency} steps ahead')

    def worker(self, rank: int) -> 'KVStore':
        """The handle that worker `rank` uses in its thread."""
        rank = integer('rank', rank, least=0, most=self.num_workers - 1)
        handle = copy.copy(self)  # its servers, values, … are this object's
        handle.rank = rank
        return handle

    @checked(function=function)
    def run(self, function: Callable[['KVStore'], Any]) -> list:
        """Results of `function(handle)` for all workers, in threads.

        After a worker has failed, or after Ctrl-C, the calls of the other
        workers raise `Stopped`. Of several errors, the first has notes on
        all of them.
        """
        store, pool = copy.copy(self), ThreadPoolExecutor(
            self.num_workers, initializer=begin_thread)
        store._ended = []
        calls = [pool.submit(function, store.worker(rank))
                 for rank in range(self.num_workers)]
        try:
            ended, _ = wait(calls, return_when=FIRST_EXCEPTION)
        finally:
            with self._changed:
                store._ended.append(True)
                self._changed.notify_all()
            pool.shutdown(wait=False)
        wait(calls)
        failed = {}
        for rank, call in enumerate(calls):
            error = call.exception()
            if error is not None and not isinstance(error, Stopped):
                failed[rank] = error
        if failed:
            first = min(failed, key=lambda rank: calls[rank] not in ended)
            for rank, error in failed.items():
                failed[first].add_note(f'worker {rank} raised {error!r:.200}')
            raise failed[first]
        return [call.result() for call in calls]

    @contextmanager
    def _held(self):
        """Hold the lock. Another call's updater may keep it for long."""
        if not self._changed.acquire(timeout=self.timeout):
            raise TimeoutError(f'worker {self.rank} waited {self.timeout:g} s '
                               'for the updater in a call of another worker')
        try:
            yield
        finally:
            self._changed.release()

    @checked(updater=updater_or_none)
    def set_updater(self, updater: Updater | None) -> None:
        """Let `updater(key, sum, stored)` change `stored`, in place.

        With None the sum replaces the stored value. Servers call it for their
        part of a split value. Its errors reach the last worker that pushes.
        All workers can call `set_updater`; the call of worker 0 counts. The
        others wait for it if the store is not synchronous.
        """
        self._set(lambda: updater)

    @checked(optimizer=an_optimizer)
    def set_optimizer(self, optimizer: Any) -> None:
        """Give each server a copy of an `mx.optimizer` as its updater.

        All workers may call it, as `set_updater`.
        """
        import mxnet as mx

        def updater():
            own = copy.deepcopy(optimizer)
            own.allow_np_array = True  # it may be a new thread's
            return mx.optimizer.get_updater(own)
        self._set(updater)

    def _set(self, updater):
        with self._held():
            if self.rank == 0:
                for server in self.servers:
                    server.updater = updater()
                self._changed.notify_all()
            elif not self._together:
                self._wait('set_updater', [None], lambda _: (
                    [] if self.servers[0].updater else [0]))

    def init(self, key: Keys, value: Values) -> None:
        """Store first values: worker 0's count, the others wait for it."""
        with self._held():
            groups = _arrays(key, value)
            if len({type(k) for k in (*groups, *self._kinds)}) > 1:
                raise ValueError(f'key is {key!r}, but a store has int keys '
                                 'only or str keys only')
            for k, arrays in groups.items():
                if len(arrays) > 1 or (self.rank, k) in self._inits:
                    raise ValueError(f'key {k!r} is initialised already; '
                                     'push changes its value')
            self._note_call('init', key)
            if self.rank == 0:
                for k, [value] in groups.items():
                    self._kinds[k] = type(value), value.shape, value.dtype
                    self._places[k] = place(k, value.size, len(self.servers),
                                            self.split_from)
                    for server, part in self._parts(k, value):
                        server.init(k, part)
                self._changed.notify_all()
            self._wait('init', groups,
                       lambda k: [] if k in self._kinds else [0])
            self._check(groups, 'value')
            self._inits.update((self.rank, k) for k in groups)

    @checked(priority=any_priority)
    def push(self, key: Keys, value: Values, priority: int = 0) -> None:
        """Send values to be summed, and go on. `priority` has no effect."""
        problems = []
        with self._held():
            groups = self._check(_arrays(key, value), 'value')
            if not self._together and self.servers[0].updater is None:
                raise ValueError(
                    f'a store with consistency={self.consistency!r} needs an '
                    'updater: call set_updater or set_optimizer first')
            self._note_call('push', key)
            for k, arrays in groups.items():
                for server, part in self._parts(k, total(arrays)):
                    try:
                        server.push(k, self.rank, part)
                    except Exception as problem:  # the updater's
                        problems.append(problem)
            self._changed.notify_all()
        if problems:
            raise problems[0]

    @checked(key=store_key)
    def missing(self, key: Key) -> list[int]:
        """The ranks of the workers whose push a pull of `key` would wait for.
        """
        with self._held():
            self._check({key: []}, 'key')
            return self._missing(key)

    @checked(priority=any_priority)
    def pull(self, key: Keys, out: Values, priority: int = 0) -> None:
        """Copy values into `out`: an array, or a list of one per device."""
        with self._held():
            groups = self._check(_arrays(key, out, 'out'), 'out')
            self._note_call('pull', key)
            self._wait('push', groups, self._missing)
            for k, arrays in groups.items():
                pulled = [self.servers[number].pull(k, self.rank)
                          for number, _, _ in self._places[k]]
                value = pulled[0]
                if len(pulled) > 1:
                    value = seen(onp.concatenate([
                        part.as_in_ctx(value.ctx) for part in pulled]))
                    value = value.reshape(arrays[0].shape)
                for array in arrays:
                    value.copyto(array)

    @checked(priority=any_priority)
    def pushpull(self, key: Keys, value: Values, out: Values | None = None,
                 priority: int = 0) -> None:
        """Push `value`, then pull into `out`, or into `value` itself."""
        if out is not None:
            with self._held():  # nothing is pushed if the pull must fail
                self._check(_arrays(key, out, 'out'), 'out')
        self.push(key, value)
        self.pull(key, value if out is None else out)

    def _parts(self, key, value):
        """[(server, its part of the value), ...]"""
        places = self._places[key]
        servers = [self.servers[number] for number, _, _ in places]
        return list(zip(servers, parts(value, places)))

    def _check(self, groups, name):
        """Refuse an unknown key, and arrays unlike the stored value."""
        for key, arrays in groups.items():
            if key not in self._kinds:
                raise ValueError(f'key {key!r} is not in the store, call '
                                 f'init({key!r}, ...) first; it has the keys '
                                 f'{list(self._kinds)}')
            kind, shape, dtype = self._kinds[key]
            for array in arrays:
                if (type(array), array.shape, array.dtype) != (
                        kind, shape, dtype):
                    raise ValueError(
                        f'{name} of key {key!r} must be {onp.dtype(dtype)} '
                        f'of shape {shape}{_of(kind)}, as in init; it was '
                        f'{onp.dtype(array.dtype)} of shape {array.shape}'
                        f'{_of(type(array))}')
        return groups

    def _raise_if_ended(self):
        if self._ended:
            raise Stopped(f'worker {self.rank} was stopped, because another '
                          'worker failed or Ctrl-C was typed')

    def _note_call(self, call, key):
        self._raise_if_ended()
        self._last[self.rank] = f'{call}({key!r})', time.monotonic()

    def _missing(self, key):
        number, _, _ = self._places[key][0]  # all parts wait together
        return self.servers[number].missing(key, self.rank)

    def _wait(self, call, keys, missing):
        """Sleep until no worker is `missing` for any key, or time is up.

        The key is None for a call that has none.
        """
        self._changed.wait_for(lambda: self._ended or not any(
            map(missing, keys)), self.timeout)
        if not any(map(missing, keys)):
            return
        self._raise_if_ended()
        key, now = next(filter(missing, keys)), time.monotonic()
        argument = '' if key is None else repr(key)
        workers = ' and '.join(f'worker {rank}' for rank in missing(key))
        ahead = (f', being more than {self.consistency} ahead'
                 if call == 'push' and not self._together else '')
        raise TimeoutError('\n  '.join([
            f'worker {self.rank} waited {self.timeout:g} s for '
            f'{call}({argument}) of {workers}{ahead}. Last calls:',
            *(f'worker {rank}: {text}, {now - when:.1f} s ago'
              for rank, (text, when) in enumerate(self._last))]))
