"""Plans that travel, beside PyTorch and MXNet, in one run: python travel.py

The sum of 1 kB, 1 MB and 40 MB over two and four processes of this machine:
by plans, over Unix sockets and TCP; by PyTorch's Gloo over loopback, in the
very same processes (if torch is installed); and by MXNet's push + pull. LeNet
on two workers, whose gradients are summed by a ring, by Gloo (DDP), or by
parameter servers. And the ring and Gloo in the same workers on a slow
network, beside the law, 2 (n - 1) / n x bytes / rate, and the simulator.

The contestants take turns, and are compared round by round, as in
chapter9.py. The last lines say which goals were reached.
"""
import argparse
import contextlib
import importlib.util
import itertools
import math
import os
import statistics

import d2lps  # first: it prepares MXNet's engine
import mxnet as mx
import numpy as np
from chapter9 import (BATCH_SIZE, DDP, GLOO, LR, WAIT, Gloo, Turns,
                      prepare_worker, timed, worker_trains)
from d2lps.collectives import simulate, strategies, topology, travel
from d2lps.collectives.schedule import Schedule, Send
from d2lps.kvstore.store_training import share
from d2lps.cluster import Cluster, Network, network_problem
from d2lps.cluster.processes.addresses import LOOPBACK

SLOW = Network(12.5e6)  # 100 Mbit/s
RING, DOUBLING, BY_RING = 'ring', 'recursive_doubling', '2 workers, ring'
LAW, SIMULATED = 'the law', 'the simulator'
HAS_TORCH = importlib.util.find_spec('torch')


def one_shot(n):
    """In one round, everyone sends everything to everyone."""
    src, dst = np.nonzero(~np.eye(n, dtype=bool))
    return Schedule([[Send(src, dst, 0, True)]], n, name=f'one_shot({n})')


PLANS = {plan.__name__: plan for plan in (
    strategies.ring, strategies.bidirectional_ring, strategies.sharded,
    strategies.halving_doubling, strategies.recursive_doubling,
    strategies.tree, strategies.double_tree, strategies.gather_broadcast,
    one_shot)}


def train_batch_ring(X, y, params, device, peers, plan, lr):
    """One step, by all workers, with the same X and y; each does its share.

    The update is that of the whole batch, as in `d2lps.train_batch`.
    """
    mine = share(len(X), peers)
    losses = d2lps.compute_gradients(X[mine], y[mine], [params], [device])
    total = np.concatenate([p.grad.asnumpy().ravel() for p in params])
    travel.run(peers, plan, total)
    total *= lr / len(X)
    for p in params:
        change, total = total[:p.size], total[p.size:]
        p -= mx.np.array(change.reshape(p.shape), ctx=device)
    return losses


# What the workers do.

def joined():
    """This worker's lines to the others, and a function that meets them."""
    import __main__  # where the next call finds them
    if not hasattr(__main__, 'peers'):
        __main__.peers = d2lps.join_peers()
    peers, nothing = __main__.peers, np.zeros(1)
    plan = strategies.recursive_doubling(peers.num_workers)
    return peers, lambda: travel.run(peers, plan, nothing)


def timed_sum(all_reduce, array, n, repeats, meet):
    """Seconds for a sum over n workers; the first one is checked."""
    array[:] = 1
    all_reduce(array)
    assert (array == n).all()
    array[:] = 0
    return timed(lambda: all_reduce(array), repeats, meet)


def sum_by_plan(plan, size, repeats):
    peers, meet = joined()
    plan = plan(peers.num_workers)
    return timed_sum(lambda array: travel.run(peers, plan, array),
                     np.empty(size, 'float32'), peers.num_workers, repeats,
                     meet)


def sum_by_gloo(size, repeats):
    # Not of names that hosts in the slow network do not have.
    os.environ['TORCH_CPP_LOG_LEVEL'] = 'ERROR'
    import torch
    from torch import distributed
    if not distributed.is_initialized():
        torch.set_num_threads(1)
        distributed.init_process_group('gloo')  # the environment says where
    peers, meet = joined()
    return timed_sum(distributed.all_reduce, torch.empty(size),
                     peers.num_workers, repeats, meet)


