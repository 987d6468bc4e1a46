"""A cluster on several machines, with a program that stands for ssh.

Its machines are this one under other names (see `fakessh`); `test_openssh`
has a cluster over OpenSSH's real server.
"""
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import mxnet as mx
import psutil
import pytest
from clusters import HANGS, empty_in_the_end, wait_for
from d2lps.cluster import Cluster, ClusterError
from d2lps.cluster.hosts import machines
from mxnet import np

pytestmark = pytest.mark.full

cloudpickle.register_pickle_by_value(sys.modules[__name__])
SSH = [sys.executable, str(Path(__file__).with_name('fakessh.py'))]


def far_processes():
    """What runs as if it were on another machine of this test's."""
    found = []
    for process in psutil.process_iter():
        try:
            env = process.environ()
            if 'MACHINE' in env and env.get('LAB') == os.environ['LAB']:
                found.append(process)
        except psutil.Error:  # it has ended, or is not ours
            pass
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """In the end, no process and no file may be left."""
    monkeypatch.setenv('LAB', str(tmp_path))
    with empty_in_the_end(monkeypatch):
        yield tmp_path
    assert wait_for(lambda: not far_processes()), far_processes()


def make(*args, hosts=('one', 'two'), **kwargs):
    return Cluster(*args, hosts=hosts, ssh=SSH, **kwargs)


def add_up():
    kv = mx.kv.create('dist_sync')
    kv.init('w', np.zeros(3))
    out = np.zeros(3)
    kv.pushpull('w', np.ones(3) * (kv.rank + 1), out=out)
    return kv.rank, os.getpid(), os.environ['MACHINE'], out.tolist()


def machine():
    return os.environ['MACHINE']


def test_workers_and_servers_are_spread_over_the_machines():
    ports = range(20_500, 20_530)

    def listening():
        return [one.laddr for one in psutil.Process().net_connections()
                if one.status == psutil.CONN_LISTEN]
    with make(4, 3, ports=ports) as c:
        pids = c.pids
        assert c.run(add_up) == [
            (rank, pids[f'worker {rank}'], ('one', 'two')[rank % 2], [10] * 3)
            for rank in range(4)]
        assert [psutil.Process(pids[f'server {k}']).environ()['MACHINE']
                for k in range(3)] == ['one', 'two', 'one']
        assert len(c.run(add_up)) == 4  # with new servers
        found = sum(c.run(listening), [])
        assert {address.ip for address in found} == {'127.0.0.2', '127.0.0.3'}
        assert {address.port for address in found} <= {*ports}
        with pytest.raises(ValueError, match='with hosts=, the bytes on'):
            c.traffic()


def test_ctrl_c_and_the_death_of_a_worker():
    def die():
        os.write(2, b'I am going\n')
        os._exit(7)
    with make() as c:
        threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            c.run(time.sleep, HANGS)
        pid = c.pids['worker 1']
        with pytest.raises(ClusterError) as error:
            c.run(lambda: die() if machine() == 'two' else time.sleep(HANGS))
        for words in (f'worker 1 (process {pid} on two) ended with exit code '
                      '7', '    I am going', 'worker 0: busy'):
            assert words in str(error.value)


def test_a_machine_that_is_lost_for_good(folder):
    """Its worker is lost, and its server moves."""
    with make(2, 2, restarts=3, elastic=True) as c:
        assert c.run(machine) == ['one', 'two']
        (folder / 'two.gone').touch()
        c.kill('host two', signal.SIGTERM)
        assert wait_for(lambda: c.deaths)
        assert c.run(machine) == ['one'] and c.num_workers == 1
        assert [death.who for death in c.deaths] == ['host two'] * 2
        assert c.deaths[1].why == 'could not be reached with ssh'
        assert [out for *_, out in c.run(add_up)] == [[1] * 3]
        assert 'server 1' in c.pids


