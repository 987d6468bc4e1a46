"""Chapter 10's figures: 40 MB over the slow network: python chapter10.py

For each number of workers and servers: push, then pull, predicted and
measured; and with a few arrays in flight, simulated in pieces and measured.
All with the very functions that the notebook measures with. Best of some
rounds, each as slow as its slowest worker. --write keeps the measured times
for readers whose machines do not permit the slow network.
"""
import argparse
from pathlib import Path

import d2lps
import mxnet as mx
import nbformat
import numpy as np
import pandas as pd
from d2lps.cluster import Cluster, Network, network_problem
from d2lps.pictures.servers import predicted_seconds, simulated

SIZE, LAYERS, LINK = 40_000_000, 40, Network(125e6)  # as in the notebook
NOTEBOOKS = Path(__file__).resolve().parents[1] / 'notebooks'
RESULTS = NOTEBOOKS / 'results' / '10-slow-network.csv'
SHOWN = (*(('apart', m, n) for m, n in (
    (1, 1), (2, 1), (4, 1), (2, 2), (4, 2), (4, 4))),
    *(('on workers', m, n) for m, n in ((2, 1), (2, 2), (4, 2), (4, 4))))


def functions_of_notebook(*names):
    """Functions that chapter 10 defines, in a namespace of their own."""
    cells = nbformat.read(NOTEBOOKS / '10-many-machines.ipynb', 4).cells
    found = {'d2lps': d2lps, 'mx': mx}
    for name in names:
        [source] = [cell.source for cell in cells
                    if cell.source.startswith(f'def {name}(')]
        exec(source, found)
    return [found[name] for name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--repeats', type=int, default=4)
    parser.add_argument('--write', action='store_true')
    args = parser.parse_args()
    problem = network_problem()
    if problem:
        return print(problem)
    *ways, _, measure_often = functions_of_notebook(
        'push_then_pull', 'in_flight', 'measure_once', 'measure_often')
    rows = []
    for place, m, n in SHOWN:
        with Cluster(m, n, network=Network(LINK.bandwidth,
                                           colocated=place != 'apart')) as c:
            measured, flight = (np.max(c.run(
                measure_often, way, SIZE, LAYERS, args.repeats), axis=0).min()
                for way in ways)
        # The same predicted time, with ten times as long for each byte.
        with Cluster(m, n, network=Network(LINK.bandwidth / 10,
                                           colocated=place != 'apart')) as c:
            tenth = np.max(c.run(measure_often, ways[1], SIZE // 10, LAYERS,
                                 args.repeats), axis=0).min()
        case = m, n, SIZE, LINK.rate, place != 'apart'
        predicted = predicted_seconds(*case)
        rows.append([place, m, n, predicted, measured,
                     measured / predicted - 1,
                     simulated(*case, pieces=LAYERS // n).seconds, flight,
                     tenth])
    table = pd.DataFrame(rows, columns=[
        'servers on', 'workers', 'servers', 'predicted', 'push_then_pull',
        'over', 'simulated in pieces', 'in_flight', 'in_flight_tenth'])
    print(d2lps.machine())
    print(table.to_string(index=False, formatters={
        'over': '{:+.0%}'.format}, float_format='{:.3f}'.format))
    if args.write:
        table[['servers on', 'workers', 'servers', 'push_then_pull',
               'in_flight', 'in_flight_tenth']].to_csv(
                   RESULTS, index=False, float_format='%.3f')


if __name__ == '__main__':
    main()
