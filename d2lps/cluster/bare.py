"""MXNet's distributed store as it comes, to see what it does by itself."""
import gc
import importlib.util
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from selectors import BaseSelector
from subprocess import Popen

from d2lps.checks import checked, integer, positive, text
from d2lps.cluster.processes import descendants
from d2lps.cluster.processes.addresses import UnixSocketPlaces
from d2lps.cluster.processes.lines import serve
from d2lps.cluster.processes.member import may_be_forked
from d2lps.cluster.processes.process import how_it_ended
from d2lps.cluster.processes.shortage import advice_for, needs
from d2lps.cluster.processes.sockets import socket_of

KEPT = 500_000  # bytes of the beginning, and of the end, of what one writes
GOODBYE = 10  # seconds for the first process to end all
REGISTERING = 0.2  # seconds for a script to create its store
LIFE = 60  # seconds; the kernel's alarm clock ends what lives longer
ENDS = 'SIGTERM', 'SIGALRM'
FIRST = f'''import signal; signal.alarm({LIFE})
from d2lps.cluster import bare; bare.run_first()'''


@checked(script=text, num_workers=partial(integer, most=8), seconds=positive)
def bare_mxnet(script: str, num_workers: int = 2,
               seconds: float = 3) -> list[str]:
    """Run a script on workers of MXNet, with a server and without our layer.

    Each process ends when all workers have, or `seconds` after a worker has
    written its first line, and after 60 seconds in any case; so does what the
    script has started (on a Mac, unless it has left the process group of a
    worker). They talk over Unix sockets that only this user can open.

    Args:
        script: Python code, which creates its store itself.
        num_workers: how many processes run it, at most 8.

    Returns:
        What each process of a worker has written, a list of str. Their
        order is not that of the ranks. Of more than a million bytes, only
        the beginning and the end; a line says how much is left out.

    Raises:
        OSError: if the processes cannot start; it says what ran out.
    """
    importlib.util.find_spec('mxnet')  # says if it is missing
    ports = UnixSocketPlaces(num_workers, 1).free_ports(2 + num_workers)
    env = {**os.environ, **UnixSocketPlaces.env, 'DMLC_NUM_SERVER': '1',
           'DMLC_NUM_WORKER': str(num_workers), 'DMLC_NODE_HOST': '127.0.0.1',
           'DMLC_PS_ROOT_URI': '127.0.0.1', 'DMLC_ROLE': 'worker',
           'DMLC_PS_ROOT_PORT': str(ports[-1])}
    roles = ['server'] + ['worker'] * num_workers + ['scheduler']
    with ExitStack() as in_any_case:
        with needs('the processes could not be started'):
            # In a file, as everybody can read the arguments of a process.
            task = in_any_case.enter_context(tempfile.TemporaryFile('w+'))
            selector = selectors.DefaultSelector()
            in_any_case.callback(selector.close)
            outputs = [Output(selector, in_any_case) for _ in roles]
            errors = Output(selector, in_any_case)
            files = [output.file for output in outputs]
            json.dump([script, [*zip(roles, ports, files)]], task)
            task.seek(0)
            in_any_case.callback(remove_sockets, ports)
            first = subprocess.Popen(
                [sys.executable, '-u', '-c', FIRST], env=env, umask=0o077,
                stdin=task, stderr=errors.file, pass_fds=files,
                start_new_session=True)
        try:
            wait_for_output(first, selector, outputs[1:-1], seconds)
            failed = first.poll()
        finally:
            end_first(first)
        for output in (*outputs, errors):
            output.drain()
        if failed:
            words = errors.text().strip().split('\n')
            raise OSError('\n'.join(filter(None, (
                'the processes could not be started: the first of them '
                f'{how_it_ended(failed)}', *words[-3:],
                advice_for(errors.text())))))
        return [output.text() for output in outputs[1:-1]]