def sum_by_store(size, repeats):
    import __main__
    if not hasattr(__main__, 'store'):
        __main__.store, __main__.keys = mx.kv.create('dist_sync'), set()
    store, array = __main__.store, mx.np.zeros(size)
    if size not in __main__.keys:
        store.init(size, array)
        __main__.keys.add(size)
    return timed_sum(lambda array: store.pushpull(size, array), array,
                     store.num_workers, repeats, store.barrier)


def ready_to_train():
    """New parameters, a step that trains them, and how to meet others."""
    peers, meet = joined()
    [device], plan = d2lps.devices(1), strategies.ring(peers.num_workers)
    params = d2lps.get_params(d2lps.init_params(), device)
    return params, lambda X, y: train_batch_ring(
        X, y, params, device, peers, plan, LR), meet


def ring_trains(steps):
    """Images per second; as `worker_trains` in chapter9.py."""
    _, step, meet = ready_to_train()
    data = d2lps.load_data(BATCH_SIZE)[0]

    def train():
        for X, y in itertools.islice(data, steps):
            step(X, y)
        mx.nd.waitall()
    return steps * BATCH_SIZE / timed(train, 1, meet)


def ring_params(steps):
    """The parameters after some steps."""
    params, step, _ = ready_to_train()
    for X, y in itertools.islice(d2lps.load_data(BATCH_SIZE)[0], steps):
        step(X, y)
    return [p.asnumpy() for p in params]


# The three parts, each with tables, and goals.

def add_sum(turns, name, cluster, function, *numbers):
    """A contestant: a sum is as slow as its slowest worker."""
    turns.add(name, lambda: max(cluster.run(function, *numbers)),
              lambda: cluster.pids.values(), numbers[-1] + 2)


def play(rounds, *several):
    for number in range(rounds):
        for turns in several:
            turns.go(number % 2)


def servers(num_servers):
    return f'{num_servers} server' + 's' * (num_servers > 1)


def size_of(nbytes):
    return f'{nbytes / 1e6:g} MB' if nbytes >= 1e6 else f'{nbytes / 1e3:g} kB'


def sums_here(n, args):
    """Sums by n processes on this machine."""
    found = {nbytes: Turns() for nbytes in args.bytes}
    with contextlib.ExitStack() as stack:
        workers, *stores = [
            stack.enter_context(Cluster(n, num_servers, timeout=WAIT))
            for num_servers in (0, 1, n)]
        tcp = stack.enter_context(Cluster(
            n, 0, timeout=WAIT, address=LOOPBACK))
        for nbytes, turns in found.items():
            numbers = nbytes // 4, args.repeats * (  # the fast ones more often
                40 if nbytes < 1e5 else 8 if nbytes < 1e7 else 1)
            for name, plan in PLANS.items():
                add_sum(turns, name, workers, sum_by_plan, plan, *numbers)
            for name in RING, DOUBLING:
                add_sum(turns, f'{name}, TCP', tcp, sum_by_plan, PLANS[name],
                        *numbers)
            for one in stores:
                add_sum(turns, "MXNet's store, " + servers(one.num_servers),
                        one, sum_by_store, *numbers)
            if HAS_TORCH:
                add_sum(turns, GLOO, workers, sum_by_gloo, *numbers)
        play(args.rounds, *found.values())
    for nbytes, turns in found.items():
        case = f'{size_of(nbytes)}, {n} processes'
        unit, factor = ('µs', 1e6) if nbytes < 1e7 else ('ms', 1e3)
        turns.show(f'{unit} for {case}', factor, GLOO)
        for name, most in {1000: ((RING, 0.5), (DOUBLING, 0.5)),
                           40_000_000: ((RING, 1.5),)}.get(nbytes, ()):
            yield f'{name}, {case}', turns, name, GLOO, 0, most


