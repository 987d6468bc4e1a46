"""Few keys move, loads are even, and what has a replica is not lost."""
import functools
import hashlib

import numpy as onp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import np

from d2lps.kvstore import place
from d2lps.recovery import (ReplicatedStore, chain, circle, position,
                            replicas)

NAMES = {'numbers': range(10_000),
         'layers': [f'layer{k}.weight' for k in range(10_000)],
         'random': onp.random.default_rng(1).integers(1 << 60, size=10_000)}


def hashed(names):
    return onp.array([int(hashlib.sha256(name.encode()).hexdigest()[:16], 16)
                      for name in names], 'uint64')


@functools.cache
def points_of(server):
    return hashed(f'server {server}, point {k}' for k in range(1024))


def owners(keys, n):
    """The server of each hashed key, computed another way."""
    points = onp.concatenate([*map(points_of, range(n))])
    order = onp.argsort(points)
    nearest = onp.searchsorted(points[order], keys) % len(points)
    return order[nearest] // 1024


@pytest.mark.parametrize('names', NAMES.values(), ids=NAMES.keys())
def test_few_keys_move_and_loads_are_even(names):
    """For all that `circle` promises, and with `place` most keys move."""
    names, before = [*map(str, names)], None
    keys = hashed(f'key {name}' for name in names)
    for n in range(1, 34):
        found = owners(keys, n)
        if n <= 32:
            largest = onp.bincount(found, minlength=n).max()
            assert largest <= 1.25 * 10_000 / n
        if before is not None:
            moved = found != before
            assert 0 < moved.mean() <= 1.3 / n
            assert (found[moved] == n - 1).all()  # to the new one only
        before = found
    first, second = ([place(name, 1, n)[0][0] for name in names]
                     for n in (8, 9))
    assert onp.mean([a != b for a, b in zip(first, second)]) > 0.8


@given(key=st.integers() | st.text(max_size=5).filter(str.isprintable),
       servers=st.sets(st.integers(0, 50), min_size=1, max_size=7),
       num_points=st.integers(1, 5), replicas=st.integers(1, 9))
def test_a_chain_is_the_nearest_servers_clockwise(
        key, servers, num_points, replicas):
    here = position(f'key {key}')
    distance = {server: min((position(f'server {server}, point {k}') - here)
                            % 1 for k in range(num_points))
                for server in servers}
    found = chain(key, circle([*servers], num_points), replicas)
    assert found == sorted(distance, key=distance.get)[:replicas]


KEYS = 200


def filled(num_servers, replicas, **more):
    store = ReplicatedStore(num_servers, replicas, **more)
    for key in range(KEYS):
        store.init(key, np.full(2, key))
    return store


def pulled(store, key):
    out = np.zeros(2)
    store.pull(key, out)
    return out.tolist()


def test_without_replicas_a_death_takes_what_the_server_had():
    store = filled(5, 1)
    had = {key for key in range(KEYS) if store.chain(key) == [1]}
    store.kill(1)
    assert 0 < len(had) < KEYS and set(store.lost()) == had
    for key in range(KEYS):
        if key in had:
            with pytest.raises(LookupError, match=f'key {key} is lost'):
                pulled(store, key)
            with pytest.raises(LookupError, match='is lost'):
                store.push(key, [np.ones(2)])
        else:
            assert pulled(store, key) == [key, key]


def test_two_deaths_before_copies_are_made_lose_what_both_had():
    store = filled(5, 2)
    both = {key for key in range(KEYS) if {*store.chain(key)} == {1, 3}}
    store.kill(3)
    assert store.lost() == []
    store.kill(1)
    assert both and set(store.lost()) == both
    again = filled(5, 2)
    again.kill(3)
    again.repair()
    again.kill(1)
    assert again.lost() == []
    assert all(pulled(again, key) == [key, key] for key in range(KEYS))


def test_only_the_new_servers_keys_are_copied():
    store = filled(4, 2)
    store.join(4)
    has = [key for key in range(KEYS) if 4 in store.chain(key)]
    assert store.copied == 8 * len(has)
    assert {*store.servers[4].shards} == {*has}
    assert all(len(store.chain(key)) == 2 for key in range(KEYS))
    held = [key for server in store.servers.values() for key in server.shards]
    assert len(held) == 2 * KEYS  # who left a chain has no copy any more


def test_workers_are_summed_before_copies_are_made():
    store = filled(4, 3, num_workers=4)
    store.push(7, [np.full(2, k) for k in (1, 10, 100, 1000)])
    assert pulled(store, 7) == [1111, 1111]
    head, *others = store.chain(7)
    assert store.servers[head].received == 4 * 8 and store.copied == 2 * 8
    assert all(store.servers[one].received == 0 for one in others)


@pytest.mark.parametrize('dies', [0, 1, 2])
@pytest.mark.parametrize('after', [1, 2, 3])
def test_a_push_in_flight_counts_once(dies, after):
    """Whoever dies after any message, and is pushed again if need be."""
    store = filled(5, 3)
    store.set_updater(lambda key, total, stored: stored.__iadd__(total))
    servers = store.chain(7)
    sending = store.messages(7, [np.ones(2)])
    for _ in range(after):
        assert next(sending) != (servers[-1], 'workers')
    store.kill(servers[dies])
    assert list(sending) == [] and store.acknowledged[7] == 0
    store.push(7, [np.ones(2)])
    assert store.acknowledged[7] == 1 and pulled(store, 7) == [8, 8]


