"""Settings that let devices run side by side, made before MXNet starts.

MXNet reads them once, when it is imported, so `import d2lps` comes first in
a notebook. This module imports no MXNet, so code without MXNet stays quick.
"""
import os
import sys
import warnings

from d2lps import processor

# One core for each device: with more OpenMP threads two devices fight for
# the same cores, and a matrix product on two CPU devices may never end.
# Every convolution borrows a temporary workspace; all CPU devices share one
# pool of them, and a small one (MXNet has 4) makes one wait for another.
SETTINGS = {'OMP_NUM_THREADS': '1', 'MXNET_CPU_TEMP_COPY': '64'}


def why_mxnet_would_crash() -> str:
    """A setting with which MXNet would crash, in a sentence; '' if none."""
    for name in SETTINGS:
        value = os.environ.get(name, '1')
        if not (value.isascii() and value.isdigit() and 0 < int(value) < 1e6):
            return (f'{name} is {value!r}, and MXNet would crash: it must be '
                    'a whole number of at least 1. Unset it, and restart '
                    'Python.')
    return ''


def setup() -> int | None:
    """Prepare the environment that MXNet reads when it is imported.

    Settings of the user are kept. A warning names a setting that makes MXNet
    crash, or that keeps devices from running side by side, and an MXNet that
    was imported before and has read its settings. Returns the number of
    OpenMP threads of each CPU device; None means that it is not known: MXNet
    chose, most often one thread for each core. Kernels that suit the
    processor are chosen, too (see `d2lps.processor`).
    """
    for name, value in processor.settings().items():
        os.environ[name] = os.environ.get(name) or value
    given = {name: os.environ.get(name) for name in SETTINGS}
    late = 'mxnet' in sys.modules and not all(given.values())
    for name, value in SETTINGS.items():
        os.environ[name] = given[name] or value
    if why_mxnet_would_crash():
        warnings.warn(why_mxnet_would_crash(), stacklevel=4)
        return None
    threads, pool = (int(os.environ[name]) for name in SETTINGS)
    if late:
        warnings.warn(
            'mxnet was imported before d2lps, so devices may not run side by '
            'side (and a matrix product on two of them can run forever). '
            'Write "import d2lps" above "import mxnet" and restart Python.',
            stacklevel=4)
        return int(given['OMP_NUM_THREADS'] or 0) or None
    for name, fine, harm in (
            ('OMP_NUM_THREADS', threads == 1,
             'with more than one thread for each device, a matrix product on '
             'two CPU devices at once can run forever'),
            ('MXNET_CPU_TEMP_COPY', pool > 4,
             'CPU devices will wait for each other in every convolution')):
        if not fine:
            warnings.warn(f'{name} is {os.environ[name]!r}: {harm}. Unset it, '
                          'and restart Python.', stacklevel=4)
    return threads


THREADS = setup()
