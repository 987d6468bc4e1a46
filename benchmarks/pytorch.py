"""PyTorch's ways to train on several workers, beside ours: pytorch.py

LeNet and an MLP of a million parameters, 256 images a step in all, on 2 and 4
workers: by PyTorch's DistributedDataParallel (DDP), ZeRO-1 and fully_shard
(FSDP2), all over Gloo; by our ring in PyTorch and in MXNet; by MXNet's
parameter servers; and on one device. Our ring and MXNet talk over Unix
sockets, but Gloo has none, and listens on 127.0.0.1 while this runs.

All ways start from the same parameters, get the same minibatches, and do SGD
with momentum. MXNet's steps are those of `d2lps.store_step` and of chapter
13, for any layers. Each process computes with one thread. The ways take
turns, and are compared with DDP round by round.
"""
import argparse
import contextlib
import importlib.util
import itertools
import math
import os
import statistics
import sys
import tempfile
import time
from unittest import mock

import d2lps
import numpy as np
import pandas as pd
from d2lps.cluster import Cluster

BATCH_SIZE, LR, MOMENTUM, BATCHES, WAIT = 256, 0.02, 0.9, 10, 120
LENET, MLP = 'LeNet', 'MLP'
SIZES = {MLP: (784, *[512] * 4, 10)}
LENET_SHAPES = ((20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128),
                (128,), (128, 10), (10,))
ONE, MX_ONE = 'PyTorch, one device', 'MXNet, one device'
DDP, RING, ZERO, FSDP = ('PyTorch, ' + word for word in (
    'DDP', 'our ring', 'ZeRO-1', 'fully_shard'))
MX_RING, SERVER, SERVERS, CUT = ('MXNet, ' + word for word in (
    'our ring', '1 server', 'n servers', 'n servers, cut'))
WAYS = DDP, RING, ZERO, FSDP, MX_RING, SERVER, SERVERS, CUT, ONE, MX_ONE
# MXNet gives each array to one server. From so many numbers on it cuts it up,
# and each server gets a part.
CUTS = {'MXNET_KVSTORE_BIGARRAY_BOUND': '1000'}


# PyTorch, in a worker. What it imports, only its workers load.

def torch_joined(store, peers):
    """Have PyTorch loaded, and its processes meet in a file."""
    os.environ['TORCH_CPP_LOG_LEVEL'] = 'ERROR'
    from d2lps import processor
    for name in processor.settings():  # chosen for MXNet
        os.environ.pop(name, None)
    import torch
    from torch import distributed
    torch.set_num_threads(1)
    if peers.num_workers > 1:
        distributed.init_process_group(
            'gloo', store=distributed.FileStore(store, peers.num_workers),
            rank=peers.rank, world_size=peers.num_workers)


def torch_net(model, values):
    """The network, with these values (as MXNet has them) as parameters."""
    import torch
    from torch import nn
    if model == LENET:
        layers = [
            nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2),
            nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
            nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10)]
    else:
        layers = [nn.Flatten()]
        for sizes in itertools.pairwise(SIZES[model]):
            layers += [nn.Linear(*sizes), nn.ReLU()]
        layers.pop()  # none for the output
    net = nn.Sequential(*layers)
    with torch.no_grad():
        for param, value in zip(net.parameters(), values):
            param.copy_(torch.tensor(value.T if value.ndim == 2 else value))
    return net


def torch_way(way, net, peers):
    """The network to call, its optimizer, and a function that sums gradients.

    The function is None if PyTorch sums them by itself.
    """
    from torch import optim
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel
    numbers, sum_up = dict(lr=LR, momentum=MOMENTUM), None
    if way == FSDP:
        shard(net, peers.num_workers)
    elif way in (DDP, ZERO):
        net = DistributedDataParallel(net)
    elif way == RING:
        sum_up = ring_of_tensors(net, peers)
    if way == ZERO:
        return net, ZeroRedundancyOptimizer(
            net.parameters(), optim.SGD, **numbers), sum_up
    return net, optim.SGD(net.parameters(), **numbers), sum_up


