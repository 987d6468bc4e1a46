"""Rates of the links of real machines: data sheets, and NCCL's estimates.

Rates are bytes per second, each way. *Nominal* is what a data sheet or a
standard promises. *Usable* is what NCCL takes a link to carry when it plans:
constants of its source, `src/graph/topo.h`, version 2.30. The cores of a GPU
send at most 128 bytes in a packet of an NVLink; headers, and data in both
directions, leave about four fifths of the nominal rate.
"""
import re
from difflib import get_close_matches
from typing import NamedTuple

from d2lps.checks import any_of, refuse

TOPO_H = 'NCCL 2.30, src/graph/topo.h'


class Rate(NamedTuple):
    """usable, nominal: bytes/s each way. source: of both."""
    usable: float
    nominal: float
    source: str


# One NVLink, by the generation of the GPU.
NVLINKS = {
    'P100': Rate(18e9, 20e9, f'{TOPO_H}, SM60; NVIDIA, Tesla P100'),
    'V100': Rate(20e9, 25e9, f'{TOPO_H}, SM70; NVIDIA, Tesla V100'),
    'A100': Rate(20e9, 25e9, f'{TOPO_H}, SM80; NVIDIA, A100'),
    'A40': Rate(12e9, 14.0625e9, f'{TOPO_H}, SM86; NVIDIA, A40'),
    'H100': Rate(20.6e9, 25e9, f'{TOPO_H}, SM90; NVIDIA, H100'),
    'B200': Rate(40.1e9, 50e9, f'{TOPO_H}, SM100; NVIDIA, B200'),
}
# A PCIe slot of 16 lanes, by generation.
PCIE = {
    3: Rate(12e9, 15.75e9, f'{TOPO_H}, PCI_BW; PCI-SIG'),
    4: Rate(24e9, 31.5e9, 'twice PCIe 3, as NCCL counts; PCI-SIG'),
    5: Rate(48e9, 63e9, 'four times PCIe 3, as NCCL counts; PCI-SIG'),
    6: Rate(96e9, 126e9, 'eight times PCIe 3, as NCCL counts; PCI-SIG'),
}
# Between two NUMA nodes, by processor: sockets, or parts of an EPYC.
SOCKETS = {
    'Broadwell': Rate(6e9, 19.2e9, f'{TOPO_H}, BDW_QPI_BW; Intel, one QPI'),
    'Skylake': Rate(10e9, 20.8e9, f'{TOPO_H}, SKL_QPI_BW; Intel, one UPI'),
    'EPYC': Rate(16e9, 16e9, f'{TOPO_H}, AMD_BW; nominal rate not known'),
    'Sapphire Rapids': Rate(22e9, 50e9, f'{TOPO_H}, SRP_QPI_BW; Intel, UPI'),
    'Emerald Rapids': Rate(40e9, 50e9, f'{TOPO_H}, ERP_QPI_BW; Intel, UPI'),
}
# Of which processor a machine is thought to be if its text does not say it.
SOCKET_OF_PCIE = {3: 'Skylake', 4: 'EPYC', 5: 'Sapphire Rapids',
                  6: 'Emerald Rapids'}
# A network card of 100 Gbit/s.
CARD = Rate(12e9, 12.5e9, f'{TOPO_H}, NET_BW')
GBIT = 1e9 / 8  # bytes/s


class Gpu(NamedTuple):
    """A kind of GPU.

    sm: compute capability without its dot, 90 for 9.0.
    nvlinks: how many NVLinks it has at most. nvlink: the `Rate` of one.
    pcie: generation of its slot. peer: may it copy to another GPU over PCIe?
    """
    name: str
    sm: int
    nvlinks: int
    nvlink: Rate | None
    pcie: int
    peer: bool = True

    @property
    def slot(self) -> Rate:
        """The `Rate` of its PCIe slot."""
        return PCIE[self.pcie]

    @property
    def adds_in_switch(self) -> bool:
        """Can the NVLink switches of its machines add (NVLS)?"""
        return self.sm >= 90 and self.nvlinks > 0


