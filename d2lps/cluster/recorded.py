"""A cluster for chapters that do not run on every machine.

If PyTorch is missing, for example, the chapter continues with a `Record`. It
returns the results of the same calls on another machine, from a file that was
written there. With D2LPS_RECORD=yes in the environment, cells write the file.
"""
import base64
import hashlib
import io
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from d2lps.checks import (boolean, checked, from_zero, instance_of, integer,
                          list_of, one_of, text)
from d2lps.cluster.cluster import Cluster
from d2lps.cluster.network import Network, network_problem
from d2lps.cluster.processes import cells
from d2lps.cluster.processes.calls import View, register_magic, show
from d2lps.missing import NO_TORCH, is_hidden
from d2lps.units import several

HOW = {'torch': NO_TORCH, 'mxnet': 'MXNet is not installed here'}
EXPOSED = ('Without it, PyTorch would listen on ports of this machine, which '
           'its other users can reach. If it has no other users, write '
           'loopback=True')


def lacking(needs: Sequence[str], network: Network | None,
            loopback: bool) -> str:
    """What this machine lacks, in a line; '' if nothing."""
    for library in needs:
        if not has(library):
            return HOW[library]
    if not hasattr(os, 'fork'):
        return f'{platform.system()} cannot fork the processes of a cluster'
    problem = ''
    if network and not loopback:
        problem = network_problem(network.delay)
    return f'{problem}. {EXPOSED}' if problem and needs else problem


def has(library: str) -> bool:
    """Is it installed, and not hidden?"""
    try:
        return bool(version(library)) and not is_hidden(library)
    except PackageNotFoundError:
        return False


def _private(needs, network, loopback, **_):
    if 'torch' in needs and not network and not loopback:
        raise ValueError('network must be a private one for PyTorch, such as '
                         'd2lps.Network(1e9): it listens on ports without a '
                         'password. On a machine of your own: loopback=True')


@checked(_private, record=text, num_workers=integer, num_servers=from_zero,
         needs=list_of(one_of(*HOW), least=0),
         network=instance_of((Network, type(None)), 'a Network, or None'),
         loopback=boolean)
def cluster_or_record(record: str, num_workers: int,
                      needs: Sequence[str] = ('torch',), num_servers: int = 0,
                      network: Network | None = None,
                      loopback: bool = False) -> 'Cluster | Record | Recorder':
    """A `Cluster`, or, if something is missing, a `Record` of one.

    Args:
        record: the JSON file with the results of another machine.
        num_workers, num_servers, network: as in `Cluster`.
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
    why = lacking(needs, network, loopback)
    if why:
        return Record(record, why)
    if network and network_problem(network.delay):
        network = None
    cluster = Cluster(num_workers, num_servers, network=network)
    if os.environ.get('D2LPS_RECORD'):
        return Recorder(cluster, record, needs)
    return cluster


def key_of(function: Callable[..., Any], args: Sequence[Any]) -> str:
    """The key of a call in a record: a hash of its cell, or its name."""
    if function is cells.execute:
        return 'cell ' + hashlib.sha256(args[0].strip().encode()).hexdigest()
    return ' '.join([function.__name__, *(
        one for one in args if isinstance(one, str))])


class Record:
    """Stands for a cluster that cannot run here: `view`, `run`, `traffic`.

    The second call returns what the second call returned there, and so on.
    """

    def __init__(self, path: str, why: str) -> None:
        found = json.loads(Path(path).read_text(), object_hook=decoded)
        self.num_workers, self._from = found['num_workers'], found['from']
        self._calls, self._why, self._said = found['calls'], why, None
        self._times: dict[str, int] = {}
        self.view = View(self)
        register_magic(self)

    def run(self, function: Callable[..., Any], /, *args: Any,
            **kwargs: Any) -> list[Any] | None:
        return self._next(key_of(function, args))

    def traffic(self) -> dict[str, list[int]] | None:
        return self._next('traffic')

    def _next(self, key):
        if key not in self._calls:
            show(f'Not run: {self._why}.')
            return None
        calls, number = self._calls[key], self._times.get(key, 0)
        self._times[key] = number + 1
        value, printed = calls[min(number, len(calls) - 1)]
        if printed or value is not None:
            self._say_so()
        show(printed, end='')
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
        return (f'{self._why}. What follows was recorded elsewhere: '
                f'{several(self.num_workers, "worker")}, {self._from}')


def number_of_cell() -> int | None:
    shell = ('IPython' in sys.modules
             and sys.modules['IPython'].get_ipython())
    return shell.execution_count if shell else None


class Recorder:
    """A cluster that writes its results into a record."""

    def __init__(self, cluster: Cluster, path: str,
                 needs: Iterable[str]) -> None:
        libraries = [f'{name} {version(name)}' for name in needs]
        self._cluster, self._path = cluster, Path(path)
        self._all = {'from': ', '.join([*libraries, platform.system(),
                                        f'{os.cpu_count()} processors']),
                     'num_workers': cluster.num_workers, 'calls': {}}
        self.view = View(self)
        register_magic(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def __enter__(self) -> 'Recorder':
        return self

    def __exit__(self, *exception: object) -> None:
        self._cluster.close()

    def run(self, function: Callable[..., Any], /, *args: Any,
            **kwargs: Any) -> list[Any]:
        printed = Both()
        with redirect_stdout(printed):
            value = self._cluster.run(function, *args, **kwargs)
        self._note(key_of(function, args), value, printed.getvalue())
        return value

    def traffic(self) -> dict[str, tuple[int, int]]:
        value = self._cluster.traffic()
        self._note('traffic', {name: [*both] for name, both in value.items()})
        return value

    def _note(self, key, value, printed=''):
        if isinstance(value, list) and all(one is None for one in value):
            value = None
        self._all['calls'].setdefault(key, []).append([value, printed])
        self._path.write_text(json.dumps(self._all, default=encoded) + '\n')

    def __repr__(self) -> str:
        return repr(self._cluster)


class Both(io.StringIO):
    """Keeps what is printed, and also shows it."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = sys.stdout

    def write(self, words: str) -> int:
        self._shown.write(words)
        return super().write(words)


def encoded(value: Any) -> Any:
    """For JSON: an array, or a number of NumPy's."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise TypeError(f'a record cannot hold {value!r}: let the cell make '
                        'numbers, texts, lists, or an array of it')
    return {'array': base64.b64encode(value.tobytes()).decode(),
            'dtype': value.dtype.str, 'shape': value.shape}


def decoded(found: dict[str, Any]) -> Any:
    if 'array' not in found:
        return found
    flat = np.frombuffer(base64.b64decode(found['array']), found['dtype'])
    return flat.reshape(found['shape']).copy()