def lenet(args):
    """LeNet on two workers."""
    turns = Turns()
    with contextlib.ExitStack() as stack:
        ring, *stores = [
            stack.enter_context(Cluster(2, num_servers, timeout=WAIT))
            for num_servers in (0, 1, 2)]
        off = difference(ring, args.steps)

        def add(name, cluster, function):
            turns.add(name, lambda: min(cluster.run(function, args.steps)),
                      lambda: cluster.pids.values(), 2 * args.steps)
        add(BY_RING, ring, ring_trains)
        for one in stores:
            one.run(prepare_worker, 0, ())
            add('2 workers, ' + servers(one.num_servers), one, worker_trains)
        if HAS_TORCH:
            torch = stack.enter_context(Gloo(args.steps, 1, 1))
            turns.add(DDP, lambda: min(torch.turn('train')), torch.pids,
                      2 * args.steps)
        play(args.rounds, turns)
    turns.show(f'images per second, batch {BATCH_SIZE}', 1, DDP)
    print(f'(ring: after {args.steps} steps no parameter is more than '
          f'{off:.1e} off that of two devices in one process)')
    yield BY_RING, turns, BY_RING, DDP, 1, math.inf


def difference(workers, steps):
    """The largest, between parameters on two devices and on workers."""
    devices, data = d2lps.devices(2), d2lps.load_data(BATCH_SIZE)[0]
    copies = [d2lps.get_params(d2lps.init_params(), d) for d in devices]
    for X, y in itertools.islice(data, steps):
        d2lps.train_batch(X, y, copies, devices, LR)
    return max(abs(one.asnumpy() - other).max()
               for others in workers.run(ring_params, steps)
               for one, other in zip(copies[0], others))


def sums_on_slow_network(n, args):
    """Sums by n workers, each with a link of its own."""
    found = {nbytes: Turns() for nbytes in args.slow_bytes}
    plan, cables = strategies.ring(n), topology.ethernet(n, SLOW.rate)
    with Cluster(n, 0, network=SLOW, timeout=WAIT) as workers:
        for nbytes, turns in found.items():
            for name, seconds in (
                    (LAW, 2 * (n - 1) / n * nbytes / SLOW.rate),
                    (SIMULATED, simulate.time(plan, cables, nbytes).seconds)):
                turns.add(name, lambda seconds=seconds: seconds, list, 1)
            numbers = nbytes // 4, args.repeats
            add_sum(turns, RING, workers, sum_by_plan, strategies.ring,
                    *numbers)
            if HAS_TORCH:
                add_sum(turns, GLOO, workers, sum_by_gloo, *numbers)
        play(args.rounds, *found.values())
    for nbytes, turns in found.items():
        case = f'{size_of(nbytes)}, {n} workers, {SLOW.bandwidth / 1e6:g} MB/s'
        turns.show(f'ms for {case}', 1e3, GLOO)
        yield f'ring, {case}', turns, RING, LAW, 0.97, 1.03
        yield f'ring, {case}', turns, RING, GLOO, 0, 1.03


def judge(words, turns, name, peer, least, most):
    """Say if the median of the ratios is within these bounds."""
    ratios = turns.ratios(name, peer)
    if not ratios:
        return print(f'not measured: {words}, as {peer} is left out')
    middle = statistics.median(ratios)
    bounds = ' and '.join([f'at least {least:g}'] * (least > 0) +
                          [f'at most {most:g}'] * (most < math.inf))
    print(f'{"reached" if least <= middle <= most else "not reached"}: '
          f'{words}: {middle:.3f} times {peer} ({min(ratios):.3f} to '
          f'{max(ratios):.3f}); goal: {bounds}')


def main(args):
    print(d2lps.machine())
    if not HAS_TORCH:
        print('PyTorch is not installed, so it is left out')
    goals = [*sums_here(2, args), *sums_here(4, args), *lenet(args)]
    problem = network_problem()
    if problem:
        print(f'\nwithout the slow network: {problem}')
    else:
        goals += sums_on_slow_network(4, args)
    print("""
CPU ms: processor time of all processes together, for a step or for a sum.
ratio: to PyTorch in the same round, median and range.
""")
    for words in goals:
        judge(*words)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--steps', type=int, default=30)
    parser.add_argument('--repeats', type=int, default=5)
    parser.add_argument('--bytes', type=int, nargs='+',
                        default=[1000, 1_000_000, 40_000_000])
    parser.add_argument('--slow-bytes', type=int, nargs='+',
                        default=[1_000_000, 4_000_000])
    main(parser.parse_args())
