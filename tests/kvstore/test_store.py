"""The store from scratch does what MXNet's does, and says what is wrong."""
import functools
import re
import threading
import time

from amount import cases
import mxnet as mx
import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import np

from d2lps import devices
from d2lps.kvstore import KVStore, Stopped

SHAPES = (), (3,), (2, 3), (7,)
DTYPES = 'float32', 'float64', 'int32'


# The same script of calls, to our store and to MXNet's. Numbers are small
# and whole, so that sums are exact in any order.

def add(key, summed, stored):
    stored += 2 * summed


def subtract(key, summed, stored):
    stored -= summed


def turn(key, summed, stored):
    stored *= -1
    stored += summed


UPDATERS = add, subtract, turn
INDEX = st.integers(0, 3)  # of a key, and so of a shape and a dtype
NUMBERS = st.lists(st.integers(-9, 9), min_size=1, max_size=4)  # per device
CALLS = 'push', 'pull', 'pushpull', 'pushpull into'
STEPS = st.one_of(
    st.tuples(st.just('init'), INDEX, st.integers(-9, 9)),
    st.tuples(st.just('updater'), st.sampled_from(UPDATERS)),
    st.tuples(st.sampled_from(CALLS), st.lists(
        st.tuples(INDEX, NUMBERS), min_size=1, max_size=4)),
    st.tuples(st.just('unknown key'), st.sampled_from(CALLS[:3])),
    st.tuples(st.just('other kind of key'), INDEX))


@functools.cache
def counting(i, device):
    """0, 1, 2 … in the shape and dtype of key i."""
    size = int(onp.prod(SHAPES[i]))
    return np.array(onp.arange(size).reshape(SHAPES[i]),
                    dtype=DTYPES[i % 3], ctx=device)


@functools.cache
def first_values(i):
    return [counting(i, device) + 1 for device in devices(4) * 4]


class Script:
    """Takes a store through some steps, and writes down what it sees."""

    def __init__(self, store, kind, updater):
        self.store, self.kind, self.updater = store, kind, updater
        self.known, self.seen = set(), []

    def play(self, steps):
        self.step('updater', self.updater)
        self.step('init', 0, 1)
        for step in steps:
            self.step(*step)
        self.call('pull', [(i, [0, 0]) for i in sorted(self.known)])
        return self.seen

    def step(self, name, *args):
        store, key = self.store, self.kind
        if name == 'init':
            i, number = args
            if i in self.known:
                self.refused(store.init, key(i), self.value(i, [number]))
            else:
                store.init(key(i), self.value(i, [number]))
                self.known.add(i)
                self.call('pull', [(i, [0])])
                # MXNet keeps room for as many values as the first push of
                # several has; more of them later end its process. No call
                # below has more than these.
                store.push(key(i), first_values(i))
        elif name == 'updater' and self.updater:
            # Not after a push without one: it leaves MXNet's stored value
            # in the memory that the next sum is put into.
            set_updater = (store.set_updater if isinstance(store, KVStore)
                           else store._set_updater)
            set_updater(*args)
        elif name == 'unknown key':
            # With values of several devices, MXNet's process would die. It
            # does not let this key be initialised later, either.
            self.refused(getattr(store, *args), key(99), self.value(0, [1]))
        elif name == 'other kind of key':
            other = str if key is int else int
            self.refused(store.init, other(*args), self.value(0, [1]))
        elif name in CALLS:
            self.call(name, [pair for pair in args[0]
                             if pair[0] in self.known])

    def refused(self, call, *args):
        with pytest.raises((ValueError, mx.MXNetError)):
            call(*args)

    def call(self, name, pairs):
        keys = [self.kind(i) for i, _ in pairs]
        values = [self.value(i, numbers) for i, numbers in pairs]
        if len(pairs) == 1:  # take the form without a list of keys
            [keys], [values] = keys, values
        if not pairs:
            return
        if name == 'pushpull into':
            outs = [self.value(i, numbers) for i, numbers in pairs]
            outs = outs[0] if len(pairs) == 1 else outs
            self.store.pushpull(keys, values, out=outs)
            self.see(outs)
        else:
            getattr(self.store, name)(keys, values)
        self.see(values)

    def value(self, i, numbers):
        """An array for key i, or a list with one of each device."""
        arrays = [counting(i, device) + number
                  for number, device in zip(numbers, devices(4) * 4)]
        return arrays[0] if len(arrays) == 1 else arrays

    def see(self, value):
        if isinstance(value, list):
            for array in value:
                self.see(array)
        else:
            self.seen.append((str(value.ctx), str(value.dtype),
                              value.tolist()))


