"""Servers: where values lie, and which pushes make a round."""
from collections import Counter

from amount import cases
import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import np

from d2lps import devices
from d2lps.asynchrony import BackupServer, DividingServer
from d2lps.kvstore.placement import place
from d2lps.kvstore.server import BoundedServer, Server, parts, total

KEYS = st.integers(-1000, 1000) | st.text(max_size=5).filter(str.isprintable)


def test_total_sums_over_devices_into_a_new_array():
    arrays = [np.full(2, i + 1.0, ctx=device)
              for i, device in enumerate(devices(3))]
    result = total(arrays)
    assert result.tolist() == [6, 6]
    assert result.ctx == devices(3)[0]
    assert [array.tolist() for array in arrays] == [[1, 1], [2, 2], [3, 3]]


def test_total_of_one_array_is_a_copy():
    array = np.ones(2)
    total([array])[:] = 7
    assert array.tolist() == [1, 1]


@pytest.mark.parametrize('key, server', [
    (0, 0), (1, 9973 % 4), (2, 2 * 9973 % 4), (7, 7 * 9973 % 4),
    ('weight', int(b'weight'.hex(), 16) % 65_521 * 9973 % 4)])
def test_a_small_value_lies_on_the_server_of_its_number(key, server):
    assert place(key, 999_999, 4) == [(server, 0, 999_999)]


def test_a_large_value_is_cut_into_a_part_for_each_server():
    assert place('a', 1_000_000, 3) == [(0, 0, 333_333),
                                        (1, 333_333, 666_667),
                                        (2, 666_667, 1_000_000)]
    assert [end for _, _, end in place(0, 1_000_003, 5)] == [
        200_001, 400_001, 600_002, 800_002, 1_000_003]  # as MXNet cuts
    assert place(0, 1_000_001, 2)[0] == (0, 0, 500_001)  # half: up
    assert place(0, 1_000_000, 1) == [(0, 0, 1_000_000)]


@settings(max_examples=cases(200), deadline=None)
@given(key=KEYS, size=st.integers(0, 50), n=st.integers(1, 6),
       split_from=st.integers(1, 60))
def test_nothing_is_lost_or_doubled(key, size, n, split_from):
    places = place(key, size, n, split_from)
    assert [i for _, start, end in places
            for i in range(start, end)] == list(range(size))
    servers = [server for server, _, _ in places]
    assert len(set(servers)) == len(servers)
    assert set(servers) <= set(range(n))
    assert len(places) == (min(n, size) if size >= split_from else 1)


def test_many_keys_are_spread_evenly():
    names = [f'layer{i}.{kind}' for i in range(2000)
             for kind in ('weight', 'bias')]
    for keys in range(4000), map(str, range(4000)), names:
        held = Counter(place(key, 1, 4)[0][0] for key in keys)
        assert len(held) == 4 and min(held.values()) > 900


def test_parts_put_together_are_the_value():
    value = np.arange(12).reshape(3, 4)
    cut = parts(value, place(0, 12, 5, split_from=1))
    assert [part.size for part in cut] == [2, 3, 2, 3, 2]
    assert np.concatenate(cut).tolist() == list(range(12))
    assert parts(value, [(0, 0, 12)])[0].shape == (3, 4)


@pytest.fixture
def server():
    server = Server(devices(2)[1], num_workers=2)
    server.init('w', np.zeros(2))
    return server


def test_a_round_takes_a_push_of_every_worker(server):
    server.push('w', 1, np.ones(2))
    assert server.pull('w', 1).tolist() == [0, 0]
    server.push('w', 0, np.ones(2))
    assert server.pull('w', 1).tolist() == [2, 2]
    assert server.shards['w'].round == 1


def test_a_second_push_of_one_worker_waits_for_the_next_round(server):
    for value in 1, 10:
        server.push('w', 0, np.full(2, value))
    assert server.shards['w'].round == 0
    server.push('w', 1, np.full(2, 100))
    assert server.pull('w', 0).tolist() == [101, 101]
    server.push('w', 1, np.full(2, 1000))
    assert server.pull('w', 0).tolist() == [1010, 1010]


def test_a_server_works_on_its_own_device(server):
    server.push('w', 0, np.ones(2))
    server.push('w', 1, np.ones(2))
    assert server.pull('w', 0).ctx == devices(2)[1]


def test_bytes_are_counted(server):
    server.push('w', 0, np.ones(2))
    server.push('w', 1, np.ones(2))
    server.pull('w', 0)
    assert (server.received, server.sent) == (2 * 8, 8)


def test_staleness_is_the_updates_since_the_last_pull():
    server = BoundedServer(devices(1)[0], num_workers=2, bound='async')
    server.updater = lambda key, summed, stored: stored.__iadd__(summed)
    server.init(0, np.zeros(1))
    for _ in range(3):
        server.push(0, 0, np.ones(1))
        server.pull(0, 0)
    server.push(0, 1, np.ones(1))  # it has seen none of the three
    assert server.staleness == {0: 3, 3: 1}
    assert onp.allclose(server.pull(0, 1).asnumpy(), 4)


