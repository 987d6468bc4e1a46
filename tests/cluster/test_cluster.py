"""A cluster's life: start, work, stop, and every way to die.

The functions that `run` gets are executed on the workers.
"""
import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import mxnet as mx
import psutil
import pytest
from clusters import HANGS, all_gone, empty_in_the_end, sockets_of, wait_for
from d2lps import processor
from d2lps.cluster import Cluster, ClusterError, WorkerError, messages
from d2lps.cluster.processes import group, restarts
from d2lps.cluster.processes.lines import Outlet
from d2lps.cluster.processes.process import KeeperConnection
from d2lps.cluster.processes.supervisor import Supervisor
from mxnet import np


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A temporary folder of its own, which has to be empty in the end."""
    with empty_in_the_end(monkeypatch) as folder:
        yield folder


@pytest.fixture(scope='module')
def shared():
    """A cluster for the tests that do not end it."""
    with Cluster(num_workers=2, num_servers=2) as cluster:
        yield cluster


def add_up(scale=1):
    kv = mx.kv.create('dist_sync')
    kv.init('w', np.zeros(3))
    out = np.zeros(3)
    kv.pushpull('w', np.ones(3) * (kv.rank + 1) * scale, out=out)
    return out.tolist()


def test_start_work_stop(shared):
    """Beside another one, which goes on, and in spite of an exception."""
    start = time.monotonic()
    with (pytest.raises(KeyError),
          Cluster(num_workers=2, num_servers=1) as c):
        assert time.monotonic() - start < HANGS
        pids = c.pids
        assert set(pids) == {'scheduler', 'server 0', 'worker 0', 'worker 1',
                             'keeper'}
        assert 'running' in repr(c)
        assert c.run(add_up, scale=2) == [[6.0] * 3] * 2
        assert shared.run(add_up) == [[3.0] * 3] * 2
        assert c.run(os.getpid) == [pids['worker 0'], pids['worker 1']]
        start = time.monotonic()
        raise KeyError
    assert time.monotonic() - start < HANGS
    assert all_gone(pids.values(), 0)
    assert 'closed' in repr(c)
    assert shared.run(add_up, 2) == [[6.0] * 3] * 2
    c.close()  # a second time
    with pytest.raises(ClusterError, match='closed; start a new one'):
        c.run(add_up)
    with pytest.raises(ClusterError, match='closed'):
        c.view['x']


def test_what_workers_print_is_shown(shared, capsys):
    def talk():
        print('one\ntwo')
        print('oh', file=sys.stderr)
        os.system('echo three')  # what Python does not see
        print('four', end='')
    shared.run(talk)
    out, err = capsys.readouterr()
    for rank in range(2):
        assert [line for line in out.splitlines() if f'er {rank}]' in line
                ] == [f'[worker {rank}] {word}'
                      for word in ('one', 'two', 'three', 'four')]
    assert len(out.splitlines()) == 8
    assert sorted(err.splitlines()) == ['[worker 0] oh', '[worker 1] oh']


def test_functions_with_classes_and_arrays_from_here(shared):
    class Pair:
        def __init__(self, array):
            self.array = array

    def double(pair):
        return Pair(pair.array * 2).array
    for result in shared.run(double, Pair(np.ones(2))):
        assert result.tolist() == [2, 2]


def test_large_arguments_go_in_small_messages(shared, monkeypatch):
    """For as long as a keeper reads one of them, it cannot say it lives."""
    sizes, send = [], Outlet.send

    def noted(self, line):
        sizes.append(len(line))
        send(self, line)
    monkeypatch.setattr(Outlet, 'send', noted)
    data = os.urandom(1_000_000)
    assert shared.run(lambda one: one[::-1], data) == [data[::-1]] * 2
    assert sum(sizes) > 2_000_000 and max(sizes) < 100_000


def test_what_cannot_be_sent_is_named(shared):
    lines = (line for line in 'ab')
    with pytest.raises(ValueError, match='the function or an argument cannot '
                       "be sent .* cannot pickle 'generator'"):
        shared.run(list, lines)
    with pytest.raises(ValueError, match='function must be a function; it wa'):
        shared.run('add_up')
    with pytest.raises(WorkerError, match='worker 0: ValueError: its result '
                       "cannot be sent .* cannot pickle 'generator'"):
        shared.run(lambda: (line for line in 'ab'))
    with pytest.raises(ValueError, match='the result of worker 0 was received'
                       ', but cannot be unpacked .*missing 1 required pos'):
        shared.run(lambda: Unreadable('a', 'b'))
    assert shared.run(len, 'ab') == [2, 2]


class Unreadable(Exception):
    """Pickle keeps what Exception knows, which is one argument."""
    def __init__(self, one, two):
        super().__init__(one)


@pytest.mark.parametrize('number', [0, 999, 'SIGKILL'])
def test_what_is_no_signal_is_refused(number, shared):
    with pytest.raises(ValueError, match='signal must be a whole number from '
                       '1 to 64'):
        shared.kill('worker 0', number)
    assert shared.run(os.getpid)


@pytest.mark.full
def test_the_reader_s_process_need_not_load_mxnet(python):
    """Its processes do, in which half of a cluster's start went by."""
    done = python('-c', '''
import sys
import d2lps
with d2lps.Cluster(1, 1) as cluster:
    print(cluster.run(lambda: "mxnet" in sys.modules))
assert "mxnet" not in sys.modules
''')
    assert (done.stdout, done.stderr, done.returncode) == ('[True]\n', '', 0)