@settings(max_examples=cases(200), deadline=None)
@given(steps=st.lists(STEPS, max_size=12), kind=st.sampled_from([int, str]),
       updater=st.none() | st.sampled_from(UPDATERS),
       num_servers=st.integers(1, 3), split_from=st.sampled_from([2, 100]))
def test_any_script_gives_what_it_gives_with_mxnet(
        steps, kind, updater, num_servers, split_from):
    ours = KVStore(num_servers=num_servers, split_from=split_from, timeout=1)
    theirs = mx.kv.create('local')
    assert (Script(ours, kind, updater).play(steps)
            == Script(theirs, kind, updater).play(steps))


def test_the_names_of_the_store_are_those_of_mxnet():
    ours, theirs = KVStore(), mx.kv.create('local')
    for name in 'type', 'rank', 'num_workers':
        assert getattr(ours, name) == getattr(theirs, name)
    assert KVStore(num_workers=2).type == 'dist_sync'
    assert KVStore(num_workers=2, consistency='async').type == 'dist_async'
    assert KVStore(num_workers=2, consistency=0).type == 'dist_sync'
    assert KVStore(num_workers=2, consistency=4).type not in (
        'dist_sync', 'dist_async')  # MXNet has none


@pytest.mark.parametrize('optimizer', [
    mx.optimizer.SGD(learning_rate=0.1, momentum=0.9),
    mx.optimizer.Adam(learning_rate=0.1)])
def test_an_optimizer_does_what_it_does_in_mxnet(optimizer):
    stores = KVStore(num_servers=3, split_from=4), mx.kv.create('local')
    random, ends = onp.random.default_rng(0), []
    start, *gradients = [[random.normal(size=n).astype('float32')
                          for n in (2, 9)] for _ in range(4)]
    for store in stores:
        store.set_optimizer(optimizer)
        store.init(['a', 'b'], list(map(np.array, start)))
        for values in gradients:
            store.push(['a', 'b'], list(map(np.array, values)))
        out = [np.zeros(2), np.zeros(9)]
        store.pull(['a', 'b'], out)
        ends += [np.concatenate(out).asnumpy()]
    onp.testing.assert_allclose(*ends, rtol=1e-6)
    assert abs(ends[0] - onp.concatenate(start)).min() > 1e-3


def pulled(store, key=0, like=None):
    out = np.zeros(2) if like is None else np.zeros_like(like)
    store.pull(key, out)
    return out.tolist()


def full(number):
    return np.full(2, float(number))


# One worker: arrays stay the caller's, and split values keep together.

def test_the_store_shares_no_memory_with_its_caller():
    store, value = KVStore(), full(1)
    store.init(0, value)
    value[:] = 7
    assert pulled(store) == [1, 1]
    value[:] = 2
    store.push(0, value)
    value[:] = 7
    assert pulled(store) == [2, 2]
    store.pull(0, value)
    value[:] = 7
    assert pulled(store) == [2, 2]


