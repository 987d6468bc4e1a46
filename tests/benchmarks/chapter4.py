"""Chapter 4's figures, all measured in one run: python chapter4.py

LeNet on the digits, and the sum of 40 MB, over two processes: through our
cluster, over Unix sockets and over TCP, and through PyTorch's Gloo (if torch
is installed). The contestants take turns, so that a machine that grows slower
grows slower for all of them.
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
from unittest import mock

import d2lps  # first: it prepares MXNet's engine
import mxnet as mx
from d2lps.cluster import Cluster, cluster
from d2lps.cluster.processes.places import Here, free_ports

BATCH_SIZE, LR, WORKERS = 256, 0.1, 2
WAIT = 120  # seconds for a turn, at most


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


def worker_trains(steps):
    """What each worker of a cluster does: its share of every batch."""
    from d2lps.kvstore import prepare_store, train_batch_store
    store = mx.kv.create('dist_sync')
    params, devices = d2lps.init_params(), d2lps.devices(1)
    copies = [d2lps.get_params(params, devices[0])]
    prepare_store(store, params, LR)
    data = d2lps.load_data(BATCH_SIZE)[0]

    def train():
        for X, y in itertools.islice(data, steps):
            train_batch_store(X, y, copies, devices, store)
        mx.nd.waitall()
    return steps * BATCH_SIZE / timed(train, 1, store.barrier)


def worker_sums(size, repeats):
    store, out = mx.kv.create('dist_sync'), mx.np.zeros(size)
    value = mx.np.ones(size)
    store.init('w', out)
    seconds = timed(lambda: store.pushpull('w', value, out=out), repeats,
                    store.barrier)
    assert float(out[-1]) == store.num_workers
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
        self._processes = [subprocess.Popen(
            [sys.executable, __file__, '--gloo',
             *map(str, (rank, port, *numbers))], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, 'GLOO_SOCKET_IFNAME': 'lo'})
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

    def turn(self, what):
        for process in self._processes:
            print(what, file=process.stdin, flush=True)
        return [float(line) for line in self._read()]

    def __exit__(self, *exception):
        for process in self._processes:
            process.kill()
            process.wait()
        self._threads.shutdown()


def main(args):
    size = round(args.megabytes * 1e6 / 4)
    with contextlib.ExitStack() as stack:
        clusters = [stack.enter_context(Cluster(WORKERS, n, timeout=WAIT))
                    for n in (1, 2)]
        with mock.patch.object(cluster, 'here', Here):  # ports, as elsewhere
            over_tcp = stack.enter_context(Cluster(WORKERS, 1, timeout=WAIT))
        training = {
            'one process, 1 device': lambda: one_process(1, args.steps),
            'one process, 2 devices': lambda: one_process(2, args.steps),
            '2 workers, 1 server': lambda: min(clusters[0].run(
                worker_trains, args.steps))}
        sums = {
            f'push + pull, {n} server{"s" * (n > 1)}': lambda c=c: max(c.run(
                worker_sums, size, args.repeats))
            for n, c in enumerate(clusters, 1)}
        sums['the same, 1 server, TCP'] = lambda: max(over_tcp.run(
            worker_sums, size, args.repeats))
        if importlib.util.find_spec('torch'):
            torch = stack.enter_context(
                Gloo(args.steps, size, args.repeats))
            training['PyTorch DDP with Gloo'] = lambda: min(
                torch.turn('train'))
            sums["Gloo's all_reduce"] = lambda: max(torch.turn('sum'))
        results = {}
        for _ in range(args.rounds):
            for name, turn in (training | sums).items():
                results.setdefault(name, []).append(turn())
    print(d2lps.machine())
    if "Gloo's all_reduce" not in sums:
        print('PyTorch is not installed, so it is left out')
    for title, names, factor in (
            (f'images per second, batch {BATCH_SIZE}', training, 1),
            (f'ms for {args.megabytes:g} MB, 2 processes', sums, 1e3)):
        print(f'\n{title:<30}{"median":>8}{"min":>8}{"max":>8}')
        for name in names:
            values = [factor * value for value in results[name]]
            print(f'{name:<30}' + ''.join(f'{f(values):8,.0f}' for f in (
                statistics.median, min, max)))


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