def test_what_is_acknowledged_survives_all_but_one():
    store = filled(5, 3)
    servers = store.chain(7)
    assert list(store.messages(7, [np.full(2, 5)])) == [
        ('workers', servers[0]), (servers[0], servers[1]),
        (servers[1], servers[2]), (servers[2], 'workers')]
    for one in servers[1:]:
        store.kill(one)
    assert pulled(store, 7) == [5, 5]


def test_a_push_whose_update_failed_is_made_again():
    """What is acknowledged has been applied."""
    store, calls = filled(5, 2), []

    def fails_once(key, total, stored):
        calls.append(key)
        if len(calls) == 1:
            raise ValueError('once')
        stored += total
    store.set_updater(fails_once)
    with pytest.raises(ValueError, match='once'):
        store.push(7, [np.ones(2)])
    assert store.acknowledged[7] == 0 and pulled(store, 7) == [7, 7]
    store.push(7, [np.ones(2)])
    assert store.acknowledged[7] == 1 and pulled(store, 7) == [8, 8]


def test_of_two_pushes_under_way_one_is_acknowledged():
    """For the store, the second is the first, made again."""
    store = filled(5, 3)
    store.set_updater(lambda key, total, stored: stored.__iadd__(total))
    first, second = (store.messages(7, [np.ones(2)]) for _ in range(2))
    next(first)
    told = [receiver for _, receiver in second]
    told += [receiver for _, receiver in first]
    assert told.count('workers') == 1
    assert store.acknowledged[7] == 1 and pulled(store, 7) == [8, 8]
    store.push(7, [np.ones(2)])
    assert store.acknowledged[7] == 2 and pulled(store, 7) == [9, 9]


def test_other_values_than_those_under_way_are_refused():
    """Or they would be acknowledged, and never be added."""
    store = filled(5, 3)
    store.set_updater(lambda key, total, stored: stored.__iadd__(total))
    push = store.messages(7, [np.full(2, np.nan)])
    next(push)
    with pytest.raises(ValueError, match='push of key 7 was not acknowl'):
        store.push(7, [np.ones(2)])
    store.push(7, [np.full(2, np.nan)])
    assert store.acknowledged[7] == 1


def test_nobody_sees_a_push_before_the_last_server_has_it():
    store = filled(5, 3)
    seen = [pulled(store, 7)[0] for _ in store.messages(7, [np.zeros(2)])]
    assert seen == [7, 7, 0, 0]


@pytest.fixture(scope='module')
def few_points():
    """A circle with few points, which is made faster."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replicas, 'circle', functools.partial(
            circle, num_points=16))
        yield


@given(st.data())
def test_any_history_gives_what_a_dict_gives(few_points, data):
    """Pushes, with deaths and newcomers at any of their messages."""
    copies = data.draw(st.integers(2, 4))
    store, plain, newest = ReplicatedStore(5, copies, 2), {}, 5
    store.set_updater(lambda key, total, stored: stored.__iadd__(total))
    for key in 'abc':
        store.init(key, np.ones(1))
        plain[key] = 1.0

    def accident():
        nonlocal newest
        what = data.draw(st.sampled_from(['none', 'kill', 'join', 'repair']))
        fewest = min(len(store.chain(key)) for key in plain)
        if what == 'kill' and fewest > 1:
            store.kill(data.draw(st.sampled_from([*store.servers])))
        elif what == 'join':
            store.join(newest)
            newest += 1
        elif what == 'repair':
            store.repair()
            assert all(len(store.chain(key)) == min(
                copies, len(store.servers)) for key in plain)

    for k in range(data.draw(st.integers(1, 6))):
        key = data.draw(st.sampled_from('abc'))
        values = [np.full(1, 1 + k), np.full(1, 10 * k)]
        acknowledged = False
        while not acknowledged:
            for _, receiver in store.messages(key, values):
                acknowledged = receiver == 'workers'
                accident()
        plain[key] += 1 + 11 * k
    for key, value in plain.items():
        out = np.zeros(1)
        store.pull(key, out)
        assert out.tolist() == [value]


def test_bad_values_change_nothing():
    store = filled(4, 2, num_workers=2)
    for values, words in (([np.ones(2)], 'a list of 2 arrays'),
                          ([np.ones(2), np.ones(3)], r'of shape \(2,\)'),
                          ([np.ones(2), 7], 'values')):
        with pytest.raises(ValueError, match=words):
            store.push(3, values)
    with pytest.raises(ValueError, match=r"'w' is not in the store"):
        store.push('w', [np.ones(2)] * 2)
    with pytest.raises(ValueError, match='initialised already'):
        store.init(3, np.ones(2))
    with pytest.raises(ValueError, match=r'one of \[0, 1, 2, 3\]'):
        store.kill(9)
    with pytest.raises(ValueError, match='none of'):
        store.join(3)
    store.push(3, [np.ones(2)] * 2)
    assert pulled(store, 3) == [2, 2]
