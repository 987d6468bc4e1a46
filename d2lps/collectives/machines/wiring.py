"""The wiring of a machine in a posted text, before any rate."""
from typing import NamedTuple

import numpy as np

from d2lps.units import several

# Ways between two devices that are no NVLink, nearest first, as
# `nvidia-smi topo -m` names them: one PCIe switch, several of them, one root
# complex of a CPU, one socket (NUMA node), two sockets.
PATHS = 'PIX', 'PXB', 'PHB', 'NODE', 'SYS'


class Wiring(NamedTuple):
    """The n GPUs and the cards of a machine, and what joins them.

    gpus: their numbers in the text, in its order; n of them.
    cables: integer array (n, n), NVLinks between two GPUs as the text says,
        which may lead through switches.
    switched: integer array (n,), NVLinks of each GPU to switches that the
        text names; 0 where it names none.
    paths: n tuples of n texts: one of `PATHS`, or '' on the diagonal and
        where the text names an NVLink instead.
    cards: network cards by name, with one of `PATHS` to each GPU, or ''.
    sockets: n texts: GPUs with the same belong to one CPU; '' is unknown.
    gpu, cpu: the kind of GPU (a name of `rates.GPUS`) and of processor (of
        `rates.SOCKETS`), or None where the text does not say it.
    nvlinks_said: False for a text that says nothing of NVLinks, though its
        GPUs may have some.
    notes: sentences for the reader: what in the text is not to be believed.
    """
    gpus: tuple[int, ...]
    cables: np.ndarray
    switched: np.ndarray
    paths: tuple[tuple[str, ...], ...]
    cards: dict[str, tuple[str, ...]]
    sockets: tuple[str, ...]
    gpu: str | None = None
    cpu: str | None = None
    notes: tuple[str, ...] = ()
    nvlinks_said: bool = True

    def __repr__(self) -> str:
        return (f'Wiring({several(len(self.gpus), "GPU")}, '
                f'{int(self.cables.sum()) // 2 + int(self.switched.sum())} '
                f'NVLinks, {several(len(self.cards), "card")})')

    @property
    def sockets_said(self) -> bool:
        """Does the text say anything of the sockets of its GPUs?"""
        return any(map(any, self.paths)) or any(self.sockets)
