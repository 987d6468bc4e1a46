"""The reader's end of ipyparallel, which knows what became of the workers."""
import sys

from ipyparallel import Client as PlainClient
from ipyparallel.client.magics import ParallelMagics
from ipyparallel.error import CompositeError, RemoteError


class ClusterError(RuntimeError):
    """A process of the cluster died or hung, and the rest was ended."""


# The error of a cell or function that failed on workers: `elist` has their
# tracebacks.
WorkerError = CompositeError


class Client(PlainClient):
    """ipyparallel's client; it can interrupt our workers.

    `owner` is a weak reference to the `Cluster`.
    """
    owner = None

    def send_signal(self, sig, targets=None, block=None):
        self.owner().interrupt()
        raise KeyboardInterrupt  # which `%%px` would swallow

    def _send(self, *args, **kwargs):
        cluster = self.owner and self.owner()
        if cluster:  # what is sent to a dead worker is never answered
            cluster.check()
        future = super()._send(*args, **kwargs)
        if cluster:  # `give_up` came too early for it
            cluster.check()
        return future

    def give_up(self, reason):
        """Let everything that waits for a worker fail."""
        def fail():
            for number, future in list(self._futures.items()):
                output = self._output_futures.get(number)
                self.outstanding.discard(number)
                self.results[number] = RemoteError('ClusterError', reason, '')
                if output and not output.done():
                    output.set_result(None)
                if not future.done():
                    future.set_result(self.results[number])
        self._io_loop.add_callback(fail)


class Magics(ParallelMagics):
    """`%px` and `%%px` that say why, when the cluster has ended."""
    # A bar from 0 to 2 workers tells nothing, and stays in the notebook.
    progress_after_seconds = 1e6

    def parallel_execute(self, *args, **kwargs):
        cluster = self.view.client.owner()
        if cluster is None:
            raise ClusterError('this cluster is closed; start a new one')
        try:
            with watched(cluster):
                return super().parallel_execute(*args, **kwargs)
        finally:
            del cluster  # a traceback must not keep it alive


class watched:
    """In this `with` block, a cluster's failure comes before all errors."""

    def __init__(self, cluster):
        self._cluster = cluster

    def __enter__(self):
        self._cluster.check()

    def __exit__(self, kind, error, traceback):
        if isinstance(error, (RemoteError, CompositeError, OSError,
                              TimeoutError)):
            self._cluster.check()


def show(result, shown, all=False):
    """Print what the workers have printed since, in full lines."""
    for file, texts in ((sys.stdout, result.stdout),
                        (sys.stderr, result.stderr)):
        for rank, text in enumerate(texts):
            start = shown.get((file, rank), 0)
            end = len(text) if all else text.rfind('\n') + 1
            for line in text[start:end].splitlines():
                print(f'[worker {rank}] {line}', file=file, flush=True)
            shown[file, rank] = max(start, end)
