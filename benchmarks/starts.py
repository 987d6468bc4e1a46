"""What a reader waits for at first, now and at an older commit, in turn.

    python benchmarks/starts.py --against 8ba0860 --times 5

A large plan is made, MXNet is imported, and clusters start: each in a new
process, the two versions in turn, because a machine is not equally fast for
an hour. Both run with the packages of this Python.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
PIECES = {
    'ring(16_384)': ('from d2lps.collectives import strategies',
                     'strategies.ring(16_384)'),
    'import mxnet': ('import d2lps', 'import mxnet'),
    'Cluster(2, 1)': ('import d2lps', 'c = d2lps.Cluster(2, 1)'),
    'Cluster(2, 1), MXNet loaded': ('import d2lps, mxnet',
                                    'c = d2lps.Cluster(2, 1)')}
SCRIPT = '''
import time
{before}
begin = time.perf_counter()
{piece}
print(time.perf_counter() - begin)
'''


def seconds(folder, before, piece):
    """How long `piece` takes with the packages in `folder`, in seconds."""
    done = subprocess.run(
        [sys.executable, '-c', SCRIPT.format(before=before, piece=piece)],
        cwd=folder, env=os.environ | {'PYTHONPATH': str(folder)}, text=True,
        stdout=subprocess.PIPE, timeout=300, check=True)
    return float(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--against', default='8ba0860', metavar='COMMIT')
    parser.add_argument('--times', type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        git = ['git', '-C', ROOT, 'worktree']
        subprocess.run([*git, 'add', '--quiet', '--detach', folder + '/old',
                        args.against], check=True)
        try:
            rows = {}
            for name, lines in PIECES.items():
                pairs = [[seconds(one, *lines)
                          for one in (Path(folder, 'old'), ROOT)]
                         for _ in range(1 + args.times)][1:]  # warm
                old, new = map(statistics.median, zip(*pairs))
                rows[name] = {args.against: old, 'now': new,
                              'now / before': statistics.median(
                                  b / a for a, b in pairs)}
        finally:
            subprocess.run([*git, 'remove', '--force', folder + '/old'],
                           check=True)
    print(f'seconds, medians of {args.times}')
    print(pd.DataFrame(rows).T.round(2).to_string())


if __name__ == '__main__':
    main()
