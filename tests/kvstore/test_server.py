"""Servers: where values lie, and which pushes make an update."""
from collections import Counter

import numpy as onp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import np

from d2lps import devices
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


def test_an_update_takes_a_push_of_every_worker(server):
    server.push('w', 1, np.ones(2))
    assert server.pull('w', 1).tolist() == [0, 0]
    server.push('w', 0, np.ones(2))
    assert server.pull('w', 1).tolist() == [2, 2]
    assert server.pull('w', 1).ctx == devices(2)[1]
    assert server.shards['w'].updates == 1


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
    assert server.shards[0].updates == (used if bound else min(rounds))
    if bound:
        assert server.staleness.total() == used


def test_a_value_is_placed_to_its_last_element():
    assert place(0, onp.int64(5), onp.int64(2)) == [(0, 0, 5)]
    for size in (2**50, 2**50 - 1, 10**15 + 1):
        for n in (3, 7, 49, 1000):
            places = place(0, size, n)
            assert places[0][1] == 0 and places[-1][2] == size
            assert all(one[2] == two[1]
                       for one, two in zip(places, places[1:]))


def test_arrays_unlike_each_other_are_not_summed():
    # (2,) and (1,) would broadcast, and float32 and int32 mix.
    for other in (np.ones(1), np.ones(2, dtype='int32')):
        with pytest.raises(ValueError, match=(
                r'^arrays\[1\] must be of shape \(2,\)')):
            total([np.ones(2), other])


@pytest.mark.parametrize('call, arguments, message', [
    ('push', ('v', 0, np.ones(2)), "key 'v' is not on this server"),
    ('push', ('w', 2, np.ones(2)), 'rank must be .* 0 to 1'),
    ('push', ('w', 0, np.ones(3)), "value of key 'w' must be of shape"),
    ('push', ('w', 0, 1.0), 'value must be an MXNet array'),
    ('pull', ('v', 0), "key 'v' is not on this server"),
    ('push', ('w', 0, onp.ones(2, 'float32')), 'value .* and of the kind'),
    ('init', ('v', [1.0, 1.0]), 'value must be an MXNet array')])
def test_a_wrong_call_changes_nothing(server, call, arguments, message):
    with pytest.raises(ValueError, match=f'^{message}'):
        getattr(server, call)(*arguments)
    assert (server.received, server.sent) == (0, 0)
    for rank in 0, 1:
        server.push('w', rank, np.ones(2))
    assert server.pull('w', 0).tolist() == [2, 2]
