"""The reader's end of the calls that workers make."""
import queue
import sys
import time
import weakref

from d2lps.cluster.processes import cells


class ClusterError(RuntimeError):
    """A process of the cluster died or hung, and the rest was ended."""


class WorkerError(RuntimeError):
    """A cell or a function failed on some workers.

    Attributes:
        errors: {rank: the worker's error in words}; these are its text.
        tracebacks: {rank: where it came from}; Python shows these, too.
    """

    def __init__(self, errors, tracebacks):
        super().__init__(errors, tracebacks)
        self.errors, self.tracebacks = errors, tracebacks
        for rank, text in tracebacks.items():
            self.add_note(f'On worker {rank}:\n{text.rstrip()}')

    def __str__(self):
        return '\n'.join(f'worker {rank}: {words}'
                         for rank, words in self.errors.items())

    def _render_traceback_(self):
        """What a notebook shows; how `%%px` works is of no interest."""
        return [*self.__notes__, '', f'WorkerError: {self}']


class Call:
    """A function that all workers are asked to call."""

    def __init__(self, number, num_workers):
        self.number = number
        self._parts = [[] for _ in range(num_workers)]
        self._heard, self._rest = queue.SimpleQueue(), {}

    def hear(self, rank=None, message=None):
        """A worker has said something; without a message, all have ended."""
        self._heard.put((rank, message))

    def results(self, seconds=None):
        """Show what workers print, and return what they return, packed.

        Returns None if they have ended instead.

        Raises:
            WorkerError: if some workers failed.
            queue.Empty: after so many seconds.
        """
        end = None if seconds is None else time.monotonic() + seconds
        missing, failed = set(range(len(self._parts))), {}
        while missing:
            rank, message = self._heard.get(
                timeout=end and max(0, end - time.monotonic()))
            if message is None:
                return None
            if message['kind'] == 'output':
                self._show(rank, **message)
            elif message['kind'] == 'part':
                self._parts[rank].append(message['text'])
            else:
                missing.discard(rank)
                if 'error' in message:
                    failed[rank] = message
        for (rank, stream), line in self._rest.items():
            if line:
                self._print(rank, stream, line)
        if failed:
            raise WorkerError(*({rank: failed[rank][what]
                                 for rank in sorted(failed)}
                                for what in ('error', 'traceback')))
        return [''.join(parts) for parts in self._parts]

    def _show(self, rank, stream, text, **_):
        text = self._rest.pop((rank, stream), '') + text
        *lines, self._rest[rank, stream] = text.split('\n')
        for line in lines:
            self._print(rank, stream, line)

    def _print(self, rank, stream, line):
        print(f'[worker {rank}] {line}', file=getattr(sys, stream),
              flush=True)


class View:
    """The variables of the workers' cells: `view['x']` is a list of them.

    `view['x'] = 3` gives it that value on all workers.
    """

    def __init__(self, cluster):
        self._cluster = weakref.ref(cluster)

    def __getitem__(self, name):
        return self._cluster().run(cells.get, name)

    def __setitem__(self, name, value):
        self._cluster().run(cells.put, name, value)


def register_magic(cluster):
    """In a notebook, let `%%px` run a cell on the workers of this cluster."""
    shell = ('IPython' in sys.modules
             and sys.modules['IPython'].get_ipython())
    if not shell:
        return
    reference = weakref.ref(cluster)  # the magic must not keep it alive

    def px(line, cell=None):
        """Run a cell on all workers; with --local, then here as well."""
        here = cell is not None and line.strip() == '--local'
        if cell is not None and line.strip() and not here:
            raise ValueError('after %%px, there may be --local or nothing; '
                             f'it was {line!r}')
        if reference() is None:
            raise ClusterError('this cluster is closed; start a new one')
        reference().run(cells.execute, line if cell is None else cell)
        if here:
            shell.run_cell(cell).raise_error()
    shell.register_magic_function(px, 'line_cell', 'px')
