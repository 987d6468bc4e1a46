"""Training steps, as in chapter 19, and what they send and keep."""
from ast import literal_eval
from collections import Counter

import d2lps
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
