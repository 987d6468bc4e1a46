"""Clusters without servers: no MXNet, plans that travel, and every end."""
import contextlib
import io
import os
import random
import re
import signal
import stat
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import d2lps
import numpy as np
import pytest
from amount import QUICK
from clusters import HANGS, all_gone, empty_in_the_end, wait_for
from d2lps.collectives import strategies, travel
from d2lps.cluster import (Cluster, ClusterError, Network, WorkerError,
                           network_problem)
from plans import BY_N

PROBLEM = network_problem()
needs_network = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM or 'works')
PLANS = [BY_N[name](3) for name in BY_N if name != 'gather_cpu']


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A temporary folder of its own, which has to be empty in the end."""
    with empty_in_the_end(tmp_path, monkeypatch) as folder:
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
    for _ in range(20):  # as a cell that is run again
        assert well(shared)
    assert 'num_workers=3, num_servers=0; running' in repr(shared)


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


def test_torch_like_meeting(shared):
    """MASTER_PORT is free; rank 0 can listen there, and others find it."""
    def meet():
        import socket
        where = os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])
        if os.environ['RANK'] == '0':
            with socket.create_server(where) as server:
                for _ in range(int(os.environ['WORLD_SIZE']) - 1):
                    with server.accept()[0] as line:
                        line.sendall(b'x')
            return b'x'
        while True:
            try:
                with socket.create_connection(where) as line:
                    return line.recv(1)
            except ConnectionRefusedError:
                time.sleep(0.01)
    assert shared.run(meet) == [b'x'] * 3


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
    (dict(num_servers=True), 'num_servers must be a whole number from 0'),
    (dict(num_servers=0.0), 'num_servers must be a whole number from 0'),
    (dict(num_workers=0), 'num_workers must be a whole number from 1'),
    (dict(port=2000), 'port and server_hosts are for servers'),
    (dict(hosts=['a'], server_hosts=['b']), 'port and server_hosts are for'),
    (dict(elastic=True), 'elastic goes with restarts='),
    (dict(address='10.0.0.1'), 'address goes with hosts=')])
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        Cluster(**{'num_servers': 0} | arguments)


@pytest.mark.parametrize('arguments, words', [
    (dict(bucket=1999), 'bucket must be a whole number from 2000 to'),
    (dict(bucket=None), 'bucket must be a whole number'),
    (dict(bucket=2e4), 'bucket must be a whole number'),
    (dict(queue=10 ** 10), 'queue must be a whole number from 2000 to'),
    (dict(queue='long'), 'queue must be a whole number')])
def test_bad_buckets_and_queues(arguments, words):
    with pytest.raises(ValueError, match=words):
        Network(**arguments)
    assert Network(bandwidth=1e6).queue == 50_000
    assert Network(bandwidth=1e6, queue=2000).queue == 2000


def words():
    print('eat \N{GREEK SMALL LETTER PI} …')
    print('a\N{SNOWMAN}', file=sys.stderr)
    return int(os.environ['RANK'])


@pytest.mark.parametrize('letters, pi', [('ascii', r'\u03c0 \u2026'),
                                         ('latin-1', r'\u03c0 \u2026'),
                                         ('iso8859-7', r'π \u2026')])
def test_letters_that_the_readers_output_has_not(shared, monkeypatch, letters,
                                                 pi):
    files = {name: io.BytesIO() for name in ('stdout', 'stderr')}
    with monkeypatch.context() as patch:
        for name, file in files.items():
            patch.setattr(sys, name, io.TextIOWrapper(file, letters))
        assert shared.run(words) == [0, 1, 2]
        out, err = (sorted(file.getvalue().decode(letters).splitlines())
                    for file in files.values())
    assert out == [f'[worker {rank}] eat {pi}' for rank in range(3)]
    assert err == [rf'[worker {rank}] a\u2603' for rank in range(3)]


def closed():
    file = io.StringIO()
    file.close()
    return file


def unread():
    out, into = os.pipe()
    os.close(out)
    return os.fdopen(into, 'w')


@pytest.mark.parametrize('make, why', [
    (closed, 'ValueError: I/O operation on closed file'),
    (unread, 'BrokenPipeError: .* Broken pipe'),
    pytest.param(lambda: open('/dev/full', 'w'), 'OSError: .*No space left',
                 marks=pytest.mark.skipif(not os.path.exists('/dev/full'),
                                          reason='needs /dev/full'))])
def test_an_output_that_nothing_can_be_written_to(shared, monkeypatch, capsys,
                                                  make, why):
    """The results come, and it is said once why the rest does not."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, 'stdout', file := make())
        assert shared.run(words) == [0, 1, 2]
        patch.setattr(sys, 'stderr', file)  # nor can that be said
        assert shared.run(words) == [0, 1, 2]
    with contextlib.suppress(OSError):
        file.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert len([line for line in lines if re.match(
        rf'd2lps: what workers print cannot be shown \({why}', line)]) == 1


