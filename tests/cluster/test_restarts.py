"""A group that is started anew after a death, and goes on from a file.

The functions that `run` gets are executed on the workers.
"""
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from clusters import (all_gone, empty_in_the_end, needs_network,
                      wait_for)
from d2lps.cluster import Cluster, ClusterError, Network, WorkerError
from d2lps.cluster.processes.cells import execute
from d2lps.recovery import train_with_checkpoints

pytestmark = pytest.mark.full

STEPS = 60


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A temporary folder of its own, which has to be empty in the end."""
    before = psutil.Process().children()
    with empty_in_the_end(monkeypatch) as folder:
        yield folder
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
    """Kills `victims`, a list of (step, name), as the steps are reached.

    `done()` says how many steps are done. `gone` are all processes so far.
    """

    def __init__(self, cluster, done, victims):
        super().__init__(daemon=True)
        self._cluster, self._done = cluster, done
        self._victims, self.gone = victims, []
        self.start()

    def run(self):
        for step, name in self._victims:
            wait_for(lambda step=step: self._done() >= step, 60)
            seen = len(self._cluster.deaths)
            wait_for(lambda name=name: self._kill(name), 60)
            # Two that die before one is noticed are one failure.
            wait_for(lambda n=seen: len(self._cluster.deaths) > n, 60)

    def _kill(self, name):
        try:
            self.gone += self._cluster.pids.values()
            self._cluster.kill(name)
            return True
        except ClusterError:  # it is being started anew
            return False


def test_more_deaths_than_restarts(tmp_path):
    path = tmp_path / 'done'
    with Cluster(1, 1, restarts=1) as c:
        killer = Killer(c, lambda: steps_done(path), [
            (5, 'server 0'), (15, 'worker 0')])
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


def test_new_processes_start_where_the_first_did(tmp_path, monkeypatch):
    """Otherwise a training would not find its checkpoints."""
    def where():
        import os
        import sys
        return os.getcwd(), sys.path
    for name in 'first', 'second':
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / 'first')
    monkeypatch.syspath_prepend('')
    with Cluster(1, 0, restarts=2) as c:
        before = c.run(where)
        assert str(tmp_path / 'first') in before[0][1]
        monkeypatch.chdir(tmp_path / 'second')
        c.kill('worker 0')
        assert wait_for(lambda: c.deaths)
        assert c.run(where) == before
        (tmp_path / 'first').rmdir()
        c.kill('worker 0')
        assert wait_for(lambda: len(c.deaths) == 2)
        with pytest.raises(ClusterError, match='No such file.*first'):
            c.run(where)


# While it starts anew.
def sleep(path=None):
    """On workers that were never started anew; later ones return at once."""
    import os
    import time
    if os.path.exists(path):
        return 'again'
    time.sleep(0.2)
    open(path, 'w').close()
    time.sleep(60)


def starts(c, old=()):
    """Wait until it starts anew, and has processes that are not `old`.

    Returns their ids by name.
    """
    def found():
        try:
            pids = c._supervisor.pids()
        except ClusterError:  # it is just being replaced
            return {}
        return {} if {*pids.values()} & {*old} else pids
    assert wait_for(lambda: 'starting anew' in repr(c) and found(), 30)
    return found()


def later(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


def test_ctrl_c_while_it_starts_anew(tmp_path):
    path = tmp_path / 'x'

    def press():
        assert wait_for(path.exists)
        pids = c.pids
        c.kill('worker 1')
        starts(c, pids.values())
        os.kill(os.getpid(), signal.SIGINT)
    with Cluster(2, 1, restarts=3) as c:
        thread = later(press)
        with pytest.raises(KeyboardInterrupt):
            c.run(sleep, path)
        thread.join(10)
        assert psutil.Process().children() == []
        with pytest.raises(ClusterError, match=r'not be started anew \(Keyb'):
            c.run(len, 'ab')


def test_a_run_in_another_thread(tmp_path):
    """The main thread sees it start anew; kills again; closes it."""
    path = tmp_path / 'x'
    with ThreadPoolExecutor(1) as pool, Cluster(2, 1, restarts=3) as c:
        running = pool.submit(c.run, sleep, path)
        assert wait_for(path.exists)
        c.kill('server 0')
        starts(c)
        for call in (lambda: c.kill('server 0'), lambda: c.pids, c.check):
            with pytest.raises(ClusterError, match='being started anew|ended'):
                call()
        assert running.result(30) == ['again'] * 2
        c.kill('server 0')  # nothing runs: the next run will see to it
        assert wait_for(lambda: len(c.deaths) == 2)
        with pytest.raises(ClusterError, match='the next run starts them'):
            c.check()
        assert c.run(len, 'ab') == [2, 2]
        path.unlink()
        running = pool.submit(c.run, sleep, path)
        assert wait_for(path.exists)
        c.close()
        with pytest.raises(ClusterError, match='this cluster is closed'):
            running.result(10)


GONE = 'run the %%px cells again, from the first cell on'


def test_cells_are_not_run_on_workers_that_have_lost_what_they_made():
    with Cluster(1, 0, restarts=4) as c:
        def kill():
            n = len(c.deaths)
            c.kill('worker 0')
            assert wait_for(lambda: len(c.deaths) > n)
        kill()
        c.run(execute, 'x = 1')  # the first one has nothing to miss
        kill()
        with pytest.raises(ClusterError, match=GONE):
            c.run(execute, 'x = 2')
        c.run(execute, 'x = 3')
        kill()
        assert c.run(len, 'ab') == [2]  # a function starts it anew
        with pytest.raises(ClusterError, match=GONE):
            c.view['x']
        with pytest.raises(ClusterError, match=GONE):
            c.run(execute, 'import os; os._exit(1)')
        with pytest.raises(WorkerError, match='NameError'):
            c.view['x']


def test_what_was_no_death_does_not_leave_no_worker():
    with Cluster(1, 0, restarts=3) as c:
        c.kill('worker 0')
        assert wait_for(lambda: c.deaths)
        c.run(len, 'ab')
        c._supervisor.fail('it was interrupted twice')
        with pytest.raises(ClusterError, match='All deaths: worker 0 was '
                           r'ended by SIGKILL\.$'):
            c.check()


# Elastic.
def test_workers_that_are_lost_for_good(tmp_path, capsys):
    path = tmp_path / 'done'
    with Cluster(2, 1, restarts=3, elastic=True) as c:
        killer = Killer(c, lambda: steps_done(path), [
            (10, 'worker 1'), (30, 'worker 0')])
        with pytest.raises(ClusterError, match='no worker is left'):
            c.run(count, path)
        killer.join(10)
        assert steps_done(path) >= 30 and c.num_workers == 1
        assert [len(c.deaths), c.deaths[-1].who] == [2, 'worker 0']
    assert capsys.readouterr().out == (
        'worker 1 was ended by SIGKILL; all processes are started anew, '
        'with 1 worker (restart 1 of 3)\n')


@needs_network
def test_in_a_slow_network(tmp_path):
    path = tmp_path / 'done'
    with Cluster(3, 2, network=Network(colocated=True), restarts=2,
                 elastic=True) as c:
        killer = Killer(c, lambda: steps_done(path), [
            (10, 'worker 2'), (30, 'network')])
        assert c.run(count, path) == pytest.approx([RIGHT] * 2, rel=1e-6)
        killer.join(10)
        assert len(c.deaths) == 2 and c.num_workers == 2
        assert {*c.traffic()} == {'worker 0', 'worker 1'}
        assert all_gone(killer.gone, 0)


# A real training.
def progress(folder):
    """The last step that is in the log of a training, or 0."""
    try:
        lines = (folder / 'progress.csv').read_text().split('\n')[1:-1]
    except FileNotFoundError:
        return 0
    return max((int(line.split(',')[0]) for line in lines if line), default=0)


def largest_difference(results, others):
    return max(float(abs(one - other).max()) for result in results
               for one, other in zip(result.params, others.params))


TRAINING = dict(num_steps=20, batch_size=96, every=4)


def train_and_die(folder, **training):
    """Worker 0 dies in its first call, as it writes its second checkpoint."""
    import os
    import signal

    from d2lps.recovery import train_with_checkpoints
    fsync, calls, mark = os.fsync, [], f'{folder}/died'

    def die(file):
        calls.append(file)
        if len(calls) > 3 and not os.path.exists(mark):
            open(mark, 'w').close()
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(file)
    os.fsync = die
    return train_with_checkpoints(f'{folder}/training', **training)


def test_deaths_of_one_training(tmp_path, capsys):
    """One while a checkpoint is written, and two of other roles."""
    with Cluster(2, 1) as c:
        unhurt = c.run(train_with_checkpoints, tmp_path / 'unhurt',
                       **TRAINING)[0]
    names = ['worker 0', 'server 1', 'scheduler']
    with Cluster(2, 2, restarts=3) as c:
        killer = Killer(c, lambda: progress(tmp_path / 'training'),
                        [*zip((10, 15), names[1:])])
        first = c.pids
        results = c.run(train_and_die, str(tmp_path), **TRAINING)
        killer.join(10)
        assert (tmp_path / 'died').exists()
        assert [(death.who, death.why) for death in c.deaths] == [
            (name, 'was ended by SIGKILL') for name in names]
        assert all(death.seconds > 0 for death in c.deaths)
        assert c.run(os.getpid) == [c.pids['worker 0'], c.pids['worker 1']]
        assert set(first) == set(c.pids)
        assert not {*first.values()} & {*c.pids.values()}
        killer.gone += [*first.values(), *c.pids.values()]
    assert capsys.readouterr().out.splitlines() == [
        f'{name} was ended by SIGKILL; all processes are started anew '
        f'(restart {k} of 3)' for k, name in enumerate(names, 1)]
    assert largest_difference(results, unhurt) <= 1e-6
    assert results[0].losses == pytest.approx(unhurt.losses, abs=1e-6)
    assert all_gone(killer.gone, 0)