def shard(net, n):
    """Each worker keeps an n-th of each layer."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh('cpu', (n,))
    for layer in net:
        if [*layer.parameters()]:
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)


def ring_of_tensors(net, peers):
    """Make all gradients parts of one array; return a function for their mean.
    """
    import torch
    params = [*net.parameters()]
    sizes = [param.numel() for param in params]
    flat = torch.zeros(sum(sizes))
    for param, part in zip(params, flat.split(sizes)):
        param.grad = part.view_as(param)
    plan = d2lps.strategies.ring(peers.num_workers)

    def sum_up():
        d2lps.travel.run(peers, plan, flat.numpy())  # the same memory
        flat.div_(peers.num_workers)
    return sum_up


def torch_job(way, model, values, peers):
    """A function that does a step, and one that waits for its end."""
    import torch
    net, optimizer, sum_up = torch_way(way, torch_net(model, values), peers)
    loss = torch.nn.CrossEntropyLoss()

    def step(X, y):
        optimizer.zero_grad(set_to_none=not sum_up)
        loss(net(X), y).backward()
        if sum_up:
            sum_up()
        optimizer.step()
    return step, lambda: None


def torch_array(array):
    import torch
    return torch.tensor(array, dtype={'int32': torch.int64}.get(
        array.dtype.name))


# MXNet, in a worker.

def mx_exchange(way, params, peers):
    """A function for a worker that has its gradients: it updates `params`."""
    import mxnet as mx
    sgd = mx.optimizer.SGD(learning_rate=LR, momentum=MOMENTUM,
                           rescale_grad=1 / BATCH_SIZE)
    if way not in (MX_ONE, MX_RING):
        return through_store(params, sgd)
    updater = mx.optimizer.get_updater(sgd)

    def update(grads):
        for k, (param, grad) in enumerate(zip(params, grads)):
            updater(k, grad.as_nd_ndarray(), param.as_nd_ndarray())

    def alone():
        update([param.grad for param in params])

    def by_ring():  # as in chapter 13
        flat = np.concatenate([p.grad.asnumpy().ravel() for p in params])
        d2lps.travel.run(peers, plan, flat)
        ends = np.cumsum([param.size for param in params])
        update([mx.np.array(part.reshape(param.shape)) for param, part in
                zip(params, np.split(flat, ends[:-1]))])
    plan = d2lps.strategies.ring(peers.num_workers)
    return alone if way == MX_ONE else by_ring


def through_store(params, optimizer):
    """The exchange of `d2lps.train_batch_store`; here the servers divide."""
    import mxnet as mx
    store, keys = mx.kv.create('dist_sync'), [*range(len(params))]
    store.init(keys, params)
    store.set_optimizer(optimizer)

    def exchange():
        store.push(keys, [param.grad for param in params])
        store.pull(keys, out=params)
    return exchange


def mx_array(array):
    import mxnet as mx
    mx.npx.set_np()
    return mx.np.array(array, dtype=array.dtype)


def mx_job(way, model, values, peers):
    """A function that does a step of MXNet, and one that waits for its end."""
    import mxnet as mx
    from d2lps.training.lenet_layers import (LAYERS, forward, hidden, loss,
                                             output)
    layers = LAYERS if model == LENET else (
        *[hidden] * (len(values) // 2 - 1), output)
    mx.npx.set_np()
    params = d2lps.get_params([*map(mx.np.array, values)], mx.cpu())
    exchange = mx_exchange(way, params, peers)

    def step(X, y):
        with mx.autograd.record():
            losses = loss(forward(X, params, layers), y)
        losses.backward()
        exchange()
    return step, mx.nd.waitall


# What the workers of all ways do.

def prepare(folder, library, store):
    """Meet the others, and have the minibatches ready."""
    import __main__  # where the next call finds all
    __main__.jobs, __main__.peers = {}, d2lps.join_peers()
    n, rank = __main__.peers.num_workers, __main__.peers.rank
    if library == 'PyTorch':
        torch_joined(store, __main__.peers)
    array = torch_array if library == 'PyTorch' else mx_array
    images, labels = (np.load(f'{folder}/{name}.npy', mmap_mode='r')
                      for name in ('images', 'labels'))
    mine = slice(BATCH_SIZE * rank // n, BATCH_SIZE * (rank + 1) // n)
    __main__.batches = [(array(X[mine]), array(y[mine]))
                        for X, y in zip(images, labels)]


def build(folder, way, model):
    """Have a way ready to train a model."""
    from __main__ import jobs, peers
    job = torch_job if way.startswith('PyTorch') else mx_job
    flat, values = np.load(f'{folder}/{model}.npy', mmap_mode='r'), []
    for shape in shapes(model):
        values.append(flat[:math.prod(shape)].reshape(shape))
        flat = flat[math.prod(shape):]
    jobs[way] = job(way, model, values, peers)


def turn(way, steps):
    """Seconds for some steps of all workers, which begin at once."""
    from __main__ import batches, jobs, peers
    plan = d2lps.strategies.recursive_doubling(peers.num_workers)
    step, wait = jobs[way]
    d2lps.travel.run(peers, plan, np.zeros(1))
    start = time.perf_counter()
    for X, y in itertools.islice(itertools.cycle(batches), steps):
        step(X, y)
    wait()
    return time.perf_counter() - start


def end():
    """PyTorch's process group ends."""
    if 'torch' in sys.modules:
        from torch import distributed
        if distributed.is_initialized():
            distributed.destroy_process_group()


