"""Sums between processes beside PyTorch's Gloo and MXNet: python travel.py

Two and four processes of this machine sum 1 kB, 1 MB and 40 MB: by plans, over
Unix sockets and over TCP; by Gloo over loopback, in the same processes (if
PyTorch is installed); and by push and pull through MXNet's servers. Then four
workers on a slow network, beside the law, 2 (n - 1) / n x bytes / rate, and
the simulator.

The contestants take turns, so that a machine that grows slower grows slower
for all of them, and are compared with Gloo round by round.
"""
import argparse
import contextlib
import importlib.util
import os
import statistics
import time

import d2lps  # first: it prepares MXNet's engine
import mxnet as mx
import numpy as np
from d2lps.cluster import Cluster, Network, network_problem
from d2lps.cluster.processes.addresses import LOOPBACK
from d2lps.collectives import simulate, strategies, topology, travel

SLOW = Network(12.5e6)  # 100 Mbit/s
WAIT = 120  # seconds for a turn, at most
GLOO, HAS_TORCH = "Gloo's all_reduce", importlib.util.find_spec('torch')
PLANS = {plan.__name__: plan for plan in (
    strategies.ring, strategies.bidirectional_ring, strategies.sharded,
    strategies.halving_doubling, strategies.recursive_doubling,
    strategies.tree, strategies.double_tree, strategies.gather_broadcast)}


# What the workers do.

def timed_sum(all_reduce, array, n, repeats, meet):
    """Seconds for a sum over n workers, median; the first one is checked."""
    array[:] = 1
    all_reduce(array)
    assert (array == n).all()
    array[:], taken = 0, []
    for _ in range(repeats + 1):
        meet()
        start = time.perf_counter()
        all_reduce(array)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def joined():
    """This worker's connections, and a function that waits for the others."""
    import __main__  # where the next call finds them
    if not hasattr(__main__, 'peers'):
        __main__.peers = d2lps.join_peers()
    peers, nothing = __main__.peers, np.zeros(1)
    plan = strategies.recursive_doubling(peers.num_workers)
    return peers, lambda: travel.run(peers, plan, nothing)


def sum_by_plan(plan, size, repeats):
    peers, meet = joined()
    plan = plan(peers.num_workers)
    return timed_sum(lambda array: travel.run(peers, plan, array),
                     np.empty(size, 'float32'), peers.num_workers, repeats,
                     meet)


def sum_by_gloo(size, repeats):
    # Hosts in the slow network have no names, and PyTorch would warn of that.
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


# What this process does.

class Turns:
    """{contestant: a function that takes a turn and returns seconds}"""

    def __init__(self):
        self.contestants, self.seconds = {}, {}

    def add(self, name, cluster, function, *numbers):
        """A sum by the workers of a cluster, as slow as its slowest."""
        self.contestants[name] = lambda: max(cluster.run(function, *numbers))

    def play(self, rounds):
        for number in range(rounds):
            names = [*self.contestants]
            for name in names[::-1] if number % 2 else names:
                self.seconds.setdefault(name, []).append(
                    self.contestants[name]())

    def show(self, case, nbytes):
        unit, factor = ('µs', 1e6) if nbytes < 1e7 else ('ms', 1e3)
        print(f'\n{f"{unit} for {nbytes / 1e6:g} MB, {case}":<42}' + ''.join(
            f'{word:>9}' for word in 'median min max ratio from to'.split()))
        for name, seconds in self.seconds.items():
            ratios = [one / gloo for one, gloo in zip(
                seconds, self.seconds.get(GLOO, ()))]
            print(f'{name:<42}' + ''.join(
                f'{factor * f(seconds):9,.0f}' for f in (
                    statistics.median, min, max)) + ''.join(
                f'{f(ratios):9.2f}' for f in (statistics.median, min, max)
                if ratios))


def sums_here(n, args):
    """Sums by n processes on this machine."""
    with contextlib.ExitStack() as stack:
        workers, *stores = [
            stack.enter_context(Cluster(n, num_servers, timeout=WAIT))
            for num_servers in (0, 1, n)]
        tcp = stack.enter_context(Cluster(
            n, 0, timeout=WAIT, address=LOOPBACK))
        for nbytes in args.bytes:
            numbers = nbytes // 4, args.repeats * (  # the fast ones more often
                40 if nbytes < 1e5 else 8 if nbytes < 1e7 else 1)
            turns = Turns()
            for name, plan in PLANS.items():
                turns.add(name, workers, sum_by_plan, plan, *numbers)
            turns.add('ring, TCP', tcp, sum_by_plan, strategies.ring, *numbers)
            for one in stores:
                turns.add(f"MXNet's store, servers: {one.num_servers}", one,
                          sum_by_store, *numbers)
            if HAS_TORCH:
                turns.add(GLOO, workers, sum_by_gloo, *numbers)
            turns.play(args.rounds)
            turns.show(f'{n} processes', nbytes)


def sums_on_slow_network(n, args):
    """Sums by n workers, each with a link of its own."""
    ring, links = strategies.ring(n), topology.ethernet(n, SLOW.rate)
    with Cluster(n, 0, network=SLOW, timeout=WAIT) as workers:
        for nbytes in args.slow_bytes:
            turns, numbers = Turns(), (nbytes // 4, args.repeats)
            law = 2 * (n - 1) / n * nbytes / SLOW.rate
            simulated = simulate.time(ring, links, nbytes).seconds
            turns.contestants = {'the law': lambda law=law: law,
                                 'the simulator': lambda s=simulated: s}
            turns.add('ring', workers, sum_by_plan, strategies.ring, *numbers)
            if HAS_TORCH:
                turns.add(GLOO, workers, sum_by_gloo, *numbers)
            turns.play(args.rounds)
            turns.show(f'{n} workers, {SLOW.bandwidth / 1e6:g} MB/s', nbytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--repeats', type=int, default=5)
    parser.add_argument('--bytes', type=int, nargs='+',
                        default=[1000, 1_000_000, 40_000_000])
    parser.add_argument('--slow-bytes', type=int, nargs='+',
                        default=[1_000_000, 4_000_000])
    args = parser.parse_args()
    print(d2lps.machine())
    if not HAS_TORCH:
        print('PyTorch is not installed, so it is left out')
    for n in 2, 4:
        sums_here(n, args)
    if problem := network_problem():
        print(f'\nwithout the slow network: {problem}')
    else:
        sums_on_slow_network(4, args)


if __name__ == '__main__':
    main()
