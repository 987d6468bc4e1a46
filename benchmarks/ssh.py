"""Start clusters over three OpenSSH servers, with one core kept busy.

    python ssh.py --starts 20

As root, with openssh-server installed: the machines are network namespaces
(see `opensshlab`). Each cluster of 4 workers and 2 servers sums an array,
pushes and pulls 40 MB, and ends; what is left of it is counted.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'tests' / 'hosts'))
import opensshlab

STARTS = 'D2LPS_STARTS'


def work():
    """The sum of the workers' ranks, and seconds to move 40 MB."""
    import time

    import mxnet as mx
    from mxnet import np
    kv, out = mx.kv.create('dist_sync'), np.zeros(1)
    kv.init('w', out)
    kv.pushpull('w', np.full(1, kv.rank), out=out)
    keys, value = [f'k{k}' for k in range(10)], np.ones(1_000_000)
    outs = [np.zeros(1_000_000) for _ in keys]
    kv.init(keys, [value] * 10)
    seconds = []
    for _ in range(5):
        kv.barrier()
        start = time.perf_counter()
        kv.pushpull(keys, [value] * 10, out=outs)
        mx.nd.waitall()
        seconds.append(time.perf_counter() - start)
    return float(out.sum()), min(seconds)


def inside():
    """In the lab, on the reader's machine."""
    from d2lps.cluster import Cluster, ClusterError
    rows, failed, remains = [], [], 0
    for _ in range(int(os.environ[STARTS])):
        times = [time.perf_counter()]
        try:
            with Cluster(4, 2, hosts=[*opensshlab.HOSTS],
                         ssh=opensshlab.ssh()) as cluster:
                times.append(time.perf_counter())
                results = cluster.run(work)
                assert [total for total, _ in results] == [6] * 4, results
                times.append(time.perf_counter())
            times.append(time.perf_counter())
            rows.append([b - a for a, b in zip(times, times[1:])]
                        + [max(seconds for _, seconds in results)])
        except ClusterError as error:
            failed.append(str(error))
        remains += len(opensshlab.left(5))
    print(f'{len(rows)} of {len(rows) + len(failed)} clusters started; '
          f'{remains} processes, sessions or files left')
    print(f'{"seconds":24}{"median":>8}{"worst":>8}')
    names = 'start', 'work', 'stop', 'push + pull of 40 MB'
    for name, values in zip(names, zip(*rows)):
        print(f'{name:24}{statistics.median(values):8.2f}{max(values):8.2f}')
    print('\n'.join(failed))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--starts', type=int, default=20)
    args = parser.parse_args()
    if opensshlab.problem():
        sys.exit(opensshlab.problem())
    busy = subprocess.Popen([sys.executable, '-c', 'while True: pass'])
    try:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, opensshlab.__file__, folder], text=True,
                input=__file__ + '\n', stdout=subprocess.PIPE, check=True,
                env=os.environ | {STARTS: str(args.starts), 'LAB_SECONDS':
                                  str(60 * args.starts)})
    finally:
        busy.kill()
        busy.wait()
    code, out, err = json.loads(done.stdout.splitlines()[-1])
    print(out)
    sys.exit(err if code else 0)


if __name__ == '__main__':
    inside() if STARTS in os.environ else main()
