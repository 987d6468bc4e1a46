"""What a checkpoint costs, all measured in one run: python checkpoints.py

The parameters and momenta of LeNet, and 40 MB, saved by us (with a checksum,
on the disk when it returns), by us without waiting for the disk, by MXNet and
by NumPy (which do neither). The contestants take turns. Then what it costs a
step of training, and how often Young's formula would save.
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
from d2lps.recovery import best_interval, train_with_checkpoints

BATCH_SIZE = 256


def timed(job, *args):
    start = time.perf_counter()
    job(*args)
    return 1e3 * (time.perf_counter() - start)


def contestants(folder, state):
    """{name: (function to call with a step, path of what it writes)}."""
    c = d2lps.Checkpoint(folder, keep=1)
    arrays = state['params'] + state['momenta']
    nd, np = folder / 'by.nd', folder / 'by.npz'

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
        'numpy.savez': (lambda step: onp.savez(np, *[
            array.asnumpy() for array in arrays]), lambda step: np)}


def a_state(params):
    return {'params': params, 'momenta': [0 * param for param in params],
            'random': onp.random.default_rng().bit_generator.state}


def table(title, folder, state, rounds):
    """Print what saving costs; return the median of ours, in seconds."""
    folder = Path(folder, title.split()[0])
    folder.mkdir()
    taken, sizes, step = {}, {}, 0
    jobs = contestants(folder, state)
    for _ in range(rounds + 1):
        for name, (job, path) in jobs.items():
            step += 1
            taken.setdefault(name, []).append(timed(job, step))
            sizes[name] = path(step).stat().st_size
    mx.nd.waitall()
    loads = [timed(d2lps.Checkpoint(folder).load) for _ in range(rounds)]
    print(f'\n{title:<26}{"bytes":>12}{"ms, median":>12}{"min":>8}{"max":>8}')
    for name, times in taken.items():
        numbers = ''.join(f'{f(times[1:]):8,.1f}' for f in (
            statistics.median, min, max))
        print(f'{name:<26}{sizes[name]:12,}    {numbers}')
    print(f'{"Checkpoint.load":<42}{statistics.median(loads):8,.1f}')
    return statistics.median(taken['Checkpoint.save'][1:]) / 1e3


def ms_a_step(folder, steps, every):
    """(all, checkpoints alone), from one training in this process."""
    taken, save = [], d2lps.Checkpoint.save
    with mock.patch.object(
            d2lps.Checkpoint, 'save', lambda *args: taken.append(timed(
                save, *args))):
        whole = timed(lambda: train_with_checkpoints(
            folder, steps, BATCH_SIZE, every=every,
            store=mx.kv.create('local')))
    assert len(taken) == -(-steps // every)
    return whole / steps, sum(taken) / steps


def main(args):
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        cost = table('LeNet', folder, a_state(d2lps.init_params()),
                     args.rounds)
        table('40 MB', folder, a_state([mx.np.ones(5_000_000)]), args.rounds)
        print(f'\n{f"training, batch {BATCH_SIZE}":<38}'
              f'{"ms a step":>10}{"of it saving":>14}')
        for every in 1, 10:
            whole, saving = ms_a_step(Path(folder, f'{every}'), args.steps,
                                      every)
            often = f'a checkpoint every {every} steps'
            print(f'{often:<38}{whole:10,.1f}{saving:14,.2f}')
    for words, mean in ('hour', 3600), ('day', 86400):
        print(f'a death every {words}: save every '
              f'{best_interval(cost, mean):,.0f} s (Young)')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--steps', type=int, default=60)
    parser.add_argument('--folder', help='on the disk that is measured')
    main(parser.parse_args())
