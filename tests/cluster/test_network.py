"""The slow network lab: what it permits, carries, counts and leaves behind."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import mxnet as mx
import psutil
import pytest
from clusters import all_gone, needs_network, wait_for
from d2lps.cluster import (Cluster, ClusterError, Network, network_problem)
from d2lps.cluster.processes import namespaces, addresses
from mxnet import np
from test_cluster import PULL, dies, folder, hang  # noqa: F401


def network_of(pid):
    """Which network namespace a process is in."""
    return os.readlink(f'/proc/{pid}/ns/net')


def held(before=float('inf'), ours=False):
    """Network namespaces in which a process is, or that one holds open.

    Args:
        before: leave out processes that started later (in seconds since
            1970): the kernel gives a namespace's number to others again.
        ours: leave out what others than this test have started.
    """
    found = set()
    for pid in psutil.pids():
        try:
            process = psutil.Process(pid)
            if process.create_time() > before:
                continue
            if ours and (process.environ().get('TMPDIR')
                         != os.environ['TMPDIR']) and pid != os.getpid():
                continue
            found.add(network_of(pid))
            for file in Path(f'/proc/{pid}/fd').iterdir():
                found.add(os.readlink(file))
        except (OSError, psutil.Error):  # it has ended, or is not ours
            pass
    return {name for name in found if name.startswith('net:')}


def push_and_pull(size, rounds=1):
    """Returns ranks, addresses and the seconds of each push and pull."""
    kv = mx.kv.create('dist_sync')
    kv.init('w', np.zeros(size))
    value, seconds = np.ones(size), []
    out = np.zeros(size)
    for _ in range(rounds):
        kv.barrier()
        start = time.perf_counter()
        kv.pushpull('w', value, out=out)
        seconds.append(time.perf_counter() - start)
    assert out[-1] == kv.num_workers
    return kv.rank, os.environ['DMLC_NODE_HOST'], seconds


def growth(before, after):
    return {name: (after[name][0] - old[0], after[name][1] - old[1])
            for name, old in before.items()}


@pytest.mark.parametrize('arguments, words', [
    (dict(bandwidth=1e12), 'from 100000 to 4e+09, such as 1.25e+08'),
    (dict(delay=-1), 'delay must be a number from 0 to 10')])
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError) as error:
        Network(**arguments)
    assert words in str(error.value)


def test_bad_networks():
    with pytest.raises(ValueError, match="network must be .* it was 'slow'"):
        Cluster(network='slow')
    with pytest.raises(ValueError, match='network=Network'):
        addresses.LocalPlaces(1, 1).traffic(0)
    with pytest.raises(ValueError, match='network: Linux keeps up to 500 '
                       'pairs of hosts that communicate'):
        Cluster(25, 25, network=Network())  # which would hang


def refuse(number):
    def call(*args):
        raise OSError(number, os.strerror(number))
    return call


@pytest.mark.parametrize('number, words', [
    (1, 'denies network namespaces to this user (Operation not permitted)'),
    (22, 'lacks network namespaces (Invalid argument)')])
def test_why_it_is_not_permitted(monkeypatch, number, words):
    monkeypatch.setattr(sys, 'platform', 'linux')
    monkeypatch.setattr(namespaces, 'call', refuse(number))
    text = namespaces.problem(lambda: namespaces.build(
        [], 125e6, 0, 4000, 4000))
    assert text.startswith("this machine's Linux ") and words in text


@pytest.mark.full
@pytest.mark.skipif(sys.platform != 'linux', reason='needs Linux')
def test_a_failure_in_the_start(monkeypatch, tmp_path):
    own = tmp_path / 'own'
    own.mkdir()
    (own / 'pyroute2.py').write_text('raise ImportError("no pyroute2 here")')
    monkeypatch.setenv('PYTHONPATH', str(own), prepend=os.pathsep)
    monkeypatch.syspath_prepend(own)
    words = 'the slow network needs pyroute2 (no pyroute2 here)'
    assert network_problem() == words
    before = held(ours=True)
    with pytest.raises(OSError) as error:
        Cluster(network=Network())
    assert str(error.value) == words
    assert not psutil.Process().children()
    assert wait_for(lambda: held(ours=True) <= before)


@pytest.mark.full
@needs_network
def test_time_traffic_and_order():
    """A value of 4 MB over 100 Mbit/s, two workers, one server."""
    size, slow = 1_000_000, Network(bandwidth=12.5e6)
    with Cluster(num_workers=2, num_servers=1, network=slow) as c:
        used = in_use(c)
        before = c.traffic()
        results = c.run(push_and_pull, size, 2)
        passed = growth(before, c.traffic())
        ours = {os.getpid(), *c.pids.values()}
        here = {one.laddr for one in psutil.net_connections('tcp')
                if one.status == psutil.CONN_LISTEN and one.pid in ours}
        networks = {name: network_of(pid) for name, pid in c.pids.items()}
        there = [line.split()[1] for pid in c.pids.values() for line
                 in Path(f'/proc/{pid}/net/tcp').read_text().splitlines()[1:]]
    assert [rank for rank, _, _ in results] == [0, 1]
    assert len({address for _, address, _ in results}) == 2
    predicted = 2 * 2 * 4 * size / slow.rate
    # The cable allows no less, and a busy machine may take longer: who began
    # first waits for both values, and for half of what comes back.
    assert max(times[1] for _, _, times in results) > 0.7 * predicted
    # The server receives the first value from rank 0, then two from each.
    for name, received, sent in (('server 0', 5, 4), ('worker 0', 2, 3),
                                 ('worker 1', 2, 2)):
        assert passed[name][0] == pytest.approx(4 * size * received, rel=0.1)
        assert passed[name][1] == pytest.approx(4 * size * sent, rel=0.1)
    assert len(passed) == 3
    # Five hosts and the switch, none of them this machine.
    assert len(set(networks.values())) == len(networks) == 5
    assert network_of(os.getpid()) not in networks.values()
    # In there, they listen on the hosts' own addresses (10.…, backwards);
    # this machine does not hear of it.
    assert there and all(address.endswith('0A', 0, 8) for address in there)
    assert all(address.ip == '127.0.0.1' for address in here)
    leaves_nothing(*used)


@needs_network
def test_a_slow_transfer_is_no_death_but_a_stopped_server_is():
    with Cluster(1, 1, timeout=2, network=Network(1e5)) as c:
        [(_, _, [seconds])] = c.run(push_and_pull, 50_000)
        assert seconds > 2
        c.kill('server 0', signal.SIGSTOP)
        with pytest.raises(ClusterError, match='got no answer from the serv'):
            c.run(push_and_pull, 1)


@pytest.mark.full
@needs_network
def test_servers_on_the_workers_hosts():
    with pytest.raises(KeyError), \
            Cluster(2, 3, network=Network(colocated=True)) as c:
        used, pids = in_use(c, colocated=True), c.pids
        assert network_of(pids['server 0']) == network_of(pids['worker 0'])
        assert network_of(pids['server 2']) == network_of(pids['worker 0'])
        assert network_of(pids['server 1']) == network_of(pids['worker 1'])
        before = c.traffic()
        c.run(push_and_pull, 1_500_000)
        passed = growth(before, c.traffic())
        raise KeyError  # an error leaves nothing, either
    leaves_nothing(*used)
    # Worker 1 pushes two thirds of 6 MB to host 0, and its server answers
    # host 0 with a third; worker 0 begins with all the first values.
    assert set(passed) == {'worker 0', 'worker 1'}
    assert passed['worker 1'][1] == pytest.approx(6e6, rel=0.1)
    assert passed['worker 1'][0] == pytest.approx(8e6, rel=0.1)
    assert passed['worker 0'][0] == pytest.approx(6e6, rel=0.1)


@pytest.mark.full
@needs_network
def test_delay():
    """Without bandwidth to speak of, a pull takes the way there and back."""
    if network_problem(0.05):
        with pytest.raises(OSError, match='sch_netem.*leave delay out'):
            Cluster(network=Network(delay=0.05))
        pytest.skip(network_problem(0.05))
    with Cluster(1, network=Network(delay=0.05)) as c:
        [(_, _, seconds)] = c.run(push_and_pull, 1, 3)
    assert 0.2 <= min(seconds)


# The end.

def leaves_nothing(pids, networks, interfaces):
    now = time.time()
    assert all_gone(pids)
    assert wait_for(lambda: not networks & held(now))
    assert not {name for _, name in socket.if_nameindex()} - interfaces


def in_use(c, colocated=False):
    """The cluster's processes and networks, and this machine's interfaces."""
    pids = list(c.pids.values())
    hosts = {name for name in c.pids if name != 'keeper'}
    if colocated:
        hosts = {name for name in hosts if not name.startswith('server')}
    # The first thing that a process does is to go to its host.
    assert wait_for(lambda: len({*map(network_of, pids)}) == len(hosts))
    networks = {*map(network_of, pids)}
    assert networks <= held()
    return pids, networks, {name for _, name in socket.if_nameindex()}


@pytest.mark.full
@needs_network
def test_a_death_in_the_network():
    with Cluster(network=Network()) as c:
        used = in_use(c)
        dies(c, lambda: c.kill('server 0'), [
            'server 0 (process', 'was ended by SIGKILL'], PULL, hang, 60)
        with pytest.raises(ClusterError):
            c.traffic()
        leaves_nothing(*used)


UNPRIVILEGED = '''
    import os
    from d2lps.cluster import Cluster, Network, network_problem
    def push():
        import mxnet as mx
        kv = mx.kv.create('dist_sync')
        kv.init('w', mx.np.zeros(10))
        kv.pushpull('w', mx.np.ones(10))
        return kv.rank
    if __name__ == '__main__':
        print(repr(network_problem()))
        with Cluster(2, 1, network=Network()) as c:
            print(*c.run(push), os.getuid(), *c.traffic())
'''
# A user without a name.
LESS = ['--reuid=65534', '--regid=65534', '--clear-groups']


@pytest.mark.full
@needs_network
def test_without_privileges(tmp_path):
    if os.getuid() or not shutil.which('setpriv'):
        pytest.skip('needs root, to give up its privileges')
    less, user = ['setpriv', *LESS], 65534
    home = tmp_path / 'home'
    home.mkdir()
    os.chown(home, user, user)
    os.chmod(home, 0o700)
    env = os.environ | {'HOME': str(home), 'TMPDIR': str(home),
                        'PYTHONPATH': str(Path(__file__).parents[2])}
    script = tmp_path / 'script.py'
    script.write_text(textwrap.dedent(UNPRIVILEGED))
    for folder in [tmp_path, *tmp_path.parents[:2]]:
        os.chmod(folder, 0o755)
    if subprocess.run([*less, 'sh', '-c', f'{sys.executable} -c 1'],
                      capture_output=True).returncode:
        pytest.skip(f'user {user} may not run {sys.executable}')
    run = subprocess.run([*less, sys.executable, str(script)], env=env,
                         capture_output=True, text=True, timeout=300)
    problem, words, *_ = [*run.stdout.splitlines(), run.stderr, '']
    if problem != repr(''):
        pytest.skip(problem)  # the machine does not permit it to users
    assert words == f'0 1 {user} worker 0 worker 1 server 0', run.stderr
