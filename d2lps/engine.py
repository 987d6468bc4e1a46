"""Devices: MXNet's engine runs operations on them.

MXNet gives every device a work queue of its own and starts an operation as
soon as the arrays that it reads and writes are free. Two queues run side by
side only with the settings of `d2lps.settings`, made before MXNet starts.
"""
import os
import threading
import timeit
from contextlib import suppress
from functools import partial, wraps
from typing import Any

import numpy as onp

from d2lps.annotations import Array, Device
from d2lps.checks import checked, instance_of, integer, list_of, refuse
from d2lps.missing import NoMXNet
from d2lps.processor import cores as cores  # chapters take it from here
from d2lps.settings import (THREADS,  # they come before MXNet
                            why_mxnet_would_crash)

MOST_DEVICES = 1024  # each CPU device is a thread
OTHER_THREADS = 4  # that MXNet starts with its first device

if why_mxnet_would_crash():
    raise ImportError(why_mxnet_would_crash())
try:
    import mxnet as mx
except NoMXNet:
    raise
except (ImportError, OSError) as error:  # OSError: a library is missing
    raise NoMXNet(error) from error
from mxnet import npx  # noqa: E402

npx.set_np()


def _let_stores_finish():
    """Make every store of MXNet wait for its sums before it is freed.

    MXNet frees a local store even while its engine still sums in it.
    """
    free = mx.kvstore.KVStore.__del__

    def free_when_done(store):
        try:
            mx.nd.waitall()
        finally:
            free(store)
    mx.kvstore.KVStore.__del__ = free_when_done


_let_stores_finish()
array = instance_of(mx.np.ndarray, 'an MXNet array, such as mxnet.np.ones(3)')


def device(name: str, value: Device) -> Device:
    """A check: a device of this machine."""
    if not isinstance(value, mx.Context) or not 0 <= value.device_id < (
            npx.num_gpus() if value.device_type == 'gpu' else MOST_DEVICES):
        refuse(name, value, 'a device, such as d2lps.devices(1)[0]')
    return value


def _refuse_colliding_threads(name, contexts):
    """Refuse several CPU devices if their OpenMP threads would collide."""
    cpus = {context for context in contexts if context.device_type != 'gpu'}
    if THREADS != 1 and len(cpus) > 1:
        threads = ('mxnet was imported before d2lps' if THREADS is None else
                   f'OMP_NUM_THREADS is {THREADS}')
        raise ValueError(
            f'{name}: {threads}, and a matrix product on two CPU devices at '
            'once could run forever. Use one device, or unset '
            'OMP_NUM_THREADS, write "import d2lps" above "import mxnet", and '
            'restart Python.')


def device_list(name: str, value: Any) -> list[Device]:
    """A check: a list of devices that can be used together."""
    must = 'a list of devices, such as d2lps.devices(2)'
    contexts = list_of(device, must)(name, value)
    _refuse_colliding_threads(name, contexts)
    return contexts


def array_list(name: str, value: Any) -> list[Array]:
    """A check: a list of MXNet arrays, on devices that go together."""
    arrays = list_of(array, 'a list of MXNet arrays')(name, value)
    _refuse_colliding_threads(name, [array.ctx for array in arrays])
    return arrays


def num_devices(name: str, value: Any) -> int:
    """A check: a number of devices that are used together."""
    n = integer(name, value, most=MOST_DEVICES)
    _refuse_colliding_threads(name, _contexts(n))
    return n


@checked(n=num_devices)
def devices(n: int) -> list[Device]:
    """Return a list of `n` different devices, at most 1,024.

    GPUs if the machine has `n` of them, otherwise cpu(0) to cpu(n-1), each
    with a work queue and a thread of its own. If they are more than the
    cores, they take turns. ValueError for a bad `n`, or if OpenMP's threads
    would collide; OSError if this user cannot have so many threads now.
    MXNet starts the thread when its device is first used. If this fails,
    because other threads have been started meanwhile, MXNet raises
    MXNetError, and Python never ends.
    """
    contexts = _contexts(n)
    if contexts[0].device_type != 'gpu' and n > _threads_seen[0]:
        _check_threads(n)
        _threads_seen[0] = n
    return contexts


