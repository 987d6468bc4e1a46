"""Counts the bytes that PyTorch keeps for the backward pass."""
import weakref

from torch.autograd.graph import saved_tensors_hooks


class Kept:
    """A tensor that a pass keeps; it is gone when nobody refers to it."""

    def __init__(self, tensor):
        self.tensor = tensor


class KeptBytes(saved_tensors_hooks):
    """`with KeptBytes(params) as kept`: `kept.most` is the largest number of
    bytes, besides the parameters, that were kept at the same time."""

    def __init__(self, params):
        self.params = {param.untyped_storage().data_ptr() for param in params}
        self.alive, self.most = weakref.WeakSet(), 0
        super().__init__(self.keep, self.give_back)

    def __enter__(self):
        super().__enter__()
        return self

    def keep(self, tensor):  # PyTorch calls this to keep a tensor,
        if tensor.untyped_storage().data_ptr() in self.params:
            return tensor
        kept = Kept(tensor)
        self.alive.add(kept)
        storages = [kept.tensor.untyped_storage() for kept in self.alive]
        sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
        self.most = max(self.most, sum(sizes.values()))
        return kept

    def give_back(self, kept):  # and this when the backward pass needs it.
        return kept.tensor if isinstance(kept, Kept) else kept
