"""Chapter 9's figures, all measured in one run: python chapter9.py

LeNet on the digits, and the sum of 40 MB, over two processes: through our
cluster, over Unix sockets and over TCP, and through PyTorch's Gloo (if torch
is installed). The contestants take turns, so that a machine that grows slower
grows slower for all of them, and are compared round by round.
"""
import argparse
import contextlib
import importlib.util
import itertools
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from unittest import mock

import d2lps  # first: it prepares MXNet's engine
import mxnet as mx
import psutil
from d2lps import processor
from d2lps.cluster import Cluster, cluster
from d2lps.cluster.processes.addresses import LocalPlaces, free_ports
from d2lps.engine import cores

BATCH_SIZE, LR, WORKERS = 256, 0.1, 2
WAIT = 120  # seconds for a turn, at most
DDP, GLOO = 'PyTorch DDP with Gloo', "Gloo's all_reduce"


def timed(job, repeats, ready=lambda: None):
    """Seconds that `job()` takes, median; a first time is not counted."""
    taken = []
    for _ in range(repeats + 1):
        ready()
        start = time.perf_counter()
        job()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def one_process(num_devices, steps):
    """Images per second in this process."""
    devices, data = d2lps.devices(num_devices), d2lps.load_data(BATCH_SIZE)[0]
    copies = [d2lps.get_params(d2lps.init_params(), d) for d in devices]

    def train():
        for X, y in itertools.islice(data, steps):
            d2lps.train_batch(X, y, copies, devices, LR)
        mx.nd.waitall()
    return steps * BATCH_SIZE / timed(train, 1)


def prepare_worker(size, num_keys):
    """Make a worker's store, once; the next two find it in __main__."""
    import __main__
    from d2lps.kvstore import prepare_store
    __main__.store = store = mx.kv.create('dist_sync')
    if size:
        __main__.values = [mx.np.ones(size // n) for n in num_keys
                           for _ in range(n)]
        __main__.outs = [mx.np.zeros_like(one) for one in __main__.values]
        store.init(list(range(len(__main__.outs))), __main__.outs)
    else:
        params, __main__.devices = d2lps.init_params(), d2lps.devices(1)
        __main__.copies = [d2lps.get_params(params, __main__.devices[0])]
        prepare_store(store, params, LR)


def worker_trains(steps):
    """What each worker of a cluster does: its share of every batch."""
    from __main__ import copies, devices, store
    from d2lps.kvstore import train_batch_store
    data = d2lps.load_data(BATCH_SIZE)[0]

    def train():
        for X, y in itertools.islice(data, steps):
            train_batch_store(X, y, copies, devices, store)
        mx.nd.waitall()
    return steps * BATCH_SIZE / timed(train, 1, store.barrier)


def worker_sums(first, n, repeats):
    """Push and pull n keys from the key `first` on, in one call."""
    from __main__ import outs, store, values
    part = slice(first, first + n)
    seconds = timed(lambda: store.pushpull(
        list(range(first, first + n)), values[part], out=outs[part]),
        repeats, store.barrier)
    assert all(float(out[-1]) == store.num_workers for out in outs[part])
    return seconds


def gloo(rank, port, steps, size, repeats):
    """One of two processes of PyTorch's; a turn for each line that comes."""
    import torch
    from torch import distributed, nn
    from torch.nn.parallel import DistributedDataParallel
    torch.set_num_threads(1)
    torch.manual_seed(0)
    distributed.init_process_group(
        'gloo', f'tcp://127.0.0.1:{port}', rank=rank, world_size=WORKERS)
    data = d2lps.load_data(BATCH_SIZE)[0]
    images = torch.tensor(data.images[:, None])
    labels = torch.tensor(data.labels.astype('int64'))
    net = DistributedDataParallel(nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10)))
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=LR)
    value = torch.zeros(size)

    def train():
        order = torch.randperm(len(images))
        for rows in order[:steps * BATCH_SIZE].split(BATCH_SIZE):
            rows = rows.tensor_split(WORKERS)[rank]
            optimizer.zero_grad()
            loss(net(images[rows].float() / 255), labels[rows]).backward()
            optimizer.step()

    print('ready', flush=True)
    for line in sys.stdin:
        print(steps * BATCH_SIZE / timed(train, 1, distributed.barrier)
              if line == 'train\n' else
              timed(lambda: distributed.all_reduce(value), repeats,
                    distributed.barrier), flush=True)


class Gloo:
    """The two processes; all waits end after `WAIT` seconds."""

    def __init__(self, *numbers):
        [port], self._threads = free_ports(1), ThreadPoolExecutor(WORKERS)
        # Without the kernels that d2lps chose for MXNet.
        as_started = {name: value for name, value in os.environ.items()
                      if name not in processor.settings()}
        self._processes = [subprocess.Popen(
            [sys.executable, __file__, '--gloo',
             *map(str, (rank, port, *numbers))], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=as_started | {'GLOO_SOCKET_IFNAME': 'lo'})
            for rank in range(WORKERS)]

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self.__exit__)
            assert self._read() == ['ready'] * WORKERS
            stack.pop_all()
        return self

    def _read(self):
        waits = [self._threads.submit(process.stdout.readline)
                 for process in self._processes]
        return [wait.result(WAIT).strip() for wait in waits]

    def pids(self):
        return [process.pid for process in self._processes]

    def turn(self, what):
        for process in self._processes:
            print(what, file=process.stdin, flush=True)
        return [float(line) for line in self._read()]

    def __exit__(self, *exception):
        for process in self._processes:
            process.kill()
            process.wait()
        self._threads.shutdown()


