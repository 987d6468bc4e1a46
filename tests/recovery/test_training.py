"""A training that stops and goes on ends as one that never stopped."""
import contextlib
import csv
import os
import threading

import d2lps
import numpy as onp
import pytest
from d2lps.cluster import Cluster, WorkerError
from d2lps.engine import mx
from d2lps.kvstore import KVStore
from d2lps.recovery import (Checkpoint, CheckpointError,
                            train_with_checkpoints, checkpointed_training)

STEPS, BATCH = 7, 64


@pytest.fixture(autouse=True)
def short_epochs(monkeypatch):
    """Epochs of five minibatches, so that some steps cross into the next."""
    def few(batch_size, seed):
        train_iter, test_iter = d2lps.load_data(batch_size, seed=seed)
        n = 4 * batch_size + 10
        return d2lps.Batches(train_iter.images[:n], train_iter.labels[:n],
                             batch_size, shuffle=True, seed=seed), test_iter
    monkeypatch.setattr(checkpointed_training, 'load_data', few)


def train(folder, num_steps=STEPS, store=None, **arguments):
    arguments = dict(batch_size=BATCH, every=2) | arguments
    return train_with_checkpoints(folder, num_steps, **arguments,
                                  store=store or KVStore())


def by_threads(num_workers, folder, num_steps=STEPS, **arguments):
    store = KVStore(num_workers, num_servers=2, timeout=20)
    return store.run(lambda handle: train(
        folder, num_steps, store=handle, **arguments))


def equal(one, two):
    return one.losses == two.losses and all(
        map(onp.array_equal, one.params, two.params))


@pytest.fixture(scope='module')
def unhurt(tmp_path_factory):
    """How it ends when nothing happens: on one worker, and on two."""
    with pytest.MonkeyPatch.context() as patched:
        short_epochs.__wrapped__(patched)
        return (train(tmp_path_factory.mktemp('one')),
                by_threads(2, tmp_path_factory.mktemp('two'))[0])


class Death(BaseException):
    pass


@contextlib.contextmanager
def dying_in_step(step):
    """Let all die after the gradients of a step have been summed."""
    left, whole = {}, checkpointed_training.sum_gradients

    def sum_gradients(*args):
        rank = args[-1].rank
        left[rank] = left.get(rank, 0) + 1
        if left[rank] == step:
            raise Death
        return whole(*args)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checkpointed_training, 'sum_gradients', sum_gradients)
        yield


@pytest.mark.parametrize('step', [1, 3, 6])
def test_a_death_in_any_step_changes_nothing(tmp_path, unhurt, step):
    with dying_in_step(step), pytest.raises(Death):
        train(tmp_path)
    end = train(tmp_path, store=mx.kv.create('local'))
    assert equal(end, unhurt[0])
    assert end.steps == STEPS - (step - 1) // 2 * 2


def test_two_workers_end_alike_to_the_bit(tmp_path, unhurt):
    """a + b is b + a, so the order in which a server adds two is nothing."""
    with dying_in_step(4), pytest.raises(Death):
        by_threads(2, tmp_path)
    first, second = by_threads(2, tmp_path)
    assert first.steps == 5
    assert equal(first, second) and equal(first, unhurt[1])


@pytest.mark.parametrize('before, after', [(3, 2), (1, 3)])
def test_workers_may_come_and_go(tmp_path, unhurt, before, after):
    """Up to rounding: other shares are added in another order."""
    by_threads(before, tmp_path, 4)
    ends = by_threads(after, tmp_path)
    assert all(end.steps == STEPS - 4 for end in ends)
    for end in ends:
        assert equal(end, ends[0])
        for a, b in zip(end.params, unhurt[0].params):
            onp.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def test_it_waits_to_be_killed_but_not_when_a_step_is_taken_again(
        tmp_path, unhurt, monkeypatch):
    waits = []  # lines of progress.csv when it waited, below the first one

    def sleep(seconds):
        assert seconds == checkpointed_training.WAIT
        text = (tmp_path / 'progress.csv').read_text()
        waits.append(text.count('\n') - 1)
    monkeypatch.setattr(checkpointed_training.time, 'sleep', sleep)
    with dying_in_step(6), pytest.raises(Death):
        train(tmp_path, wait_at=[5, 6])
    assert waits == [5]
    assert equal(train(tmp_path, wait_at=[5, 6]), unhurt[0])
    assert waits[1:] == [5 + 1 + 2]  # an empty line, step 5 again, step 6


