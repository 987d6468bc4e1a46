"""A cluster for chapters that do not run on every machine.

If PyTorch is missing, for example, the chapter continues with a `Record`. It
returns the results of the same calls on another machine, from a file that was
written there. With D2LPS_RECORD=yes in the environment, cells write the file.
`here_or_record` does the same for calls in the notebook's own process.
"""
import base64
import hashlib
import importlib.util
import inspect
import io
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from d2lps.asynchrony.clock import Point
from d2lps.checks import (boolean, checked, from_zero, instance_of, integer,
                          list_of, one_of, text)
from d2lps.cluster.network import Network, network_problem
from d2lps.cluster.processes import cells
from d2lps.cluster.processes.calls import (View, WorkerError,
                                           register_magic, show)
from d2lps.cluster.processes.group import Death
from d2lps.missing import NO_TORCH, can_fork, has_mxnet, is_hidden, system
from d2lps.units import several

if TYPE_CHECKING:  # it needs packages that a record does not
    from d2lps.cluster.cluster import Cluster

HOW = {'torch': NO_TORCH, 'mxnet': 'MXNet is not installed here'}
EXPOSED = ('Without it, PyTorch would listen on ports of this machine, which '
           'its other users can reach. If it has no other users, write '
           'loopback=True')


def lacking_library(needs: Sequence[str]) -> str:
    """The first library that is missing here, in words; '' if none."""
    return next((HOW[library] for library in needs if not has(library)), '')


def has(library: str) -> bool:
    """Whether a library is installed, and not hidden."""
    if is_hidden(library):
        return False
    if library == 'mxnet':
        return has_mxnet()
    return importlib.util.find_spec(library) is not None


def _private(needs, network, loopback, **_):
    if 'torch' in needs and not network and not loopback:
        raise ValueError('network must be a private one for PyTorch, such as '
                         'd2lps.Network(1e9): it listens on ports without a '
                         'password. On a machine of your own: loopback=True')


@checked(_private, record=text, num_workers=integer, num_servers=from_zero,
         needs=list_of(one_of(*HOW), least=0), restarts=from_zero,
         elastic=boolean, loopback=boolean,
         network=instance_of((Network, type(None)), 'a Network, or None'))
def cluster_or_record(record: str, num_workers: int,
                      needs: Sequence[str] = ('torch',), num_servers: int = 0,
                      network: Network | None = None,
                      loopback: bool = False, restarts: int = 0,
                      elastic: bool = False
                      ) -> 'Cluster | Record | Recorder':
    """A `Cluster`, or, if something is missing, a `Record` of one.

    Args:
        record: the JSON file with the results of another machine.
        num_workers, num_servers, network, restarts, elastic: as in
            `Cluster`.
        needs: libraries without which its cells fail: 'torch', 'mxnet'; []
            if only the network can be missing.
        loopback: True runs it without `network` if that is not allowed.
            PyTorch's workers then listen on addresses of this machine, where
            its other users can reach them.

    Raises:
        ValueError: for a bad argument.
        FileNotFoundError: if something is missing here and the file `record`
            does not exist.
    """
    why = lacking_library(needs)
    if not why and not can_fork():
        why = f'{system()} cannot fork the processes of a cluster'
    if not why and network:
        problem = network_problem(network.delay)
        if problem and not loopback:
            why = f'{problem}. {EXPOSED}' if 'torch' in needs else problem
        if problem:
            network = None
    if why:
        return Record(record, why)
    from d2lps.cluster.cluster import Cluster
    cluster = Cluster(num_workers, num_servers, network=network,
                      restarts=restarts, elastic=elastic)
    if os.environ.get('D2LPS_RECORD'):
        return Recorder(cluster, record, needs)
    return cluster


