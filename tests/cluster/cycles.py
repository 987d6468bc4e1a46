"""Start and stop a cluster again and again: python cycles.py --cycles 50

Each cycle sums an array over the workers. What is left in the end is
counted: processes that a cluster started, ports, sockets and files.
"""
import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import d2lps
import mxnet as mx
import psutil
from d2lps.cluster import Cluster

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from clusters import group_members, sockets_of


def add_up():
    kv, out = mx.kv.create('dist_sync'), mx.np.zeros(1000)
    kv.init('w', out)
    kv.pushpull('w', mx.np.ones(1000) * (kv.rank + 1), out=out)
    return float(out.sum())


def cycle(workers, servers):
    """Seconds for start, work and stop; the processes, ports, sockets."""
    times = [time.perf_counter()]
    cluster = Cluster(workers, servers)
    times.append(time.perf_counter())
    results = cluster.run(add_up)
    assert results == [500.0 * workers * (workers + 1)] * workers, results
    pids = [*cluster.pids.values()]
    ports = {one.laddr.port for pid in group_members(pids)
             for one in psutil.Process(pid).net_connections('tcp')
             if one.status == psutil.CONN_LISTEN}
    sockets = sockets_of(cluster)
    assert all(map(os.path.exists, sockets)), sockets
    times.append(time.perf_counter())
    cluster.close()
    times.append(time.perf_counter())
    return [b - a for a, b in zip(times, times[1:])], pids, ports, sockets


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--cycles', type=int, default=50)
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--servers', type=int, default=1)
    args = parser.parse_args()
    me = psutil.Process()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = os.environ['TMPDIR'] = folder
        cycle(args.workers, args.servers)  # not counted
        gc.collect()
        before = me.num_fds(), me.num_threads()
        taken, pids, ports, sockets = [], set(), set(), set()
        for _ in range(args.cycles):
            times, *some = cycle(args.workers, args.servers)
            taken.append(times)
            for known, new in zip((pids, ports, sockets), some):
                known.update(new)
        processes = len(group_members(pids)) + len(me.children())
        listening = sum(one.status == psutil.CONN_LISTEN
                        and one.laddr.port in ports
                        for one in psutil.net_connections('tcp'))
        sockets = sum(map(os.path.lexists, sockets))
        files = len(os.listdir(folder))
        gc.collect()
        fds, threads = me.num_fds() - before[0], me.num_threads() - before[1]
    print(f'{args.cycles} cycles, {args.workers} workers, {args.servers} '
          f'servers, {d2lps.machine()}')
    print(f'{"seconds":10}{"median":>8}{"worst":>8}')
    for name, values in zip(('start', 'work', 'stop'), zip(*taken)):
        print(f'{name:10}{statistics.median(values):8.2f}{max(values):8.2f}')
    print(f'left: {processes} processes, {listening} ports, {sockets} '
          f'sockets, {files} files; in this process {fds:+d} open files, '
          f'{threads:+d} threads')


if __name__ == '__main__':
    main()
