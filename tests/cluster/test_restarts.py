"""A group that is started anew after a death, and goes on from a file.

The functions that `run` gets are executed on the workers.
"""
import os
import signal
import threading

import psutil
import pytest
from clusters import all_gone, wait_for
from d2lps.cluster import Cluster, ClusterError, WorkerError
from d2lps.cluster.processes import group

STEPS = 60


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A temporary folder of its own, which has to be empty in the end."""
    folder = tmp_path / 'tmp'
    folder.mkdir()
    monkeypatch.setenv('TMPDIR', str(folder))
    monkeypatch.setattr('tempfile.tempdir', str(folder))
    before = psutil.Process().children()
    yield folder
    assert wait_for(lambda: not os.listdir(folder), 5), os.listdir(folder)
    assert psutil.Process().children() == before


def count(path, steps=STEPS, seconds=0.02):
    """Add up step + 1 for all steps; begin after the last that was saved."""
    import os
    import time

    import mxnet as mx
    store = mx.kv.create('dist_sync')
    done, total = 0, 0.0
    if os.path.exists(path):
        with open(path) as file:
            done, total = map(float, file.read().split())
    out, share = mx.np.zeros(3), mx.np.ones(3) / store.num_workers
    store.init('sum', out)
    for step in range(int(done), steps):
        store.pushpull('sum', share * (step + 1), out=out)
        total += out[0].item()
        if store.rank == 0:
            with open(f'{path}.new', 'w') as file:
                file.write(f'{step + 1} {total}')
            os.replace(f'{path}.new', path)
        time.sleep(seconds)
    return total


RIGHT = STEPS * (STEPS + 1) / 2


def steps_done(path):
    try:
        return int(path.read_text().split()[0])
    except (FileNotFoundError, IndexError):
        return 0


class Killer(threading.Thread):
    """Kills `victims`, a list of (step, name), as the steps are reached."""

    def __init__(self, cluster, path, victims, how=signal.SIGKILL):
        super().__init__(daemon=True)
        self._cluster, self._path, self._how = cluster, path, how
        self._victims, self.gone = victims, []
        self.start()

    def run(self):
        for step, name in self._victims:
            wait_for(lambda step=step: steps_done(self._path) >= step, 60)
            wait_for(lambda name=name: self._kill(name), 60)

    def _kill(self, name):
        try:
            self.gone += self._cluster.pids.values()
            self._cluster.kill(name, self._how)
            return True
        except ClusterError:  # it is being started anew
            return False


def test_every_kind_of_death_and_the_same_result(tmp_path, capsys):
    path = tmp_path / 'done'
    victims = [(10, 'server 1'), (20, 'worker 1'), (30, 'scheduler'),
               (40, 'keeper')]
    with Cluster(2, 2, restarts=4) as c:
        first = c.pids
        killer = Killer(c, path, victims)
        assert c.run(count, path) == [RIGHT] * 2
        killer.join(10)
        assert [(death.who, death.why) for death in c.deaths] == [
            (name, 'was ended by SIGKILL') for _, name in victims]
        assert all(0 < death.seconds < 15 for death in c.deaths)
        assert not {*first.values()} & {*c.pids.values()}
        assert set(first) == set(c.pids)
        assert c.run(os.getpid) == [c.pids['worker 0'], c.pids['worker 1']]
        assert all_gone(killer.gone, 0)
    said = capsys.readouterr().out.splitlines()
    assert said == [
        f'{name} was ended by SIGKILL; all processes are started anew '
        f'(restart {k} of 4)' for k, (_, name) in enumerate(victims, 1)]


def test_more_deaths_than_restarts(tmp_path):
    path = tmp_path / 'done'
    with Cluster(1, 1, restarts=1) as c:
        killer = Killer(c, path, [(5, 'server 0'), (15, 'worker 0')])
        with pytest.raises(ClusterError) as error:
            c.run(count, path)
        killer.join(10)
        text = str(error.value)
        assert 'server 0 was ended by SIGKILL; worker 0 was ended by' in text
        assert 'started anew 1 times of 1' in text
        assert [death.seconds is None for death in c.deaths] == [False, True]
        with pytest.raises(ClusterError, match='All deaths: server 0 was'):
            c.run(count, path)


def test_an_error_of_the_readers_is_not_tried_again(tmp_path):
    """Nor is what follows from it for the others."""
    def fail(path):
        import mxnet as mx
        store = mx.kv.create('dist_sync')
        store.init('w', mx.np.zeros(1))
        with open(f'{path} {store.rank}', 'a') as file:
            file.write('x')
        if store.rank == 1:
            raise ZeroDivisionError('on purpose')
        store.pushpull('w', mx.np.zeros(1))

    def leave(path):
        import sys
        sys.exit(3)
    with Cluster(2, 1, restarts=2) as c:
        pids = c.pids
        with pytest.raises(WorkerError) as error:
            c.run(fail, tmp_path / 'x')
        assert 'on purpose' in error.value.errors[1]
        assert error.value.errors[0].startswith('StoreError')
        with pytest.raises(WorkerError, match='SystemExit: 3'):
            c.run(leave, 0)
        assert not c.deaths and c.pids == pids
        assert (tmp_path / 'x 0').read_text() == 'x'


def test_a_death_wins_over_the_errors_that_follow_from_it(
        tmp_path, monkeypatch):
    """Worker 1 is stopped; worker 0 gives up waiting, and long after that
    worker 1 is known to be silent."""
    monkeypatch.setattr(group, 'SILENCE', 4)

    def wait_for_the_other(path):
        import os
        import signal

        import mxnet as mx
        store = mx.kv.create('dist_sync')
        store.init('w', mx.np.zeros(1))
        if store.rank == 1 and not os.path.exists(path):
            open(path, 'w').close()
            os.kill(os.getpid(), signal.SIGSTOP)
        store.pushpull('w', mx.np.zeros(1))
        return 'well'
    with Cluster(2, 1, timeout=1, restarts=1) as c:
        assert c.run(wait_for_the_other, tmp_path / 'x') == ['well'] * 2
        [death] = c.deaths
        assert (death.who, death.why) == (
            'worker 1', 'has not given a sign of life for 4 s')


@pytest.mark.parametrize('end', ['_exit(7)', 'abort()',
                                 'kill(os.getpid(), 11)'])
def test_a_worker_that_ends_its_process_has_died(tmp_path, end):
    def leave(path, end):
        import os
        if not os.path.exists(path):
            open(path, 'w').close()
            eval(f'os.{end}', {'os': os})
        return 'well'
    with Cluster(1, 1, restarts=1) as c:
        assert c.run(leave, tmp_path / 'x', end) == ['well']
        assert c.deaths[0].who == 'worker 0'
