"""Parts of layer partitioning: each device has some channels of a layer."""
from collections.abc import Sequence

from mxnet import np

from d2lps.annotations import Array, Device
from d2lps.checks import checked
from d2lps.engine import array_list, device_list
from d2lps.training.array_checks import alike
from d2lps.training.data_parallel import get_params
from d2lps.training.lenet_layers import (LAYERS, forward,  # noqa: F401
                                         lenet_params, loss)

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
