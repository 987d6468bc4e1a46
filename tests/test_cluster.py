"""A cluster's life: start, work, stop, and every way to die.

The functions that `run` gets are executed on the workers.
"""
import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import mxnet as mx
import psutil
import pytest
from clusters import all_gone, group_members, wait_for
from d2lps.cluster import Cluster, ClusterError, WorkerError
from d2lps.cluster import group, places
from mxnet import np


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A temporary folder of its own, which has to be empty in the end."""
    folder = tmp_path / 'tmp'
    folder.mkdir()
    monkeypatch.setenv('TMPDIR', str(folder))
    monkeypatch.setattr('tempfile.tempdir', str(folder))
    yield folder
    assert wait_for(lambda: not os.listdir(folder), 5), os.listdir(folder)


def add_up(scale=1):
    kv = mx.kv.create('dist_sync')
    kv.init('w', np.zeros(3))
    out = np.zeros(3)
    kv.pushpull('w', np.ones(3) * (kv.rank + 1) * scale, out=out)
    return out.tolist()


def test_start_work_stop():
    start = time.monotonic()
    with Cluster(workers=2, servers=1) as c:
        assert time.monotonic() - start < 10
        pids = c.pids
        assert set(pids) == {'scheduler', 'server 0', 'worker 0', 'worker 1',
                             'controller'}
        assert 'running' in repr(c)
        assert c.run(add_up, scale=2) == [[6.0] * 3] * 2
        assert c.run(os.getpid) == [pids['worker 0'], pids['worker 1']]
        start = time.monotonic()
    assert time.monotonic() - start < 2
    assert all_gone(pids.values(), 0)
    assert 'closed' in repr(c)
    c.close()  # a second time
    with pytest.raises(ClusterError, match='closed; start a new one'):
        c.run(add_up)
    with pytest.raises(RuntimeError, match='closed'):
        c.view.apply(add_up)


def test_two_at_once_and_one_after_the_other():
    with Cluster() as one, Cluster(workers=1, servers=2) as two:
        pids = [*one.pids.values(), *two.pids.values()]
        assert one.run(add_up) == [[3.0] * 3] * 2
        assert two.run(add_up) == [[1.0] * 3]
        two.close()
        assert one.run(add_up, 2) == [[6.0] * 3] * 2
    assert all_gone(pids, 0)


def test_all_listen_on_this_machine_only():
    with Cluster(workers=2, servers=2) as c:
        c.run(add_up)
        members = set(group_members(c.pids.values()))
        listening = [one for pid in members
                     for one in psutil.Process(pid).net_connections('tcp')
                     if one.status == psutil.CONN_LISTEN]
        # Scheduler, servers and workers; the controller has Unix sockets.
        assert len(listening) == 5
        assert {one.laddr.ip for one in listening} == {'127.0.0.1'}
        ports = {one.laddr.port for one in listening}
    for port in ports:
        assert places.is_free(port)


def test_start_and_stop_again_and_again():
    stops = []
    for _ in range(3):
        c = Cluster(workers=1, servers=1)
        pids = c.pids.values()
        start = time.monotonic()
        c.close()
        stops.append(time.monotonic() - start)
        assert all_gone(pids, 0)
    assert sorted(stops)[1] < 2


@pytest.mark.parametrize('arguments, words', [
    (dict(workers=0), 'workers must be a whole number of at least 1'),
    (dict(servers=1.5), 'servers must be a whole number of at least 1'),
    (dict(timeout=0), 'timeout must be a number of seconds such as 60'),
    (dict(timeout='long'), "it was 'long'"),
    (dict(port=0), 'port must be a whole number of at least 1'),
    (dict(port=70_000), 'port must be')])
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError) as error:
        Cluster(**arguments)
    assert words in str(error.value)


def test_a_port_in_use():
    with socket.socket() as other:
        other.bind(('127.0.0.1', 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=f'port must be free; {port} is'):
            Cluster(port=port)


def test_a_port_that_another_program_takes_meanwhile(monkeypatch):
    with socket.socket() as other:
        other.bind(('127.0.0.1', 0))
        other.listen()
        free_ports = places.free_ports
        monkeypatch.setattr(places, 'free_ports', lambda n: [
            other.getsockname()[1], *free_ports(n - 1)])
        start = time.monotonic()
        with pytest.raises(ClusterError, match='scheduler .* ended') as error:
            with Cluster() as c:
                c.run(add_up)
        assert time.monotonic() - start < 15
        assert 'bind failed' in str(error.value)


def test_a_store_that_was_closed_long_ago(monkeypatch):
    """Its servers have ended, and nobody misses a sign of life of theirs."""
    def close():
        from d2lps.cluster import worker
        worker.close_store()
    monkeypatch.setattr(group, 'SILENCE', 3)
    with Cluster(workers=1) as c:
        c.run(add_up)
        c.run(close)
        time.sleep(4)
        assert c.run(add_up) == [[1.0] * 3]


def test_what_workers_print_is_shown(capsys):
    def talk():
        print('one\ntwo')
        print('oh', file=sys.stderr)
    with Cluster(workers=2) as c:
        c.run(talk)
    out, err = capsys.readouterr()
    assert sorted(out.splitlines()) == [
        '[worker 0] one', '[worker 0] two', '[worker 1] one',
        '[worker 1] two']
    assert sorted(err.splitlines()) == ['[worker 0] oh', '[worker 1] oh']


def test_functions_with_classes_and_arrays_from_here():
    class Pair:
        def __init__(self, array):
            self.array = array

    def double(pair):
        return Pair(pair.array * 2).array
    with Cluster(workers=1) as c:
        assert c.run(double, Pair(np.ones(2)))[0].tolist() == [2, 2]


def test_settings_of_the_reader_do_not_disturb(monkeypatch):
    for name, value in {'DMLC_ROLE': 'sever', 'DMLC_NUM_WORKER': '7',
                        'DMLC_PS_ROOT_PORT': 'x', 'PS_VERBOSE': '2',
                        'DMLC_NODE_HOST': '10.1.2.3'}.items():
        monkeypatch.setenv(name, value)
    with Cluster() as c:
        assert c.run(add_up) == [[3.0] * 3] * 2


# Deaths.

def hang(before):
    """Worker 1 comes too late for a pull of worker 0's."""
    kv = mx.kv.create('dist_sync')
    kv.init('w', np.zeros(3))
    if kv.rank == 1:
        time.sleep(before)
    kv.pushpull('w', np.zeros(3))


