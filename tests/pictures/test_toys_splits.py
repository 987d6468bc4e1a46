"""What the toy of three ways says is what the three ways do."""
import inspect

import pytest
from d2lps import Traffic, devices, get_params, init_params, nbytes
from d2lps_pictures.toys import splits
from d2lps.training import data_parallel, partition
from mxnet import np

NETWORK, LAYER, DATA = splits.WAYS
B = 10  # examples, which neither 3 nor 4 divides


def place(way, k):
    """The parameters of each device, and a step with them."""
    if way == NETWORK:
        return (partition.split_by_layer(init_params(), devices(k)),
                partition.network_partition)
    if way == LAYER:
        return (partition.split_by_channel(init_params(), devices(k)),
                partition.layer_partition)
    return ([get_params(init_params(), device) for device in devices(k)],
            lambda *args: data_parallel.train_batch(*args, lr=0.1))


@pytest.mark.parametrize('way, k', [(NETWORK, 2)] + [
    (way, k) for way in (LAYER, DATA) for k in (2, 3, 4)])
def test_costs_are_those_of_a_real_step(way, k):
    placed, step = place(way, k)
    costs = splits.split_costs(way, k, B)
    assert costs.parameters == [sum(map(nbytes, part)) for part in placed]
    with Traffic() as traffic:
        step(np.zeros((B, 1, 28, 28)), np.zeros(B, 'int32'), placed,
             devices(k))
    assert costs.sent == traffic.bytes


@pytest.mark.parametrize('way, k', [(NETWORK, 2), (LAYER, 2), (LAYER, 3)])
def test_activations_are_those_of_a_real_step(way, k, monkeypatch):
    notes, collectives = [], []
    monkeypatch.setattr(partition, 'LAYERS', [
        splits.noted(layer, notes) for layer in partition.LAYERS])
    for name in 'all_gather', 'reduce_scatter':
        monkeypatch.setattr(partition, name, splits.noted(
            getattr(partition, name), collectives))
    placed, step = place(way, k)
    step(np.zeros((B, 1, 28, 28)), np.zeros(B, 'int32'), placed, devices(k))
    costs = splits.split_costs(way, k, B)
    arrays = {id(a): a for _, *pair in notes for a in pair}
    assert costs.activations == [
        sum(nbytes(a) for a in arrays.values() if a.ctx == device)
        for device in devices(k)]
    assert costs.barriers == len(collectives)


def test_a_call_is_noted_with_its_name_input_and_result():
    notes = []
    plus = splits.noted(int.__add__, notes)
    assert plus(1, 2) == 3 and plus(3, 4) == 7
    assert notes == [('__add__', 1, 3), ('__add__', 3, 7)]


def test_each_part_of_the_batch_has_its_activations():
    both = splits.split_costs(DATA, 2, B).activations
    assert both == [B // 2 * 4 * (784 + 3380 + 800 + 128 + 10)] * 2
    assert sum(splits.split_costs(DATA, 3, B).activations) == sum(both)
    assert splits.split_costs(DATA, 2, B).barriers == 1
    assert splits.split_costs(NETWORK, 3, B).hand_overs == 4


@pytest.mark.parametrize('way', splits.WAYS)
@pytest.mark.parametrize('k', [2, 3, 4])
def test_pieces_fill_each_layer_and_go_to_all_devices(way, k):
    found = list(splits._pieces(way, k))
    for layer in range(4):
        assert sum(width * height for at, _, _, width, height, _ in found
                   if at == layer) == pytest.approx(1)
    assert {device for *_, device in found} == set(range(k))


def test_the_toy_follows_its_controls(shown):
    splits.explore_splits()
    controls, first = shown
    way, num_devices, batch_size = controls.children
    way.value, num_devices.value, batch_size.value = DATA, 4, 1024
    assert 'LeNet on 2 devices, network' in first.alt
    assert 'LeNet on 4 devices, data parallelism, 1024 ex' in shown[-1].alt
    costs = splits.split_costs(DATA, 4, 1024)
    assert f'>{costs.sent / 1e6:.2f} MB,</text>' in shown[-1].svg()


@pytest.mark.parametrize('arguments', [
    {'way': 'both'}, {'num_devices': 1}, {'num_devices': 5},
    {'batch_size': 2}])
@pytest.mark.parametrize('function', [splits.explore_splits,
                                      splits.split_costs])
def test_bad_arguments_are_named(function, arguments):
    arguments = {'way': DATA, **arguments}
    with pytest.raises(ValueError, match=[*arguments][-1] + ' must be'):
        function(**arguments)
    assert [*inspect.signature(function).parameters] == [
        'way', 'num_devices', 'batch_size']