def test_bad_arguments_of_join_peers(shared):
    def bad(timeout):
        try:
            d2lps.join_peers(timeout)
        except ValueError as error:
            return str(error)
    for timeout in 0, -1, 'long', 1e9, float('nan'):
        assert all('timeout must be a number' in str(words)
                   for words in shared.run(bad, timeout)), timeout


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


@pytest.mark.cases
def test_an_error_in_the_middle(four):
    """It is the first, also where much of what was sent is under way."""
    for make, size in [(strategies.ring, 400_000),
                       (strategies.halving_doubling, 1000),
                       (strategies.halving_doubling, 400_000),
                       (strategies.sharded, 400_000),
                       (strategies.ring, 1000)][:2 if QUICK else None]:
        for victim in range(4):
            with pytest.raises(WorkerError) as error:
                four.run(middle, make(4), victim, 2, fail, size)
            assert 'on purpose' in error.value.errors[victim]
            assert error.value.first == victim, error.value
            assert f'lead to worker {victim}' in str(error.value)
    assert well(four)


def later(function):
    pool = ThreadPoolExecutor(1)
    future = pool.submit(function)
    pool.shutdown(wait=False)
    return future


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


@pytest.mark.parametrize('act, victim', [
    (stop, 2), pytest.param('sleep', 1, marks=pytest.mark.full)])
def test_who_is_late_or_stopped(four, tmp_path, capsys, act, victim):
    """When the others have given up, it goes on; it was the first."""
    wake = tmp_path / 'wake'

    def sleep():
        while not wake.exists():
            time.sleep(0.01)

    def run():
        with pytest.raises(WorkerError) as error:
            four.run(middle, strategies.ring(4), victim, 2, act)
        return error.value
    if act == 'sleep':
        act = sleep
    future = later(run)
    assert wait_for(lambda: len(four._supervisor.called()) == 1)
    assert four._supervisor.called() == [f'worker {victim}']
    # Who gave up says so while another goes on for long.
    assert wait_for(lambda: 'waited 2 s' in capsys.readouterr().err)
    wake.touch()
    four.kill(f'worker {victim}', signal.SIGCONT)
    error = future.result(HANGS)
    assert error.first == victim, error
    assert f'waited 2 s for worker {victim}' in str(error)
    assert well(four)


# Ends.

def test_ctrl_c_and_again(shared):
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


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.full
@pytest.mark.cases
def test_death_in_the_middle():
    """Any worker, in any round of any plan: it is named, and all end."""
    numbers, threads = random.Random(3), threading.active_count()
    files = len(os.listdir('/dev/fd'))
    for number in range(2 if QUICK else 40):
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


def first_time(path, victim):
    """Worker `victim` dies in the middle of a plan, if it is the first."""
    n = int(os.environ['WORLD_SIZE'])
    act = kill if not os.path.exists(path) else (lambda: None)
    if os.environ['RANK'] == str(victim):
        open(path, 'w').close()
    return middle(strategies.ring(n), victim, 2, act)


@pytest.mark.parametrize('elastic', [
    pytest.param(False, marks=pytest.mark.full), True])