def test_values_of_several_devices_are_summed_and_pulled_to_several():
    store = KVStore(num_servers=2)
    store.init('g', full(0))
    store.push('g', [np.full(2, i + 1.0, ctx=device)
                     for i, device in enumerate(devices(3))])
    out = [np.zeros(2, ctx=device) for device in devices(3)]
    store.pull('g', out)
    assert [array.tolist() for array in out] == [[6, 6]] * 3
    assert [array.ctx for array in out] == devices(3)


def test_an_updater_sees_the_key_and_each_part_of_a_split_value():
    calls, store = [], KVStore(num_servers=2, split_from=4)
    store.init(['small', 'large'], [np.zeros((1, 3)), np.zeros((2, 3))])
    store.set_updater(lambda key, summed, stored:
                      calls.append((key, summed.shape, stored.shape)))
    store.push(['small', 'large'], [np.ones((1, 3)), np.ones((2, 3))])
    assert calls == [('small', (1, 3), (1, 3)), ('large', (3,), (3,)),
                     ('large', (3,), (3,))]


def test_without_its_updater_a_store_replaces_again():
    store = KVStore()
    store.init(0, full(1))
    store.set_updater(add)
    store.push(0, full(1))
    assert pulled(store) == [3, 3]
    store.set_updater(None)
    store.push(0, full(1))
    assert pulled(store) == [1, 1]


def test_bytes_of_each_server_as_worked_by_hand():
    # Key 0 lies on server 0, key 1 on server 9973 mod 2 = 1, and the ten
    # float64s of key 2 are split: five, or 40 bytes, on each.
    store = KVStore(num_workers=2, num_servers=2, split_from=10)
    values = [np.zeros(3), np.zeros((2, 2), dtype='float64'),
              np.zeros(10, dtype='float64')]
    store.init([0, 1, 2], values)
    assert all(s.received == s.sent == 0 for s in store.servers)
    for rank in 0, 1:
        # Both devices' values are summed by the worker: one is sent.
        store.worker(rank).push([0, 1, 2], [[v, v] for v in values])
    assert [s.received for s in store.servers] == [2 * (12 + 40),
                                                   2 * (32 + 40)]
    # The sum comes once, however many devices get it.
    store.pull([0, 1, 2], [[v, v, v] for v in values])
    assert [s.sent for s in store.servers] == [12 + 40, 32 + 40]


# Several workers.

def test_a_round_takes_a_push_of_each_worker():
    store = KVStore(num_workers=3)
    store.init(0, full(9))
    for rank in 2, 0, 1:
        assert pulled(store.worker(1)) == [9, 9]
        store.worker(rank).push(0, full(rank + 1))
    assert pulled(store) == pulled(store.worker(2)) == [6, 6]


def test_who_pushes_twice_does_not_stand_in_for_another():
    store = KVStore(num_workers=2, timeout=0.05)
    store.init(0, full(0))
    store.push(0, full(1))
    store.push(0, full(10))
    with pytest.raises(TimeoutError):
        pulled(store)
    assert pulled(store.worker(1)) == [0, 0]
    store.worker(1).push(0, full(100))
    assert pulled(store.worker(1)) == [101, 101]
    store.worker(1).push(0, full(1000))
    assert pulled(store) == [1010, 1010]


def in_threads(*functions):
    """Run them at the same time; return what they return, or raise."""
    results = [None] * len(functions)

    def run(i):
        try:
            results[i] = functions[i]()
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True)
               for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@pytest.mark.parametrize('num_workers, num_servers', [(2, 1), (3, 2), (5, 3)])
def test_threads_all_see_the_sum_of_each_round(num_workers, num_servers):
    store = KVStore(num_workers, num_servers, timeout=10, split_from=8)
    shapes, rounds = [(2,), (3, 5)], 30

    def work(rank):
        handle, seen = store.worker(rank), []
        handle.init([0, 1], [np.zeros(shape) for shape in shapes])
        for step in range(rounds):
            number = 10 * step + rank
            handle.push([0, 1], [np.full(s, number) for s in shapes])
            out = [np.zeros(shape) for shape in shapes]
            handle.pull([0, 1], out)
            assert all(len(set(a.reshape(-1).tolist())) == 1 for a in out)
            seen.append([int(a.reshape(-1)[0]) for a in out])
        return seen

    ranks = range(num_workers)
    expected = [[sum(10 * step + rank for rank in ranks)] * 2
                for step in range(rounds)]
    assert in_threads(*(lambda rank=rank: work(rank) for rank in ranks)) == [
        expected] * num_workers


