"""Equipment of this machine. Cores and memory are seen without MXNet."""
import platform
from typing import NamedTuple

from d2lps.missing import IN_A_TAB, NoMXNet
from d2lps.processor import cores, kernels_in_use
from d2lps.units import several


class Machine(NamedTuple):
    """A machine's equipment; `memory` in bytes, `copy_bandwidth` in bytes/s.

    `kernels` names the kernels with which OpenBLAS multiplies matrices.
    Without MXNet, `gpus` and `copy_bandwidth` are None: MXNet counts GPUs,
    and its devices copy. A browser tab does not tell its `memory` either.
    """
    cores: int
    gpus: int | None
    memory: int | None
    copy_bandwidth: float | None
    kernels: str | None = None

    def __repr__(self) -> str:
        return f'Machine({self})'

    def __str__(self) -> str:
        if self.memory is None:
            return (f'a browser tab with Python {platform.python_version()}. '
                    'It computes on one core, because it has no threads and '
                    'no processes, and it has no MXNet')
        memory = f'{self.memory / 1e9:.1f} GB of memory'
        system = (f'({platform.system()} {platform.machine()}, '
                  f'Python {platform.python_version()})')
        if self.copy_bandwidth is None:
            return (f'{several(self.cores, "core")}, {memory} {system}. '
                    'MXNet, which counts GPUs and copies between devices, is '
                    'not here')
        return (f'{several(self.cores, "core")}, '
                f'{several(self.gpus or 0, "GPU")}, {memory}, '
                f'{self.copy_bandwidth / 1e9:.1f} GB/s from one device to '
                f'another, matrix kernels: {self.kernels or "unknown"} '
                f'{system}')


def machine() -> Machine:
    """Look at this machine and return a `Machine`."""
    if IN_A_TAB:
        return Machine(1, None, None, None)
    import psutil
    memory = psutil.virtual_memory().total
    try:
        from d2lps.engine import copy_bandwidth, npx
    except NoMXNet:
        return Machine(cores(), None, memory, None)
    return Machine(cores(), npx.num_gpus(), memory, copy_bandwidth(),
                   kernels_in_use())
