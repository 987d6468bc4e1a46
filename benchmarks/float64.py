"""One device and two, with float64: how far apart do they end after an epoch?

    .venv/bin/python benchmarks/float64.py --write

The same start, minibatches and learning rate as in chapter 1. --write writes
notebooks/results/01-float64.csv, which the chapter reads.
"""
import argparse
from pathlib import Path

import d2lps
import pandas as pd

RESULTS = Path(__file__).parents[1] / 'notebooks/results/01-float64.csv'
EVERY = 10  # steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--write', action='store_true')
    args = parser.parse_args()
    devices = d2lps.devices(2)
    start = [param.astype('float64')
             for param in d2lps.init_params('xavier', seed=0)]
    one = [d2lps.get_params(start, devices[0])]
    two = [d2lps.get_params(start, device) for device in devices]
    train_iter, _ = d2lps.load_data(batch_size=256)
    rows = []
    for step, (X, y) in enumerate(train_iter, 1):
        X = X.astype('float64')
        d2lps.train_batch(X, y, one, devices[:1], lr=0.1)
        d2lps.train_batch(X, y, two, devices, lr=0.1)
        if step % EVERY == 0:
            rows.append((step, max(
                float(abs(a.asnumpy() - b.asnumpy()).max())
                for a, b in zip(one[0], two[0], strict=True))))
            print(*rows[-1])
    table = pd.DataFrame(rows, columns=['step', 'difference'])
    if args.write:
        table.to_csv(RESULTS, index=False, float_format='%.1e')


if __name__ == '__main__':
    main()
