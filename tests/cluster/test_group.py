"""Clusters without servers: no MXNet, plans that travel, and every end."""
import os
import random
import signal
import stat
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import d2lps
import numpy as np
import pytest
from clusters import (HANGS, all_gone, empty_in_the_end, needs_network,
                      wait_for)
from d2lps.cluster.processes.calls import first_of
from d2lps.collectives import strategies, travel
from d2lps.cluster import Cluster, ClusterError, Network, WorkerError
from plans import BY_N

PLANS = [BY_N[name](3) for name in BY_N if name != 'gather_cpu']


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A temporary folder of its own, which has to be empty in the end."""
    with empty_in_the_end(monkeypatch) as folder:
        yield folder


@pytest.fixture(scope='module')
def shared():
    with Cluster(3, 0) as c:
        yield c


@pytest.fixture(scope='module')
def four():
    with Cluster(4, 0, timeout=2) as c:
        yield c


def everywhere(plans, size=1000, again=1):
    """Join, and run plans: is it always the sum?"""
    rank, peers = int(os.environ['RANK']), d2lps.join_peers()
    for plan in plans * again:
        array = np.full(size, rank + 1.0)
        travel.run(peers, plan, array)
        n = peers.num_workers
        assert (array == n * (n + 1) / 2).all()
    return f'{peers!r}'


def well(c):
    n = c.num_workers
    return c.run(everywhere, [strategies.ring(n)]) == [
        f'<worker {rank} of {n}; open>' for rank in range(n)]


def test_plans_travel_again_and_again(shared):
    assert shared.run(everywhere, PLANS)
    for _ in range(5):  # as a cell that is run again
        assert well(shared)
    assert 'Cluster(3 workers, 0 servers; running)' == repr(shared)


def test_what_is_there(shared):
    def look():
        folder = Path(os.environ['D2LPS_PEERS'].split('"')[1]).parent
        mode = stat.S_IMODE(folder.stat().st_mode)
        return ({name: os.environ[name] for name in (
            'RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'GLOO_SOCKET_IFNAME')},
            int(os.environ['MASTER_PORT']), mode, os.listdir(folder),
            'mxnet' in sys.modules)
    assert len(shared.run(everywhere, PLANS[:1])) == 3
    results = shared.run(look)
    for rank, (names, port, mode, _, mxnet) in enumerate(results):
        assert names == {'RANK': str(rank), 'WORLD_SIZE': '3', 'MASTER_ADDR':
                         '127.0.0.1', 'GLOO_SOCKET_IFNAME': 'lo'}
        assert 1024 < port < 65536 and mode == 0o700 and not mxnet
    assert len({port for _, port, *_ in results}) == 1
    assert not any('peer' in name for *_, names, _ in results
                   for name in names)
    assert {*shared.pids} == {'keeper', 'worker 0', 'worker 1', 'worker 2'}
    assert shared.run(os.getpid) == [
        shared.pids[f'worker {rank}'] for rank in range(3)]


def test_cells_and_variables(shared):
    from d2lps.cluster.processes import cells
    shared.run(cells.execute, 'import d2lps\npeers = d2lps.join_peers()\n'
               'x = peers.rank ** 2')
    assert shared.view['x'] == [0, 1, 4]
    with pytest.raises(WorkerError, match='NameError'):
        shared.view['unknown']


@pytest.mark.full
def test_a_store_says_that_there_are_no_servers(shared):
    """By itself, MXNet hangs at the second try."""
    def create(kind):
        import mxnet as mx
        try:
            mx.kv.create(kind)
        except Exception as error:
            return f'{type(error).__name__}: {error}'
    for kind in 'dist_sync', 'dist_sync', 'dist_async', 'dist_typo':
        assert shared.run(create, kind) == [
            f'RuntimeError: a {kind!r} store needs servers, and this cluster '
            'has none: start one with num_servers=1'] * 3

    def local():
        import mxnet as mx
        return mx.kv.create('local').type, float(mx.np.ones(3).sum())
    assert shared.run(local) == [('local', 3)] * 3
    assert well(shared)


@pytest.mark.parametrize('arguments, words', [
    (dict(num_servers=-1), 'num_servers must be a whole number from 0'),
    (dict(num_workers=0), 'num_workers must be a whole number from 1'),
    (dict(elastic=True), 'elastic needs restarts='),
    (dict(address='10.0.0.1'), "address must be '127.0.0.1', or be left out"),
    (dict(address='127.0.0.1', network=Network()),
     'leave out network or address')])
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        Cluster(**{'num_servers': 0} | arguments)


def test_bad_arguments_of_join_peers(shared):
    def bad(timeout):
        try:
            d2lps.join_peers(timeout)
        except ValueError as error:
            return str(error)
    assert all('timeout must be a number' in str(words)
               for words in shared.run(bad, -1))


def test_on_addresses_of_this_machine():
    """Others could connect, and would be refused; then nobody listens."""
    def listening():
        import psutil
        return [one.laddr.port for one in psutil.Process().net_connections()
                if one.status == psutil.CONN_LISTEN]
    with Cluster(2, 0, address='127.0.0.1') as c:
        assert well(c) and well(c)
        assert c.run(listening) == [[], []]
        secrets = c.run(lambda: (os.environ['D2LPS_SECRET'],
                                 os.environ['D2LPS_PEERS']))
        assert len({*secrets}) == 1 and len(secrets[0][0]) == 64
        assert secrets[0][1].count('127.0.0.1:') == 2


def test_a_worker_that_forks(shared):
    """What it has forked has no part in its lines, nor in its cell."""
    def fork():
        pid = os.fork()
        if not pid:
            from d2lps.cluster.peers import exchange
            try:
                travel.run(exchange._joined, PLANS[0], np.ones(3))
            except RuntimeError as error:
                os._exit(7 if 'forked' in str(error) else 1)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def run():
        from d2lps.cluster.peers import exchange
        array = np.ones(3)
        travel.run(exchange._joined, PLANS[0], array)
        return array.tolist()
    assert well(shared)
    assert shared.run(fork) == [7] * 3
    assert shared.run(run) == [[3] * 3] * 3


# Who was first.

@pytest.mark.parametrize('waits, first', [
    ({}, None),
    ({3: (2, 2, False), 0: (3, 3, False)}, 2),  # worker 2 is late
    ({3: (2, 2, True), 2: (1, 3, True)}, 1),  # one closes after another
    ({0: (1, 1, False), 1: (0, 1, False)}, 1)])  # what they say contradicts
def test_who_was_first(waits, first):
    """waits: {rank: (waits for, in which round, did that one close?)}."""
    assert first_of(waits) == first


def middle(plan, victim, number, act, size=1000):
    """Run a plan in which worker `victim` does something in a round."""
    rank, peers = int(os.environ['RANK']), d2lps.join_peers()
    begin = peers.begin_round

    def begin_round():
        begin()
        if peers.round == number and peers._plan and rank == victim:
            act()
    peers.begin_round = begin_round
    array = np.ones(size)
    travel.run(peers, plan, array)
    return float(array[0])


def fail():
    raise KeyError('on purpose')


def test_an_error_in_the_middle(four):
    """It is the first, also where much of what was sent is under way."""
    for make, size in ((strategies.ring, 400_000),
                       (strategies.halving_doubling, 1000)):
        for victim in 0, 3:
            with pytest.raises(WorkerError) as error:
                four.run(middle, make(4), victim, 2, fail, size)
            assert 'on purpose' in error.value.errors[victim]
            assert error.value.first == victim, error.value
            assert f'leads to worker {victim}' in str(error.value)
    assert well(four)


def later(function):
    pool = ThreadPoolExecutor(1)
    future = pool.submit(function)
    pool.shutdown(wait=False)
    return future


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def test_who_is_stopped(four, capsys):
    """When the others have given up, it goes on; it was the first."""
    victim = 2

    def run():
        with pytest.raises(WorkerError) as error:
            four.run(middle, strategies.ring(4), victim, 2, stop)
        return error.value
    future = later(run)
    assert wait_for(lambda: len(four._supervisor.called()) == 1)
    assert four._supervisor.called() == [f'worker {victim}']
    # Who gave up says so while another goes on for long.
    assert wait_for(lambda: 'waited 2 s' in capsys.readouterr().err)
    four.kill(f'worker {victim}', signal.SIGCONT)
    error = future.result(HANGS)
    assert error.first == victim, error
    assert f'waited 2 s for worker {victim}' in str(error)
    assert well(four)


# Ends.

def test_ctrl_c_and_again(shared, monkeypatch):
    monkeypatch.setattr('d2lps.cluster.cluster.STOP', HANGS)

    def forever():
        everywhere(PLANS, 100, again=10 ** 6)
    def run():
        with pytest.raises(WorkerError) as error:
            shared.run(forever)
        return error.value
    for _ in range(2):
        future = later(run)
        assert wait_for(lambda: len(shared._supervisor.busy()) == 3)
        time.sleep(0.2)
        shared.interrupt()
        error = future.result(HANGS)
        assert 'KeyboardInterrupt' in str(error)
        assert {words.split(':')[0] for words in error.errors.values()
                } <= {'KeyboardInterrupt', 'PeerError'}
        assert well(shared)


def test_one_interruption_stops_all_calls(shared):
    """Also that which begins when the first has stopped."""
    calls = [later(lambda: shared.run(time.sleep, HANGS)) for _ in range(2)]
    assert wait_for(lambda: len(shared._supervisor.busy()) == 3
                    and shared._supervisor._called['worker 0'] == 2)
    shared.interrupt()
    for call in calls:
        with pytest.raises(WorkerError, match='KeyboardInterrupt'):
            call.result(HANGS)
    assert well(shared)


def test_a_call_that_does_not_begin_is_not_said_to_go_on(monkeypatch):
    monkeypatch.setattr('d2lps.cluster.cluster.BEGIN', 0)
    with Cluster(1, 0) as c:
        monkeypatch.setattr(c._supervisor, 'busy', dict)
        call = later(lambda: c.run(time.sleep, HANGS))
        assert wait_for(c._supervisor.called)
        c.interrupt()
        with pytest.raises(ClusterError, match='worker 0 did not begin the '):
            call.result(HANGS)


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.full
def test_death_in_the_middle():
    """Any worker, in any round of any plan: it is named, and all end."""
    numbers, threads = random.Random(3), threading.active_count()
    files = len(os.listdir('/dev/fd'))
    for _ in range(3):
        name = numbers.choice([name for name in BY_N if name != 'gather_cpu'])
        plan = BY_N[name](numbers.randint(2, 4))
        victim = numbers.randrange(plan.num_devices)
        with Cluster(plan.num_devices, 0) as c:
            pids = c.pids.values()
            with pytest.raises(ClusterError) as error:
                c.run(middle, plan, victim, numbers.randint(
                    1, len(plan.rounds)), kill, numbers.choice([9, 300_000]))
                c.run(time.sleep, HANGS)
            words = str(error.value)
            assert f'worker {victim} (process' in words
            assert 'was ended by SIGKILL' in words
            for line in words.splitlines():
                if 'PeerError' in line:
                    assert f'worker {victim}:' not in line
                    assert 'waited for worker' in line
            assert [death.who for death in c.deaths] == [f'worker {victim}']
            assert all_gone(pids)
    assert threading.active_count() <= threads
    assert len(os.listdir('/dev/fd')) <= files


# Without MXNet.

HIDDEN = '''
from importlib.machinery import PathFinder
find_spec = PathFinder.find_spec
PathFinder.find_spec = lambda name, path=None, target=None: (
    None if name in ('mxnet', 'd2l') else find_spec(name, path, target))
'''
SCRIPT = '''
import os, sys
import numpy as np
import d2lps
from d2lps.cluster.processes.calls import first_of
from d2lps.collectives import strategies, travel
peers = d2lps.join_peers()
array = np.full(3, peers.rank + 1)
travel.run(peers, strategies.tree(peers.num_workers), array)
print(array.tolist(), sys.argv[1:], 'mxnet' in sys.modules)
try:
    import mxnet
except ImportError as error:
    print(type(error).__name__)
'''


@pytest.fixture
def without(tmp_path):
    """A folder whose Python, and that of all processes, has no MXNet."""
    where = tmp_path / 'without'
    where.mkdir()
    (where / 'sitecustomize.py').write_text(HIDDEN)
    return f'{where}:{Path(__file__).parents[2]}'


def test_where_there_is_no_mxnet(python, without, tmp_path):
    """The command runs a script on workers."""
    script = tmp_path / 'script.py'
    script.write_text(SCRIPT)
    done = python('-m', 'd2lps', 'cluster', '--num-workers', '3',
                  '--num-servers', '0', str(script), '-x', PYTHONPATH=without)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        f'[worker {rank}] {line}' for rank in range(3)
        for line in ("[6, 6, 6] ['-x'] False", 'NoMXNet'))
    done = python('-m', 'd2lps', 'cluster', str(script), PYTHONPATH=without)
    assert done.returncode == 1 and 'd2lps needs mxnet' in done.stderr


# The slow network.


@pytest.mark.full
@needs_network
def test_a_short_queue_loses_nothing():
    """What is lost is sent again; and interfaces are the network's."""
    with Cluster(3, 0, network=Network(5e6, bucket=3000, queue=6000)) as c:
        assert c.run(everywhere, PLANS, 20_000)
        assert [words.startswith('10.0.') for words in c.run(
            lambda: os.environ['MASTER_ADDR'])] == [True] * 3
        assert {*c.run(lambda: os.environ['GLOO_SOCKET_IFNAME'])} == {'eth0'}
