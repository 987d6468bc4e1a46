"""What workers start ends with their cluster, wherever it has gone."""
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from clusters import HANGS, empty_in_the_end, wait_for
from d2lps.cluster import Cluster
from d2lps.cluster.processes import group

pytestmark = pytest.mark.skipif(
    sys.platform != 'linux', reason='only Linux finds them')


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    # On a busy machine, no keeper may be killed before it has ended all.
    monkeypatch.setattr(group, 'GOODBYE', HANGS)
    with empty_in_the_end(monkeypatch) as folder:
        yield folder


def start(folder):
    """Be a worker that starts all kinds of processes; they write their ids."""
    rank = os.environ['RANK']

    def write(name):
        with open(f'{folder}/{name}-{rank}.new', 'w') as file:
            file.write(str(os.getpid()))
        os.rename(f'{folder}/{name}-{rank}.new', f'{folder}/{name}-{rank}')
        time.sleep(600)

    code = ('import os, sys, time; '
            'open(sys.argv[1] + ".new", "w").write(str(os.getpid())); '
            'os.rename(sys.argv[1] + ".new", sys.argv[1]); time.sleep(600)')
    for name, more in {'group': {}, 'session': {'start_new_session': True},
                       'bare': {'start_new_session': True, 'env': {}}
                       }.items():
        subprocess.Popen([sys.executable, '-c', code,
                          f'{folder}/{name}-{rank}'], **more)
    if not os.fork():  # a daemon, as daemons are made
        os.setsid()
        if os.fork():
            os._exit(0)
        write('daemon')
    if not os.fork():  # a family whose members leave each other
        os.setsid()
        for name in 'child', 'grandchild':
            if not os.fork():
                os.setsid()
                write(name)
        write('parent')
    os.wait()
    return os.getpid()


KINDS = 'group', 'session', 'bare', 'daemon', 'parent', 'child', 'grandchild'


def started(folder, workers=2):
    """The ids of those that `start` has started, once all have written."""
    names = [f'{kind}-{rank}' for kind in KINDS for rank in range(workers)]
    assert wait_for(lambda: all((folder / name).exists() for name in names))
    return [int((folder / name).read_text()) for name in names]


def gone(pids, seconds=HANGS):
    def lives(pid):
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False
    return wait_for(lambda: not any(map(lives, pids)), seconds)


@pytest.fixture
def notes(tmp_path):
    """A folder for ids; whatever happens, those are ended."""
    notes = tmp_path / 'notes'
    notes.mkdir()
    yield notes
    for file in notes.glob('*-?'):
        pid = int(file.read_text())
        if not gone([pid], 0):
            os.kill(pid, signal.SIGKILL)


def close(c):
    c.close()


def death(c):
    c.kill('worker 1', signal.SIGKILL)
    assert wait_for(lambda: c._supervisor.failure)


@pytest.mark.parametrize('end', [close, death])
def test_all_end_with_the_cluster(notes, end):
    with Cluster(2, 0) as c:
        c.run(start, notes)
        pids = started(notes)
        assert not gone(pids, 0)
        end(c)
        assert gone(pids, 0)


def test_a_worker_that_has_left_its_group_ends_with_the_cluster(notes):
    """And with what it has started; the keeper need not be killed."""
    def leave():
        os.setpgid(0, os.getpgid(os.getppid()))
        return os.getpgrp()
    with Cluster(2, 0) as c:
        keeper = c._supervisor._group.keeper
        assert c.run(leave) == [keeper.pid] * 2
        c.run(start, notes)
        pids = [*c.pids.values(), *started(notes)]
        close(c)
        assert gone(pids, 0) and keeper.code == 0


def test_orphans_that_have_ended_are_buried(notes):
    """They become their keeper's children, and would be zombies for long."""
    def orphans():
        for _ in range(20):
            if not os.fork():
                os.setsid()
                if os.fork():
                    os._exit(0)
                os._exit(0)
            os.wait()
    with Cluster(2, 0) as c:
        c.run(orphans)
        keeper = psutil.Process(c.pids['keeper'])
        assert wait_for(lambda: len(keeper.children()) == 2)
        assert c.run(os.getpid) == [c.pids['worker 0'], c.pids['worker 1']]
