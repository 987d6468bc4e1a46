"""Networks cut by layers and by channels compute what one device does."""
import numpy as onp
import pytest
from mxnet import autograd

import d2lps
from d2lps import devices, get_params, init_params, load_data, loss
from d2lps.training import lenet
from d2lps.training.partition import (network_partition, split_by_channel,
                                      split_by_layer)
from layerwise import layer_partition

BATCH = 12
# Values per image that go in, and come out of each layer.
IMAGE, OUTPUTS = 28 * 28, (20 * 13 * 13, 50 * 4 * 4, 128, 10)


@pytest.fixture
def batch():
    train_iter, _ = load_data(BATCH)
    return next(iter(train_iter))


@pytest.fixture
def one_device(batch):
    """Losses and gradients of the whole network on one device."""
    X, y = batch
    params = get_params(init_params(), X.ctx)
    with autograd.record():
        l = loss(lenet(X, params), y)
    l.backward()
    return l.asnumpy(), [param.grad.asnumpy() for param in params]


def assert_close(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        onp.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize('cut', [1, 2, 3])
def test_network_partition_is_one_device(batch, one_device, cut):
    stages = split_by_layer(init_params(), devices(2), cut)
    assert [len(stage) for stage in stages] == [2 * cut, 8 - 2 * cut]
    for stage, device in zip(stages, devices(2)):
        assert {param.ctx for param in stage} == {device}
    l = network_partition(*batch, stages, devices(2))
    assert l.ctx == devices(2)[1]
    gradients = [param.grad.asnumpy() for stage in stages for param in stage]
    assert_close([l.asnumpy(), *gradients], [one_device[0], *one_device[1]])


@pytest.mark.parametrize('cut', [1, 3])
def test_network_partition_moves_one_interface_there_and_back(batch, cut):
    stages = split_by_layer(init_params(), devices(2), cut)
    with d2lps.Traffic() as traffic:
        network_partition(*batch, stages, devices(2))
    interface = BATCH * OUTPUTS[cut - 1] * 4
    assert traffic.links == {('cpu(0)', 'cpu(1)'): interface + BATCH * 4,
                             ('cpu(1)', 'cpu(0)'): interface}


@pytest.mark.parametrize('cut, k', [(0, 2), (4, 2), (2, 3)])
def test_bad_cut_is_explained(cut, k):
    words = ('^devices must be a list of two' if k != 2 else
             f'^cut must be a whole number from 1 to 3.* it was {cut}')
    with pytest.raises(ValueError, match=words):
        split_by_layer(init_params(), devices(k), cut)


def test_each_device_has_its_share_of_every_layer():
    shards = split_by_channel(init_params(), devices(3))
    sizes = [[shard[i].shape for shard in shards] for i in (0, 2, 4, 7)]
    assert sizes == [[(6, 1, 3, 3), (7, 1, 3, 3), (7, 1, 3, 3)],
                     [(16, 20, 5, 5), (17, 20, 5, 5), (17, 20, 5, 5)],
                     [(800, 42), (800, 43), (800, 43)], [(3,), (3,), (4,)]]
    for shard, device in zip(shards, devices(3)):
        assert {param.ctx for param in shard} == {device}


@pytest.mark.parametrize('k', [1, 3])
def test_layer_partition_is_one_device(batch, one_device, k):
    shards = split_by_channel(init_params(), devices(k))
    losses = layer_partition(*batch, shards, devices(k))
    assert [l.ctx for l in losses] == devices(k)
    assert_close([l.asnumpy() for l in losses], [one_device[0]] * k)
    gradients = [onp.concatenate([param.grad.asnumpy() for param in pieces],
                                 axis=1 if pieces[0].ndim == 2 else 0)
                 for pieces in zip(*shards)]
    assert_close(gradients, one_device[1])


@pytest.mark.parametrize('k', [2, 5])
def test_layer_partition_moves_every_layer_to_all_and_back(batch, k):
    shards = split_by_channel(init_params(), devices(k))
    with d2lps.Traffic() as traffic:
        layer_partition(*batch, shards, devices(k))
    # Each value is made in one place and needed in k - 1 others. Backwards,
    # the gradients of all that enters a layer are summed, but not those of
    # the images and of the scores: nobody needs them elsewhere.
    forward = IMAGE + 1 + sum(OUTPUTS)
    backward = sum(OUTPUTS[:-1])
    assert traffic.bytes == (k - 1) * BATCH * (forward + backward) * 4


def test_more_devices_than_channels_is_explained():
    with pytest.raises(ValueError, match='10'):
        split_by_channel(init_params(), devices(11))
