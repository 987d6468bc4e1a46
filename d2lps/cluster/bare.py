"""MXNet's distributed store as it comes, to see what it does by itself."""
import gc
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import IO, NoReturn

from d2lps.checks import checked, integer, positive, text
from d2lps.cluster.processes import descendants
from d2lps.cluster.processes.addresses import UnixSocketPlaces
from d2lps.cluster.processes.member import may_be_forked
from d2lps.cluster.processes.shortage import advice_for, explain_shortage
from d2lps.cluster.processes.sockets import socket_of

MOST = 1_000_000  # bytes that a worker may write
ENDING = 10  # seconds for the first process to end all
CREATING = 0.2  # seconds for a script to create its store
LIFE = 60  # seconds
FIRST = 'from d2lps.cluster import bare; bare.run_first()'


@checked(script=text, num_workers=partial(integer, most=8), seconds=positive)
def bare_mxnet(script: str, num_workers: int = 2,
               seconds: float = 3) -> list[str]:
    """Run a script on workers of MXNet, with a server and without our layer.

    All processes end when all workers have ended; or `seconds` after a worker
    has written its first line; or when a worker has written a million bytes;
    and after 60 seconds in any case. What the script has started ends, too
    (on a Mac, unless it has left the process group of a worker). They talk
    over Unix sockets that only this user can open.

    Args:
        script: Python code, which creates its store itself.
        num_workers: how many processes run it, at most 8.

    Returns:
        What each process of a worker has written, a list of str. Their
        order is not that of the ranks.

    Raises:
        OSError: if the processes cannot start; it says what ran out.
    """
    return [output for output, _ in run(script, num_workers, seconds)]


def run(script: str, num_workers: int,
        seconds: float) -> list[tuple[str, int | None]]:
    """Run a script as `bare_mxnet` does.

    Returns (what it has written, its exit code) for each worker. The exit
    code is None if the worker did not end by itself.
    """
    importlib.util.find_spec('mxnet')  # says if it is missing
    ports = UnixSocketPlaces(num_workers, 1).free_ports(2 + num_workers)
    env = {**os.environ, **UnixSocketPlaces.env, 'DMLC_NUM_SERVER': '1',
           'DMLC_NUM_WORKER': str(num_workers), 'DMLC_NODE_HOST': '127.0.0.1',
           'DMLC_PS_ROOT_URI': '127.0.0.1', 'DMLC_ROLE': 'worker',
           'DMLC_PS_ROOT_PORT': str(ports[-1])}
    with explain_shortage('the processes could not be started'):
        first = subprocess.Popen(
            [sys.executable, '-u', '-c', FIRST], env=env, umask=0o077,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:  # everybody could read the script among the arguments of a process
        results, errors = first.communicate(
            json.dumps([script, ports, seconds]), timeout=2 * LIFE)
    finally:
        first.terminate()  # it runs after Ctrl-C, and then ends all others
        try:
            first.wait(ENDING)
        except subprocess.TimeoutExpired:  # their alarm clocks end the others
            first.kill()
            first.wait()
        for path in map(socket_of, ports):  # a killed process leaves its own
            with suppress(FileNotFoundError):
                os.unlink(path)
    if first.returncode:
        lines = errors.strip().split('\n')[-3:]
        raise OSError('\n'.join(filter(None, (
            'the processes could not be started:', *lines,
            advice_for(errors)))))
    return [(output, code) for output, code in json.loads(results)]


def run_first() -> None:
    """Be the first process, which forks the others and ends them all.

    MXNet takes a second to load; the others are forked with it.
    """
    script, ports, seconds = json.load(sys.stdin)
    roles = ['server'] + ['worker'] * (len(ports) - 2) + ['scheduler']
    first, pids, codes = os.getpid(), list[int](), dict[int, int]()
    outputs = [tempfile.TemporaryFile() for _ in roles]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    descendants.adopt()
    if may_be_forked(store=True):
        importlib.import_module('mxnet')
        gc.freeze()  # or each of the others looks through all of it at its end
    try:
        for role, port, output in zip(roles, ports, outputs):
            if role == 'scheduler':  # the last: see `mxnet_server.serve`
                time.sleep(CREATING)
            pids.append(os.fork() or become(script, role, port, output))
        watch(pids[1:-1], outputs[1:-1], seconds, codes)
    finally:
        if os.getpid() == first:
            end_all(pids)
    print(json.dumps([(text_of(output), codes.get(pid)) for pid, output
                      in [*zip(pids, outputs)][1:-1]]))


def watch(workers: Sequence[int], outputs: Sequence[IO[bytes]],
          seconds: float, codes: dict[int, int]) -> None:
    """Wait as `bare_mxnet` says, and put the workers' exit codes in `codes`.

    workers: their process ids, which are the keys of `codes`.
    """
    end, written = time.monotonic() + LIFE, 0
    while (len(codes) < len(workers) and written <= MOST
           and time.monotonic() < end):
        time.sleep(0.02)
        pid, status = os.waitpid(-1, os.WNOHANG)  # a server's, or an orphan's
        if pid in workers:
            codes[pid] = os.waitstatus_to_exitcode(status)
        before, written = written, max(
            os.fstat(output.fileno()).st_size for output in outputs)
        if written and not before:
            end = min(end, time.monotonic() + seconds)


def end_all(pids: Sequence[int]) -> None:
    """End the processes that were forked, and what these have started."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    for pid in pids:
        with suppress(OSError):  # we have waited for it: it is ours no more
            if os.waitpid(pid, os.WNOHANG) == (0, 0):  # it runs
                os.kill(pid, signal.SIGKILL)
                os.killpg(pid, signal.SIGKILL)  # if it leads one by now
    descendants.end_children()


def become(script: str, role: str, port: int, output: IO[bytes]) -> NoReturn:
    """Be one of MXNet's processes, and end as Python does."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.alarm(LIFE + ENDING)  # if the first process has been killed
    os.setsid()
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
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
    sys.exit()


def text_of(output: IO[bytes]) -> str:
    """The text that a process has written, or the beginning of a long one."""
    output.seek(0)
    written = output.read(MOST).decode(errors='replace')
    if output.read(1):
        written += f'\n… (what was written after {MOST:,} bytes is left out)\n'
    return written
