"""Names for types that many signatures share.

Shapes and units stand in the docstrings. MXNet and PyTorch have no types of
their own and are loaded late, so a type checker accepts their arrays without
a check.
"""
import os
from typing import Any, TypeAlias

Array: TypeAlias = Any  # an array of NumPy or MXNet, or a tensor of PyTorch
Device: TypeAlias = Any  # a context of MXNet: mx.cpu(0), mx.gpu(1)
Key: TypeAlias = int | str  # of a key-value store
Node: TypeAlias = int | str  # of a topology: a device's rank, or a name
Store: TypeAlias = Any  # a KVStore, or a store of MXNet
PathLike: TypeAlias = str | os.PathLike[str]