_threads_seen = [0]  # the most CPU devices whose threads could be started


def _check_threads(n):
    """Start as many threads as MXNet will for `n` devices, and end them."""
    needed, started, end = n + OTHER_THREADS, [], threading.Event()
    with suppress(OSError):  # only Linux counts the threads of MXNet
        all_threads = len(os.listdir('/proc/self/task'))
        needed -= max(0, all_threads - threading.active_count())
    try:
        for _ in range(needed):
            started.append(threading.Thread(target=end.wait, daemon=True))
            started[-1].start()
    except RuntimeError:
        started.pop()
        raise OSError(
            f'{n} CPU devices need {needed} more threads, and only '
            f'{len(started)} can be started: use fewer devices, end other '
            'programs, or raise the limit of processes and threads (ulimit '
            '-u; a container may have one, too)') from None
    finally:
        end.set()
        for thread in started:
            thread.join()


def _contexts(n):
    npx.set_np()  # MXNet keeps this for each thread, and this may be new
    return list(map(mx.gpu if npx.num_gpus() >= n else mx.cpu, range(n)))


@checked(array=array)
def nbytes(array: Array) -> int:
    """The size of an MXNet array's elements together, in bytes."""
    return array.size * onp.dtype(array.dtype).itemsize


class Traffic:
    """Count the copies from one device to another in a `with` block.

    `bytes` and `copies` count the copies that Python code makes, `copyto` and
    `as_in_ctx` of MXNet's NumPy arrays; `links` has the bytes by (source
    device, destination device). A copy inside one device is free. Copies
    that MXNet makes by itself, as in `mx.kv` stores, are not counted. Blocks
    may overlap; each block counts from zero.
    """

    _active: list['Traffic'] = []  # all that are counting now
    _lock = threading.Lock()
    _copyto = mx.np.ndarray.copyto

    def __init__(self) -> None:
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        self.bytes = self.copies = 0
        self.links: dict[tuple[str, str], int] = {}

    def _add(self, array, other):
        target = other if isinstance(other, mx.Context) else other.ctx
        if target != array.ctx:
            link, size = (str(array.ctx), str(target)), nbytes(array)
            self.bytes += size
            self.copies += 1
            self.links[link] = self.links.get(link, 0) + size

    # Every copy in Python ends in `copyto` (`as_in_ctx` too). While a block
    # counts, this method stands in its place.
    @staticmethod
    @wraps(_copyto)
    def _counted(array: Array, other: Array | Device) -> Array:
        copy = Traffic._copyto(array, other)
        with Traffic._lock:
            for traffic in Traffic._active:
                traffic._add(array, other)
        return copy

    def __enter__(self) -> 'Traffic':
        with self._lock:
            if self in self._active:
                raise RuntimeError('this Traffic is counting already')
            self._begin_at_zero()
            self._active.append(self)
            mx.np.ndarray.copyto = self._counted
        return self

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._active.remove(self)
            if not self._active:
                mx.np.ndarray.copyto = Traffic._copyto


@checked(size=partial(integer, least=4, most=400_000_000),
         repeats=partial(integer, most=1000))
def copy_bandwidth(size: int = 40_000_000, repeats: int = 9) -> float:
    """Bytes per second that one device copies to another, measured now.

    Args:
        size: bytes in the array that is copied, 4 to 400,000,000.
        repeats: copies made after one that is not counted. The fastest
            counts, because other programs can only slow a copy down.

    CPU devices share one memory: there, this is a copy inside it.
    """
    first, second = _contexts(2)  # copies alone are never in danger
    source = mx.np.ones(size // 4, dtype='float32', ctx=first)
    target = mx.np.zeros(size // 4, dtype='float32', ctx=second)
    seconds = timeit.repeat(lambda: source.copyto(target).wait_to_read(),
                            mx.nd.waitall, number=1, repeat=repeats + 1)
    return nbytes(source) / min(seconds[1:])
