"""The processor: how many cores we may use, and which kernels suit it.

MXNet computes products of matrices with OpenBLAS and convolutions with
oneDNN. Both bring kernels, their innermost loops, for many processors. The
OpenBLAS in MXNet is of 2021. It takes its oldest kernels for every processor
that it does not know, that is, for most newer processors. A product then takes
two to five times as long, and is rounded in another way. oneDNN asks the
processor for its instructions. Settings made before both are loaded choose
their kernels.
"""
import os
import platform
import sys
from importlib.util import find_spec
from pathlib import Path

# OpenBLAS's names, the best first, and the instructions that they need.
KERNELS = {'Haswell': {'avx2', 'fma'}, 'Sandybridge': {'avx'},
           'Nehalem': {'sse4_1', 'sse4_2'}}
CGROUPS = Path('/sys/fs/cgroup')
OURS = Path('/proc/self/cgroup')


def cores() -> int:
    """The number of processor cores that this process may use."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity')
            else os.cpu_count() or 1)


def load() -> float:
    """The number of processes that want each core, at least 1.

    A process then gets a core for 1 of so many seconds.
    """
    try:
        return max(1.0, os.getloadavg()[0] / cores())
    except (AttributeError, OSError):  # not every system tells it
        return 1.0


def abilities() -> set[str]:
    """The names of instructions that an Intel or AMD processor has."""
    names = ''
    if platform.machine().lower() not in ('x86_64', 'amd64'):
        return set()
    if sys.platform == 'linux':
        # It says the same of each core.
        with open('/proc/cpuinfo', encoding='utf-8') as file:
            names = next((line for line in file
                          if line.startswith('flags')), '')
    elif sys.platform == 'darwin':
        import subprocess  # takes as long as the rest of `import d2lps`
        names = subprocess.run(
            ['sysctl', '-n', 'machdep.cpu.features',
             'machdep.cpu.leaf7_features'], text=True, timeout=10,
            capture_output=True, check=False).stdout
        names = names.replace('AVX1.0', 'AVX').replace('.', '_')
    return {*names.lower().split()}


def best_kernels() -> str | None:
    """OpenBLAS's name for the kernels that suit this processor.

    None if OpenBLAS should choose itself: on ARM, for which it has new
    kernels, and if the processor is unknown.
    """
    try:
        known = abilities()
    except Exception:  # the file is missing, or the program does not answer
        return None
    for name, needed in KERNELS.items():
        if needed <= known:
            return name
    return None


def settings() -> dict[str, str]:
    """The environment variables that choose suitable kernels, by name.

    All processors with AVX2 get the same kernels, also processors with newer
    instructions. Then all round in the same way, and training gives the same
    figures.
    """
    best = best_kernels()
    chosen = {'OPENBLAS_CORETYPE': best} if best else {}
    if best == 'Haswell':
        chosen['DNNL_MAX_CPU_ISA'] = 'AVX2'
    return chosen


def kernels_in_use() -> str | None:
    """The kernels that MXNet's OpenBLAS has taken, such as 'Haswell'.

    None if MXNet is not there, or has another library for matrices.
    """
    import ctypes
    spec = find_spec('mxnet')
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    for path in (folder / 'libopenblas.so.0', folder / 'libarmpl_lp64_mp.so'):
        try:
            name = ctypes.CDLL(str(path)).openblas_get_corename
        except (OSError, AttributeError):
            continue
        name.restype = ctypes.c_char_p
        return name().decode()
    return None


def _limit_in(folder):
    """The limit of one control group; None if it has none."""
    try:
        quota, period = (folder / 'cpu.max').read_text().split()
    except (OSError, ValueError):
        try:  # as Linux had it before
            quota, period = ((folder / f'cpu.cfs_{key}_us').read_text()
                             for key in ('quota', 'period'))
        except OSError:
            return None
    limited = quota.strip() not in ('max', '-1')
    return int(quota) / int(period) if limited else None


def limit() -> float | None:
    """The number of cores of a container, such as 1.5; None without a limit.

    The tightest limit of this process's control groups counts.
    """
    folders = [CGROUPS / 'cpu', CGROUPS]
    try:
        groups = OURS.read_text('utf-8').splitlines()
    except OSError:
        return None
    for line in groups:
        path = line.split(':', 2)[-1]
        inner = CGROUPS / path.lstrip('/')
        folders += [inner, *inner.parents]
    limits = [_limit_in(folder) for folder in folders]
    return min((cores for cores in limits if cores is not None), default=None)
