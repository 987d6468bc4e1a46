"""What measures and compares; the chapter says in words what it does."""
import time
import weakref

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor

PAUSE = 0.04  # seconds


def flat(params):
    return torch.cat([one.detach().flatten() for one in params])


def local(param):
    """What this worker has of it."""
    if isinstance(param, DTensor):
        param = param.to_local()
    return param.detach()


def part_of(whole, shape):
    """This worker's part of something that is divided along one dimension."""
    for dim in range(whole.dim()):
        if whole.shape[dim] != shape[dim]:
            return whole.chunk(dist.get_world_size(), dim)[dist.get_rank()]
    return whole


def apart(model, whole):
    """The largest difference of a parameter from that of one device."""
    pairs = zip(map(local, model.parameters()),
                map(local, whole.parameters()), strict=True)
    return max(float(abs(one - part_of(two, one.shape)).max())
               for one, two in pairs)


class Kept:
    """A tensor that is kept for the backward pass; counts all such memory."""
    alive, most = weakref.WeakSet(), 0

    def __init__(self, tensor):
        self.tensor = tensor
        Kept.alive.add(self)
        memory = [one.tensor.untyped_storage() for one in Kept.alive]
        memory = {one.data_ptr(): one.nbytes() for one in memory}
        Kept.most = max(Kept.most, sum(memory.values()))

    @staticmethod
    def forget():
        """Count from 0 again."""
        Kept.alive.clear()
        Kept.most = 0


def saved(params):
    """Keep all that is saved as `Kept`, but for the parameters."""
    theirs = {one.untyped_storage().data_ptr() for one in params}

    def pack(tensor):
        if tensor.untyped_storage().data_ptr() in theirs:
            return tensor
        return Kept(tensor)

    return torch.autograd.graph.saved_tensors_hooks(
        pack, lambda one: one.tensor if isinstance(one, Kept) else one)


class _Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        time.sleep(PAUSE)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(PAUSE)
        return grad


class Sleeper(nn.Linear):
    """A layer that sleeps in each pass."""

    def forward(self, x):
        return _Sleep.apply(super().forward(x))
