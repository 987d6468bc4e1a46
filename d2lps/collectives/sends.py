"""Messages of a schedule, and rounds of them."""
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from d2lps.annotations import Node


class Send(NamedTuple):
    """One message: `src` sends its `chunk` to `dst`.

    `dst` adds it to its own (`reduce=True`) or replaces its own by it.
    Fields may be arrays of integers: one `Send` then stands for many.
    """
    src: Any
    dst: Any
    chunk: Any
    reduce: Any


class Round(Sequence[Send]):
    """Sends that happen at the same time; reads as a tuple of `Send`.

    Kept as four columns, `src`, `dst`, `chunk`, `reduce`, arrays with an entry
    per send, since many tuples are slow; a node there is its place in `nodes`.
    Rounds may share columns: so many large ones need little memory.
    """

    def __init__(self, columns: Sequence[np.ndarray],
                 nodes: Sequence[Node]) -> None:
        self.src, self.dst, self.chunk, self.reduce = columns
        self.nodes = nodes

    def __len__(self) -> int:
        return len(self.src)

    @overload
    def __getitem__(self, k: int) -> Send: ...

    @overload
    def __getitem__(self, k: slice) -> tuple[Send, ...]: ...

    def __getitem__(self, k):
        if isinstance(k, slice):
            return tuple(self[i] for i in range(*k.indices(len(self))))
        return Send(self.nodes[self.src[k]], self.nodes[self.dst[k]],
                    int(self.chunk[k]), bool(self.reduce[k]))

    def __repr__(self) -> str:
        more = f', and {len(self) - 4} more' if len(self) > 4 else ''
        return f'Round({", ".join(map(repr, self[:4]))}{more})'

    def columns(self) -> list[list]:
        """The sends as four lists of plain numbers, for fast loops."""
        return [column.tolist() for column in
                (self.src, self.dst, self.chunk, self.reduce)]
