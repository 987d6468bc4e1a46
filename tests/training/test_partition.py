"""A network cut by channels computes what one device does."""
import numpy as onp
import pytest
from mxnet import autograd

import d2lps
from d2lps import devices, get_params, init_params, load_data, loss
from d2lps.training import lenet
from d2lps.training.partition import split_by_channel
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
    assert len(split_by_channel(init_params(), devices(10))) == 10
    with pytest.raises(ValueError, match='10'):
        split_by_channel(init_params(), devices(11))
