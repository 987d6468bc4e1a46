"""What chapter 25 has from chapter 19, and what counts bytes."""
from ast import literal_eval
from collections import Counter

import d2lps
import torch
import torch.distributed as dist
from torch.autograd.graph import saved_tensors_hooks
from torch.distributed.tensor import DTensor

from larger_models.transformer import batch, loss_of


def train(model, optimizer, steps, examples=slice(None)):
    losses = []
    for step in steps:
        X, y = batch(step)
        model.zero_grad()
        loss = loss_of(model(X[examples]), y[examples])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Enter(torch.autograd.Function):
    """In front of a pair: sums the gradients in the backward pass."""
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


class Leave(torch.autograd.Function):
    """Behind a pair: sums the outputs in the forward pass."""
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class OurReduceScatter:
    """By an all-to-all; fully_shard calls its two methods."""

    def __call__(self, output_tensor, input_tensor, group, op=None,
                 async_op=False):
        arrived = torch.empty_like(input_tensor)
        dist.all_to_all_single(arrived, input_tensor, group=group)
        rows = arrived.view(dist.get_world_size(group), -1)
        torch.mean(rows, 0, out=output_tensor)

    def allocate(self, size, *, dtype, device):
        return torch.empty(size, dtype=dtype, device=device)


def addresses_and_bytes():
    """The addresses of this worker, and the bytes from each address."""
    mine, others = set(), Counter()
    for ends, nbytes in d2lps.bytes_received().items():
        sender, receiver = [literal_eval(end)[0].removeprefix('::ffff:')
                            for end in ends.split(' > ')]
        others[sender] += nbytes
        mine.add(receiver)
    return mine, others


def received(call):
    """The bytes that reach this worker from each rank during `call`."""
    dist.barrier()  # all begin together
    mine, before = addresses_and_bytes()
    call()
    dist.barrier()  # all have ended
    _, after = addresses_and_bytes()
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, mine)
    return [sum(after[one] - before[one] for one in addresses)
            for addresses in ranks]


def local(tensor):
    """What this worker has of a tensor, when it has arrived."""
    if isinstance(tensor, DTensor):
        tensor = tensor.to_local()
    return tensor.wait() if hasattr(tensor, 'wait') else tensor


def held(model):
    """The bytes of parameters that this worker has."""
    return sum(local(one).nbytes for one in model.parameters())


def kept(model):
    """The bytes of activations that a worker keeps for its backward pass."""
    tensors = []

    def keep(tensor):
        tensors.append(local(tensor))
        return tensor

    X, y = batch(0)
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        loss_of(model(X), y)
    sizes = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes()
             for one in tensors}
    for one in model.parameters():
        sizes.pop(local(one).untyped_storage().data_ptr(), None)
    return sum(sizes.values())
