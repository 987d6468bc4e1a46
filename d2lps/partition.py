"""Two more ways to split a network over devices, to compare prices with.

Each step leaves the gradients where the parameters are, `param.grad`.
"""
from mxnet import autograd, np

from d2lps.lenet import LAYERS, forward, loss
from d2lps.training import get_params


def place_by_layer(params, devices, cut=2):
    """Put the first `cut` of LeNet's layers on devices[0], the rest on [1].

    ValueError if not each of two devices gets a layer.
    """
    if not 0 < cut < len(LAYERS) or len(devices) != 2:
        raise ValueError(f'cut must be from 1 to {len(LAYERS) - 1} on two '
                         f'devices; it was {cut} on {len(devices)}')
    return (get_params(params[:2 * cut], devices[0]),
            get_params(params[2 * cut:], devices[1]))


def network_partition(X, y, stages, devices):
    """Losses (b,) of X (b, 1, 28, 28), y (b,); layers on two devices.

    `stages` comes from `place_by_layer`.
    """
    first, second = devices
    cut = len(stages[0]) // 2
    with autograd.record():
        H = forward(X.as_in_ctx(first), stages[0], LAYERS[:cut])
    H_second, y = H.copyto(second), y.as_in_ctx(second)
    H_second.attach_grad()
    with autograd.record():
        l = loss(forward(H_second, stages[1], LAYERS[cut:]), y)
    l.backward()
    H.backward(H_second.grad.copyto(first))
    return l


def channels(array, part, parts, axis=1):
    """Piece number `part` of `parts` of an array's channels."""
    n = array.shape[axis]
    mine = slice(n * part // parts, n * (part + 1) // parts)
    return array[mine] if axis == 0 else array[:, mine]


def place_by_channel(params, devices):
    """Give each device its share of every layer's output channels."""
    k, shards = len(devices), []
    most = params[-1].size
    if k > most:
        raise ValueError(f'the last layer has {most} channels: it cannot be '
                         f'split over {k} devices')
    for part, device in enumerate(devices):
        # A convolution's W is (filters, ...), a dense one's (inputs, units).
        mine = [channels(param, part, k, axis=1 if param.ndim == 2 else 0)
                for param in params]
        shards.append(get_params(mine, device))
    return shards


def all_gather(parts):
    """Every device gets the channels of all: k arrays (b, all, ...)."""
    return [np.concatenate([part.as_in_ctx(mine.ctx) for part in parts],
                           axis=1) for mine in parts]


def reduce_scatter(full):
    """Sum k arrays (b, all, ...); device i gets the i-th piece of the sum."""
    k = len(full)
    return [sum(channels(array, i, k).as_in_ctx(mine.ctx) for array in full)
            for i, mine in enumerate(full)]


def leaves(arrays):
    """The same arrays, cut off from what they were computed from."""
    arrays = [array.detach() for array in arrays]
    for array in arrays:
        array.attach_grad()
    return arrays


def layer_partition(X, y, shards, devices):
    """Losses (b,) of X, y, the same on each device; channels spread out.

    `shards` comes from `place_by_channel`.
    """
    k = len(devices)
    H, passed = [X.as_in_ctx(device) for device in devices], []
    for i, layer in enumerate(LAYERS):
        H = leaves(H)
        with autograd.record():
            parts = [layer(h, *shard[2 * i:2 * i + 2])
                     for h, shard in zip(H, shards)]
        passed.append((H, parts))
        H = all_gather(parts)
    H, labels = leaves(H), [y.as_in_ctx(device) for device in devices]
    with autograd.record():
        losses = [loss(h, label) for h, label in zip(H, labels)]
    for l in losses:
        l.backward()
    gradients = [channels(h.grad, part, k) for part, h in enumerate(H)]
    while passed:
        H, parts = passed.pop()
        for part, gradient in zip(parts, gradients):
            part.backward(gradient)
        if passed:  # nobody needs the gradient of the images
            gradients = reduce_scatter([h.grad for h in H])
    return losses