def test_pull_waits_for_a_late_worker():
    store, late = KVStore(num_workers=2, timeout=60), threading.Event()
    store.init(0, full(0))

    def work(handle):
        if handle.rank == 1:
            assert late.wait(60)
            time.sleep(0.05)
        handle.push(0, full(1 + handle.rank))
        late.set()
        return pulled(handle)

    assert store.run(work) == [[3, 3]] * 2


def test_what_a_worker_raises_comes_back():
    def fails(handle):
        if handle.rank == 1:
            raise ValueError('worker 1 has failed')

    with pytest.raises(ValueError, match='worker 1 has failed'):
        KVStore(num_workers=2).run(fails)


def test_who_waits_for_a_worker_that_failed_ends_and_all_errors_are_shown():
    """Not after the timeout, with a word of the wrong worker."""
    store = KVStore(num_workers=4, timeout=3600)

    def work(handle):
        if handle.rank in (1, 3):
            raise ZeroDivisionError(f'in worker {handle.rank}')
        handle.init('w', full(0))
        handle.push('w', full(1))
        try:
            handle.pull('w', full(0))
        except Stopped as stopped:
            assert 'was stopped, as another failed or Ctrl-C' in str(stopped)
            raise
    with pytest.raises(ZeroDivisionError, match='in worker [13]') as error:
        store.run(work)
    assert error.value.__notes__ == [
        "worker 1 raised ZeroDivisionError('in worker 1')",
        "worker 3 raised ZeroDivisionError('in worker 3')"]
    # Nobody is stopped in the next run.
    assert store.run(lambda handle: handle.num_workers) == [4] * 4


CTRL_C = """
import os, signal, threading, time
import d2lps
from d2lps.kvstore import KVStore
from mxnet import np

def work(handle):
    began.set()
    if handle.rank == 0:
        while not ends:  # and never calls the store
            time.sleep(0.01)
    try:
        handle.init(0, np.zeros(2))
    except RuntimeError as error:
        seen.append(type(error).__name__)
began, ends, seen = threading.Event(), [], []

def interrupt():
    began.wait(60)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    KVStore(3, timeout=3600).run(work)
except KeyboardInterrupt:
    ends.append(True)
while len(seen) < 3:
    time.sleep(0.01)
print(seen)
"""


def test_ctrl_c_ends_a_run_at_once(python):
    done = python('-c', CTRL_C)
    assert done.stdout == f'{["Stopped"] * 3}\n', done.stderr


def test_an_updater_that_takes_long_is_waited_for_until_the_timeout():
    store, inside, go = KVStore(timeout=0.2), *(
        threading.Event() for _ in range(2))

    def slow(key, total, stored):
        inside.set()
        assert go.wait(60)
    store.init('w', full(0))
    store.set_updater(slow)

    def impatient():
        assert inside.wait(60)
        with pytest.raises(TimeoutError, match=r'worker 0 waited 0\.2 s for '
                           'the updater in a call of another worker'):
            pulled(store, 'w')
        go.set()
    in_threads(lambda: store.push('w', full(1)), impatient)


def test_an_update_that_failed_is_no_round():
    store, calls = KVStore(), []

    def fails_once(key, total, stored):
        calls.append(key)
        if len(calls) == 1:
            raise ValueError('once')
        stored += total
    store.init('w', full(0))
    store.set_updater(fails_once)
    with pytest.raises(ValueError, match='once'):
        store.push('w', full(1))
    assert store.servers[0].shards['w'].round == 0
    store.push('w', full(1))
    assert store.servers[0].shards['w'].round == 1
    assert pulled(store, 'w') == [1, 1]


