"""A cluster over OpenSSH's real server, on three "machines"."""
import subprocess
import sys
from pathlib import Path

import opensshlab
import pytest

pytestmark = pytest.mark.full

# Runs on the reader's machine of the lab; see `opensshlab`.
SCRIPT = f'''
import os, signal, sys, threading, time
from pathlib import Path
sys.path[:0] = [{str(Path(__file__).parents[2])!r}]
import psutil
from d2lps.cluster import Cluster, ClusterError
from d2lps.cluster.hosts import machines

LAB = os.environ['LAB']
# The cables of these machines are short: notice all sooner.
SSH = ['ssh', '-F', LAB + '/config', '-o', 'ServerAliveInterval=1']

def add_up():
    import mxnet as mx
    kv = mx.kv.create('dist_sync')
    kv.init('w', mx.np.zeros(3))
    out = mx.np.zeros(3)
    kv.pushpull('w', mx.np.ones(3) * (kv.rank + 1), out=out)
    return os.environ['MACHINE'], kv.rank, out.tolist()

def listening():
    return [(one.laddr.ip, one.laddr.port)
            for one in psutil.net_connections('tcp')
            if one.status == psutil.CONN_LISTEN and one.laddr.port != 22]

def error_of(function):
    try:
        function()
    except ClusterError as error:
        return str(error)
    raise AssertionError('nothing failed')

def nothing_is_left():
    end = time.monotonic() + 60
    while True:
        left = os.listdir(os.environ['TMPDIR'])
        for one in psutil.process_iter():
            try:
                if (one.pid != os.getpid()
                        and one.environ().get('LAB') == LAB):
                    left.append(' '.join(one.cmdline()))
            except psutil.Error:
                pass
        if not left:
            return
        assert time.monotonic() < end, left
        time.sleep(0.1)

# Work, Ctrl-C, and a death.
ports = range(20_500, 20_535)
with Cluster(2, 3, hosts=['one', 'two'], server_hosts=['three'], ssh=SSH,
             ports=ports) as c:
    for _ in range(2):  # each time with new servers
        assert c.run(add_up) == [('one', 0, [3] * 3), ('two', 1, [3] * 3)]
    far = [found for found in sum(c.run(listening), [])
           if found[0] != '127.0.0.1']
    assert far and {{port for _, port in far}} <= {{*ports}}, far
    assert {{ip for ip, _ in far}} == {{'10.9.0.1', '10.9.0.2'}}, far
    threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT]).start()
    try:
        c.run(time.sleep, 60)
    except KeyboardInterrupt:
        pass
    assert len(c.run(add_up)) == 2
    c.kill('worker 0')
    found = error_of(lambda: c.run(time.sleep, 60))
    assert 'on one) was ended by SIGKILL' in found, found
nothing_is_left()

# A cable that is pulled: nobody tells, and each end has to notice it.
machines.SILENCE = 4.0
with Cluster(1, 1, hosts=['one'], server_hosts=['three'], ssh=SSH) as c:
    from pyroute2 import IPRoute
    with IPRoute() as ip:
        [index] = ip.link_lookup(ifname='three')
        ip.link('set', index=index, state='down')
    found = error_of(lambda: c.run(time.sleep, 60))
    assert 'host three lost its connection' in found, found
nothing_is_left()

found = error_of(lambda: Cluster(1, 0, hosts=['stranger'], ssh=SSH))
assert 'Permission denied' in found, found
'''


def test_a_cluster_over_openssh(tmp_path):
    if problem := opensshlab.problem():
        pytest.skip(problem)
    script = tmp_path / 'script.py'
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, opensshlab.__file__, str(tmp_path), str(script)],
        text=True, capture_output=True, timeout=400)
    assert done.returncode == 0, done.stderr
