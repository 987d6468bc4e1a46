"""Two more ways to split a network over devices, to compare costs with.

Each step leaves the gradients where the parameters are, `param.grad`.
"""
from collections.abc import Sequence
from functools import partial
from typing import Any

from mxnet import autograd, np

from d2lps.annotations import Array, Device
from d2lps.checks import checked, integer, list_of, refuse
from d2lps.engine import array_list, device_list
from d2lps.training.array_checks import (alike, class_labels, finite,
                                         ready_to_learn)
from d2lps.training.data_parallel import get_params
from d2lps.training.lenet_layers import LAYERS, forward, lenet_params, loss

# Each device has some of the parameters: some layers, or some channels.
PIECES = list_of(array_list, 'a list with the parameters of each device')


def two_devices(name: str, value: Any) -> list[Device]:
    """A check: a list of two devices."""
    if len(device_list(name, value)) != 2:
        refuse(name, value, 'a list of two devices')
    return value


@checked(params=lenet_params, devices=two_devices,
         cut=partial(integer, most=len(LAYERS) - 1))
def split_by_layer(params: Sequence[Array], devices: Sequence[Device],
                   cut: int = 2) -> tuple[list[Array], list[Array]]:
    """Put the first `cut` of LeNet's layers on devices[0], the rest on [1].

    ValueError if not each of two devices gets a layer.
    """
    return (get_params(params[:2 * cut], devices[0]),
            get_params(params[2 * cut:], devices[1]))


@checked(ready_to_learn, X=finite, y=class_labels, stages=PIECES,
         devices=two_devices)
def network_partition(X: Array, y: Array, stages: Sequence[Sequence[Array]],
                      devices: Sequence[Device]) -> Array:
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


def channels(array: Array, part: int, parts: int, axis: int = 1) -> Array:
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
def split_by_channel(params: Sequence[Array],
                     devices: Sequence[Device]) -> list[list[Array]]:
    """Give each device its share of every layer's output channels."""
    k, shards = len(devices), []
    for part, device in enumerate(devices):
        # A convolution's W is (filters, ...), a dense one's (inputs, units).
        mine = [channels(param, part, k, axis=1 if param.ndim == 2 else 0)
                for param in params]
        shards.append(get_params(mine, device))
    return shards


@checked(parts=array_list)
def all_gather(parts: Sequence[Array]) -> list[Array]:
    """Every device gets the channels of all: k arrays (b, all, ...)."""
    gathered = []
    for mine in parts:
        copies = [part.as_in_ctx(mine.ctx) for part in parts]
        gathered.append(np.concatenate(copies, axis=1))
    return gathered


@checked(alike, full=array_list)
def reduce_scatter(full: Sequence[Array]) -> list[Array]:
    """Sum k arrays (b, all, ...); device i gets the i-th piece of the sum."""
    k, chunks = len(full), []
    for i, mine in enumerate(full):
        parts = [channels(array, i, k) for array in full]
        chunks.append(sum(part.as_in_ctx(mine.ctx) for part in parts))
    return chunks


@checked(arrays=array_list)
def leaves(arrays: Sequence[Array]) -> list[Array]:
    """The same arrays, without the graph that computed them."""
    arrays = [array.detach() for array in arrays]
    for array in arrays:
        array.attach_grad()
    return arrays
