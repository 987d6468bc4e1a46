"""The life of each process of a cluster: scheduler, server or worker.

A `keeper` forks it. The two exchange lines, see `Channel`; what the program
prints goes through a pipe of its own. When the pipe from the keeper closes,
the keeper has ended, and this process ends itself.
"""
import ctypes
import importlib.util
import os
import queue
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

from d2lps.cluster import messages
from d2lps.cluster.processes import namespaces
from d2lps.cluster.processes.channel import Channel

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15  # of prctl(2)
UNWANTED = 'sklearn', 'scipy.stats'


def may_be_forked(store: bool) -> bool:
    """Can the libraries be loaded before the process is forked?

    A forked MXNet has only one OpenMP thread, and GPUs do not work in it.
    Without a store only NumPy is loaded, and on a Mac it may not be forked.
    """
    if not store:
        return sys.platform == 'linux'
    return (os.environ.get('OMP_NUM_THREADS') == '1'
            and not os.path.exists('/dev/nvidiactl'))


def load(store: bool = True) -> None:
    """Load what a process needs, which takes a while; MXNet for a store."""
    importlib.import_module('d2lps.cluster.processes.cells')
    if not store or 'mxnet' in sys.modules:
        return
    # MXNet imports these where they are installed. That takes a third of the
    # time, and a worker does not need them. Afterwards they can be imported.
    for name in UNWANTED:  # None forbids the import
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        importlib.import_module('d2lps.cluster.store.worker')
    finally:
        for name in UNWANTED:
            del sys.modules[name]


class NoDistStores(dict):
    """The table that `mx.kv.create` reads: {kind: function for a store}.

    (By itself MXNet says 'Check notnull', and at the second try it hangs.)
    """

    def __contains__(self, kind: Any) -> bool:
        return 'dist' in kind or super().__contains__(kind)

    def __missing__(self, kind: str) -> NoReturn:
        raise RuntimeError(f'a {kind!r} store needs servers, and this cluster '
                           'has none: start one with num_servers=1')


class Storeless:
    """If MXNet is imported, its stores say that there are no servers."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None,
                  target: Any = None) -> ModuleSpec | None:
        """Let MXNet be found, and change it once it is loaded."""
        if name != 'mxnet':
            return None
        sys.meta_path.remove(cls)
        spec: Any = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def load_and_change(module):
            load(module)
            stores = module.kvstore.KVStoreBase
            stores.kv_registry = NoDistStores(stores.kv_registry)
        spec.loader.exec_module = load_and_change
        return spec


def become_worker(channel: Channel) -> NoReturn:
    """Be a worker."""
    calls: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
    faults: list[messages.Fault] = []
    parts: list[str] = []

    def hear(message: messages.ToMember) -> None:
        match message:
            case messages.CallPart():
                parts.append(message.packed)
                if message.last:
                    calls.put((message.number, ''.join(parts)))
                    parts.clear()
            case messages.Fault():
                faults.append(message)
            case _:
                raise ValueError('this is no message for a worker')

    channel.start(hear)
    load(channel.job.store)
    from d2lps.cluster.processes import cells
    try:
        if channel.job.store:
            from d2lps.cluster.store import worker
            worker.attach(channel, faults)
        else:
            sys.meta_path.insert(0, Storeless)
        cells.work(channel, calls)
    finally:  # else a thread of the reader's would keep this process alive
        traceback.print_exc()
        os._exit(1)


def become_server(channel: Channel) -> NoReturn:
    """Be a scheduler or server."""
    from d2lps.cluster.processes import mxnet_server
    mxnet_server.serve(channel)


def main(job: messages.Start, pipes: Sequence[int],
         host: int | None) -> NoReturn:
    """Be a process of a cluster, just forked from its keeper.

    Args:
        job: what the keeper was told of it.
        pipes: for messages in, messages out, standard output and errors.
        host: the host of a slow network to `enter`, or None.
    """
    os.setpgid(0, 0)  # so its keeper can end it and all that it starts
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if host is not None:
        namespaces.enter(host)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, file in enumerate((nothing, *pipes[2:])):
        os.dup2(file, stream)
    for file in map(int, os.listdir('/dev/fd')):
        if file > 2 and file not in pipes[:2]:  # the keeper's
            with suppress(OSError):  # that of the list is closed already
                os.close(file)
    if sys.platform == 'linux':
        prctl = ctypes.CDLL(None).prctl
        # End even when this process is stopped or hangs.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_NAME, job.name.encode())
    if 'numpy' in sys.modules:  # or all would draw the same random numbers
        sys.modules['numpy'].random.seed()
    channel = Channel(job, *pipes[:2])
    if job.role != 'worker':  # without a role, mxnet starts no server
        load()
    os.environ.update(job.env)
    become = become_worker if job.role == 'worker' else become_server
    become(channel)