def test_the_death_of_the_reader(folder):
    script = folder / 'reader.py'
    script.write_text(f'''
import os, signal
from d2lps.cluster import Cluster
c = Cluster(2, 0, hosts=['one', 'two'], ssh={SSH})
os.kill(os.getpid(), signal.SIGKILL)
''')
    done = subprocess.run([sys.executable, str(script)], timeout=HANGS,
                          cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL  # `folder` sees what is left


def test_machines_that_cannot_be_used(folder, monkeypatch):
    (folder / 'gone.gone').touch()
    bare = folder / 'python'
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)
    for words, options in {
            'host gone could not be reached with ssh\nthe last lines that '
            'host gone wrote:\n    ssh: connect to host gone port 22: '
            'Connection refused': dict(hosts=['one', 'gone']),
            '/no/python3: not found': dict(python='/no/python3'),
            'd2lps is not installed for': dict(python=str(bare))}.items():
        with pytest.raises(ClusterError) as error:
            make(**options)
        assert words in str(error.value)
    version = type('sys', (), {'version_info': (3, 9),
                               'executable': sys.executable})
    monkeypatch.setattr(machines, 'sys', version)
    with pytest.raises(ClusterError, match='and Python 3.9 on your machine: '
                       'they must be the same'):
        make()


def command(*args):
    return subprocess.run(
        [sys.executable, '-m', 'd2lps', 'cluster', '--ssh', shlex.join(SSH),
         *args], cwd=Path(__file__).parents[2], text=True,
        capture_output=True, timeout=HANGS)


def test_the_command(folder):
    script = folder / 'hello.py'
    script.write_text('import os, sys; print(os.environ["MACHINE"], sys.argv)')
    done = command('--num-servers', '0', '--hosts', 'two', str(script), 'you')
    assert done.stdout == f"[worker 0] two ['{script}', 'you']\n", done.stderr


def test_the_check(folder):
    done = command('--check', '--hosts', 'one,two')
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-1] == 'all is well', done
    assert 'ok    one reaches two' in lines
    (folder / 'two.gone').touch()
    done = command('--check', '--hosts', 'one,two')
    assert done.returncode == 1
    assert ('FAIL  two: SSH and Python: ssh: connect to host two port 22: '
            'Connection refused. Install and start its SSH server'
            ) in done.stdout.splitlines()


def test_without_servers():
    """Plans travel between the machines, and nobody listens then."""
    def summed():
        import d2lps
        from d2lps.collectives import strategies, travel
        peers, array = d2lps.join_peers(), np.ones(1000).asnumpy()
        travel.run(peers, strategies.ring(peers.num_workers), array)
        return float(array[-1]), machine(), [
            one for one in psutil.Process().net_connections()
            if one.status == psutil.CONN_LISTEN]
    with make(4, 0) as c:
        assert c.run(summed) == [(4.0, ('one', 'two')[rank % 2], [])
                                 for rank in range(4)]


@pytest.mark.parametrize('arguments, words', [
    (dict(hosts='lab1'), "it was 'lab1'"),
    (dict(hosts=['-oProxyCommand=x']), 'is no machine'),
    (dict(hosts=['a', 'b', 'a']), "'a' is in it more than once"),
    (dict(hosts=['a'], ssh='ssh -p 1'), "ssh must be a list such as ['ssh'"),
    (dict(hosts=['a'], ssh=['no-ssh']), 'there is no no-ssh'),
    (dict(hosts=['a'], address='192.0.2.1'), 'address must be an IPv4'),
    (dict(hosts=['a'], python=''), "python must be a path"),
    (dict(hosts=['a'], server_hosts=[]), 'server_hosts must be a list'),
    (dict(hosts=['a'], ports=range(2000, 2003)), 'ports must be a range of'),
    (dict(python='python3'), 'python needs hosts=')])
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError) as error:
        Cluster(**arguments)
    assert words in str(error.value)


LAN = dict(reader='127.0.0.1', address='127.0.0.1', ports=[20_000, 20_001])


@pytest.mark.parametrize('answers, wrong', [
    ([LAN, {**LAN, 'address': '10.0.0.2'}], 'only a part of the machines'),
    ([{**LAN, 'address': '10.0.0.2', 'reader': '192.0.2.9'}],
     'lab0 sees this machine as 192.0.2.9, which is not')])
def test_addresses_that_the_machines_cannot_use(answers, wrong):
    names = [f'lab{k}' for k in range(len(answers))]
    places = machines.SshPlaces(2, 1, names, ssh=['true'])
    for host, told in zip(places._hosts, answers):
        host.status = told
    with pytest.raises(ClusterError, match=wrong):
        places.use_answers()


def test_an_address_for_each_rank():
    addresses = ['10.9.0.1', '10.9.0.2', '192.168.1.7', '9.1.1.1']
    texts = [machines.address_for_rank(address, rank)
             for rank, address in enumerate(addresses)]
    assert texts == sorted(texts, reverse=True)
    assert texts[:3] == ['012.9.0.1', '0012.9.0.2', '000300.168.1.7']