def test_it_needs_all_that_is_in_a_checkpoint(tmp_path, unhurt):
    """Without momentum, position or random state it ends elsewhere."""
    train(tmp_path, 6)
    _, state = Checkpoint(tmp_path).load()
    assert state['position'] == [1, 1]
    wrong = {'momenta': [0 * array for array in state['momenta']],
             'position': [0, 0],
             'random': onp.random.default_rng(9).bit_generator.state}
    for number, (name, value) in enumerate(wrong.items()):
        other = Checkpoint(tmp_path / f'{number}')
        other.save(6, state | {name: value})
        other.close()
        assert not equal(train(other.folder), unhurt[0])
    other = Checkpoint(tmp_path / 'right')
    other.save(6, state)
    other.close()
    assert equal(train(other.folder), unhurt[0])


def test_it_is_the_training_it_says(tmp_path):
    """The same steps by hand, in NumPy's float64, without a store."""
    end = train(tmp_path, 3, lr=0.1, momentum=0.5, seed=4)
    [device] = d2lps.devices(1)
    params = d2lps.get_params(d2lps.init_params(seed=4), device)
    velocity = [0] * 8
    batches, _ = checkpointed_training.load_data(BATCH, seed=4)
    random = onp.random.default_rng(4)
    for (X, y), found in zip(batches, end.losses):
        down, right = random.integers(-1, 2, size=2)
        X = mx.np.array(onp.roll(onp.roll(X.asnumpy(), down, 2), right, 3))
        [losses] = d2lps.compute_gradients(X, y, [params], [device])
        assert found == pytest.approx(float(losses.mean()), abs=1e-5)
        for k, param in enumerate(params):
            velocity[k] = 0.5 * velocity[k] - 0.1 * param.grad / len(X)
            param += velocity[k]
    for a, b in zip(end.params, params):
        onp.testing.assert_allclose(a, b.asnumpy(), rtol=0, atol=1e-5)


def test_what_is_finished_returns_at_once(tmp_path, unhurt):
    train(tmp_path)
    before = {path.name: path.stat().st_mtime_ns
              for path in tmp_path.glob('step*')}
    again = train(tmp_path)
    assert again.steps == 0 and equal(again, unhurt[0])
    assert before == {path.name: path.stat().st_mtime_ns
                      for path in tmp_path.glob('step*')}


def test_a_longer_training_goes_on(tmp_path, unhurt):
    train(tmp_path, 3)
    assert equal(train(tmp_path), unhurt[0])
    with pytest.raises(ValueError, match='^num_steps must be at least 7'):
        train(tmp_path, 5)


def test_progress_has_a_line_for_each_step_and_each_beginning(tmp_path):
    with dying_in_step(4), pytest.raises(Death):
        train(tmp_path)
    end = train(tmp_path)
    text = (tmp_path / 'progress.csv').read_text()
    assert text.count('\n\n') == 1
    rows = [*csv.DictReader(text.splitlines())]
    assert [int(row['step']) for row in rows] == [1, 2, 3, 3, 4, 5, 6, 7]
    for row in rows:
        assert float(row['loss']) == pytest.approx(
            end.losses[int(row['step']) - 1], abs=1e-6)
    times = [float(row['time']) for row in rows]
    assert times == sorted(times)


# Checkpoints that do not fit.

def test_the_one_before_a_damaged_one_is_taken_by_all(tmp_path, unhurt):
    by_threads(2, tmp_path, 6)
    newest = tmp_path / 'step-00000006.checkpoint'
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.warns(UserWarning, match='step-00000006.* damaged'):
        ends = by_threads(2, tmp_path)
    assert all(end.steps == STEPS - 4 and equal(end, unhurt[1])
               for end in ends)


