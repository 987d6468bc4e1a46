"""The figures of chapter 4: 40 MB summed over CPU devices: python sums.py

All contestants live in this one process and take turns, so that a machine
that grows slower grows slower for all of them. Medians in milliseconds, and
how many times faster that is than the book's way.
"""
import argparse
import statistics
import time

import d2lps  # first: it prepares MXNet's engine
import mxnet as mx
from d2lps.collectives import strategies

BOOK, COPY = "book's allreduce", 'one copy (the limit)'
OURS = (strategies.sharded, strategies.double_tree, strategies.ring,
        strategies.gather_broadcast)


def book(arrays):
    """Sum on device 0, with copies, then send the sum back."""
    for array in arrays[1:]:
        arrays[0][:] += array.copyto(arrays[0].ctx)
    for array in arrays[1:]:
        arrays[0].copyto(array)


def store(kind, example):
    """The sum by MXNet's own key-value store."""
    kv = mx.kv.create(kind)
    kv.init(0, example)

    def run(arrays):
        kv.push(0, arrays)
        kv.pull(0, out=arrays)
    return run


def contestants(n, size):
    """A dict from name to a job to be timed, for `size` numbers on n devices.

    Each sum is tried out first, on arrays of 1, 2 and so on.
    """
    devices, jobs = d2lps.devices(n), {}
    example = mx.np.zeros(size)
    ways = {BOOK: book, **{f'mx.kv {kind}': store(kind, example)
                           for kind in ('local', 'device')}}
    ways |= {f'd2lps {make.__name__}': make(n).run for make in OURS}
    for name, run in ways.items():
        arrays = [mx.np.full(size, i + 1, dtype='float32', ctx=device)
                  for i, device in enumerate(devices)]
        run(arrays)
        for array in arrays:
            assert (array == n * (n + 1) / 2).all(), name
            array[:] = 0
        jobs[name] = lambda run=run, arrays=arrays: run(arrays)
    here, there = (mx.np.zeros(size, ctx=device) for device in devices[:2])
    jobs[COPY] = lambda: here.copyto(there)
    return jobs


def medians(jobs, repeats):
    """Milliseconds by name; a first turn is not counted."""
    taken = {name: [] for name in jobs}
    for _ in range(repeats + 1):
        for name, job in jobs.items():
            mx.nd.waitall()
            start = time.perf_counter()
            job()
            mx.nd.waitall()
            taken[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(ms[1:]) for name, ms in taken.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--devices', type=int, nargs='+', default=[2, 4])
    parser.add_argument('--megabytes', type=float, default=40)
    parser.add_argument('--repeats', type=int, default=21)
    args = parser.parse_args()
    size = round(args.megabytes * 1e6 / 4)
    results = [medians(contestants(n, size), args.repeats)
               for n in args.devices]
    print(f'{args.megabytes:g} MB, {d2lps.machine()}')
    print(f'{"":24}' + ''.join(f'{n:7} devices{"":10}' for n in args.devices))
    for name in results[0]:
        print(f'{name:24}' + ''.join(
            f'{ms[name]:9.1f} ms {ms[BOOK] / ms[name]:7.2f} x   '
            for ms in results))


if __name__ == '__main__':
    main()