def test_half_a_character_is_no_key():
    store = KVStore(num_servers=3)
    with pytest.raises(ValueError, match='^key must be an int or a str'):
        store.init('\ud800', full(7))
    store.init('\U0001f600', full(7))
    assert pulled(store, '\U0001f600') == [7, 7]


def test_others_wait_in_init_for_worker_0_whose_value_counts():
    store, late = KVStore(num_workers=2, timeout=60), threading.Event()

    order = []

    def first():
        assert late.wait(60)
        time.sleep(0.05)
        order.append('worker 0 begins')
        store.init('a', full(1))

    def second():
        late.set()
        store.worker(1).init('a', full(2))
        order.append('worker 1 goes on')
        return pulled(store.worker(1), 'a')

    assert in_threads(first, second)[1] == [1, 1]
    assert order == ['worker 0 begins', 'worker 1 goes on']


def test_a_thread_without_settings_of_its_own_can_use_the_store():
    store = KVStore(timeout=10)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    store.init(0, full(1))
    in_threads(lambda: store.push(0, full(3)))
    assert pulled(store) == [-2, -2]


def test_workers_have_the_shapes_of_numpy():
    """MXNet keeps it for each thread whether arrays may have no dimension."""
    def work(handle):
        return [array.shape for array in (
            np.zeros(()), np.zeros((0,)), np.arange(3)[0], np.ones(2).sum())]
    assert KVStore(3).run(work) == [[(), (0,), (), ()]] * 3


def test_updaters_have_the_shapes_of_numpy():
    shapes = []

    def update(key, gradient, value):
        shapes.extend([np.zeros(()).shape, gradient[0].shape])
    store = KVStore(2)
    store.set_updater(update)

    def work(handle):
        handle.init(0, full(0))
        handle.push(0, full(1))
        handle.pull(0, full(0))
    store.run(work)
    assert shapes == [(), ()]


# Asynchronous.

def test_an_asynchronous_store_updates_at_each_push():
    store = KVStore(num_workers=2, consistency='async', timeout=0.05)
    store.init(0, full(0))
    store.set_updater(subtract)
    for rank, expected in (0, -1), (0, -2), (1, -3):
        store.worker(rank).push(0, full(1))
        assert pulled(store) == [expected] * 2
    assert store.servers[0].shards[0].round == 3
    # Worker 1 never pulled: two updates came between, of which it knew none.
    assert store.servers[0].staleness == {0: 2, 2: 1}


def test_no_worker_pushes_before_worker_0_has_set_the_updater():
    """Where a push does not wait for others, it would find none."""
    store = KVStore(num_workers=2, consistency='async', timeout=0.05)
    sgd = mx.optimizer.SGD(learning_rate=1)
    with pytest.raises(TimeoutError, match=r'worker 1 waited 0\.05 s for '
                       r'set_updater\(.*\) of worker 0\. Last'):
        store.worker(1).set_optimizer(sgd)
    store.timeout, calls = 20, []

    def work(handle):
        if handle.rank == 0:
            time.sleep(0.1)
        handle.set_optimizer(sgd)
        calls.append(handle.rank)
        assert store.servers[0].updater
    store.worker(0).run(work)
    assert sorted(calls) == [0, 1]


def test_an_asynchronous_store_needs_an_updater():
    store = KVStore(num_workers=2, consistency='async')
    store.init(0, full(5))
    with pytest.raises(ValueError, match="='async' needs an updater"):
        store.push(0, full(1))
    store.set_updater(add)
    store.push(0, full(1))
    assert pulled(store) == [7, 7]


# At most so many rounds ahead.

@pytest.mark.parametrize('optimizer', [
    mx.optimizer.SGD(learning_rate=0.1, momentum=0.9),
    mx.optimizer.Adam(learning_rate=0.1)])
