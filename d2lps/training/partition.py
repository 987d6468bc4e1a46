"""Two more ways to split a network over devices, to compare costs with.

Each step leaves the gradients where the parameters are, `param.grad`.
"""
from functools import partial

from mxnet import autograd, np

from d2lps.checks import checked, from_zero, list_of, refuse, whole
from d2lps.engine import array, array_list, device_list
from d2lps.training.data_parallel import get_params
from d2lps.training.fits import alike, class_labels, ready_to_learn
from d2lps.training.lenet import LAYERS, forward, lenet_params, loss

# Each device has some of the parameters: some layers, or some channels.
PIECES = list_of(array_list, 'a list with the parameters of each device')


def two(name, value):
    """A check: a list of two devices."""
    if len(device_list(name, value)) != 2:
        refuse(name, value, 'a list of two devices')
    return value


@checked(params=lenet_params, devices=two,
         cut=partial(whole, most=len(LAYERS) - 1))
def split_by_layer(params, devices, cut=2):
    """Put the first `cut` of LeNet's layers on devices[0], the rest on [1].

    ValueError if not each of two devices gets a layer.
    """
    return (get_params(params[:2 * cut], devices[0]),
            get_params(params[2 * cut:], devices[1]))


@checked(ready_to_learn, X=array, y=class_labels, stages=PIECES, devices=two)
def network_partition(X, y, stages, devices):
    """Losses (b,) of X (b, 1, 28, 28), y (b,); layers on two devices.

    `stages` comes from `split_by_layer`.
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


def _has_parts(array, part, parts, axis):
    if array.ndim <= axis:
        refuse('array', array, f'of channels on axis {axis}')
    whole('parts', parts, most=array.shape[axis])
    if part >= parts:
        refuse('part', part, f'a whole number from 0 to {parts - 1}')


@checked(_has_parts, array=array, part=from_zero, parts=whole,
         axis=partial(whole, least=0, most=1))
def channels(array, part, parts, axis=1):
    """Piece number `part` of `parts` of an array's channels."""
    n = array.shape[axis]
    mine = slice(n * part // parts, n * (part + 1) // parts)
    return array[mine] if axis == 0 else array[:, mine]


def _enough_channels(params, devices):
    most = params[-1].size
    if len(devices) > most:
        raise ValueError(f'devices must be at most {most}, as the last layer '
                         f'has {most} channels; there were {len(devices)}')


@checked(_enough_channels, params=lenet_params, devices=device_list)
def split_by_channel(params, devices):
    """Give each device its share of every layer's output channels."""
    k, shards = len(devices), []
    for part, device in enumerate(devices):
        # A convolution's W is (filters, ...), a dense one's (inputs, units).
        mine = [channels(param, part, k, axis=1 if param.ndim == 2 else 0)
                for param in params]
        shards.append(get_params(mine, device))
    return shards


def _gatherable(parts):
    for i, part in enumerate(parts):
        if part.ndim < 2 or part.dtype != parts[0].dtype or (
                part.shape[:1] + part.shape[2:] !=
                parts[0].shape[:1] + parts[0].shape[2:]):
            refuse(f'parts[{i}]', part, 'an array (b, channels, ...) that '
                   'differs from the others in its channels only')


def _scatterable(full):
    alike(full=full)
    if full[0].ndim < 2 or full[0].shape[1] < len(full):
        refuse('full', full[0], f'arrays (b, channels, ...) of at least '
               f'{len(full)} channels')


@checked(_gatherable, parts=array_list)
def all_gather(parts):
    """Every device gets the channels of all: k arrays (b, all, ...)."""
    return [np.concatenate([part.as_in_ctx(mine.ctx) for part in parts],
                           axis=1) for mine in parts]


@checked(_scatterable, full=array_list)
def reduce_scatter(full):
    """Sum k arrays (b, all, ...); device i gets the i-th piece of the sum."""
    k, chunks = len(full), []
    for i, mine in enumerate(full):
        parts = [channels(array, i, k) for array in full]
        chunks.append(sum(part.as_in_ctx(mine.ctx) for part in parts))
    return chunks


@checked(arrays=array_list)
def leaves(arrays):
    """The same arrays, cut off from what they were computed from."""
    arrays = [array.detach() for array in arrays]
    for array in arrays:
        array.attach_grad()
    return arrays


@checked(ready_to_learn, X=array, y=class_labels, shards=PIECES,
         devices=device_list)
def layer_partition(X, y, shards, devices):
    """Losses (b,) of X, y, the same on each device; channels spread out.

    `shards` comes from `split_by_channel`.
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
