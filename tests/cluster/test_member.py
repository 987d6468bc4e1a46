"""What a process of a cluster hears and says, without a cluster."""
import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest
from d2lps.cluster.processes import member

BAD = {'do': 'dance'}


class Process:
    """A process of a cluster, whose group is this test."""

    def __init__(self, folder, role, *messages):
        job = {'role': role, 'rank': 0, 'name': role, 'path': sys.path,
               'folder': str(folder), 'lab': {'hosts': [], 'bandwidth': 1e6,
               'delay': 0}, 'listen': ['--transport=ipc', f'--ip={folder}/i'],
               'env': {
                   'DMLC_ROLE': role, 'DMLC_PS_ROOT_URI': '127.0.0.1',
                   'DMLC_PS_ROOT_PORT': '9', 'DMLC_NUM_WORKER': '1',
                   'DMLC_NUM_SERVER': '1', 'DMLC_NODE_HOST': '127.0.0.1'}}
        self.process = subprocess.Popen(
            [sys.executable, '-u', '-P', member.__file__], bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True)
        # All at once: they are there before the process can be ready.
        self.process.stdin.write(b''.join(
            json.dumps(message).encode() + b'\n'
            for message in (job, *messages)))

    def hears(self, wanted, seconds=20):
        """The first message from it of the kind `wanted`."""
        end, rest = time.monotonic() + seconds, b''
        while select.select([self.process.stdout], [], [],
                            max(0, end - time.monotonic()))[0]:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                break
            *lines, rest = (rest + data).split(b'\n')
            for line in map(json.loads, lines):
                if line['kind'] == wanted:
                    return line
        raise AssertionError(f'it has not said {wanted}')

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def start(tmp_path):
    started = []

    def start(*args):
        started.append(Process(tmp_path, *args))
        return started[-1]
    yield start
    for process in started:
        process.end()


def test_a_worker_that_hears_at_once_where_the_others_are(start):
    """As it does when the controller is ready before the worker."""
    worker = start('worker', {'do': 'connect', 'info': {}}, BAD)
    assert 'dance' in worker.hears('broken')['text']


def test_a_server_that_is_asked_at_once_to_load_an_optimizer(start):
    server = start('server', {'do': 'check'}, BAD)
    assert 'dance' in server.hears('broken')['text']


@pytest.mark.parametrize('role', ['scheduler', 'controller', 'network'])
def test_what_a_process_cannot_understand_is_reported(start, role):
    if role == 'network' and sys.platform != 'linux':
        pytest.skip('the network lab needs Linux')
    one = start(role, BAD)
    assert 'KeyError' in one.hears('broken')['text']