def test_bound_0_is_sync_also_with_a_state_on_the_server(optimizer):
    random, turns = onp.random.default_rng(0), [2, 0, 1, 1, 0, 2, 0, 2, 1]
    gradients = random.normal(size=(len(turns), 9)).astype('float32')
    seen = {}
    for consistency in 'sync', 0, 1:
        store = KVStore(3, 2, consistency, timeout=1, split_from=4)
        store.set_optimizer(optimizer)
        store.init(0, np.ones(9))
        seen[consistency] = []
        for i in range(0, len(turns), 3):
            for rank, gradient in zip(turns[i:i + 3], gradients[i:i + 3]):
                store.worker(rank).push(0, np.array(gradient))
            seen[consistency] += [pulled(store.worker(rank), 0, np.ones(9))
                                  for rank in range(3)]
    assert seen[0] == seen['sync'] != seen[1]  # bit for bit
    for i in (0, 3, 6):  # all see the same
        assert seen[0][i] == seen[0][i + 1] == seen[0][i + 2]


def test_momentum_of_a_round_is_that_of_its_sum():
    """What NumPy finds with one step for the sum of each round."""
    store = KVStore(num_workers=2, consistency=0)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.5))
    store.init(0, full(1))
    value, momentum = 1.0, 0.0
    for first, second in (1, 2), (-3, 8), (4, 0.5):
        store.worker(1).push(0, full(second))
        store.push(0, full(first))
        momentum = 0.5 * momentum - 0.5 * (first + second)
        value += momentum
        assert pulled(store) == [value] * 2


def test_a_pull_waits_for_who_is_too_far_behind_and_is_woken():
    store = KVStore(num_workers=3, consistency=2, timeout=10)
    store.init(0, full(0))
    store.set_updater(add)
    entered = threading.Event()

    def fast():
        for _ in range(3):
            assert store.missing(0) == []
            store.push(0, full(1))
            if store.missing(0):
                assert store.missing(0) == [1, 2]
                entered.set()
            seen = pulled(store)
        return seen

    def slow():
        assert entered.wait(10)  # the third push; two were ahead without wait
        for rank in 1, 2:
            assert store.worker(rank).missing(0) == []
            store.worker(rank).push(0, full(10))

    assert in_threads(fast, slow)[0] == [2 * (3 + 20)] * 2
    assert store.servers[0].pushed == {(0, 0): 3, (0, 1): 1, (0, 2): 1}


def test_a_straggler_that_never_comes_back_is_named():
    store = KVStore(num_workers=3, num_servers=2, consistency=1, timeout=0.05,
                    split_from=2)
    store.init('w', full(0))
    store.set_updater(add)
    for rank in 0, 0, 2:
        store.worker(rank).push('w', full(1))
    assert store.missing('w') == [1]
    with pytest.raises(TimeoutError, match=(
            r"^worker 0 waited 0.05 s for push\('w'\) of worker 1, being "
            r'more than 1 ahead. Last calls:\n')):
        pulled(store, 'w')
    assert pulled(store.worker(2), 'w') == [6, 6]  # it has not run ahead
    store.worker(1).push('w', full(1))
    assert pulled(store, 'w') == [8, 8]


@pytest.mark.parametrize('bound', [0, 1, 3])
def test_threads_are_never_further_apart_than_the_bound(bound):
    store, rounds, seen = KVStore(4, 2, bound, timeout=20), [0] * 4, []
    store.set_updater(add)

    def work(handle):
        handle.init(0, full(0))
        for step in range(25):
            pulled(handle)
            seen.append(rounds[handle.rank] - min(rounds))
            if step % 5 == handle.rank:  # each is late at times
                time.sleep(0.002)
            handle.push(0, full(1))
            rounds[handle.rank] += 1

    store.run(work)
    assert max(seen) <= bound + 1  # `rounds` is counted after the push
    assert pulled(store) == [2 * 4 * 25] * 2