def dies(c, kill, words, delay=0.0, function=None, *args):
    """After `kill()`, the cluster has to end soon, with an error."""
    pids = c.pids.values()
    killed = []

    def later():
        time.sleep(delay)
        killed.append(time.monotonic())
        kill()
    thread = threading.Thread(target=later)
    thread.start()
    with pytest.raises(ClusterError) as error:
        if function:
            c.run(function, *args)
        else:
            assert wait_for(lambda: c.check() is not None, 15)
    thread.join()
    assert time.monotonic() - killed[0] < 15
    text = str(error.value)
    assert all(word in text for word in words), text
    assert all_gone(pids, 1)
    with pytest.raises(ClusterError):
        c.run(add_up)
    with pytest.raises(ClusterError):
        c.view.execute('1 + 1')
    start = time.monotonic()
    c.close()
    assert time.monotonic() - start < 2


NAMES = 'scheduler', 'server 0', 'worker 1', 'controller'


@pytest.mark.parametrize('name', NAMES)
def test_death_before_the_first_push(name):
    with Cluster() as c:
        pid = c.pids[name]
        dies(c, lambda: c.kill(name, signal.SIGTERM),
             [f'{name} (process {pid}) ',
              'SIGTERM' if name != 'controller' else 'exit code 0',
              'worker 0: it has not been used yet'])


@pytest.mark.parametrize('name', NAMES)
def test_death_during_a_pull(name):
    with Cluster() as c:
        dies(c, lambda: c.kill(name), [
            f'{name} (process {c.pids[name]}) was ended by SIGKILL',
            'the last lines', "worker 0: waiting in pull('w') for ",
            'worker 1: busy; last call init('], 1.5, hang, 60)


@pytest.mark.parametrize('name', NAMES)
def test_death_after_a_push(name):
    with Cluster() as c:
        c.run(add_up)
        dies(c, lambda: c.kill(name), [
            f'{name} (process {c.pids[name]}) was ended by SIGKILL',
            "worker 1: idle for ", "last call pull('w')"])


def test_death_while_mxnet_waits():
    """A push is under way, and the server is stopped, then killed."""
    def go():
        kv = mx.kv.create('dist_sync')
        kv.init('w', np.zeros(3))
        kv.barrier()
        time.sleep(1)
        kv.pushpull('w', np.zeros(3))
    with Cluster() as c:
        def kill():
            c.kill('server 0', signal.SIGSTOP)
            time.sleep(2)
            c.kill('server 0', signal.SIGKILL)
        dies(c, kill, ['server 0', "waiting in pull('w') for"], 0.8, go)