class Turns:
    """Contestants take turns; what they measure, and what it costs.

    add: `turn()` returns a number, `pids()` are the processes that work for
    it, and it does the same thing `times` times.
    """

    def __init__(self):
        self._contestants, self.results, self.costs = {}, {}, {}

    def add(self, name, turn, pids, times):
        self._contestants[name] = turn, pids, times
        self.results[name], self.costs[name] = [], []

    def go(self, backwards):
        """All once; every second time in the other order."""
        names = [*self._contestants]
        for name in names[::-1] if backwards else names:
            turn, pids, times = self._contestants[name]
            before = cpu_seconds(pids())
            self.results[name].append(turn())
            self.costs[name].append((cpu_seconds(pids()) - before) / times)

    def ratios(self, name, peer):
        """To `peer`, round by round; [] if it does not take part."""
        return [value / other for value, other in zip(
            self.results[name], self.results.get(peer, ()))]

    def show(self, title, factor, peer):
        """A line for each; `peer` is the one that others are measured by."""
        print(f'\n{title:<34}' + ''.join(f'{word:>8}' for word in (
            'median', 'min', 'max', 'CPU ms', 'ratio', 'from', 'to')))
        for name, values in self.results.items():
            numbers = [factor * f(values) for f in (
                statistics.median, min, max)]
            cost = 1e3 * statistics.median(self.costs[name])
            ratios = self.ratios(name, peer)
            print(f'{name:<34}' + ''.join(
                f'{number:8,.0f}' for number in numbers) +
                f'{cost:8,.1f}' + ''.join(
                f'{f(ratios):8.2f}' for f in (statistics.median, min, max)
                if ratios))


def cpu_seconds(pids):
    """Processor time that these processes have used so far."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(one.user + one.system for one in times)


def main(args):
    size, ten = round(args.megabytes * 1e6 / 4), 10
    with contextlib.ExitStack() as stack:
        def start(num_servers, size, **kwargs):
            one = stack.enter_context(
                Cluster(WORKERS, num_servers, timeout=WAIT, **kwargs))
            one.run(prepare_worker, size, (1, ten))
            return one, lambda: [*one.pids.values(), os.getpid()]

        training, sums = Turns(), Turns()
        for n in (1, 2):
            training.add(f'one process, {n} device{"s" * (n > 1)}',
                         partial(one_process, n, args.steps),
                         lambda: [os.getpid()], 2 * args.steps)
        one, pids = start(1, 0)
        training.add('2 workers, 1 server', lambda one=one: min(
            one.run(worker_trains, args.steps)), pids, 2 * args.steps)
        with mock.patch.object(
                cluster, 'unix_socket_places',
                LocalPlaces):  # ports, as elsewhere
            over_tcp = start(1, size)
        here = start(1, size)
        for name, (one, pids), keys in (
                ('push + pull, 1 key', here, (0, 1)),
                ('push + pull, 10 keys', here, (1, ten)),
                ('10 keys, 2 servers', start(2, size), (1, ten)),
                ('10 keys, 1 server, TCP', over_tcp, (1, ten))):
            sums.add(name, lambda one=one, keys=keys: max(
                one.run(worker_sums, *keys, args.repeats)), pids,
                args.repeats + 1)
        if importlib.util.find_spec('torch'):
            torch = stack.enter_context(Gloo(args.steps, size, args.repeats))
            training.add(DDP, lambda: min(torch.turn('train')), torch.pids,
                         2 * args.steps)
            sums.add(GLOO, lambda: max(torch.turn('sum')), torch.pids,
                     args.repeats + 1)
        for number in range(args.rounds):
            training.go(number % 2)
            sums.go(number % 2)
    print(d2lps.machine())
    if GLOO not in sums.results:
        print('PyTorch is not installed, so it is left out')
    training.show(f'images per second, batch {BATCH_SIZE}', 1, DDP)
    sums.show(f'ms for {args.megabytes:g} MB, 2 processes', 1e3, GLOO)
    print(f"""
CPU ms: processor time of all processes together, for a step or for a sum.
On {cores()} cores, neither takes less than 1/{cores()} of it.
ratio: to PyTorch in the same round, median and range.""")


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--steps', type=int, default=30)
    parser.add_argument('--repeats', type=int, default=5)
    parser.add_argument('--megabytes', type=float, default=40)
    parser.add_argument('--gloo', type=int, nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.gloo:
        gloo(*args.gloo)
    else:
        main(args)
