"""MXNet's store without the layer: what it does, and that it ends."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from clusters import HANGS
from d2lps.cluster import bare
from d2lps.cluster.bare import bare_mxnet
from d2lps.cluster.processes.sockets import socket_of

pytestmark = pytest.mark.full

START = """
import mxnet as mx
kv = mx.kv.create('dist_sync')
out = mx.nd.zeros(2)
"""


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch):
    """Neither processes nor sockets."""
    taken, free_ports = [], bare.UnixSocketPlaces.free_ports

    def noted(self, n):
        taken.extend(free_ports(self, n))
        return taken

    monkeypatch.setattr(bare.UnixSocketPlaces, 'free_ports', noted)
    yield
    assert not [p for p in psutil.process_iter(['environ']) if (
        p.info['environ'] or {}).get('DMLC_PS_ROOT_PORT') in map(str, taken)]
    assert not [port for port in taken if os.path.exists(socket_of(port))]


def test_workers_that_end_by_themselves():
    """And nobody else can connect with them."""
    outputs = bare_mxnet(START + """
kv.init(0, out)
kv.push(0, mx.nd.full(2, kv.rank + 1))
kv.pull(0, out)
import os, psutil, stat
mode = os.stat('/tmp/' + os.environ['PORT']).st_mode
print(kv.rank, *out.asnumpy(), stat.filemode(mode),
      psutil.Process().net_connections('inet'))
""", seconds=40)
    assert sorted(outputs) == [f'{rank} 3.0 3.0 srwx------ []\n'
                               for rank in (0, 1)]


def test_the_script_is_not_for_everybody_and_may_be_long():
    outputs = bare_mxnet(f'secret = "{"x" * 200_000}"' + START + """
import os, sys, psutil
sys.stdout.buffer.write(b'\\xff ')
print(len(secret), any('xxx' in word for one in psutil.Process().parents()
                       for word in one.cmdline()))
""", num_workers=1, seconds=40)
    assert outputs == ['\ufffd 200000 False\n']


def test_workers_without_end_are_ended():
    outputs = bare_mxnet(START + """
kv.init(0, out)
if kv.rank == 0:
    kv.push(0, out)
    kv.pull(0, out)
    print('waits', flush=True)
print(kv.rank, *out.asnumpy(), flush=True)
""", seconds=1)
    # Worker 1 would end; it waits for worker 0 at its exit.
    assert sorted(outputs) == ['1 0.0 0.0\n', 'waits\n']


def test_an_error_of_a_worker_is_in_its_output():
    outputs = bare_mxnet(START + 'this_is_no_name', num_workers=1, seconds=0.5)
    assert "NameError: name 'this_is_no_name' is not defined" in outputs[0]


LEAVES = """
import os, subprocess, time
for leave in False, True:
    one = subprocess.Popen(['sleep', '200'], start_new_session=leave)
    print(one.pid, flush=True)
    pid = os.fork()
    if not pid:
        if leave:
            os.setsid()
        time.sleep(200)
    print(pid, flush=True)
"""


@pytest.mark.parametrize('end, seconds', [('', 30), ('time.sleep(200)', 1)])
def test_what_a_script_has_started_ends(end, seconds):
    """The script may end before, and so leave orphans, or not."""
    [output] = bare_mxnet(LEAVES + end, num_workers=1, seconds=seconds)
    pids = [*map(int, output.split())]
    assert len(pids) == 4
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def test_all_ends_where_the_reader_ignores_the_end_of_its_children():
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        [output] = bare_mxnet(LEAVES, num_workers=1, seconds=30)
    finally:
        signal.signal(signal.SIGCHLD, before)
    pids = [*map(int, output.split())]
    assert len(pids) == 4
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def test_one_that_was_waited_for_keeps_no_other_from_its_end():
    """A signal may come before we note that; its number is free then."""
    code = '''
import os, time
from d2lps.cluster import bare

def fork(seconds):
    pid = os.fork()
    if not pid:
        os.closerange(1, 3)
        time.sleep(seconds)
        os._exit(0)
    return pid

gone = fork(0)
os.waitpid(gone, 0)
killed, kill = [], os.kill
os.kill = lambda pid, number: (killed.append(pid), kill(pid, number))
pids = dict.fromkeys([gone, fork(600), fork(600)], 'worker')
bare.end_all(pids)
assert killed == [*pids][1:], (killed, pids)
assert bare.descendants.children() == []
'''
    done = subprocess.run([sys.executable, '-c', code], text=True,
                          capture_output=True, timeout=HANGS,
                          cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr


def test_of_much_the_beginning_and_the_end_are_kept():
    """And how much that is, keeps nobody from writing it."""
    [output] = bare_mxnet("""
print('begins')
for _ in range(100):
    print('x' * 500_000)
print('ends')
""", num_workers=1, seconds=60)
    assert output.startswith('begins\nxxx') and output.endswith('xxx\nends\n')
    size = len('begins\n') + 100 * 500_001 + len('ends\n')
    assert f'{size - 2 * bare.KEPT:,} bytes are left out' in output
    assert len(output) < 2 * bare.KEPT + 200


def test_what_is_written_without_end():
    [output] = bare_mxnet("while True: print('x' * 100_000)", num_workers=1,
                          seconds=0.5)
    assert output.startswith('xxx') and len(output) < 2 * bare.KEPT + 200


@pytest.mark.parametrize('fault, words', [
    ('os.fork = fail', 'Resource temporarily unavailable\nMost often, .*ulim'),
    ('os.abort()', 'was ended by SIGABRT')])
def test_what_cannot_start(monkeypatch, fault, words):
    files = os.listdir('/dev/fd')
    monkeypatch.setattr(bare, 'FIRST', f"""
import os
def fail():
    raise BlockingIOError(11, os.strerror(11))
{fault}
{bare.FIRST}""")
    with pytest.raises(OSError, match='the processes could not be started: '
                       f'the first of them (?s:.*){words}'):
        bare_mxnet('print(1)')
    assert len(os.listdir('/dev/fd')) == len(files)


@pytest.mark.parametrize('owner, name', [
    ('subprocess', 'Popen'), ('tempfile', 'TemporaryFile'), ('os', 'pipe'),
    ('selectors', 'DefaultSelector'), ('json', 'dump')])
def test_what_the_reader_has_not(monkeypatch, owner, name):
    files = os.listdir('/dev/fd')

    def fail(*args, **more):
        raise OSError(28, os.strerror(28))
    with monkeypatch.context() as patch:
        patch.setattr(f'{owner}.{name}', fail)
        with pytest.raises(OSError, match='the processes could not be started:'
                           ' No space left on device. '):
            bare_mxnet('print(1)')
    assert len(os.listdir('/dev/fd')) == len(files)