def test_a_store_without_a_cluster_says_what_is_missing(shared):
    """When `%%px` was forgotten, in a reader who has started a cluster."""
    with pytest.raises(RuntimeError, match='in the workers of a cluster only: '
                       'write %%px above the cell'):
        mx.kv.create('dist_sync')
    assert mx.kv.create('local').type == 'local'


@pytest.mark.full
def test_a_process_forked_from_this_one_has_no_part_in_it(shared):
    def child():
        try:
            shared.run(os.getpid)
        except ClusterError as error:
            assert 'forked' in str(error)
            shared.close()
            shared._finalizer()  # as at the end of Python
            os._exit(7)
    pid = os.fork()
    if not pid:
        try:
            child()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert shared.run(add_up) == [[3.0] * 3] * 2


@pytest.mark.full
def test_what_the_reader_has_set_does_not_disturb(
        folder, tmp_path, monkeypatch):
    """For another cluster; a temporary folder with a long name; and a home
    folder, in which nothing is written."""
    for name, value in {'DMLC_ROLE': 'sever', 'DMLC_NUM_WORKER': '7',
                        'DMLC_PS_ROOT_PORT': 'x', 'PS_VERBOSE': '2',
                        'DMLC_NODE_HOST': '10.1.2.3'}.items():
        monkeypatch.setenv(name, value)
    home, long = tmp_path / 'home', folder / ('x' * 100)
    home.mkdir()
    long.mkdir()
    monkeypatch.setenv('HOME', str(home))
    monkeypatch.setattr('tempfile.tempdir', str(long))
    with Cluster() as c:
        assert c.run(add_up) == [[3.0] * 3] * 2
    long.rmdir()
    assert [path for path in home.rglob('*') if path.is_file()] == []


# Deaths.
PULL = 'waiting in pull'


def hang(before):
    """Worker 1 comes too late for a pull of worker 0's."""
    kv = mx.kv.create('dist_sync')
    kv.init('w', np.zeros(3))
    if kv.rank == 1:
        time.sleep(before)
    kv.pushpull('w', np.zeros(3))


def dies(c, kill, words, moment='', function=None, *args):
    """After `kill()`, the cluster has to end soon, with an error.

    That is when the state of worker 0 has `moment` in it.
    """
    pids = c.pids.values()
    killed, paths = [], []

    def later():
        agreement = c._supervisor._agreement
        wait_for(lambda: moment in agreement.state(0, time.monotonic()))
        paths.extend(sockets_of(c))
        killed.append(time.monotonic())
        kill()
    thread = threading.Thread(target=later)
    thread.start()
    with pytest.raises(ClusterError) as error:
        if function:
            c.run(function, *args)
        else:
            assert wait_for(lambda: c.check() is not None)
    thread.join()
    assert time.monotonic() - killed[0] < HANGS
    text = str(error.value)
    assert all(word in text for word in words), text
    assert all_gone(pids)
    assert not any(map(os.path.lexists, paths))
    with pytest.raises(ClusterError):
        c.run(add_up)
    with pytest.raises(ClusterError):
        c.view['x']
    start = time.monotonic()
    c.close()
    assert time.monotonic() - start < HANGS


def fate(c, name, how):
    """What has to be said of it."""
    return f'{name} (process {c.pids[name]}) was ended by {how.name}'


@pytest.mark.parametrize('name, how', [
    pytest.param('scheduler', signal.SIGTERM, marks=pytest.mark.full),
    ('server 0', signal.SIGKILL),
    pytest.param('worker 1', signal.SIGKILL, marks=pytest.mark.full)])
def test_death_during_a_pull(name, how):
    with Cluster() as c:
        dies(c, lambda: c.kill(name, how), [
            fate(c, name, how), 'the last lines',
            "worker 0: waiting in pull('w') for ",
            'worker 1: busy; last call init('], PULL, hang, 60)