WORKERS = st.lists(st.integers(0, 3), max_size=60)  # who comes next


@settings(max_examples=cases(80), deadline=None)
@given(turns=WORKERS, bound=st.integers(0, 4))
def test_no_worker_is_ever_more_than_the_bound_ahead(turns, bound):
    """Whoever may compute does; compared with the rounds counted here."""
    server = (BoundedServer(devices(1)[0], 4, bound) if bound else
              Server(devices(1)[0], 4))
    server.updater = lambda key, summed, stored: stored.__iadd__(summed)
    server.init(0, np.zeros(1))
    rounds, computes = [0] * 4, [True] * 4  # all begin at once
    for rank in turns:
        if computes[rank]:
            server.push(0, rank, np.ones(1))
            rounds[rank] += 1
            computes[rank] = False
        behind = [r for r in range(4) if rounds[r] < rounds[rank] - bound]
        assert server.missing(0, rank) == behind
        if not behind:
            server.pull(0, rank)
            computes[rank] = True
        at_work = [rounds[r] for r in range(4) if computes[r]]
        assert max(at_work, default=0) - min(rounds) <= bound
        # Somebody who is behind can always go on, or all would wait.
        assert not server.missing(0, rounds.index(min(rounds)))
    used = sum(rounds) if bound else 4 * min(rounds)
    assert server.pull(0, 0).tolist() == [used]
    assert server.shards[0].round == (used if bound else min(rounds))
    if bound:
        assert server.staleness.total() == used


def test_nobody_is_missing_in_an_asynchronous_store():
    server = BoundedServer(devices(1)[0], 2, 'async')
    server.updater = lambda key, summed, stored: stored.__iadd__(summed)
    server.init(0, np.zeros(1))
    for _ in range(50):
        server.push(0, 0, np.ones(1))
        assert server.missing(0, 0) == server.missing(0, 1) == []


@pytest.mark.parametrize('bad', [True, -1, 1.5, 'sync', '4', None, 0,
                                 float('inf')])
def test_another_bound_is_refused(bad):
    with pytest.raises(ValueError, match="^bound must be 'async', or how"):
        BoundedServer(devices(1)[0], 2, bad)


def test_a_value_is_placed_to_its_last_element():
    assert place(0, onp.int64(5), onp.int64(2)) == [(0, 0, 5)]
    for size in (2**50, 2**50 - 1, 10**15 + 1):
        for n in (3, 7, 49, 1000):
            places = place(0, size, n)
            assert places[0][1] == 0 and places[-1][2] == size
            assert all(one[2] == two[1]
                       for one, two in zip(places, places[1:]))
    with pytest.raises(ValueError, match='^size must be a whole number from'):
        place(0, 2**60 + 1, 3)


def test_arrays_unlike_each_other_are_not_summed():
    # (2,) and (1,) would broadcast, and float32 and int32 mix.
    for other in (np.ones(1), np.ones(2, dtype='int32')):
        with pytest.raises(ValueError, match=(
                r'^arrays\[1\] must be of shape \(2,\)')):
            total([np.ones(2), other])
    for bad in ([], None, np.ones(2), [1, 2]):
        with pytest.raises(ValueError, match='^arrays.* must be'):
            total(bad)


@pytest.mark.parametrize('make', [
    lambda device: BackupServer(device, 2, 1),
    lambda device: DividingServer(device, 2, 'async')])
def test_servers_for_late_gradients_name_a_key_that_they_lack(make):
    server = make(devices(1)[0])
    for call, arguments in (('push', (np.ones(1),)), ('missing', ()),
                            ('pull', ())):
        with pytest.raises(ValueError, match="^key 'v' is not on this serv"):
            getattr(server, call)('v', 0, *arguments)


@pytest.mark.parametrize('call, arguments, message', [
    ('push', ('v', 0, np.ones(2)), "key 'v' is not on this server"),
    ('push', (None, 0, np.ones(2)), 'key must be'),
    ('push', ('w', 2, np.ones(2)), 'rank must be .* 0 to 1'),
    ('push', ('w', True, np.ones(2)), 'rank must be'),
    ('push', ('w', 0, np.ones(3)), "value of key 'w' must be of shape"),
    ('push', ('w', 0, 1.0), 'value must be an MXNet array'),
    ('pull', ('v', 0), "key 'v' is not on this server"),
    ('pull', ('w', -1), 'rank must be'),
    ('missing', ('v', 0), "key 'v' is not on this server"),
    ('missing', ('w', 2), 'rank must be'),
    ('init', ('v', onp.ones(2)), 'value must be an MXNet array')])
def test_a_wrong_call_changes_nothing(server, call, arguments, message):
    with pytest.raises(ValueError, match=f'^{message}'):
        getattr(server, call)(*arguments)
    assert (server.received, server.sent) == (0, 0)
    for rank in 0, 1:
        server.push('w', rank, np.ones(2))
    assert server.pull('w', 0).tolist() == [2, 2]
