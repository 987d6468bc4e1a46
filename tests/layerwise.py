"""Steps of network and layer partitioning, as chapter 2 builds them."""
from d2lps import get_params
from d2lps.training import loss, partition
from mxnet import autograd


def split_by_layer(params, devices, cut=2):
    """The first `cut` layers' parameters on devices[0], the rest on [1]."""
    return (get_params(params[:2 * cut], devices[0]),
            get_params(params[2 * cut:], devices[1]))


def network_partition(X, y, stages, devices):
    """Losses (b,) of X, y; layers on two devices."""
    first, second = devices
    cut = len(stages[0]) // 2
    with autograd.record():
        H = partition.forward(X.as_in_ctx(first), stages[0],
                              partition.LAYERS[:cut])
    H_second, y = H.copyto(second), y.as_in_ctx(second)
    H_second.attach_grad()
    with autograd.record():
        l = loss(partition.forward(H_second, stages[1],
                                   partition.LAYERS[cut:]), y)
    l.backward()
    H.backward(H_second.grad.copyto(first))
    return l


def layer_partition(X, y, shards, devices):
    """Losses (b,) of X, y, the same on each device; channels spread out."""
    H, passed = [X.as_in_ctx(device) for device in devices], []
    for i, layer in enumerate(partition.LAYERS):
        H = partition.leaves(H)
        with autograd.record():
            parts = [layer(h, *shard[2 * i:2 * i + 2])
                     for h, shard in zip(H, shards)]
        passed.append((H, parts))
        H = partition.all_gather(parts)
    H, labels = partition.leaves(H), [y.as_in_ctx(one) for one in devices]
    with autograd.record():
        losses = [loss(h, label) for h, label in zip(H, labels)]
    autograd.backward(losses)
    gradients = [partition.channels(h.grad, part, len(devices))
                 for part, h in enumerate(H)]
    while passed:
        H, parts = passed.pop()
        for part, gradient in zip(parts, gradients):
            part.backward(gradient)
        if passed:  # nobody needs the gradient of the images
            gradients = partition.reduce_scatter([h.grad for h in H])
    return losses
