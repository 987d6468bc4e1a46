"""What a checkpoint costs beside MXNet's and NumPy's files: checkpoints.py

The parameters and momenta of LeNet, and 40 MB, saved by us (with a checksum,
on the disk when it returns), by us without waiting for the disk, by MXNet and
by NumPy (which do neither). The contestants take turns.
"""
import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from unittest import mock

import d2lps  # first: it prepares MXNet's engine
import mxnet as mx
import numpy as onp


def contestants(folder, params):
    """{name: (a function to call with a step, the path of what it writes)}"""
    c, state = d2lps.Checkpoint(folder, keep=1), {
        'params': params, 'momenta': [0 * param for param in params]}
    arrays = state['params'] + state['momenta']
    nd, npz = folder / 'by.nd', folder / 'by.npz'

    def without_waiting(step):
        with mock.patch.object(os, 'fsync'):
            c.save(step, state)

    def ours(step):
        return folder / f'step-{step:08d}.checkpoint'
    return {
        'Checkpoint.save': (lambda step: c.save(step, state), ours),
        'the same, no fsync': (without_waiting, ours),
        'mx.nd.save': (lambda step: mx.nd.save(str(nd), [
            array.as_nd_ndarray() for array in arrays]), lambda step: nd),
        'numpy.savez': (lambda step: onp.savez(npz, *[
            array.asnumpy() for array in arrays]), lambda step: npz)}


def show(title, folder, params, rounds):
    folder = Path(folder, title.split()[0])
    folder.mkdir()
    taken, sizes, step = {}, {}, 0
    jobs = contestants(folder, params)
    for _ in range(rounds + 1):
        for name, (job, path) in jobs.items():
            step, start = step + 1, time.perf_counter()
            job(step)
            taken.setdefault(name, []).append(
                1e3 * (time.perf_counter() - start))
            sizes[name] = path(step).stat().st_size
    print(f'\n{title:<26}{"bytes":>12}{"ms, median":>12}{"min":>8}{"max":>8}')
    for name, times in taken.items():
        numbers = ''.join(f'{f(times[1:]):8,.1f}' for f in (
            statistics.median, min, max))
        print(f'{name:<26}{sizes[name]:12,}    {numbers}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--folder', help='on the disk that is measured')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        show('LeNet', folder, d2lps.init_params(), args.rounds)
        show('40 MB', folder, [mx.np.ones(5_000_000)], args.rounds)


if __name__ == '__main__':
    main()