class Here:
    """`run` calls a function in this process, as if it were a worker."""
    num_workers = 0

    @staticmethod
    def run(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


@checked(record=text, needs=list_of(one_of(*HOW)))
def here_or_record(record: str, needs: Sequence[str]
                   ) -> 'Here | Record | Recorder':
    """`Here`, or, if a library of `needs` is missing, a `Record`.

    Its `run` calls a function. The record has the results of its code with
    its arguments, and says of others that they are not run. See
    `cluster_or_record`.
    """
    why = lacking_library(needs)
    if why:
        recorded = Record(record, why)
        show(repr(recorded))
        return recorded
    if os.environ.get('D2LPS_RECORD'):
        return Recorder(Here(), record, needs)
    return Here()


def key_of(function: Callable[..., Any], args: Sequence[Any],
           kwargs: dict[str, Any] | None = None) -> str:
    """The key of a call in a record: what is called, and a hash.

    The hash is that of the cell, or of the function's code and all arguments.
    So a reader who changes something does not see a result of something else.
    A function may use others, and global names: these do not count.
    """
    if function is cells.execute:
        return 'cell ' + hashed(args[0].strip())
    if function is cells.get:
        return f'get {args[0]}'
    bound = inspect.signature(function).bind(*args, **(kwargs or {}))
    bound.apply_defaults()
    return f'{function.__name__} ' + hashed(json.dumps(
        [code_of(function), bound.arguments], default=encoded))


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def code_of(function: Callable[..., Any]) -> str:
    """The code of a reader's function; '' if it is ours, or has none."""
    if (function.__module__ or '').partition('.')[0] == 'd2lps':
        return ''
    try:
        return inspect.getsource(function).strip()
    except (TypeError, OSError):  # it is built in, or typed into a prompt
        return ''


class Record:
    """Stands for a cluster that cannot run here: `view`, `run`, `traffic`.

    The second call returns what the second call returned there, and so on. A
    call that failed there raises the same WorkerError here.
    """

    def __init__(self, path: str, why: str) -> None:
        record = json.loads(Path(path).read_text('utf-8'), object_hook=decoded)
        self.num_workers, self._from = record['num_workers'], record['from']
        self._calls, self._why, self._said = record['calls'], why, None
        self._times: dict[str, int] = {}
        self.view = View(self)
        if self.num_workers:
            register_magic(self)

    def run(self, function: Callable[..., Any], /, *args: Any,
            **kwargs: Any) -> Any:
        return self._next(key_of(function, args, kwargs))

    def traffic(self) -> dict[str, tuple[int, int]] | None:
        counts = self._next('traffic')
        return counts and {host: (received, sent)
                           for host, (received, sent) in counts.items()}

    @property
    def deaths(self) -> list[Death] | None:
        return self._next('deaths')

    def _next(self, key):
        if key not in self._calls:
            show(f'Not run: {self._why}.')
            return None
        calls, number = self._calls[key], self._times.get(key, 0)
        self._times[key] = number + 1
        value, printed, *failed = calls[min(number, len(calls) - 1)]
        if printed or failed or value is not None:
            self._say_so()
        show(printed, end='')
        if failed:
            raise_as_there(*failed)
        return value

    def _say_so(self):
        """Say once for each cell that the results come from elsewhere."""
        cell = number_of_cell()
        if cell is None or cell != self._said:
            show(f'(recorded elsewhere: {self._from})')
        self._said = cell

    def close(self) -> None:
        """There is nothing to end."""

    def __enter__(self) -> 'Record':
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        workers = (f'{several(self.num_workers, "worker")}, '
                   if self.num_workers else '')
        return (f'{self._why}. What follows was recorded elsewhere: '
                f'{workers}{self._from}')


def raise_as_there(in_red: str, errors: dict[str, str],
                   tracebacks: list[str], waits: dict[str, list[Any]]) -> None:
    """Show the errors that came first, as there, and raise all of them."""
    if in_red:
        show(in_red, 'stderr', end='')
    raise WorkerError({int(rank): error for rank, error in errors.items()},
                      tracebacks, {int(rank): (other, round, closed) for rank,
                                   (other, round, closed) in waits.items()})


def number_of_cell() -> int | None:
    shell = ('IPython' in sys.modules
             and sys.modules['IPython'].get_ipython())
    return shell.execution_count if shell else None


class Recorder:
    """A cluster that writes its results into a record."""

    def __init__(self, cluster: Any, path: str,
                 needs: Iterable[str]) -> None:
        # The package of MXNet for GPUs has another name than its module.
        packages = [packages_distributions()[name][0] for name in needs]
        libraries = [f'{name} {version(name)}' for name in packages]
        self._cluster, self._path = cluster, Path(path)
        self._all = {'from': ', '.join([*libraries, platform.system(),
                                        f'{os.cpu_count()} processors']),
                     'num_workers': cluster.num_workers, 'calls': {}}
        self.view = View(self)
        if cluster.num_workers:
            register_magic(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def __enter__(self) -> 'Recorder':
        return self

    def __exit__(self, *exception: object) -> None:
        self._cluster.close()

    def run(self, function: Callable[..., Any], /, *args: Any,
            **kwargs: Any) -> Any:
        key = key_of(function, args, kwargs)
        printed, in_red = Both(sys.stdout), Both(sys.stderr)
        try:
            with redirect_stdout(printed), redirect_stderr(in_red):
                value = self._cluster.run(function, *args, **kwargs)
        except WorkerError as error:
            errors, tracebacks, waits = error.reports
            self._note(key, None, printed.getvalue(), in_red.getvalue(),
                       errors, [*map(without_folders, tracebacks)], waits)
            raise
        self._note(key, value, printed.getvalue())
        return value

    def traffic(self) -> dict[str, tuple[int, int]]:
        value = self._cluster.traffic()
        self._note('traffic', {name: [*both] for name, both in value.items()})
        return value

    @property
    def deaths(self) -> list[Death]:
        self._note('deaths', self._cluster.deaths)
        return self._cluster.deaths

    def _note(self, key, value, printed='', *failed):
        if isinstance(value, list) and all(result is None for result in value):
            value = None
        self._all['calls'].setdefault(key, []).append(
            [marked(value), printed, *failed])
        self._path.write_text(json.dumps(self._all, default=encoded) + '\n',
                              'utf-8')

    def __repr__(self) -> str:
        return repr(self._cluster)


class Both(io.StringIO):
    """Keeps what is printed, and also shows it on a stream."""

    def __init__(self, shown: TextIO) -> None:
        super().__init__()
        self._shown = shown

    def write(self, text: str) -> int:
        self._shown.write(text)
        return super().write(text)


def without_folders(traceback: str) -> str:
    """A traceback that names files without their folders."""
    return re.sub(r'File "/[^"]*/', 'File "', traceback)


KNOWN = {kind.__name__: kind for kind in (Death, Point)}


def marked(value: Any) -> Any:
    """Replace `KNOWN` objects in a value by dicts, which JSON can hold."""
    if type(value) is Point:
        return {'known': 'Point', 'fields': value._asdict()}
    if isinstance(value, (list, tuple)):
        return [marked(item) for item in value]
    return value


def encoded(value: Any) -> Any:
    """Encode for JSON an array, a number of NumPy's, or a death."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Death):
        return {'known': 'Death', 'fields': asdict(value)}
    if not isinstance(value, np.ndarray):
        raise TypeError(f'a record cannot hold {value!r}: let the cell make '
                        'numbers, texts, lists, or an array of it')
    return {'array': base64.b64encode(value.tobytes()).decode(),
            'dtype': value.dtype.str, 'shape': value.shape}


def decoded(value: dict[str, Any]) -> Any:
    """Decode a dict of a record, if it is one that `encoded` has made."""
    if 'known' in value:
        return KNOWN[value['known']](**value['fields'])
    if 'array' not in value:
        return value
    flat = np.frombuffer(base64.b64decode(value['array']), value['dtype'])
    return flat.reshape(value['shape']).copy()
