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
from d2lps.cluster.processes.cells import pack, unpack

BAD = {'do': 'dance'}


class Process:
    """A process of a cluster, whose group is this test."""

    def __init__(self, folder, role, *messages):
        job = {'role': role, 'rank': 0, 'name': role, 'path': sys.path,
               'folder': str(folder), 'lab': {'hosts': [], 'bandwidth': 1e6,
               'delay': 0},
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
        self._rest, self._lines = b'', []

    def hears(self, wanted, seconds=20):
        """The first message from it of the kind `wanted`."""
        end = time.monotonic() + seconds
        while True:
            while self._lines:
                message = json.loads(self._lines.pop(0))
                if message['kind'] == wanted:
                    return message
            output = self.process.stdout
            data = (select.select([output], [], [],
                                  max(0, end - time.monotonic()))[0]
                    and os.read(output.fileno(), 1 << 16))
            assert data, f'it has not said {wanted}'
            *self._lines, self._rest = (self._rest + data).split(b'\n')

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


def test_a_worker_that_is_asked_at_once_to_call_a_function(start):
    call = {'do': 'call', 'number': 7, 'packed': pack((len, ['ab'], {}))}
    worker = start('worker', call, BAD)
    assert 'dance' in worker.hears('broken')['text']
    part = worker.hears('part')
    assert part['number'] == 7 and unpack(part['text']) == 2
    assert worker.hears('done') == {'kind': 'done', 'number': 7}


def test_a_server_that_is_asked_at_once_to_load_an_optimizer(start):
    server = start('server', {'do': 'check'}, BAD)
    assert 'dance' in server.hears('broken')['text']


@pytest.mark.parametrize('role', ['scheduler', 'keeper', 'network'])
def test_what_a_process_cannot_understand_is_reported(start, role):
    if role == 'network' and sys.platform != 'linux':
        pytest.skip('the network lab needs Linux')
    one = start(role, BAD)
    assert 'KeyError' in one.hears('broken')['text']
