"""The store from scratch does what MXNet's does, and says what is wrong."""
import functools
import re
import threading
import time

import mxnet as mx
import numpy as onp
import pytest
from hypothesis import given
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


@given(steps=st.lists(STEPS, max_size=12), kind=st.sampled_from([int, str]),
       updater=st.none() | st.sampled_from(UPDATERS),
       num_servers=st.integers(1, 3), split_from=st.sampled_from([2, 100]))
def test_any_script_gives_what_it_gives_with_mxnet(
        steps, kind, updater, num_servers, split_from):
    ours = KVStore(num_servers=num_servers, split_from=split_from, timeout=1)
    theirs = mx.kv.create('local')
    assert (Script(ours, kind, updater).play(steps)
            == Script(theirs, kind, updater).play(steps))


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


def test_an_updater_sees_the_key_and_each_part_of_a_split_value():
    calls, store = [], KVStore(num_servers=2, split_from=4)
    store.init(['small', 'large'], [np.zeros((1, 3)), np.zeros((2, 3))])
    store.set_updater(lambda key, summed, stored:
                      calls.append((key, summed.shape, stored.shape)))
    store.push(['small', 'large'], [np.ones((1, 3)), np.ones((2, 3))])
    assert calls == [('small', (1, 3), (1, 3)), ('large', (3,), (3,)),
                     ('large', (3,), (3,))]


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


def test_workers_all_see_the_sum_of_each_round():
    store = KVStore(3, num_servers=2, timeout=10, split_from=8)
    shapes, rounds = [(2,), (3, 5)], 30

    def work(handle):
        seen = []
        handle.init([0, 1], [np.zeros(shape) for shape in shapes])
        for step in range(rounds):
            number = 10 * step + handle.rank
            handle.push([0, 1], [np.full(s, number) for s in shapes])
            out = [np.zeros(shape) for shape in shapes]
            handle.pull([0, 1], out)
            assert all(len(set(a.reshape(-1).tolist())) == 1 for a in out)
            seen.append([int(a.reshape(-1)[0]) for a in out])
        return seen

    expected = [[3 * 10 * step + 0 + 1 + 2] * 2 for step in range(rounds)]
    assert store.run(work) == [expected] * 3


def test_who_waits_for_a_worker_that_failed_ends_and_all_errors_are_shown():
    """Not after the timeout, with a word of the wrong worker."""
    store = KVStore(num_workers=4, timeout=60)

    def work(handle):
        if handle.rank in (1, 3):
            raise ZeroDivisionError(f'in worker {handle.rank}')
        handle.init('w', full(0))
        handle.push('w', full(1))
        try:
            handle.pull('w', full(0))
        except Stopped as stopped:
            assert 'was stopped, because another worker failed' in str(stopped)
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
    store = KVStore(2, consistency='async', timeout=0.2)
    inside, go = threading.Event(), threading.Event()

    def slow(key, total, stored):
        inside.set()
        assert go.wait(60)
    store.init('w', full(0))
    store.set_updater(slow)

    def work(handle):
        if handle.rank == 0:
            handle.push('w', full(1))
            return
        assert inside.wait(60)
        with pytest.raises(TimeoutError, match=r'worker 1 waited 0\.2 s for '
                           'the updater in a call of another worker'):
            pulled(handle, 'w')
        go.set()
    store.run(work)


def test_others_wait_in_init_for_worker_0_whose_value_counts():
    def work(handle):
        if handle.rank == 0:
            time.sleep(0.1)
        handle.init('a', full(1 + handle.rank))
        return pulled(handle, 'a')
    assert KVStore(2, timeout=60).run(work) == [[1, 1]] * 2


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

def test_no_worker_pushes_before_worker_0_has_set_the_updater():
    """Where a push does not wait for others, it would find none."""
    store = KVStore(num_workers=2, consistency='async', timeout=0.05)
    sgd = mx.optimizer.SGD(learning_rate=1)
    with pytest.raises(TimeoutError, match=r'worker 1 waited 0\.05 s for '
                       r'set_updater\(\) of worker 0\. Last'):
        store.worker(1).set_optimizer(sgd)


def test_an_asynchronous_store_needs_an_updater():
    store = KVStore(num_workers=2, consistency='async')
    store.init(0, full(5))
    with pytest.raises(ValueError, match="='async' needs an updater"):
        store.push(0, full(1))
    store.set_updater(add)
    store.push(0, full(1))
    assert pulled(store) == [7, 7]


# At most so many steps ahead.

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


@pytest.mark.parametrize('bound', [0, 2])
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


@pytest.mark.parametrize('call', ['push', 'pull'])
@pytest.mark.parametrize('key, value, message', [
    (7, full(1), r'key 7 is not in the store, call init\(7, ...\) first; it '
                 r'has the keys \[0, 1\]'),
    (0, np.ones(3), r'of key 0 must be float32 of shape \(2,\), as in init; '
                    r'it was float32 of shape \(3,\)'),
    (0, np.ones(2, dtype='int32'), 'it was int32 of shape'),
    (0, onp.ones(2, 'float32'), r'of key 0 must be float32 of shape \(2,\), '
     r'as in init; it was float32 of shape \(2,\) of NumPy'),
    (0, mx.nd.ones(2), 'of key 0 must be an array of MXNet or NumPy'),
    ([0, 1], [full(1)], '^key is a list, so .* the 2 keys'),
    (True, full(1), 'key must be an int or a str'),
    ([], full(1), 'key must be a key or a list of keys')])
def test_a_wrong_call_is_explained(store, call, key, value, message):
    name = 'out' if call == 'pull' else 'value'
    with pytest.raises(ValueError, match=message) as error:
        getattr(store, call)(key, value)
    if message.startswith('of key'):
        assert str(error.value).startswith(name)


@pytest.mark.parametrize('key, value, message', [
    (0, full(1), 'key 0 is initialised already'),
    ([2, 2], [full(1)] * 2, 'key 2 is initialised already'),
    ([2, 'a'], [full(1)] * 2, 'int keys only or str keys only'),
    (2, 1.0, 'value of key 2 must be an array of MXNet or NumPy')])
def test_a_wrong_init_is_explained(store, key, value, message):
    with pytest.raises(ValueError, match=message):
        store.init(key, value)
    with pytest.raises(ValueError, match='key 2 is not in the store'):
        store.push(2, full(1))
    store.init(2, full(3))
    assert pulled(store, 2) == [3, 3]


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
    assert store.servers[0].shards[0].updates == 0
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
    with pytest.raises(TimeoutError) as error:
        pulled(store, 'w')
    first, *rest = str(error.value).splitlines()
    assert first == ("worker 0 waited 0.2 s for push('w') of worker 1 and "
                     'worker 3. Last calls:')
    calls = [line.split(', ')[0].strip() for line in rest]
    assert calls[:2] == ["worker 0: pull('w')", "worker 1: pull('w')"]
    assert calls[2] == "worker 2: push(['v'" and calls[3] == (
        'worker 3: none since the start')
    assert all(re.search(r', [\d.]+ s ago$', line) for line in rest[:2])
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


def test_a_pushpull_into_a_wrong_array_pushes_nothing():
    store = KVStore()
    store.init(0, full(1))
    with pytest.raises(ValueError, match='^out'):
        store.pushpull(0, full(5), np.zeros(3))
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
