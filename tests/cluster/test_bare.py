"""MXNet's store without the layer: what it does, and that it ends."""
import os

import psutil
import pytest
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
    """None has to be ended, and nobody else can connect with them."""
    results = bare.run(START + """
kv.init(0, out)
kv.push(0, mx.nd.full(2, kv.rank + 1))
kv.pull(0, out)
import os, psutil, stat
mode = os.stat('/tmp/' + os.environ['PORT']).st_mode
print(kv.rank, *out.asnumpy(), stat.filemode(mode),
      psutil.Process().net_connections('inet'))
""", num_workers=2, seconds=bare.LIFE)
    assert sorted(results) == [(f'{rank} 3.0 3.0 srwx------ []\n', 0)
                               for rank in (0, 1)]


def test_workers_without_end_are_ended():
    results = bare.run(START + """
kv.init(0, out)
if kv.rank == 0:
    kv.push(0, out)
    kv.pull(0, out)
    print('waits', flush=True)
print(kv.rank, *out.asnumpy(), flush=True)
""", num_workers=2, seconds=1)
    # Worker 1 would end; it waits for worker 0 at its exit.
    assert sorted(results) == [('1 0.0 0.0\n', None), ('waits\n', None)]


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


def test_what_a_script_has_started_ends():
    """The script ends before, and so leaves orphans."""
    [output] = bare_mxnet(LEAVES, num_workers=1, seconds=30)
    pids = [*map(int, output.split())]
    assert len(pids) == 4
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def test_a_worker_that_writes_without_end_is_ended():
    [(output, code)] = bare.run("""
print('begins')
while True:
    print('x' * 500_000)
""", num_workers=1, seconds=bare.LIFE)
    beginning, note = output[:bare.MOST], output[bare.MOST:]
    assert beginning.startswith('begins\nxxx') and code is None
    assert note == '\n… (what was written after 1,000,000 bytes is left out)\n'


def test_what_cannot_start(monkeypatch):
    files = os.listdir('/dev/fd')
    monkeypatch.setattr(bare, 'FIRST', f"""
import os
def fail():
    raise BlockingIOError(11, os.strerror(11))
os.fork = fail
{bare.FIRST}""")
    with pytest.raises(OSError, match='the processes could not be started:\n'
                       '(?s:.*)Resource temporarily unavailable\nMost often, '
                       '.*ulimit'):
        bare_mxnet('print(1)')
    assert len(os.listdir('/dev/fd')) == len(files)