@contextlib.contextmanager
def worker_1_loads(change):
    """Let worker 1, but no other, see another folder."""
    load, ranks = Checkpoint.load, threading.local()
    newest = checkpointed_training.newest_for_all

    def newest_for_all(checkpoint, store, params):
        ranks.here = store.rank
        return newest(checkpoint, store, params)

    def loading(self, **arguments):
        if ranks.here == 1:
            return change(self, load, **arguments)
        return load(self, **arguments)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checkpointed_training, 'newest_for_all',
                        newest_for_all)
        patched.setattr(Checkpoint, 'load', loading)
        yield


def test_what_one_cannot_read_nobody_takes(tmp_path, unhurt):
    by_threads(2, tmp_path, 6)

    def without_6(self, load, like, at_most):
        return load(self, like=like, at_most=min(at_most, 5))
    with worker_1_loads(without_6):
        ends = by_threads(2, tmp_path)
    assert all(end.steps == STEPS - 4 and equal(end, unhurt[1])
               for end in ends)


def test_workers_with_different_folders_are_told(tmp_path):
    for name in 'one', 'other':
        train(tmp_path / name, 4, seed=len(name))

    def nothing(self, load, **arguments):
        return None

    def another(self, load, **arguments):
        other = Checkpoint(tmp_path / 'other')
        found = load(other, **arguments)
        self.checksum = other.checksum
        return found
    for change, words in ((nothing, 'worker 1 none'),
                          (another, r'worker 1 step 4 \(')):
        with worker_1_loads(change), pytest.raises(
                CheckpointError, match=rf'worker 0 step 4 \(.*{words}'):
            by_threads(2, tmp_path / 'one')


def test_a_training_with_other_settings_is_refused(tmp_path):
    train(tmp_path, 1)
    with pytest.raises(ValueError, match="^folder .* not with .*'lr': 0.5"):
        train(tmp_path, lr=0.5)


def test_two_trainings_cannot_share_a_folder(tmp_path):
    with Checkpoint(tmp_path) as other:
        other.lock()
        with pytest.raises(CheckpointError, match=f'process {os.getpid()} '):
            train(tmp_path)
    train(tmp_path)


def test_a_training_that_diverges_spoils_no_checkpoint(tmp_path):
    with pytest.raises(FloatingPointError, match='diverged .* try lr=1'):
        train(tmp_path, 40, lr=1e6, every=1, keep=1)
    step, state = Checkpoint(tmp_path).load()
    assert step > 0
    assert all(onp.isfinite(array).all() for array in state['params'])


# With processes.

def fail_in_step(step, *args, **kwargs):
    """In a worker: an exception of the reader's own."""
    from d2lps.recovery import checkpointed_training
    whole, left = checkpointed_training.sum_gradients, [step]

    def sum_gradients(*args):
        left[0] -= 1
        if not left[0]:
            raise OSError('the reader is to blame')
        return whole(*args)
    checkpointed_training.sum_gradients = sum_gradients
    try:
        return checkpointed_training.train_with_checkpoints(*args, **kwargs)
    finally:
        checkpointed_training.sum_gradients = whole


@pytest.mark.full
def test_workers_that_are_processes_end_alike_to_the_bit(tmp_path):
    """Through MXNet's store; and again in the same processes."""
    arguments = dict(batch_size=BATCH, every=2)
    with Cluster(2, 2) as c:
        whole, _ = c.run(train_with_checkpoints, tmp_path / 'whole', STEPS,
                         **arguments)
        with pytest.raises(WorkerError, match='the reader is to blame'):
            c.run(fail_in_step, 6, tmp_path / 'hurt', STEPS, **arguments)
        first, second = c.run(train_with_checkpoints, tmp_path / 'hurt',
                              STEPS, **arguments)
    assert first.steps == second.steps == STEPS - 4
    assert equal(first, whole) and equal(second, whole)
    assert sorted(os.listdir(tmp_path / 'hurt')) == [
        'lock', 'progress.csv', *(f'step-0000000{n}.checkpoint'
                                  for n in (4, 6, 7))]
