"""A store with arrays of NumPy does what it does with those of MXNet."""
import mxnet as mx
import numpy as onp
import pytest
from d2lps import KVStore
from d2lps.asynchrony import BackupServer, DividingServer

# Prints what comes of it where MXNet is not installed.
WITHOUT_MXNET = """
import sys
from importlib.machinery import PathFinder
find_spec = PathFinder.find_spec
PathFinder.find_spec = lambda name, path=None, target=None: (
    None if name == 'mxnet' else find_spec(name, path, target))
import numpy as np
from d2lps import KVStore
{code}
print(rounds(np))
assert 'mxnet' not in sys.modules
"""
CODE = """
def rounds(np, consistency='sync'):
    store = KVStore(2, num_servers=2, consistency=consistency, split_from=3)
    store.init(['a', 'b'], [np.zeros(4), np.ones((1, 2))])

    def add(key, pushed, value):
        value += pushed
    store.set_updater(add)

    def work(handle):
        out = [np.zeros(4), np.zeros((1, 2))]
        for _ in range(3):
            handle.push(['a', 'b'], [[np.ones(4), np.ones(4)],
                                     np.ones((1, 2))])
        handle.pull(['a', 'b'], out)
        return [one.tolist() for one in out]
    return store.run(work)[0] if consistency == 'sync' else [
        work(store.worker(rank)) for rank in range(2)]
"""
exec(CODE)


@pytest.mark.parametrize('consistency', ['sync', 'async'])
def test_both_kinds_of_arrays_give_the_same(consistency):
    found = rounds(onp, consistency)  # noqa: F821
    assert found == rounds(mx.np, consistency)  # noqa: F821
    if consistency == 'sync':
        assert found == [[12.0] * 4, [[7.0, 7.0]]]


def test_numpy_needs_no_mxnet(python):
    done = python('-c', WITHOUT_MXNET.format(code=CODE))
    assert done.stdout == '[[12.0, 12.0, 12.0, 12.0], [[7.0, 7.0]]]\n', (
        done.stderr)


def test_the_stored_value_is_not_the_array_of_the_caller():
    store, mine = KVStore(), onp.zeros(2)
    store.init(0, mine)
    mine += 5
    store.pull(0, out := onp.ones(2))
    assert out.tolist() == [0, 0]


@pytest.mark.parametrize('np', [onp, mx.np])
def test_other_servers_take_both(np):
    def add(key, gradient, w):
        w += gradient
    server = DividingServer('cpu(0)', 1, 'async')
    server.init('w', np.zeros(1))
    server.updater = add
    for _ in range(4):
        server.push('w', 0, np.ones(1))
    assert server.pull('w', 0).item() == pytest.approx(17 / 6)
    assert repr(server).startswith('DividingServer(cpu(0): 1 worker, 1 key')
    backup = BackupServer('cpu(0)', 2, backups=1)
    backup.init(0, np.zeros(2))
    backup.updater = add
    for rank in (0, 1):
        backup.push(0, rank, np.ones(2))
    assert backup.pull(0, 0).tolist() == [1, 1] and backup.dropped == 1


def test_kinds_are_not_mixed():
    store = KVStore()
    store.init(0, onp.zeros(2, 'float32'))
    with pytest.raises(ValueError, match='float32 of shape .* of NumPy, as '):
        store.push(0, mx.np.ones(2))
    masked = onp.ma.masked_array([1.0, 2.0], [0, 1])
    server = DividingServer('cpu(0)', 1, 'async')
    with pytest.raises(ValueError, match='value must be an MXNet array, such'):
        server.init('w', masked)
