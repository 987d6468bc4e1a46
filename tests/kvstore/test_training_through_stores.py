"""Training through a store is training, whoever sums."""
import functools
import threading

import d2lps
import mxnet as mx
import numpy as onp
import pytest
from d2lps import devices, get_params, init_params, load_data
from d2lps.kvstore import KVStore, prepare_store, store_step, train_batch_store
from mxnet import np
from trained import BOOK, numbers, trained


def steps_through(store, k, batch_size=100, steps=10):
    """Each device's parameters after some steps of one worker."""
    scale, lr, _ = BOOK
    params = init_params(scale)
    device_params = [get_params(params, device) for device in devices(k)]
    prepare_store(store, params, lr)
    for (X, y), _ in zip(load_data(batch_size)[0], range(steps)):
        train_batch_store(X, y, device_params, devices(k), store)
    return [numbers(params) for params in device_params]


STORES = {'ours': lambda: KVStore(num_servers=2, split_from=1000),
          **{kind: functools.partial(mx.kv.create, kind)
             for kind in ('local', 'device')}}


@pytest.mark.parametrize('kind', STORES)
@pytest.mark.parametrize('k, batch_size', [(3, 50), (3, 2)])
def test_a_store_trains_as_allreduce_does(kind, k, batch_size):
    [expected] = trained(1, batch_size, *BOOK)
    copies = steps_through(STORES[kind](), k, batch_size)
    for a, b in zip(expected, copies[0]):
        onp.testing.assert_allclose(b, a, rtol=0, atol=1e-4)
    assert all(map(onp.array_equal, copies[0], copies[-1]))


@pytest.mark.parametrize('num_workers, batch_size', [(2, 100), (3, 2)])
def test_workers_in_threads_train_as_one_does(num_workers, batch_size):
    store = KVStore(num_workers, num_servers=2, timeout=20)
    ends = store.run(lambda handle: steps_through(handle, 2, batch_size))
    [expected] = trained(1, batch_size, *BOOK)
    for copies in ends:
        for params in copies:
            for a, b in zip(expected, params):
                onp.testing.assert_allclose(b, a, rtol=0, atol=1e-4)
    assert all(shard.pushes == [[]] * num_workers for server in store.servers
               for shard in server.shards.values())


def test_an_optimizer_may_come_from_a_new_thread():
    # MXNet keeps for each thread whether arrays are np's; by default not.
    store, out = KVStore(), np.zeros(2)
    thread = threading.Thread(
        target=lambda: prepare_store(store, [np.ones(2)], lr=0.5))
    thread.start()
    thread.join()
    store.pushpull(0, np.ones(2), out)
    assert out.tolist() == [0.5, 0.5]


@pytest.mark.parametrize('kind', ['ours', 'local'])
def test_train_takes_a_store(small_set, kind):
    one, two = (d2lps.train(2, 32, 0.2, num_epochs=2, scale=0.01, show=False,
                            step=step)
                for step in (None, store_step(STORES[kind]())))
    for a, b in zip(numbers(one.params), numbers(two.params)):
        onp.testing.assert_allclose(b, a, rtol=0, atol=1e-4)


def test_train_without_waiting_for_each_other_takes_every_step(small_set):
    store = KVStore(num_workers=2, consistency='async', timeout=300)
    results = store.run(lambda handle: d2lps.train(
        1, 32, 0.1, num_epochs=2, show=False, step=store_step(handle)))
    steps = 2 * 2 * 3  # workers, epochs, minibatches
    assert [shard.updates for shard in store.servers[0].shards.values()] == [
        steps] * 8
    assert [len(result.accuracy) for result in results] == [2, 2]


@pytest.mark.parametrize('kind', ['ours', 'local'])
def test_a_store_serves_one_training(small_set, kind):
    store = STORES[kind]()
    step = store_step(store)
    learned = d2lps.train(1, 48, 0.1, num_epochs=1, show=False, step=step)
    before = [param.tolist() for param in learned.params]
    for again in (step, store_step(store)):
        with pytest.raises(ValueError, match='^store (has been|must be)'):
            d2lps.train(1, 48, 0.1, num_epochs=1, show=False, step=again)
    out = [np.zeros_like(param) for param in learned.params]
    store.pull(list(range(8)), out)
    assert [param.tolist() for param in out] == before


def test_the_learning_rate_of_a_store_cannot_change():
    params, [device] = init_params(0.01), devices(1)
    copies, [(X, y), *_] = [get_params(params, device)], load_data(48)[0]
    step = store_step(KVStore())
    step(X, y, copies, [device], 0.1)
    step(X, y, copies, [device], 0.1)
    with pytest.raises(ValueError, match='^store has .* learning rate'):
        step(X, y, copies, [device], 0.2)


ONE = np.ones(2)


@pytest.mark.parametrize('name, bad', [
    ('store', None), ('params', [1, 2]), ('lr', 0)])
def test_a_wrong_preparation_is_explained(name, bad):
    store = KVStore()
    arguments = {'store': store, 'params': [ONE], 'lr': 0.1, name: bad}
    with pytest.raises(ValueError, match=f'^{name}.* must be'):
        prepare_store(**arguments)
    prepare_store(store, [ONE], 0.1)  # nothing was done


def test_a_step_wants_a_copy_for_each_device_and_a_label_for_each_image():
    params, store = init_params(0.01), KVStore()
    copies = [get_params(params, devices(1)[0])]
    X, y = np.ones((4, 1, 28, 28)), np.ones(4, dtype='int32')
    prepare_store(store, params, 0.1)
    with pytest.raises(ValueError, match=(
            '^device_params must have .* each of the 2')):
        train_batch_store(X, y, copies, devices(2), store)
    with pytest.raises(ValueError, match='^X has 4 examples, but y has 3'):
        train_batch_store(X, y[:3], copies, devices(1), store)
