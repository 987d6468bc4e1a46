"""Chapter 17's figures, all measured in one run: python chapter17.py

One training through MXNet's store, whose processes are killed at random
moments, against one that is left alone; and a short one that loses one of
three workers for good. (Three workers' sums are rounded in another way than
two's, and training makes that grow: after 20 steps it is still small.)
"""
import argparse
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import d2lps
import numpy as np
import psutil
from d2lps.cluster import Cluster, ClusterError
from d2lps.recovery import train_with_checkpoints

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'tests'))
from clusters import group_members

WAIT = 120  # seconds for what has to happen, at most
SHORT = 20  # steps of the training that loses a worker


class Killer(threading.Thread):
    """Kills a random process of `names` in each of `steps`, or soon after.

    It notes what it has killed, when, and all processes that there were.
    """

    def __init__(self, cluster, folder, steps, names, seed):
        super().__init__(daemon=True)
        self._cluster, self._log = cluster, Path(folder, 'progress.csv')
        self._steps, self._names = steps, names
        self._random = random.Random(seed)
        self.killed, self.pids = [], set()

    def _step(self):
        """The last step that is in the log of the training, or 0."""
        try:
            lines = self._log.read_text().split('\n')[1:-1]
        except FileNotFoundError:
            return 0
        return max((int(line.split(',')[0]) for line in lines if line),
                   default=0)

    def run(self):
        for step in self._steps:
            end = time.monotonic() + WAIT
            while self._step() < step and time.monotonic() < end:
                time.sleep(0.01)
            name = self._random.choice(self._names)
            time.sleep(self._random.random() * 0.1)
            while time.monotonic() < end:
                try:
                    self.pids.update(self._cluster.pids.values())
                    self._cluster.kill(name, signal.SIGKILL)
                    self.killed.append((name, time.monotonic()))
                    break
                except ClusterError:  # it is still being started anew
                    time.sleep(0.05)


def train(num_steps, every, batch_size=64, killer=None, num_workers=2,
          **options):
    """Parameters; seconds; the deaths; what the killer has noted."""
    with tempfile.TemporaryDirectory() as folder, Cluster(
            num_workers, 2, **options) as c:
        if killer:
            killer = Killer(c, folder, **killer)
            killer.start()
        start = time.perf_counter()
        trained = c.run(train_with_checkpoints, folder, num_steps,
                        batch_size=batch_size, every=every)
        taken = time.perf_counter() - start
        if killer:
            killer.join(WAIT)
            killer.pids.update(c.pids.values())
        assert c.num_workers == len(trained)
        return trained[0].params, taken, c.deaths, killer


def difference(params, others):
    """The largest one between two lists of arrays."""
    return max(float(np.abs(one - other).max())
               for one, other in zip(params, others))


def main(args):
    choose = random.Random(args.seed)
    steps = sorted(choose.sample(range(1, args.steps), args.kills))
    names = ['server 0', 'server 1', 'worker 0', 'worker 1', 'scheduler',
             'keeper']
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = os.environ['TMPDIR'] = folder
        unhurt, without, _, _ = train(args.steps, args.every)
        hurt, taken, deaths, killer = train(
            args.steps, args.every, killer=dict(
                steps=steps, names=names, seed=args.seed),
            restarts=args.kills)
        two, three = (train(SHORT, 5, 256, num_workers=n)[0] for n in (2, 3))
        elastic, _, [lost], _ = train(SHORT, 5, 256, killer=dict(
            steps=[SHORT // 2], names=['worker 1'], seed=args.seed),
            num_workers=3, restarts=1, elastic=True)
        files = len(os.listdir(folder))
    print(f'{args.steps} steps, a checkpoint every {args.every}, 2 workers, '
          f'2 servers, {d2lps.machine()}')
    print(f'{len(killer.killed)} kills, {len(deaths)} deaths: ' + ', '.join(
        f'{name} {sum(who == name for who, _ in killer.killed)}'
        for name in names))
    again = [death.noticed + death.seconds - when
             for death, (_, when) in zip(deaths, killer.killed)]
    print(f'seconds from the kill to the function running again: median '
          f'{statistics.median(again):.2f}, worst {max(again):.2f}')
    print(f'seconds in all: {without:.1f} unhurt, {taken:.1f} with the kills')
    print(f'largest difference of a parameter: {difference(hurt, unhurt):g}')
    print(f'after {SHORT} steps with {lost.who} of 3 lost for good: '
          f'{difference(elastic, three):.1g} from 3 workers unhurt, '
          f'{difference(elastic, two):.1g} from 2; these differ by '
          f'{difference(two, three):.1g}')
    processes = len(group_members(killer.pids)) + len(
        psutil.Process().children())
    print(f'left: {processes} processes, {files} files')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--kills', type=int, default=20)
    parser.add_argument('--steps', type=int, default=400)
    parser.add_argument('--every', type=int, default=10)
    parser.add_argument('--seed', type=int, default=1)
    main(parser.parse_args())
