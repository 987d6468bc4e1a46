"""What a process of a cluster hears and says, without a cluster."""
import json
import os
import platform
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from d2lps.cluster.processes.cells import pack, unpack
from d2lps.cluster.processes.member import Channel
from d2lps.cluster.processes.process import start_here

pytestmark = pytest.mark.full

BAD = {'do': 'dance'}


class Process:
    """A process of a cluster, whose keeper's line ends in this test."""

    def __init__(self, folder, role, *messages):
        job = {'role': role, 'rank': 0, 'name': role, 'host': 0, 'env': {
            'DMLC_ROLE': role, 'DMLC_PS_ROOT_URI': '127.0.0.1',
            'DMLC_PS_ROOT_PORT': '9', 'DMLC_NUM_WORKER': '1',
            'DMLC_NUM_SERVER': '1', 'DMLC_NODE_HOST': '127.0.0.1'}}
        begin = {'do': 'begin', 'folder': str(folder), 'path': sys.path}
        if role != 'keeper':
            messages = [{'do': 'start', 'number': 5, 'job': job}, *(
                {'do': 'pass', 'number': 5, 'message': message}
                for message in messages)]
        self.process = subprocess.Popen(
            start_here(), bufsize=0, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)
        # All at once: they are there before the process can be ready.
        self.process.stdin.write(b''.join(
            json.dumps(message).encode() + b'\n'
            for message in (begin, *messages)))
        self._rest, self._lines, self._messages = b'', [], []

    def hears(self, wanted, seconds=60):
        """The first message from it of the kind `wanted`."""
        end = time.monotonic() + seconds
        while True:
            for message in self._messages:  # the others may be asked for
                if message['kind'] == wanted:
                    self._messages.remove(message)
                    return message
            output = self.process.stdout
            data = (select.select([output], [], [],
                                  max(0, end - time.monotonic()))[0]
                    and os.read(output.fileno(), 1 << 16))
            assert data, f'it has not said {wanted}'
            *lines, self._rest = (self._rest + data).split(b'\n')
            for line in filter(None, lines):
                self._messages += json.loads(line)['keeper'].get(
                    'messages', ())

    def end(self):
        """It ends with its standard input; returns what it printed."""
        return self.process.communicate(timeout=120)[1].decode()


@pytest.fixture
def start(tmp_path):
    started = []

    def start(*args):
        started.append(Process(tmp_path, *args))
        return started[-1]
    yield start
    for process in started:
        if not process.process.stdin.closed:
            process.end()
        assert process.process.returncode is not None


def test_a_worker_that_is_asked_at_once_to_call_a_function(start):
    call = {'do': 'call', 'number': 7, 'packed': pack((len, ['ab'], {}))}
    worker = start('worker', call, BAD)
    assert 'dance' in worker.hears('broken')['text']
    part = worker.hears('part')
    assert part['number'] == 7 and unpack(part['text']) == 2
    assert worker.hears('done') == {'kind': 'done', 'number': 7}


def test_a_keeper_that_does_not_understand_ends(start):
    one = start('keeper', BAD)
    assert one.process.wait(30) == 1
    assert "KeyError: 'dance'" in one.end()


HEAP = """
import os, subprocess, sys
from d2lps.cluster.processes.process import MEMORY
print(subprocess.run([sys.executable, '-c', '''
part = open('/proc/self/smaps').read().split('[heap]')[1]
print(part.split('VmFlags:')[1].splitlines()[0].split())
'''], env=os.environ | MEMORY, capture_output=True, text=True).stdout)
"""
HUGE = Path('/sys/kernel/mm/transparent_hugepage/enabled')


@pytest.mark.skipif(not HUGE.exists() or '[madvise]' not in HUGE.read_text()
                    or platform.libc_ver() < ('glibc', '2.35'),
                    reason='this system gives no huge pages when asked')
@pytest.mark.parametrize('own, huge', [
    (None, True),
    ('glibc.malloc.hugetlb=0', False)])
def test_memory_of_a_process_is_in_huge_pages(own, huge):
    """Unless the user has set that it shall not be."""
    env = {name: value for name, value in os.environ.items()
           if name != 'GLIBC_TUNABLES'}
    flags = subprocess.run(
        [sys.executable, '-c', HEAP], check=True, text=True,
        capture_output=True,
        env=env | ({'GLIBC_TUNABLES': own} if own else {})).stdout
    assert ("'hg'" in flags) == huge and "'rd'" in flags


def test_ctrl_c_while_a_long_message_is_written():
    """Half a line would end the cluster."""
    heard, says = os.pipe()
    hears, _ = os.pipe()
    lines = []

    def read():
        time.sleep(0.5)  # until then the pipe is full
        with open(heard, 'rb') as file:
            lines.extend(file)
    reader = threading.Thread(target=read)
    reader.start()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        Channel({}, hears, says).ask(call='x', update='z' * 1_000_000)
    os.close(says)
    reader.join()
    assert [json.loads(line)['kind'] for line in lines] == [
        'question', 'cancel']
