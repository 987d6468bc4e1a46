"""MXNet's distributed store as it comes, to see what it does by itself."""
import os
import subprocess
import sys
import tempfile
import time
from functools import partial

from d2lps.checks import checked, positive, text, whole
from d2lps.cluster.processes.places import Private
from d2lps.cluster.processes.sockets import socket_of

LIFE = 60  # seconds; the kernel's alarm clock ends what lives longer


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
    ports = Private(num_workers, 1).free_ports(2 + num_workers)
    env = {**os.environ, **Private.env, 'DMLC_NUM_SERVER': '1',
           'DMLC_NUM_WORKER': str(num_workers), 'DMLC_NODE_HOST': '127.0.0.1',
           'DMLC_PS_ROOT_URI': '127.0.0.1',
           'DMLC_PS_ROOT_PORT': str(ports[0])}
    roles = ['scheduler', 'server'] + ['worker'] * num_workers
    outputs = [tempfile.TemporaryFile('w+') for _ in roles]
    members = []
    try:
        for port, role, output in zip(ports, roles, outputs):
            code = script if role == 'worker' else 'import mxnet'
            members.append(subprocess.Popen(
                [sys.executable, '-u', '-c',
                 f'import signal; signal.alarm({LIFE})\n{code}'],
                env={**env, 'DMLC_ROLE': role, 'PORT': str(port)},
                umask=0o077, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True))
        wait(members[2:], outputs[2:], seconds)
    finally:
        for member in members:
            member.kill()
            member.wait()
        for path in map(socket_of, ports):  # which a killed process leaves
            if os.path.exists(path):
                os.unlink(path)
    for output in outputs:
        output.seek(0)
    return [output.read() for output in outputs[2:]]


def wait(members, outputs, seconds):
    """Wait for all to end, or so long after the first has written a line."""
    end = time.monotonic() + LIFE
    while (any(member.poll() is None for member in members)
           and time.monotonic() < end):
        if any(os.fstat(output.fileno()).st_size for output in outputs):
            end, seconds = min(end, time.monotonic() + seconds), LIFE
        time.sleep(0.05)
