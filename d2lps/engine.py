"""Devices: what MXNet's engine runs work on, and how to set it up for that.

MXNet gives every device a work queue of its own and starts an operation as
soon as the arrays it reads and writes are free.  Two queues run side by side
only if the settings below are right, and MXNet reads them once, when it is
imported.  So this module sets them first and imports MXNet second.
"""
import functools
import os
import platform
import statistics
import sys
import timeit
import warnings
from typing import NamedTuple

import numpy as onp

# One core for each device: with more OpenMP threads two devices fight for
# the same cores, and a matrix product on two CPU devices may never end.
# Every convolution borrows a temporary workspace; all CPU devices share one
# pool of them, and a small pool makes one device wait for another.
SETTINGS = {'OMP_NUM_THREADS': '1', 'MXNET_CPU_TEMP_COPY': '64'}
MXNET_DEFAULT_TEMP_COPY = 4


def _warn_of_danger():
    for (setting, wanted), fine, harm in zip(SETTINGS.items(), (
            lambda number: number == 1,
            lambda number: number > MXNET_DEFAULT_TEMP_COPY), (
            'with more than one thread for each device, a matrix product on '
            'two CPU devices at once can run forever',
            'CPU devices will wait for each other in every convolution')):
        value = os.environ[setting]
        if not (value.isdigit() and fine(int(value))):
            warnings.warn(f'{setting} is {value!r}: {harm}. Unset it or set '
                          f'it to {wanted}, and restart Python.',
                          stacklevel=5)


def setup():
    """Prepare the environment that MXNet reads when it is imported.

    Settings that the user has made are kept; a dangerous one is warned of,
    and so is an MXNet that was imported before and has read its settings.
    """
    late = 'mxnet' in sys.modules and any(s not in os.environ
                                          for s in SETTINGS)
    for setting, value in SETTINGS.items():
        os.environ.setdefault(setting, value)
    if late:
        warnings.warn(
            'mxnet was imported before d2lps, so devices may not run side by '
            'side (and a matrix product on two of them can run forever). '
            'Write "import d2lps" above "import mxnet" and restart Python.',
            stacklevel=4)
    else:
        _warn_of_danger()


def where_mxnet_runs():
    """One line that says what to do where MXNet cannot be installed."""
    if sys.platform == 'win32':
        return ('There is no MXNet for Windows: open a Linux terminal with '
                'WSL 2 (wsl --install) and run "make lab" there.')
    if sys.platform == 'darwin' and platform.machine() == 'arm64':
        return ('There is no MXNet for Apple silicon: use an x86-64 Python, '
                'for example: CONDA_SUBDIR=osx-64 conda env create '
                '-f environment.yml')
    return ('Install it with "make lab", which names what is missing, or '
            'with: pip install mxnet==1.9.1')


setup()
try:
    import mxnet as mx
except (ImportError, OSError) as error:  # OSError: a library is missing
    raise ImportError(
        f'd2lps needs mxnet 1.9.1 ({error}). {where_mxnet_runs()}') from error
from mxnet import npx  # noqa: E402  (the settings have to come first)

npx.set_np()


def count(name, value, least=1):
    """Return `value` if it is a whole number of at least `least`.

    Raises:
        ValueError: otherwise; the message calls the argument `name`.
    """
    if (isinstance(value, bool) or not hasattr(value, '__index__')
            or value < least):
        raise ValueError(f'{name} must be a whole number of at least {least},'
                         f' for example {name}=2; it was {value!r}')
    return int(value)


def devices(n):
    """Return a list of `n` different devices.

    GPUs if the machine has `n` of them, otherwise the CPU contexts cpu(0) to
    cpu(n-1): each has its own work queue and one thread. With more of them
    than cores they take turns. ValueError for a bad `n`.
    """
    n = count('n', n)
    npx.set_np()  # MXNet keeps this for each thread, and this may be new
    kind = mx.gpu if npx.num_gpus() >= n else mx.cpu
    return [kind(i) for i in range(n)]


def cores():
    """The number of processor cores that this process may use."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity')
            else os.cpu_count())


def nbytes(array):
    """The size of an MXNet array's elements together, in bytes."""
    return array.size * onp.dtype(array.dtype).itemsize


class Traffic:
    """Count what is copied from one device to another in a `with` block.

    `bytes` and `copies` count all such copies, `links` the bytes by (source
    device, destination device). A copy inside one device is free.
    """

    def __init__(self):
        self.bytes, self.copies, self.links = 0, 0, {}

    def _add(self, array, other):
        target = other if isinstance(other, mx.Context) else other.ctx
        if target != array.ctx:
            link, size = (str(array.ctx), str(target)), nbytes(array)
            self.bytes += size
            self.copies += 1
            self.links[link] = self.links.get(link, 0) + size

    def __enter__(self):
        # Every copy in Python ends in this one method (`as_in_ctx` too).
        self._copyto = copyto = mx.np.ndarray.copyto

        @functools.wraps(copyto)
        def counted(array, other):
            self._add(array, other)
            return copyto(array, other)

        mx.np.ndarray.copyto = counted
        return self

    def __exit__(self, *exception):
        mx.np.ndarray.copyto = self._copyto


class Machine(NamedTuple):
    """What a machine has; `memory` in bytes, `copy_bandwidth` in bytes/s."""
    cores: int
    gpus: int
    memory: int
    copy_bandwidth: float

    def __str__(self):
        return (f'{self.cores} cores, {self.gpus} GPUs, '
                f'{self.memory / 1e9:.1f} GB of memory, '
                f'{self.copy_bandwidth / 1e9:.1f} GB/s from one device to '
                f'another ({platform.system()} {platform.machine()}, '
                f'Python {platform.python_version()})')


def copy_bandwidth(size=40_000_000, repeats=9):
    """Bytes per second that one device copies to another, measured now.

    Args:
        size: bytes in the array that is copied (a whole number of 4s).
        repeats: copies made after one that is not counted; the median counts.
    """
    first, second = devices(2)
    source = mx.np.ones(count('size', size) // 4, ctx=first)
    target = mx.np.zeros(size // 4, ctx=second)
    seconds = timeit.repeat(lambda: source.copyto(target).wait_to_read(),
                            mx.nd.waitall, number=1,
                            repeat=count('repeats', repeats) + 1)
    return size / statistics.median(seconds[1:])


def machine():
    """Look at this machine and return a `Machine`."""
    import psutil
    return Machine(cores(), npx.num_gpus(), psutil.virtual_memory().total,
                   copy_bandwidth())
