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
from functools import partial

from d2lps.checks import checked, positive, text, whole
from d2lps_cluster.processes.member import may_be_forked
from d2lps_cluster.processes.places import Private
from d2lps_cluster.processes.sockets import socket_of

REGISTERING = 0.2  # seconds for a script to create its store
LIFE = 60  # seconds; the kernel's alarm clock ends what lives longer
ENDS = 'SIGTERM', 'SIGALRM'
FIRST = f'''import signal; signal.alarm({LIFE})
from d2lps_cluster import bare; bare.first()'''


@checked(script=text, num_workers=partial(whole, most=8), seconds=positive)
def bare_mxnet(script, num_workers=2, seconds=3):
    """Run a script on workers of MXNet, with a server and without our layer.

    Each process ends when all workers have, or `seconds` after a worker has
    written its first line, and after 60 seconds in any case. They talk over
    Unix sockets that only this user can open.

    Args:
        script: Python code, which creates its store itself.
        num_workers: how many processes run it, at most 8.

    Returns:
        What each process of a worker has written, a list of str. Their
        order is not that of the ranks.
    """
    importlib.util.find_spec('mxnet')  # says if it is missing
    ports = Private(num_workers, 1).free_ports(2 + num_workers)
    env = {**os.environ, **Private.env, 'DMLC_NUM_SERVER': '1',
           'DMLC_NUM_WORKER': str(num_workers), 'DMLC_NODE_HOST': '127.0.0.1',
           'DMLC_PS_ROOT_URI': '127.0.0.1', 'DMLC_ROLE': 'worker',
           'DMLC_PS_ROOT_PORT': str(ports[-1])}
    roles = ['server'] + ['worker'] * num_workers + ['scheduler']
    outputs = [tempfile.TemporaryFile('w+', errors='replace') for _ in roles]
    files = [output.fileno() for output in outputs]
    # In a file, as everybody can read the arguments of a process.
    with tempfile.TemporaryFile('w+') as task:
        json.dump([script, [*zip(roles, ports, files)]], task)
        task.seek(0)
        first = subprocess.Popen(
            [sys.executable, '-u', '-c', FIRST], env=env, umask=0o077,
            stdin=task, pass_fds=files, start_new_session=True)
    try:
        wait(first, files[1:-1], seconds)
    finally:
        first.terminate()
        first.wait()
        for path in map(socket_of, ports):  # which a killed process leaves
            if os.path.exists(path):
                os.unlink(path)
    for output in outputs:
        output.seek(0)
    return [output.read() for output in outputs[1:-1]]


def wait(first, files, seconds):
    """Wait for all to end, or so long after a worker has written a line."""
    end = time.monotonic() + LIFE
    while first.poll() is None and time.monotonic() < end:
        if any(os.fstat(file).st_size for file in files):
            end, seconds = min(end, time.monotonic() + seconds), LIFE
        time.sleep(0.05)


def first():
    """Be the first process, which forks the others and ends them all.

    MXNet takes a second to load, and the others find it loaded.
    """
    script, jobs = json.load(sys.stdin)
    pids = {}
    for name in ENDS:
        signal.signal(signal.Signals[name], lambda *_: sys.exit())
    if may_be_forked(store=True):
        importlib.import_module('mxnet')
        gc.freeze()  # or each of the others looks through all of it at its end
    try:
        for job in jobs:
            if job[0] == 'scheduler':  # the last: see `server.serve`
                time.sleep(REGISTERING)
            pid = os.fork()
            if not pid:
                pids.clear()  # they are not ours
                break
            pids[pid] = job[0]
        while 'worker' in pids.values():
            del pids[os.wait()[0]]
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    if not pid:
        be(script, *job)


def be(script, role, port, file):
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
    except Exception as error:  # without this line of ours
        traceback.print_exception(error.with_traceback(
            error.__traceback__.tb_next))
        sys.exit(1)
