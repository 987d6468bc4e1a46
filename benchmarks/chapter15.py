"""Chapter 15's figures, over the slow network: python chapter15.py

A step of two workers and a server, one after the other and overlapped:
predicted, simulated, measured. Then 40 MB between two workers and two
servers, with a few keys in flight. All with the very functions that the
notebook measures with. --write keeps what was measured for readers whose
machines do not permit the slow network.
"""
import argparse
import os
import time
from pathlib import Path

import d2lps
import mxnet as mx
import nbformat
import pandas as pd
from d2lps.asynchrony.overlap import Task, best_possible, simulate_step

NOTEBOOKS = Path(__file__).resolve().parents[1] / 'notebooks'
RESULTS = NOTEBOOKS / 'results'
DEFINING = ('make_layers', 'compute', 'when_ready', 'gradient_times',
            'one_after_the_other', 'one_step', 'many_steps', 'best_step',
            'one_flight', 'many_flights', 'measure_flights')
ORDERS = {'sequential': 'sequential', 'overlapped': 'fifo'}
WRITTEN = dict(float_format='%.5f')


def cells_of_notebook():
    """What the notebook defines, in a namespace of its own."""
    cells = nbformat.read(NOTEBOOKS / '15-overlap.ipynb', 4).cells
    found = dict(d2lps=d2lps, mx=mx, pd=pd, Task=Task, time=time)
    for name in DEFINING:
        [source] = [cell.source for cell in cells
                    if cell.source.startswith(f'def {name}(')]
        exec(source, found)
    return found


def measure_steps(chapter, compute, size, repeats):
    """The best step of each way, as tasks; and a worker's bandwidth."""
    standard = d2lps.Network()
    network = d2lps.Network(min(4e9, 4 * size / compute * (
        standard.bandwidth / standard.rate)))
    with d2lps.Cluster(2, 1, network=network) as c:
        steps = [worker for worker, _, _ in c.run(
            chapter['many_steps'], repeats)]
    return {way: chapter['best_step'](
        [*zip(*[worker[way] for worker in steps])]) for way in ORDERS
    }, network.rate / 2


def table_of(seen, rate, size):
    """Predicted, simulated and measured seconds of each way."""
    rows = {}
    for way, order in ORDERS.items():
        backward = [task.end - task.start for task in seen[way]
                    if task.what == 'backward'][::-1]
        sizes = [size / len(backward)] * len(backward)
        simulated = simulate_step(backward, sizes, rate, 0, order, pull=True)
        predicted = (sum(backward) + 2 * size / rate if way == 'sequential'
                     else best_possible(backward, sizes, rate, pull=True))
        rows[way] = [predicted, simulated[-1].end, seen[way][0].end,
                     sum(backward)]
    table = pd.DataFrame(rows, ['predicted', 'simulated', 'measured',
                                'computing']).T
    table['over'] = table['measured'] / table['simulated'] - 1
    table['hidden'] = ((table['computing'] + 2 * size / rate)
                       / table['measured'])
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--repeats', type=int, default=8)
    parser.add_argument('--write', action='store_true')
    args = parser.parse_args()
    problem = d2lps.network_problem()
    if problem:
        return print(problem)
    # MXNet reads it when it first computes: here, and in the workers.
    os.environ['MXNET_EXEC_BULK_EXEC_TRAIN'] = '0'
    chapter = cells_of_notebook()
    chapter['windows'] = [0, 1, 2, 4, 8, 40]
    layers = chapter['make_layers']()
    size = sum(d2lps.nbytes(weight) for weight in layers[1])
    compute = chapter['gradient_times'](layers)[-1]
    seen, rate = measure_steps(chapter, compute, size, args.repeats)
    table = table_of(seen, rate, size)
    print(d2lps.machine())
    print(table.to_string(float_format='{:.3f}'.format))
    measured = table['measured']
    print(f'communication: {2 * size / rate / measured["sequential"]:.0%} of '
          'the sequential step; overlapped it is '
          f'{measured["sequential"] / measured["overlapped"]:.2f} times as '
          'fast')
    times, links = chapter['measure_flights']()
    flights = pd.DataFrame({'measured': times}).rename_axis('window')
    print(flights.T.to_string(float_format='{:.3f}'.format))
    if args.write:
        rows = [(way, task.what, *task.layers, task.start, task.end, rate)
                for way, tasks in seen.items() for task in tasks]
        pd.DataFrame(rows, columns=[
            'way', 'what', 'layer', 'start', 'end', 'rate']).to_csv(
            RESULTS / '15-steps.csv', index=False, **WRITTEN)
        flights.to_csv(RESULTS / '15-in-flight.csv', **WRITTEN)
        few = links.loc[[4, 40]].iloc[::3]
        few.to_csv(RESULTS / '15-link.csv', **WRITTEN)


if __name__ == '__main__':
    main()
