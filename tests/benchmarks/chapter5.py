"""Chapter 5's figures: 40 MB over the slow network: python chapter5.py

For each number of workers and servers: predicted, simulated, measured, with
the very function that the notebook measures with. Best of some rounds, each
as slow as its slowest worker. --write keeps the measured times for readers
whose machines do not permit the slow network.
"""
import argparse
from pathlib import Path

import d2lps
import nbformat
import pandas as pd
from d2lps.cluster import Cluster, Network, network_problem
from d2lps.cluster.widgets import law, simulated

SIZE, LINK = 40_000_000, Network(125e6)
NOTEBOOKS = Path(__file__).resolve().parents[2] / 'notebooks'
RESULTS = NOTEBOOKS / 'results' / '05-slow-network.csv'
SHOWN = (*(('apart', m, n) for m, n in (
    (1, 1), (2, 1), (4, 1), (2, 2), (4, 2), (4, 4))),
    *(('on workers', m, n) for m, n in ((2, 1), (2, 2), (4, 2), (4, 4))))


def function_of_notebook(name):
    """A function that chapter 5 defines."""
    cells = nbformat.read(NOTEBOOKS / '05-many-machines.ipynb', 4).cells
    [source] = [cell.source for cell in cells
                if cell.source.startswith(f'def {name}(')]
    names = {}
    exec(source, names)
    return names[name]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--repeats', type=int, default=4)
    parser.add_argument('--write', action='store_true')
    args = parser.parse_args()
    problem = network_problem()
    if problem:
        return print(problem)
    push_and_pull, rows = function_of_notebook('push_and_pull'), []
    for place, m, n in SHOWN:
        with Cluster(m, n, network=Network(LINK.bandwidth,
                                           servers=place)) as c:
            rounds = zip(*c.run(push_and_pull, SIZE, repeats=args.repeats))
        arguments = m, n, SIZE, LINK.rate, place != 'apart'
        rows.append([place, m, n, law(*arguments),
                     simulated(*arguments).seconds, min(map(max, rounds))])
    table = pd.DataFrame(rows, columns=[
        'servers on', 'workers', 'servers', 'predicted', 'simulated',
        'measured'])
    table['over'] = table['measured'] / table['predicted'] - 1
    print(d2lps.machine())
    print(table.to_string(index=False, formatters={
        'over': '{:+.0%}'.format}, float_format='{:.3f}'.format))
    if args.write:
        table[['servers on', 'workers', 'servers', 'measured']].to_csv(
            RESULTS, index=False, float_format='%.3f')


if __name__ == '__main__':
    main()
