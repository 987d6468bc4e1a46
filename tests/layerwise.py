"""A step of layer partitioning, as chapter 2 puts it together."""
from d2lps.training import loss, partition
from mxnet import autograd


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