def test_restarts(tmp_path, elastic):
    with Cluster(3, 0, restarts=2, elastic=elastic) as c:
        # All have looked before one of them writes the file.
        assert well(c)
        left = 2 if elastic else 3
        assert c.run(first_time, tmp_path / 'x', 0) == [left] * left
        [death] = c.deaths
        assert death.who == 'worker 0' and death.seconds > 0
        assert c.num_workers == left and well(c)


def test_death_while_a_worker_has_not_begun_its_call():
    """It is not said of it that it has not been used."""
    with Cluster(2, 0) as c:
        c.kill('worker 0', signal.SIGSTOP)
        future = later(lambda: c.run(time.sleep, HANGS))
        assert wait_for(lambda: c._supervisor.busy() == ['worker 1'])
        c.kill('worker 1', signal.SIGKILL)
        with pytest.raises(ClusterError, match='worker 0: called .* s ago, '
                           'and it has not begun'):
            future.result(HANGS)


@pytest.mark.full
def test_the_exit_of_a_worker():
    with Cluster(2, 0) as c:
        with pytest.raises(ClusterError, match='worker 1 .*exit code 3'):
            c.run(middle, strategies.ring(2), 1, 1, lambda: os._exit(3))


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


def test_neither_reader_nor_workers_load_mxnet(python, tmp_path):
    done = python('-c', textwrap.dedent('''
        import sys
        import d2lps
        def loaded():
            import sys
            return {'mxnet', 'd2l'} & {*sys.modules}
        with d2lps.Cluster(2, 0) as c:
            print(c.run(loaded), loaded())
        '''), PYTHONPATH=str(Path(__file__).parents[2]))
    assert done.stdout == '[set(), set()] set()\n', done.stderr


def test_the_help_names_zero(python):
    done = python('-m', 'd2lps', 'cluster', '--help',
                  PYTHONPATH=str(Path(__file__).parents[2]))
    assert '0: no store' in ' '.join(done.stdout.split())


# The slow network.

def seconds_of(plan, size):
    """What each of 5 messages takes, after a pause."""
    peers, times = d2lps.join_peers(), []
    array = np.zeros(size, 'u1')
    for _ in range(6):
        travel.run(peers, plan, array)  # all begin together
        time.sleep(0.2)
        start = time.monotonic()
        travel.run(peers, plan, array)
        times.append(time.monotonic() - start)
    return times[1:]


@pytest.mark.full
@needs_network
def test_a_small_bucket_lets_less_through_at_once():
    """100 kB over 2 MB/s take 50 ms; but for what is in the bucket."""
    plan = d2lps.Schedule([[d2lps.Send(0, 1, 0, True)],
                           [d2lps.Send(1, 0, 0, False)]], 2)
    with Cluster(2, 0, network=Network(2e6, bucket=20_000)) as c:
        slow = c.run(seconds_of, plan, 100_000)
        passed = c.traffic()
    # Worker 1 may come when all has arrived; worker 0 waits for both ways.
    assert min(slow[0]) > 2 * (100_000 - 20_000) / 2e6
    assert {*passed} == {'worker 0', 'worker 1'}
    assert all(count > 12 * 100_000 for counts in passed.values()
               for count in counts)


@pytest.mark.full
@needs_network
def test_a_short_queue_loses_nothing():
    """What is lost is sent again; and interfaces are the network's."""
    with Cluster(3, 0, network=Network(5e6, bucket=3000, queue=6000)) as c:
        assert c.run(everywhere, PLANS, 20_000)
        assert [words.startswith('10.0.') for words in c.run(
            lambda: os.environ['MASTER_ADDR'])] == [True] * 3
        assert {*c.run(lambda: os.environ['GLOO_SOCKET_IFNAME'])} == {'eth0'}


@pytest.mark.full
@needs_network
def test_death_and_restart_in_the_network(tmp_path):
    with Cluster(3, 0, network=Network(), restarts=1) as c:
        assert well(c)
        assert c.run(first_time, tmp_path / 'x', 1) == [3] * 3
        assert well(c)
