"""Tables of some machines, as `nvidia-smi topo -m` prints them.

Typed from what owners posted or NVIDIA documents, without their cards where
these do not matter: to try things with, and to compare with.
"""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from d2lps.checks import checked, from_zero, integer, one_of, refuse
from d2lps.collectives.cables import P3_CABLES
from d2lps.collectives.machines.expectation import (Expectation,
                                                    expected_bandwidth)
from d2lps.collectives.machines.gpu_machine import machine_of
from d2lps.collectives.machines.nvidia_smi import read_table
from d2lps.collectives.machines.rates import GBIT

# As the p3's, with the GPUs numbered otherwise (a machine of 2019).
PERMUTED = [0, 1, 2, 3, 6, 7, 4, 5]


def table(n: int, cell: Callable[[int, int], str],
          sockets: Sequence[int] | None = None) -> str:
    """The text of a table for n GPUs.

    cell: what stands in row i and column j, 'NV2' or 'SYS'. sockets: the
    NUMA node of each GPU; left out, the table does not say it.
    """
    rows = ['\t'.join(['', *(f'GPU{i}' for i in range(n)),
                       *(['NUMA Affinity'] if sockets else [])])]
    rows += ['\t'.join([f'GPU{i}', *(' X ' if i == j else cell(i, j)
                                     for j in range(n)),
                        *([str(sockets[i])] if sockets else [])])
             for i in range(n)]
    return '\n'.join(rows) + '\n'


def all_alike(n: int, nvlinks: int) -> str:
    """n GPUs, and the text names so many NVLinks for each pair of them.

    They lead through switches (NVSwitch) where a GPU has too few for cables.
    """
    return table(n, lambda i, j: f'NV{nvlinks}')


def joined(cables: np.ndarray | Sequence[Sequence[int]]) -> str:
    """Two sockets; NVLinks as in a symmetric table, else PCIe."""
    cables = np.asarray(cables)
    n = len(cables)
    sockets = [2 * i // n for i in range(n)]

    def cell(i, j):
        if cables[i, j]:
            return f'NV{cables[i, j]}'
        return 'NODE' if sockets[i] == sockets[j] else 'SYS'
    return table(n, cell, sockets)


def one_switch(n: int) -> str:
    """n GPUs on one PCIe switch, without NVLinks."""
    return table(n, lambda i, j: 'PIX')


def two_sockets(n: int) -> str:
    """n GPUs in slots of two sockets, without NVLinks."""
    return joined(np.zeros((n, n), int))


def pairs(n: int, nvlinks: int) -> str:
    """n GPUs, an even number, in pairs with so many NVLinks; two sockets."""
    pair = nvlinks * (1 - np.eye(2, dtype=int))
    return joined(np.kron(np.eye(n // 2, dtype=int), pair))


MACHINES: dict[str, Callable[[int, int], str]] = {
    'DGX-1': lambda n, nvlinks: joined(P3_CABLES),
    'DGX-1, numbered otherwise':
        lambda n, nvlinks: joined(P3_CABLES[np.ix_(PERMUTED, PERMUTED)]),
    'NVSwitch': all_alike, 'all joined': all_alike, 'pairs': pairs,
    'one PCIe switch': lambda n, nvlinks: one_switch(n),
    'two sockets': lambda n, nvlinks: two_sockets(n)}


def _as_built(wiring, n, nvlinks):
    if wiring.startswith('DGX-1') and n != 8:
        refuse('n', n, f'8: so many GPUs a {wiring} has')
    if wiring == 'pairs' and n % 2:
        refuse('n', n, 'an even number: the GPUs are in pairs')
    if wiring in ('NVSwitch', 'all joined', 'pairs'):
        integer('nvlinks', nvlinks)


@checked(_as_built, wiring=one_of(*MACHINES), n=integer, nvlinks=from_zero)
def posted(wiring: str, n: int = 8, nvlinks: int = 0) -> str:
    """The table of a wiring by its name, one of `MACHINES`.

    n: how many GPUs. nvlinks: of each GPU to a switch, or to each GPU that it
    is joined to, where the wiring leaves that open.
    """
    return MACHINES[wiring](n, nvlinks)


def predicted(case: Any) -> Expectation:
    """The expectation for a machine in `notebooks/results/21-machines.csv`.

    case: a row of it, with its columns as attributes.
    """
    use = case.use.split() if isinstance(case.use, str) else []
    wiring = read_table(posted(case.wiring, case.gpus, case.nvlinks))
    machine = machine_of(wiring, case.gpu, [*map(int, use)] or None)
    if case.machines == 1:
        return expected_bandwidth(machine)
    return expected_bandwidth(machine, machines=case.machines,
                              cards=int(case.cards),
                              card_rate=case.gbit * GBIT)