def _gpus():
    linked = {  # name: compute capability, NVLinks, whose rate, PCIe
        'P100': (60, 4, 'P100', 3), 'GP100': (60, 4, 'P100', 3),
        'V100': (70, 6, 'V100', 3), 'V100S': (70, 0, 'V100', 3),
        'GV100': (70, 4, 'V100', 3), 'TITAN V': (70, 0, 'V100', 3),
        'RTX 2080 TI': (75, 2, 'V100', 3), 'RTX 2080': (75, 1, 'V100', 3),
        'RTX 2080 SUPER': (75, 1, 'V100', 3),
        'RTX 2070 SUPER': (75, 1, 'V100', 3),
        'TITAN RTX': (75, 2, 'V100', 3), 'RTX 5000': (75, 1, 'V100', 3),
        'RTX 6000': (75, 2, 'V100', 3), 'RTX 8000': (75, 2, 'V100', 3),
        'A100': (80, 12, 'A100', 4), 'A800': (80, 8, 'A100', 4),
        'A30': (80, 4, 'A100', 4),
        'A40': (86, 4, 'A40', 4), 'A6000': (86, 4, 'A40', 4),
        'A5000': (86, 4, 'A40', 4), 'A5500': (86, 4, 'A40', 4),
        'A4500': (86, 4, 'A40', 4), 'RTX 3090': (86, 4, 'A40', 4),
        'RTX 3090 TI': (86, 4, 'A40', 4),
        'H100': (90, 18, 'H100', 5), 'H200': (90, 18, 'H100', 5),
        'H800': (90, 8, 'H100', 5), 'H20': (90, 18, 'H100', 5),
        'GH200': (90, 18, 'H100', 5),
        'B100': (100, 18, 'B200', 5), 'B200': (100, 18, 'B200', 5),
        'GB200': (100, 18, 'B200', 5), 'B300': (103, 18, 'B200', 6),
        'GB300': (103, 18, 'B200', 6)}
    # GPUs without NVLink, and GeForce cards of today, which may not copy to
    # each other over PCIe.
    slots = {
        (35, 3): ['K20', 'K40'], (37, 3): ['K80'], (52, 3): ['M40', 'M60'],
        (61, 3): ['P40', 'P4', 'GTX 1070', 'GTX 1080', 'GTX 1080 TI',
                  'TITAN X', 'TITAN XP'],
        (75, 3): ['T4', 'RTX 4000'],
        (86, 4): ['A2', 'A10', 'A10G', 'A16', 'A2000', 'A4000'],
        (89, 4): ['L2', 'L4', 'L20', 'L40', 'L40S', 'RTX 2000 ADA',
                  'RTX 4000 ADA', 'RTX 4500 ADA', 'RTX 5000 ADA',
                  'RTX 5880 ADA', 'RTX 6000 ADA'],
        (120, 5): ['RTX PRO 4000', 'RTX PRO 4500', 'RTX PRO 5000',
                   'RTX PRO 6000']}
    geforce = {
        (86, 4): ['RTX 3060', 'RTX 3060 TI', 'RTX 3070', 'RTX 3070 TI',
                  'RTX 3080', 'RTX 3080 TI'],
        (89, 4): ['RTX 4060', 'RTX 4060 TI', 'RTX 4070', 'RTX 4070 TI',
                  'RTX 4070 SUPER', 'RTX 4080', 'RTX 4080 SUPER',
                  'RTX 4090'],
        (120, 5): ['RTX 5060', 'RTX 5060 TI', 'RTX 5070', 'RTX 5070 TI',
                   'RTX 5080', 'RTX 5090']}
    for name, (sm, nvlinks, whose, pcie) in linked.items():
        yield Gpu(name, sm, nvlinks, NVLINKS[whose], pcie,
                  # Of these, GeForce cards copy over NVLink only.
                  not name.startswith(('RTX 20', 'RTX 30', 'TITAN RTX')))
    for peer, kinds in ((True, slots), (False, geforce)):
        for (sm, pcie), names in kinds.items():
            yield from (Gpu(name, sm, 0, None, pcie, peer) for name in names)


GPUS = {gpu.name: gpu for gpu in _gpus()}
# What stands in a product's name besides the GPU.
_SERIES = {'RTX', 'GTX', 'GEFORCE', 'TESLA', 'QUADRO', 'NVIDIA'}
# What makes it another GPU.
_VARIANTS = {'ADA', 'PRO', 'SUPER', 'TI'}


def _parts_of(name):
    """'NVIDIA GeForce RTX 2080Ti' as the set {'2080', 'TI'}."""
    parted = re.sub(r'(?<=\d)(?=TI\b)|(?<=TX)(?=\d)', ' ', name.upper())
    return {*re.findall(r'[A-Z0-9]+', parted)} - _SERIES


_BY_PARTS = {frozenset(_parts_of(name)): gpu for name, gpu in GPUS.items()}


def _near(name):
    """Three known names that are like this one, or well-known ones."""
    short = {' '.join(word for word in gpu.split() if word not in _SERIES): gpu
             for gpu in GPUS}
    asked = ' '.join(word for word in str(name)[:100].upper().split()
                     if word not in _SERIES)
    near = [short[key] for key in get_close_matches(asked, short)]
    return any_of(near or ['V100', 'A100', 'H100'])


def find_gpu(name: str, argument: str = 'gpu') -> Gpu:
    """The `Gpu` that a name means: 'A100', 'NVIDIA A100-SXM4-80GB', '4090'.

    Raises ValueError for a name that means none of `GPUS`.
    """
    asked = _parts_of(name) if isinstance(name, str) else set()
    known = [gpu for parts, gpu in _BY_PARTS.items() if parts <= asked
             and not (asked - parts) & _VARIANTS]
    if not known:
        refuse(argument, name, f'the name of a GPU, such as {_near(name)}')
    best = max(known, key=lambda gpu: len(_parts_of(gpu.name)))
    if not all(_parts_of(gpu.name) <= _parts_of(best.name) for gpu in known):
        refuse(argument, name, 'the name of one GPU')
    return best
