"""What the toy of three ways says is what the three ways do."""
import inspect

import pytest
from d2lps import Traffic, devices, get_params, init_params, nbytes
from d2lps.pictures.toys import explore_meter, explore_splits
from d2lps.training import data_parallel, partition
from layerwise import layer_partition
from mxnet import np

NETWORK, LAYER, DATA = explore_splits.WAYS
B = 10  # examples, which neither 3 nor 4 divides


def place(way, k):
    """The parameters of each device, and a step with them."""
    if way == NETWORK:
        return (partition.split_by_layer(init_params(), devices(k)),
                partition.network_partition)
    if way == LAYER:
        return (partition.split_by_channel(init_params(), devices(k)),
                layer_partition)
    return ([get_params(init_params(), device) for device in devices(k)],
            lambda *args: data_parallel.train_batch(*args, lr=0.1))


@pytest.mark.parametrize('way, k', [(NETWORK, 2)] + [
    (way, k) for way in (LAYER, DATA) for k in (2, 3, 4)])
def test_costs_are_those_of_a_real_step(way, k):
    placed, step = place(way, k)
    costs = explore_splits.split_costs(way, k, B)
    assert costs.parameters == [sum(map(nbytes, part)) for part in placed]
    with Traffic() as traffic:
        step(np.zeros((B, 1, 28, 28)), np.zeros(B, 'int32'), placed,
             devices(k))
    assert costs.sent == traffic.bytes


@pytest.mark.parametrize('way, k', [(NETWORK, 2), (LAYER, 2), (LAYER, 3)])
def test_a_meter_measures_what_was_worked_out(way, k, monkeypatch):
    measured = explore_meter.Meter(partition.LAYERS)
    monkeypatch.setattr(partition, 'LAYERS', measured.layers)
    for name in 'all_gather', 'reduce_scatter':
        monkeypatch.setattr(partition, name,
                            measured.noted(getattr(partition, name)))
    placed, step = place(way, k)
    batch = np.zeros((B, 1, 28, 28)), np.zeros(B, 'int32')
    costs = explore_splits.split_costs(way, k, B)
    for _ in range(2):  # nothing is left over from the first time
        assert measured.measure(step, placed, devices(k), *batch) == costs[:3]
        assert measured.calls.count('conv') == 2 * (1 if way == NETWORK else k)
        assert costs.barriers == sum(name in ('all_gather', 'reduce_scatter')
                                     for name in measured.calls)


def test_a_meter_notes_only_while_it_measures():
    """Else all arrays of a training would stay in memory."""
    measured = explore_meter.Meter([abs])
    plus = measured.noted(int.__add__)
    assert plus(1, 2) == 3 and plus.__name__ == '__add__'

    nothing = [[np.zeros(1)]], devices(1), np.zeros(1), np.zeros(1)

    def fails(X, y, placed, devices):
        plus(3, 4)
        raise RuntimeError
    with pytest.raises(RuntimeError):
        measured.measure(fails, *nothing)
    assert measured.calls == []
    measured.measure(lambda *_: plus(5, 6), *nothing)
    assert measured.calls == ['__add__'] and plus(7, 8) == 15


def test_each_part_of_the_batch_has_its_activations():
    both = explore_splits.split_costs(DATA, 2, B).activations
    before_pooling = 2 * (20 * 26 * 26 + 50 * 9 * 9)
    assert both == [B // 2 * 4 * (784 + 3380 + 800 + 128 + 10 +
                                  before_pooling)] * 2
    assert sum(explore_splits.split_costs(DATA, 3, B).activations) == sum(both)
    assert explore_splits.split_costs(DATA, 2, B).barriers == 1
    assert explore_splits.split_costs(NETWORK, 3, B).hand_overs == 4


@pytest.mark.parametrize('way', explore_splits.WAYS)
@pytest.mark.parametrize('k', [2, 3, 4])
def test_pieces_fill_each_layer_and_go_to_all_devices(way, k):
    found = list(explore_splits._pieces(way, k))
    for layer in range(4):
        assert sum(width * height for at, _, _, width, height, _ in found
                   if at == layer) == pytest.approx(1)
    assert {device for *_, device in found} == set(range(k))


def test_the_toy_follows_its_controls(shown):
    explore_splits.explore_splits()
    controls, first = shown
    way, num_devices, batch_size = controls.children
    way.value, num_devices.value, batch_size.value = DATA, 4, 1024
    assert 'LeNet on 2 devices, network' in first.alt
    assert 'LeNet on 4 devices, data parallelism, 1024 ex' in shown[-1].alt
    costs = explore_splits.split_costs(DATA, 4, 1024)
    assert f'>{costs.sent / 1e6:.2f} MB,</text>' in shown[-1].svg()


@pytest.mark.parametrize('arguments', [
    {'way': 'both'}, {'num_devices': 1}, {'num_devices': 5},
    {'batch_size': 2}])
@pytest.mark.parametrize('function', [explore_splits.explore_splits,
                                      explore_splits.split_costs])
def test_bad_arguments_are_named(function, arguments):
    arguments = {'way': DATA, **arguments}
    with pytest.raises(ValueError, match=[*arguments][-1] + ' must be'):
        function(**arguments)
    assert [*inspect.signature(function).parameters] == [
        'way', 'num_devices', 'batch_size']
