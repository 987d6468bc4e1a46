"""A cluster over SSH, on two "machines" (see `sshlab`).

What a test gives to `lab` runs there, in a process of its own, as a program
of the reader's.  What is `alike` is also in `test_openssh`, in the same words,
and runs here only where that cannot.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import opensshlab
import pytest
import sshlab
from clusters import run_body, running
from d2lps.cluster import Cluster, ClusterError
from d2lps.cluster.processes import probe
from d2lps.cluster.hosts import machines, ssh_command

pytestmark = pytest.mark.full

PRELUDE = '''
import os, signal, sys, threading, time
from contextlib import contextmanager
import psutil
from d2lps.cluster import Cluster, ClusterError, WorkerError
from d2lps.cluster.hosts import machines

def make(*args, hosts=('one', 'two'), ssh=ssh, **kwargs):
    return Cluster(*args, hosts=hosts, ssh=ssh, **kwargs)

def later(seconds, function, *args):
    timer = threading.Timer(seconds, function, args)
    timer.daemon = True
    timer.start()

@contextmanager
def fails(*words):
    start = time.monotonic()
    try:
        yield
    except ClusterError as error:
        print(error)
        assert all(word in str(error) for word in words), words
    else:
        assert False, 'nothing failed'
    taken = time.monotonic() - start
    assert taken < 120, taken  # it does not hang
    assert not left(30), left(0)

def add_up():
    import os, socket
    import mxnet as mx
    from mxnet import np
    kv = mx.kv.create('dist_sync')
    kv.init('w', np.full(3, 5.0 + kv.rank))
    first, out = np.zeros(3), np.zeros(3)
    kv.pull('w', out=first)
    kv.pushpull('w', np.ones(3) * (kv.rank + 1), out=out)
    return (kv.rank, os.getpid(), os.environ['MACHINE'], first.tolist(),
            out.tolist())

def listening():
    import psutil
    return [tuple(one.laddr) for one in psutil.net_connections('tcp')
            if one.status == psutil.CONN_LISTEN]

def wait():
    import time
    while True:
        time.sleep(0.1)
'''


@pytest.fixture(scope='module')
def process(tmp_path_factory):
    if not shutil.which('ssh'):
        pytest.skip('there is no ssh on this machine')
    if sys.platform != 'linux' or not sshlab.permitted():
        pytest.skip('network namespaces are not permitted here')
    with running(sshlab, tmp_path_factory.mktemp('lab')) as process:
        yield process


@pytest.fixture
def lab(process, tmp_path):
    return lambda body: run_body(process, tmp_path, PRELUDE, body)


@pytest.fixture(scope='module')
def alike():
    if not opensshlab.problem():
        pytest.skip("test_openssh.py shows it with OpenSSH's own server")


def test_two_machines(lab):
    def body():
        with make(4, 3) as c:
            pids = c.pids
            results = c.run(add_up)
            assert [rank for rank, *_ in results] == [0, 1, 2, 3]
            assert [pid for _, pid, *_ in results] == [
                pids[f'worker {k}'] for k in range(4)]
            assert [where for _, _, where, *_ in results] == [
                'one', 'two', 'one', 'two']
            assert all(first == [5] * 3 and out == [10] * 3
                       for *_, first, out in results)
            where = [psutil.Process(pids[f'server {k}']).environ()['MACHINE']
                     for k in range(3)]
            assert where == ['one', 'two', 'one']
            assert len(c.run(add_up)) == 4  # with new servers
            where = [set(listening()), *map(set, c.run(listening))]
            ips = [{ip for ip, _ in found} for found in where]
            assert ips[0] == {'10.9.0.254'}
            assert ips[1] == {'10.9.0.1'} and ips[2] == {'10.9.0.2'}
            assert all(10_000 <= port < 32_000 for found in where
                       for ip, port in found
                       if ip != '127.0.0.1' and port != 22), where
            start = time.monotonic()
        assert time.monotonic() - start < 60
        assert not left(0), left(0)
    lab(body)


def test_ctrl_c_and_signals_reach_the_far_process(lab):
    def body():
        def deaf():
            import ctypes
            lock = ctypes.PyDLL(None).pthread_mutex_lock
            mutex = ctypes.create_string_buffer(64)
            lock(mutex)
            lock(mutex)  # no signal is heard in here, and no thread runs

        def interrupted(function):
            later(1.5, os.kill, os.getpid(), signal.SIGINT)
            try:
                c.run(function)
            except KeyboardInterrupt:
                return True
        with make() as c:
            assert interrupted(wait)
            assert [out for *_, out in c.run(add_up)] == [[3] * 3] * 2
            process = psutil.Process(c.pids['worker 1'])
            for number, stopped in ((signal.SIGSTOP, True),
                                    (signal.SIGCONT, False)):
                c.kill('worker 1', number)
                time.sleep(0.5)
                assert stopped == (process.status() == psutil.STATUS_STOPPED)
            assert interrupted(deaf)
            with fails('worker 0, worker 1 did not stop within 3 s'):
                c.check()
    lab(body)


def test_deaths(lab):
    def body():
        def go():
            import os
            import time
            if os.getpid() == pid:
                os.write(2, b'I am going\n')
                os._exit(7)
            time.sleep(60)
        with make(2, 1, hosts=['one']) as c:
            pid = c.pids['worker 0']
            name = f'worker 0 (process {pid} on one)'
            with fails(f'{name} ended with exit code 7', '    I am going',
                       'worker 1: '):
                c.run(go)
    lab(body)


def test_a_worker_that_is_killed(alike, lab):
    def body():
        with make() as c:
            name = f'worker 1 (process {c.pids["worker 1"]} on two)'
            with fails(f'{name} was ended by SIGKILL', 'worker 0: '):
                c.kill('worker 1')
                c.run(wait)
    lab(body)


def test_a_cable_that_is_pulled(alike, lab):
    """Nobody tells; each end has to notice it."""
    def body():
        from pyroute2 import IPRoute
        machines.SILENCE = 3.0
        with IPRoute() as ip:
            index = ip.link_lookup(ifname='two')[0]
            with fails('host two lost its connection'):
                with make(ssh=(*ssh, '-o', 'ServerAliveInterval=1')) as c:
                    later(1, lambda: ip.link('set', index=index,
                                             state='down'))
                    c.run(wait)
    lab(body)


def test_a_machine_that_is_lost_for_good(lab):
    """Its worker is lost, and its server moves."""
    def body():
        def machine():
            import os
            return os.environ['MACHINE']
        with make(2, 2, restarts=3, elastic=True) as c:
            assert c.run(machine) == ['one', 'two']
            servers['two'].kill()
            while not c.deaths:
                time.sleep(0.1)
            assert c.run(machine) == ['one'] and c.num_workers == 1
            assert [(death.who, death.why) for death in c.deaths] == [
                ('host two', 'lost its connection'),
                ('host two', 'could not be reached with ssh')]
            assert [out for *_, out in c.run(add_up)] == [[1] * 3]
            assert 'server 1' in c.pids
        assert not left(30), left(0)
    lab(body)


def test_the_command(lab):
    def body():
        import shlex
        import subprocess
        (folder / 'hello.py').write_text(
            "import os, sys; print(os.environ['MACHINE'], sys.argv[1])")
        done = subprocess.run(
            [sys.executable, '-m', 'd2lps', 'cluster', '--hosts', 'two',
             '--ssh', shlex.join(ssh), 'hello.py', 'you'], cwd=folder,
            text=True, capture_output=True, timeout=90)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert done.stdout == '[worker 0] two you\n', done.stdout
        assert not left(30), left(0)
    lab(body)


def test_a_reader_who_is_killed(alike, lab):
    def body():
        pid = os.fork()
        if pid == 0:
            c = make()
            threading.Thread(target=c.run, args=[wait]).start()
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        assert not left(30), left(0)
    lab(body)


def test_machines_that_cannot_be_reached(alike, lab):
    def body():
        with fails('host refusing could not be reached with ssh',
                   'Connection refused'):
            make(hosts=['one', 'refusing'])
        with fails('host nobody could not be reached', 'No route to host'):
            make(hosts=['nobody'])
        with fails('host no.such.host could not be reached', 'resolve'):
            make(hosts=['no.such.host'])
        with fails('host stranger could not be', 'Permission denied'):
            make(hosts=['stranger'])
        with fails('host one could not start what it was asked to',
                   '/no/python3: not found'):
            make(hosts=['one'], python='/no/python3')
    lab(body)


def test_machines_that_will_not_do(lab):
    def body():
        bare = folder / 'python'
        bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
        bare.chmod(0o755)
        with fails('host one could not start', 'd2lps is not installed for '
                   + sys.executable):
            make(hosts=['one'], python=str(bare))

        class Other:
            version_info, executable = (3, 9), sys.executable
        machines.sys = Other
        with fails('host one could not start', 'Python 3.11 is here, and '
                   "Python 3.9 at the reader's: they must be the same"):
            make(hosts=['one'])
    lab(body)


@pytest.mark.parametrize('arguments, words', [
    (dict(hosts=[]), 'it was []'),
    (dict(hosts='lab1'), "it was 'lab1'"),
    (dict(hosts=['']), "'' is no machine"),
    (dict(hosts=['a b']), "'a b' is no machine"),
    (dict(hosts=['-oProxyCommand=x']), 'is no machine'),
    (dict(hosts=[1]), '1 is no machine'),
    (dict(hosts=['a', 'b', 'a']), "'a' is in it more than once"),
    (dict(hosts=['a'], ssh='ssh -p 1'), "ssh must be a list such as ['ssh'"),
    (dict(hosts=['a'], ssh=['no-ssh']), 'there is no no-ssh'),
    (dict(hosts=['a'], address='192.0.2.1'), 'address must be an IPv4'),
    (dict(hosts=['a'], address='here'), "it was 'here'"),
    (dict(hosts=['a'], python=''), "python must be a path"),
    (dict(hosts=['a'], python=3), "python must be a path"),
    (dict(hosts=['a'], address=True), 'address must be an IPv4'),
    (dict(hosts=['a'], server_hosts=[]), 'server_hosts must be a list'),
    (dict(hosts=['a'], ports=range(80, 200)), 'ports must be a range of 4 '),
    (dict(hosts=['a'], ports=range(2000, 2003)), 'ports must be a range of'),
    (dict(hosts=['a'], ports=range(65_000, 65_537)), 'ports must be a range'),
    (dict(hosts=['a'], ports=[20_000]), 'such as range(20000, 20100)'),
    (dict(server_hosts=['a']), 'server_hosts goes with hosts='),
    (dict(python='python3'), 'python goes with hosts=')])
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError) as error:
        Cluster(**arguments)
    assert words in str(error.value)


def test_who_is_left_of_several_machines():
    places = machines.SshPlaces(3, 2, ['one', 'two'], ssh=['true'])
    without = places.again({'worker 2'})
    assert without._for == [['one', 'two'], ['one', 'two']]
    assert without.again({'host two'})._for == [['one'], ['one', 'one']]
    assert places.again({'host one'})._for == [['two'], ['two', 'two']]
    assert places.again({'host two', 'worker 0', 'worker 2'}) is None


LAN = dict(reader='127.0.0.1', address='127.0.0.1', ports=[20_000, 20_001])


@pytest.mark.parametrize('answers, wrong', [
    ([LAN, LAN], ''),
    ([LAN, {**LAN, 'address': '10.0.0.2'}], 'only a part of the machines'),
    ([{**LAN, 'address': '10.0.0.2'}], 'only a part of the machines'),
    ([{**LAN, 'address': '10.0.0.2', 'reader': '192.0.2.9'}],
     'lab0 sees this machine as 192.0.2.9, which is not')])
def test_what_the_machines_answer(answers, wrong):
    names = [f'lab{k}' for k in range(len(answers))]
    places = machines.SshPlaces(2, 1, names, ssh=['true'])
    for host, told in zip(places._hosts, answers):
        host.status = told
    if wrong:
        with pytest.raises(ClusterError, match=wrong):
            places.settle()
        return
    places._ports = [*range(20_000, 20_100)]  # the first one is any of them
    places.settle()
    assert places.head.address == '127.0.0.1'
    assert [place.keeper for place in places.workers] == places._hosts
    assert places.free_ports(2) == LAN['ports']
    assert [places.free_ports(1) for _ in range(3)] == [
        [20_000], [20_001], [20_000]]
    with pytest.raises(OSError, match='no 3 free ports in common'):
        places.free_ports(3)


def page():
    return (Path(__file__).parents[2] / 'docs' / 'several-machines.md'
            ).read_text()


def test_the_commands_on_the_page_are_there():
    options = re.findall(r'--[a-z][a-z-]+', page())
    usage = subprocess.run(
        [sys.executable, '-m', 'd2lps', 'cluster', '--help'], text=True,
        capture_output=True).stdout
    ours = {'--check', '--hosts', '--server-hosts', '--python', '--ssh',
            '--address', '--ports', '--num-workers', '--num-servers',
            '--restarts', '--elastic'}
    assert ours <= {*options} and all(one in usage for one in ours)
    done = subprocess.run(['make', '-n', '.venv/installed'], text=True,
                          cwd=Path(__file__).parents[2], capture_output=True)
    assert 'make .venv/installed' in page() and done.returncode == 0
    assert (ssh_command.PORTS[0], ssh_command.PORTS[-1]) == (20_000, 20_999)
    assert '20,000 to\n20,999' in page()


def test_an_address_is_spelled_for_its_rank():
    texts = [machines.spelled(address, rank) for rank, address in enumerate(
        ['10.9.0.1', '10.9.0.2', '192.168.1.7', '9.1.1.1'])]
    assert texts == sorted(texts, reverse=True)
    assert texts[:3] == ['012.9.0.1', '0012.9.0.2', '000300.168.1.7']


def test_a_machine_without_mxnet_says_so(tmp_path, monkeypatch):
    assert probe.load() == ''
    (tmp_path / 'mxnet.py').write_text('raise ImportError("none is here")')
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    assert 'none is here' in probe.load()


def test_without_servers(lab):
    """Plans travel between the machines, and nobody listens then."""
    def body():
        def summed():
            import os
            import d2lps
            import numpy as np
            from d2lps.collectives import strategies, travel
            peers, array = d2lps.join_peers(), np.ones(100_000)
            for make in strategies.ring, strategies.tree:
                travel.run(peers, make(peers.num_workers), array)
            return (float(array[-1]), os.environ['MACHINE'], 'mxnet' in
                    __import__('sys').modules, os.environ['MASTER_ADDR'],
                    os.environ['RANK'], listening())

        def die():
            import os
            if os.environ['RANK'] == '1':
                os._exit(3)
            summed()
        with make(4, 0, restarts=1) as c:
            for _ in range(2):
                results = c.run(summed)
                assert [one[:5] for one in results] == [
                    (16.0, ('one', 'two')[rank % 2], False, '10.9.0.1',
                     str(rank)) for rank in range(4)], results
                assert not any(ip.startswith('10.') and port != 22
                               for *_, found in results
                               for ip, port in found), results
            c.kill('worker 3')
            assert [one[0] for one in c.run(summed)] == [16.0] * 4
            [death] = c.deaths
            assert death.who == 'worker 3'
            with fails('worker 1 (process', 'on two', 'exit code 3'):
                c.run(die)
        assert not left(30), left(0)
    lab(body)