class Output:
    """What a process writes: of much, its beginning and its end."""
    urgent = False

    def __init__(self, selector: BaseSelector, in_any_case: ExitStack) -> None:
        self._pipe, self.file = os.pipe()
        for file in self._pipe, self.file:
            in_any_case.callback(os.close, file)
        os.set_blocking(self._pipe, False)
        selector.register(self._pipe, selectors.EVENT_READ, self)
        self._first, self._last = bytearray(), bytearray()
        self.size = 0

    def ready(self) -> bool:
        """Read what is there; whether there was anything."""
        with suppress(BlockingIOError):
            data = os.read(self._pipe, 1 << 16)
            room = KEPT - len(self._first)
            self._first += data[:room]
            self._last += data[room:]
            self.size += len(data)
            if len(self._last) > 2 * KEPT:
                del self._last[:-KEPT]
            return bool(data)
        return False

    def drain(self) -> None:
        """Read what is left; do not wait for what is still being written."""
        for _ in range(20):
            if not self.ready():
                break

    def text(self) -> str:
        parts = [self._first, self._last[-KEPT:]]
        left_out = self.size - sum(map(len, parts))
        if left_out:
            note = (f'\n… ({left_out:,} bytes are left out; the first and '
                    f'the last {KEPT:,} bytes of a process are kept) …\n')
            parts.insert(1, bytearray(note.encode()))
        return b''.join(parts).decode(errors='replace')


def wait_for_output(first: Popen[bytes], selector: BaseSelector,
                    outputs: Sequence[Output], seconds: float) -> None:
    """Wait until all have ended, or some seconds after the first output."""
    end = time.monotonic() + LIFE
    while first.poll() is None and time.monotonic() < end:
        serve(selector, 0.05)
        if any(output.size for output in outputs):
            end, seconds = min(end, time.monotonic() + seconds), LIFE


def end_first(first: Popen[bytes]) -> None:
    """End the first process, which ends all others."""
    first.terminate()
    try:
        first.wait(GOODBYE)
    except subprocess.TimeoutExpired:  # their alarm clocks end the others
        first.kill()
        first.wait()


def remove_sockets(ports: Iterable[int]) -> None:
    """Remove the sockets that a killed process has left."""
    for path in map(socket_of, ports):
        if os.path.exists(path):
            os.unlink(path)


def run_first() -> None:
    """Be the first process, which forks the others and ends them all.

    MXNet takes a second to load; the others are forked with it.
    """
    script, jobs = json.load(sys.stdin)
    pids, pid = {}, None
    for name in ENDS:
        signal.signal(signal.Signals[name], lambda *_: sys.exit())
    descendants.adopt()
    if may_be_forked(store=True):
        importlib.import_module('mxnet')
        gc.freeze()  # or each of the others looks through all of it at its end
    try:
        for job in jobs:
            if job[0] == 'scheduler':  # the last: see `mxnet_server.serve`
                time.sleep(REGISTERING)
            pid = os.fork()
            if not pid:
                break
            pids[pid] = job[0]
        while pid and 'worker' in pids.values():
            pids.pop(os.wait()[0], None)  # it may be an orphan's
    finally:
        if pid != 0:  # we are not one of them
            end_all(pids)
    if not pid:
        become(script, *job)


def end_all(pids: Iterable[int]) -> None:
    """End the processes that were forked, and what these have started."""
    for name in ENDS:  # once is enough
        signal.signal(signal.Signals[name], signal.SIG_IGN)
    for pid in pids:
        with suppress(OSError):  # we have waited for it: it is ours no more
            if os.waitpid(pid, os.WNOHANG) == (0, 0):  # it runs
                with suppress(OSError):  # it leads no group yet
                    os.killpg(pid, signal.SIGKILL)
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    descendants.end_children()


def become(script: str, role: str, port: int, file: int) -> None:
    """Be one of MXNet's processes."""
    for name in ENDS:
        signal.signal(signal.Signals[name], signal.SIG_DFL)
    signal.alarm(LIFE)
    os.setsid()
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ |= {'DMLC_ROLE': role, 'PORT': str(port)}
    sys.modules['__main__'] = main = types.ModuleType('__main__')
    if role != 'worker':  # what `import mxnet` does in a new process
        script = ('import mxnet\n'
                  'mxnet.kvstore.kvstore_server._init_kvstore_server_module()')
    try:
        exec(compile(script, '<string>', 'exec'), main.__dict__)
    except Exception as error:  # the traceback begins in the script
        trace = error.__traceback__
        traceback.print_exception(error.with_traceback(
            trace and trace.tb_next))
        sys.exit(1)