# What this process does.

def shapes(model):
    """Shapes of the model's parameters, as MXNet has them."""
    if model == LENET:
        return LENET_SHAPES
    return [shape for sizes in itertools.pairwise(SIZES[model])
            for shape in (sizes, sizes[1:])]


def write_data(folder):
    """Write minibatches and first parameters, which all workers read."""
    data, random = d2lps.load_data(BATCH_SIZE)[0], np.random.default_rng(0)
    rows = random.integers(len(data.images), size=(BATCHES, BATCH_SIZE))
    images = data.images[rows].astype('float32')[:, :, None] / 255
    np.save(f'{folder}/images', images)
    np.save(f'{folder}/labels', data.labels[rows].astype('int32'))
    for model in LENET, *SIZES:
        parts = []
        for shape in shapes(model):  # Xavier, as `d2lps.init_params`
            bound = math.sqrt(6 / (math.prod(shape[2:]) * sum(shape[:2])))
            parts.append((len(shape) > 1) * random.uniform(
                -bound, bound, math.prod(shape)))
        np.save(f'{folder}/{model}', np.concatenate(parts, dtype='float32'))


@contextlib.contextmanager
def started(folder, way, n):
    """A cluster for a way; PyTorch's share one."""
    n = 1 if way in (ONE, MX_ONE) else n
    num_servers = {SERVER: 1, SERVERS: n, CUT: n}.get(way, 0)
    with mock.patch.dict(os.environ, CUTS if way == CUT else {}):
        cluster = Cluster(n, num_servers, timeout=WAIT)
    with cluster:
        cluster.run(prepare, folder, way.split(',')[0],
                    f'{tempfile.mkdtemp(dir=folder)}/group')
        yield cluster
        cluster.run(end)


def all_started(stack, folder, n):
    """{way: its cluster}"""
    clusters = {}
    for way in WAYS:
        shared = way in (RING, ZERO, FSDP)
        clusters[way] = clusters[DDP] if shared else stack.enter_context(
            started(folder, way, n))
    return clusters


def play(folder, model, clusters, args):
    """All ways take turns: {way: [images per second of each turn]}"""
    speeds, ways = {way: [] for way in clusters}, [*clusters]
    for way, cluster in clusters.items():
        cluster.run(build, folder, way, model)
        cluster.run(turn, way, args.steps)  # not counted
    for number in range(args.rounds):
        for way in ways[::-1] if number % 2 else ways:
            seconds = max(clusters[way].run(turn, way, args.steps))
            speeds[way].append(args.steps * BATCH_SIZE / seconds)
    return speeds


def table(speeds):
    """A line for each way: medians and ranges, also of ratios to DDP."""
    rows = {}
    for way, rates in speeds.items():
        ratios = [rate / of_ddp for rate, of_ddp in zip(rates, speeds[DDP])]
        rows[way] = [round(f(values), digits) for values, digits in (
            (rates, 0), (ratios, 2)) for f in (statistics.median, min, max)]
    return pd.DataFrame(rows, [
        'images/s', 'min', 'max', 'ratio to DDP', 'from', 'to']).T


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=4)
    parser.add_argument('--steps', type=int, default=10)
    parser.add_argument('--workers', type=int, nargs='+', default=[2, 4])
    args = parser.parse_args()
    if not importlib.util.find_spec('torch'):
        sys.exit('PyTorch is missing, and it is what we compare with here. '
                 'To install it: make lab TORCH=yes')
    print(d2lps.machine())
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder)
        for n in args.workers:
            with contextlib.ExitStack() as stack:
                clusters = all_started(stack, folder, n)
                for model in LENET, MLP:
                    rows = table(play(folder, model, clusters, args))
                    print(f'\n{model}, {n} workers\n{rows.to_string()}',
                          flush=True)
    print('\nn servers: as many as workers; cut: each array in a part for '
          'each of them.')


if __name__ == '__main__':
    main()