def test_a_server_that_does_not_answer():
    def go():
        kv = mx.kv.create('dist_sync')
        kv.init('w', np.zeros(3))
        kv.barrier()
        time.sleep(1)
        kv.pushpull('w', np.zeros(3))
    with Cluster(timeout=4) as c:
        dies(c, lambda: c.kill('server 0', signal.SIGSTOP),
             ["worker 0 got no answer from the servers in pull('w')"],
             0.8, go)


def test_a_process_that_gives_no_sign_of_life(monkeypatch):
    monkeypatch.setattr(group, 'SILENCE', 4)
    with Cluster() as c:
        dies(c, lambda: c.kill('worker 1', signal.SIGSTOP),
             ['worker 1', 'has not given a sign of life for 4 s'], 1,
             hang, 60)


def test_the_last_words_of_a_worker():
    def go():
        os.write(2, b'I am going\n')
        os._exit(7)
    with Cluster() as c:
        dies(c, lambda: None, ['ended with exit code 7', '    I am going'],
             0, go)


def test_an_exception_leaves_nothing():
    with pytest.raises(KeyError):
        with Cluster() as c:
            pids = c.pids.values()
            raise KeyError
    assert all_gone(pids, 0)


def test_a_worker_that_fails_fails_the_call_and_not_the_cluster():
    def fail():
        raise ZeroDivisionError('on purpose')
    with Cluster() as c:
        with pytest.raises(WorkerError) as error:
            c.run(fail)
        assert len(error.value.elist) == 2
        assert 'on purpose' in str(error.value)
        assert c.run(add_up) == [[3.0] * 3] * 2


@pytest.mark.parametrize('deaf', [False, True])
def test_ctrl_c_in_the_middle_of_a_call(deaf):
    def work():
        if deaf:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(0.1)
    with Cluster() as c:
        pids = c.pids.values()
        timer = threading.Timer(1.5, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            c.run(work)
        assert time.monotonic() - start < 10
        if deaf:
            with pytest.raises(ClusterError, match='did not stop within'):
                c.check()
            assert all_gone(pids, 0)
        else:
            assert c.run(add_up) == [[3.0] * 3] * 2
    assert all_gone(pids, 0)


def test_ctrl_c_in_the_start(monkeypatch):
    timer = threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT])
    before = psutil.Process().children()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        with Cluster():
            time.sleep(10)
    assert psutil.Process().children() == before


def test_a_cluster_that_nobody_holds_any_more():
    c = Cluster(workers=1)
    pids = c.pids.values()
    del c
    gc.collect()
    assert all_gone(pids, 5)


SCRIPT = '''
    import os, signal, sys, time
    from d2lps.cluster import Cluster
    if __name__ == '__main__':
        c = Cluster(workers=2, servers=1)
        print(*c.pids.values(), flush=True)
        c.view.apply_async(time.sleep, 60)
        {end}
'''


@pytest.mark.parametrize('end', [
    'os.kill(os.getpid(), signal.SIGKILL)',
    'os.kill(os.getpid(), signal.SIGTERM)',
    'sys.exit(3)', '1 / 0', 'os._exit(1)',
    # A process that inherited the pipes lives on.
    'os.fork() or time.sleep(8) or os._exit(0); '
    'os.kill(os.getpid(), signal.SIGKILL)'])
def test_the_end_of_the_process_that_started_it(end, tmp_path):
    script = tmp_path / 'script.py'
    script.write_text(textwrap.dedent(SCRIPT).format(end=end))
    done = subprocess.Popen([sys.executable, str(script)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    pids = [int(pid) for pid in done.stdout.readline().split()]
    done.wait(30)
    done.stdout.close()
    assert len(pids) == 5 and all_gone(pids, 5)


def test_a_worker_that_hangs_in_c_ends_with_its_parent(tmp_path):
    script = tmp_path / 'script.py'
    script.write_text(textwrap.dedent(SCRIPT).format(
        end='c.view.apply_async(sum, range(10 ** 11)); '
            'c.kill("server 0", signal.SIGSTOP); time.sleep(1); '
            'os.kill(os.getpid(), signal.SIGKILL)').replace(
                'c.view.apply_async(time.sleep, 60)', ''))
    done = subprocess.Popen([sys.executable, str(script)], text=True,
                            stdout=subprocess.PIPE)
    pids = [int(pid) for pid in done.stdout.readline().split()]
    done.wait(30)
    done.stdout.close()
    if sys.platform == 'linux':
        assert len(pids) == 5 and all_gone(pids, 5)
