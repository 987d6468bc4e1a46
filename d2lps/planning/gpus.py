"""Rates and memory of GPUs: data sheets, and the rates that are reached.

The rates of NVLinks and cards are NCCL's estimates, from `machines.rates`.
The rates of matrix products are the best that Bekman measured ("Machine
Learning Engineering", table of maximum achievable matmul FLOPS, read in
August 2026): 271.2 of 312 TFLOP/s on an A100, 794.5 of 989 on an H100 and on
an H200, 1,745 of 2,250 on a B200, 1,769 of 2,250 on a B300, and 1,822 of
2,500 on a GB200.

The rates of attention are those of FlashAttention-2, as two abstracts give
them: 35% of the peak on an H100 (Shah et al. 2024, arXiv 2407.08608), and 50
to 73% on an A100 (Dao 2023, arXiv 2307.08691), of which we take the 50. An
H200 computes as an H100 does. For B200, B300 and GB200 we know no rate that
includes the backward pass, and take 70% of the rate of matrix products.
Newer kernels are faster: `dataclasses.replace(H100, attention=...)`.

The memory is what NVIDIA's data sheets say, and each GB is 1e9 bytes. (Eight
B300 of 270 GB are the 2.1 TB of an HGX B300; other pages say 288 GB for each.)
PyTorch finds 6 to 6.5% more: 79.1 to 79.3 GiB on an A100 or H100 of "80 GB",
which are 85e9 bytes; 139.8 GiB on an H200, 178.4 on a B200, 267.7 on a B300,
and 184.3 on a GB200. So what needs 80 GB is refused here, and can fit.

Not here: GB300, Rubin, and the GPUs of other makers. For another rate, such as
that of 8-bit numbers, take `dataclasses.replace(H100, matmul=...)`.
"""
from dataclasses import dataclass

from d2lps.checks import instance_of, integer, positive
from d2lps.collectives.machines.rates import CARD, find_gpu
from d2lps.units import RATES, SIZES, with_unit


@dataclass(frozen=True)
class Gpu:
    """A kind of GPU, in a kind of machine.

    peak: FLOP/s of dense matrix products in bf16, by the data sheet.
    matmul: the best that was measured, FLOP/s.
    attention: what a kernel of attention reaches, FLOP/s.
    memory: bytes. hbm: bytes/s between memory and GPU. Both by the data sheet.
    domain: how many GPUs are joined by NVLink.
    nvlink: usable bytes/s of a GPU's NVLinks together, each way.
    network: usable bytes/s of a GPU's network card, each way.
    """
    name: str
    peak: float
    matmul: float
    attention: float
    memory: float
    hbm: float
    domain: int
    nvlink: float
    network: float

    def __repr__(self) -> str:
        return (f'Gpu({self.name!r}: {self.peak / 1e12:,.4g} TFLOP/s, '
                f'{with_unit(self.memory, SIZES)}, NVLinks '
                f'{with_unit(self.nvlink, RATES)}, network '
                f'{with_unit(self.network, RATES)})')

    def __post_init__(self) -> None:
        integer('domain', self.domain, most=100_000)
        for name in ('peak', 'matmul', 'attention', 'memory', 'hbm', 'nvlink',
                     'network'):
            positive(name, getattr(self, name))


def _links(name):
    gpu = find_gpu(name)
    assert gpu.nvlink
    return gpu.nvlinks * gpu.nvlink.usable


# Cards of 200, 400 and 800 Gbit/s, one for each GPU.
A100 = Gpu('A100', 312e12, 271.2e12, 156e12, 80e9, 2.039e12, 8,
           _links('A100'), 2 * CARD.usable)
H100 = Gpu('H100', 989e12, 794.5e12, 346e12, 80e9, 3.35e12, 8,
           _links('H100'), 4 * CARD.usable)
H200 = Gpu('H200', 989e12, 794.5e12, 346e12, 141e9, 4.8e12, 8,
           _links('H200'), 4 * CARD.usable)
B200 = Gpu('B200', 2250e12, 1745e12, 1221e12, 180e9, 8e12, 8,
           _links('B200'), 4 * CARD.usable)
B300 = Gpu('B300', 2250e12, 1769e12, 1238e12, 270e9, 8e12, 8,
           _links('B300'), 8 * CARD.usable)
# 72 GPUs in a rack.
GB200 = Gpu('GB200', 2500e12, 1822e12, 1275e12, 186e9, 8e12, 72,
            _links('GB200'), 4 * CARD.usable)
a_gpu = instance_of(Gpu, 'a Gpu, such as H100')