@pytest.mark.full
def test_death_of_the_keeper():
    with Cluster() as c:
        dies(c, lambda: c.kill('keeper'), [
            f"keeper (process {c.pids['keeper']}) was ended by SIGKILL",
            "worker 0: waiting in pull('w') for "], PULL, hang, 60)


def push_in_a_second():
    kv = mx.kv.create('dist_sync')
    kv.init('w', np.zeros(3))
    kv.barrier()
    time.sleep(1)
    kv.pushpull('w', np.zeros(3))


@pytest.mark.full
def test_a_server_that_does_not_answer():
    with Cluster(timeout=2) as c:
        dies(c, lambda: c.kill('server 0', signal.SIGSTOP),
             ["worker 0 got no answer from the servers in pull('w')"],
             'barrier', push_in_a_second)


@pytest.mark.full
def test_a_process_that_gives_no_sign_of_life(monkeypatch):
    monkeypatch.setattr(group, 'SILENCE', 3)
    with Cluster() as c:
        dies(c, lambda: c.kill('worker 1', signal.SIGSTOP),
             ['worker 1', 'has not given a sign of life for 3 s'], PULL,
             hang, 60)


@pytest.mark.full
def test_a_close_from_the_thread_that_watches():
    """Where the garbage collector may call it."""
    c = Cluster(1, 0)
    pids, group = c.pids.values(), c._supervisor._group
    group.do(c._finalizer, timeout=HANGS)
    group.join(HANGS)
    assert not group.is_alive() and all_gone(pids, 0)
    c.close()


def test_a_cluster_cannot_be_sent_to_its_workers(shared):
    for arguments in [lambda: shared], [print, shared]:
        with pytest.raises(ValueError, match='a Cluster cannot be sent to its '
                           'workers: leave it out'):
            shared.run(*arguments)
    assert shared.run(len, 'ab') == [2, 2]


def test_a_worker_that_fails_fails_the_call_and_not_the_cluster(shared):
    def fail():
        raise ZeroDivisionError('on purpose')
    with pytest.raises(WorkerError) as error:
        shared.run(fail)
    assert len(error.value.errors) == 2
    assert 'on purpose' in str(error.value)
    assert shared.run(add_up) == [[3.0] * 3] * 2


@pytest.mark.full
@pytest.mark.parametrize('deaf', [False, True])
def test_ctrl_c_in_the_middle_of_a_call(deaf, shared):
    def work():
        if deaf:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        end = time.monotonic() + 2 * HANGS
        while time.monotonic() < end:
            time.sleep(0.1)
    with Cluster() if deaf else contextlib.nullcontext(shared) as c:
        pids = c.pids.values()
        timer = threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            c.run(work)
        assert time.monotonic() - start < HANGS
        if deaf:
            with pytest.raises(ClusterError, match='did not stop within'):
                c.check()
            assert all_gone(pids, 0)
        else:
            assert c.run(add_up) == [[3.0] * 3] * 2


def test_a_start_that_takes_too_long_is_given_up(monkeypatch):
    """Where 15 processes want each core, it may take 15 times as long."""
    monkeypatch.setattr(Supervisor, 'start', lambda *_: None)  # none comes
    monkeypatch.setattr(restarts, 'START', 0.01)
    monkeypatch.setattr(processor, 'load', lambda: 15.0)
    start = time.monotonic()
    with pytest.raises(ClusterError, match='the workers did not start in 0 s'):
        Cluster(num_servers=0)
    assert time.monotonic() - start >= 0.15


@pytest.mark.full
def test_ctrl_c_in_the_start(monkeypatch):
    timer = threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT])
    before = psutil.Process().children()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        with Cluster():
            time.sleep(10)
    assert psutil.Process().children() == before


@pytest.mark.full
def test_a_message_that_a_worker_cannot_understand():
    with Cluster(num_workers=1) as c:
        def send():
            [worker] = c._supervisor._members('worker')
            worker.keeper.send(messages.Pass(worker.number, '["Dance", {}]'))
        dies(c, lambda: c._supervisor._group.do(send), [
            'worker 0', 'cannot handle ["Dance", {}]:'])


@pytest.mark.full
def test_a_cluster_that_nobody_holds_any_more():
    """It ends after its last run, also where that run's error is kept."""
    c = Cluster(1, 0)
    pids = c.pids.values()
    with pytest.raises(WorkerError) as error:
        c.run(int, 'x')
    del c
    gc.collect()
    assert all_gone(pids) and error.tb
    assert len(Cluster(1, 0).run(os.getpid)) == 1  # and not before