def test_who_would_be_waited_for_can_be_asked():
    store = KVStore(num_workers=3)
    store.init([0, 1], [full(0)] * 2)
    assert store.missing(0) == []
    store.push(0, full(1))
    assert store.missing(0) == [1, 2] and store.missing(1) == []
    assert store.worker(1).missing(0) == []
    store.worker(2).push(0, full(1))
    assert store.missing(0) == [1]
    for key, message in (7, 'key 7 is not in the store'), (None, 'key must'):
        with pytest.raises(ValueError, match=message):
            store.missing(key)


# What goes wrong gets a message, and the store can be used afterwards.

@pytest.fixture
def store():
    store = KVStore(num_servers=2, timeout=0.05)
    store.init([0, 1], [full(4), np.zeros((2, 3))])
    yield store
    assert pulled(store) == [4, 4]
    store.push([0, 1], [full(5), np.ones((2, 3))])
    assert pulled(store) == [5, 5]
    assert pulled(store, 1, np.zeros((2, 3))) == [[1] * 3] * 2


@pytest.mark.parametrize('call', ['push', 'pull', 'pushpull'])
@pytest.mark.parametrize('key, value, message', [
    (7, full(1), r'key 7 is not in the store, call init\(7, ...\) first; it '
                 r'has the keys \[0, 1\]'),
    ('a', full(1), "key 'a' is not in the store"),
    ([0, 7], [full(1), full(1)], 'key 7 is not in the store'),
    (0, np.ones(3), r'of key 0 must be float32 of shape \(2,\), as in init; '
                    r'it was float32 of shape \(3,\)'),
    (0, np.ones(2, dtype='int32'), 'it was int32 of shape'),
    ([1, 0], [np.ones((2, 3)), [full(1), np.ones((2, 1))]], 'of key 0 must'),
    (0, onp.ones(2), 'of key 0 must be an mxnet.np array'),
    (0, 1.0, 'of key 0 must be an mxnet.np array'),
    (0, mx.nd.ones(2), 'of key 0 must be an mxnet.np array'),
    (0, [], 'of key 0 must be an mxnet.np array'),
    ([0, 1], full(1), '^key is a list, so .* the 2 keys'),
    ([0, 1], [full(1)], '^key is a list, so .* the 2 keys'),
    (0.0, full(1), 'key must be an int or a str'),
    (True, full(1), 'key must be an int or a str'),
    (onp.int64(0), full(1), 'key must be an int or a str'),
    (None, full(1), 'key must be an int or a str'),
    ([], [], 'key must be a key or a list of keys'),
    ([], full(1), 'key must be a key or a list of keys')])
def test_a_wrong_call_is_explained(store, call, key, value, message):
    name = 'out' if call == 'pull' else 'value'
    with pytest.raises(ValueError, match=message) as error:
        getattr(store, call)(key, value)
    if message.startswith('of key'):
        assert str(error.value).startswith(name)


@pytest.mark.parametrize('key, value, message', [
    (0, full(1), 'key 0 is initialised already'),
    ([2, 0], [full(1)] * 2, 'key 0 is initialised already'),
    ([2, 2], [full(1)] * 2, 'key 2 is initialised already'),
    (2, [full(1)] * 2, 'key 2 is initialised already'),
    ('a', full(1), "key is 'a', but a store has int keys only or str"),
    ([2, 'a'], [full(1)] * 2, 'int keys only or str keys only'),
    (2.0, full(1), 'key must be an int or a str'),
    (2, 1.0, 'value of key 2 must be an mxnet.np array')])
def test_a_wrong_init_is_explained(store, key, value, message):
    with pytest.raises(ValueError, match=message):
        store.init(key, value)
    with pytest.raises(ValueError, match='key 2 is not in the store'):
        store.push(2, full(1))
    store.init(2, full(3))
    assert pulled(store, 2) == [3, 3]


@pytest.mark.parametrize('rank', [-1, 2, 0.5])
def test_a_rank_is_one_of_the_workers(rank):
    with pytest.raises(ValueError, match='^rank must be'):
        KVStore(num_workers=2).worker(rank)


def test_what_an_updater_raises_reaches_the_last_to_push():
    def wrong(key, summed, stored):
        raise ArithmeticError('no')

    store = KVStore(num_workers=2, num_servers=2, timeout=1, split_from=2)
    store.init(0, full(1))
    store.set_updater(wrong)
    store.push(0, full(1))
    with pytest.raises(ArithmeticError):
        store.worker(1).push(0, full(1))
    assert pulled(store) == pulled(store.worker(1)) == [1, 1]
    store.set_updater(add)
    for rank in 0, 1:
        store.worker(rank).push(0, full(10))
    assert pulled(store) == [41, 41]


def test_a_missing_push_is_explained_and_can_still_come():
    store = KVStore(num_workers=4, timeout=0.2)
    store.init(['v', 'w'], [full(0)] * 2)
    pulled(store.worker(1), 'w')
    store.worker(2).push(['v', 'w'], [full(1)] * 2)
    store.push('w', full(1))
    start = time.monotonic()
    with pytest.raises(TimeoutError) as error:
        pulled(store, 'w')
    assert time.monotonic() - start > 0.15
    first, *rest = str(error.value).splitlines()
    assert first == ("worker 0 waited 0.2 s for push('w') of worker 1 and "
                     'worker 3. Last calls:')
    calls = [line.split(', ')[0].strip() for line in rest]
    assert calls[:2] == ["worker 0: pull('w')", "worker 1: pull('w')"]
    assert calls[2] == "worker 2: push(['v'" and calls[3] == (
        'worker 3: none since the start')
    assert float(re.search(r', ([\d.]+) s ago$', rest[0])[1]) >= 0.2
    for rank in 1, 3:
        store.worker(rank).push('w', full(1))
    assert pulled(store, 'w') == [4, 4]


def test_an_init_without_worker_0_is_explained():
    store = KVStore(num_workers=2, timeout=0.05)
    with pytest.raises(TimeoutError, match=r'worker 1 waited 0.05 s for '
                                           r'init\(3\) of worker 0'):
        store.worker(1).init(3, full(0))
    store.init(3, full(1))
    store.worker(1).init(3, full(0))
    assert pulled(store.worker(1), 3) == [1, 1]


def test_an_init_of_another_shape_than_worker_0s_is_explained():
    store = KVStore(num_workers=2)
    store.init(0, full(1))
    with pytest.raises(ValueError, match='value of key 0 must be float32'):
        store.worker(1).init(0, np.zeros(3))
    store.worker(1).init(0, full(1))
    with pytest.raises(ValueError, match='initialised already'):
        store.worker(1).init(0, full(1))


def test_a_pushpull_into_a_wrong_array_pushes_nothing():
    store = KVStore()
    store.init(0, full(1))
    for out in np.zeros(3), None, [], full(0).astype('int32'), 'two':
        if out is not None:  # then it is `value` itself
            with pytest.raises(ValueError, match='^out'):
                store.pushpull(0, full(5), out)
    assert pulled(store) == [1, 1]
    with pytest.raises(ValueError, match='^priority must be'):
        store.pushpull(0, full(5), priority='high')
    assert pulled(store) == [1, 1]


def test_of_several_errors_the_first_is_raised():
    """Not that of the lowest rank, which may only follow from it."""
    def work(handle):
        if handle.rank == 1:
            raise KeyError('the cause')
        try:
            handle.push('w', np.ones(2))
            handle.pull('w', np.ones(2))
        except Stopped:
            raise ValueError('what follows') from None
    store = KVStore(2)
    store.init('w', np.zeros(2))
    with pytest.raises(KeyError, match='the cause'):
        store.run(work)