SCRIPT = '''
    import os, signal, sys, threading, time
    sys.path.insert(0, {tests!r})
    from clusters import sockets_of
    from d2lps.cluster import Cluster
    def store():
        import mxnet
        mxnet.kv.create('dist_sync')
    def hang():
        import ctypes
        lock = ctypes.PyDLL(None).pthread_mutex_lock
        mutex = ctypes.create_string_buffer(64)
        lock(mutex)
        lock(mutex)  # no signal is heard in here, and no thread runs
    for end in {ends!r}:
        pid = os.fork()
        if not pid:  # a reader of its own
            c = Cluster(num_workers=1, num_servers=1)
            c.run(store)
            print(*c.pids.values())
            print(*sockets_of(c), flush=True)
            threading.Thread(target=c.run, args=[{function}],
                             daemon=True).start()
            exec(end)
            sys.exit()
        os.waitpid(pid, 0)
        print(flush=True)
'''


def readers_who_end(folder, *ends, function='time.sleep, 60'):
    script = folder / 'script.py'
    script.write_text(textwrap.dedent(SCRIPT).format(
        ends=ends, function=function, tests=str(Path(__file__).parents[1])))
    process = subprocess.Popen([sys.executable, str(script)], text=True,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    for end in ends:
        pids, paths, _ = (process.stdout.readline().split()
                          for _ in range(3))  # by then, it has ended
        assert len(pids) == 4 and all_gone([*map(int, pids)]), end
        assert len(paths) == 3 and wait_for(lambda paths=paths: not any(
            map(os.path.lexists, paths))), end
    process.wait(HANGS)
    process.stdout.close()


@pytest.mark.full
def test_the_end_of_the_process_that_started_it(tmp_path):
    readers_who_end(
        tmp_path, 'sys.exit(3)',
        'c.kill("worker 0", signal.SIGSTOP); '
        'os.kill(os.getpid(), signal.SIGKILL)',
        # A process that inherited the pipes lives on.
        'os.fork() or time.sleep(8) or os._exit(0); '
        'os.kill(os.getpid(), signal.SIGKILL)')


@pytest.mark.full
@pytest.mark.skipif(sys.platform != 'linux', reason='needs a death signal')
def test_a_worker_that_hangs_in_c_ends_with_its_parent(tmp_path):
    """And a keeper that was stopped ends with the reader."""
    readers_who_end(
        tmp_path, *(f'c.kill("{one}", signal.SIGSTOP); time.sleep(1); '
                    'os.kill(os.getpid(), signal.SIGKILL)'
                    for one in ('server 0', 'keeper')),
        function='hang')


@pytest.mark.full
@pytest.mark.skipif(sys.platform != 'linux', reason='looks into /proc')
def test_mxnet_is_loaded_before_processes_are_forked(monkeypatch):
    monkeypatch.setenv('OMP_NUM_THREADS', '1')

    def look():
        import random

        import numpy
        return os.getppid(), random.random(), numpy.random.rand()
    with Cluster() as c:
        parents, *drawn = zip(*c.run(look))
        keeper = c.pids['keeper']
        assert {*parents} == {keeper}
        assert 'libmxnet' in Path(f'/proc/{keeper}/maps').read_text()
        assert all(len({*numbers}) == 2 for numbers in drawn)


@pytest.mark.full
def test_who_computes_without_a_break_lives(tmp_path, monkeypatch):
    """No other thread of the worker can say so meanwhile."""
    said, hear, enough = [], KeeperConnection._hear_of, tmp_path / 'enough'
    ours: set[int] = set()  # another cluster may be open meanwhile

    def noted(self, process, message):
        before = process.beat
        hear(self, process, message)
        # The keeper says it.
        if isinstance(message, messages.Computes) and process.pid in ours:
            said.append((process.name, process.beat > before))
            if len(said) == 3:
                enough.touch()
    monkeypatch.setattr(KeeperConnection, '_hear_of', noted)

    def compute():
        end = time.monotonic() + HANGS
        while time.monotonic() < end:
            sum(range(50_000_000))  # in C, and holds the interpreter
            if enough.exists():
                return 'done'
    with Cluster(1, 0) as c:
        c.run(sys.setswitchinterval, 60)
        ours.update(c.pids.values())
        assert c.run(compute) == ['done']
    assert {*said} == {('worker 0', True)}


def test_what_a_sitecustomize_prints_does_not_disturb(tmp_path, monkeypatch):
    """The keeper's Python runs it, and writes it where its messages go."""
    (tmp_path / 'sitecustomize.py').write_text(
        'print("welcome\\n[1]", end="")')
    monkeypatch.setenv('PYTHONPATH', str(tmp_path), prepend=os.pathsep)
    with Cluster(1, 0) as c:
        assert [*c._supervisor._group.keeper.printed] == ['welcome', '[1]']
        assert c.run(len, 'ab') == [2]
