"""Chapter 11's figures of the slow network: python chapter11.py [--write]

Runs the notebook and shows what it has measured: pings, messages at once,
all plans, and MXNet's store. --write keeps that for readers whose machines do
not permit the slow network.
"""
import argparse
import tempfile
from pathlib import Path

import nbformat
import pandas as pd
from d2lps.cluster import network_problem
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / 'notebooks'
RESULTS = NOTEBOOKS / 'results'
# The notebook's names for what is kept in results/11-….csv.
KEPT = {'pings': 'table', 'stars': 'stars', 'plans': 'measured',
        'store': "stored.to_frame('pushpull')"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--write', action='store_true')
    args = parser.parse_args()
    if problem := network_problem():
        return print(problem)
    notebook = nbformat.read(
        NOTEBOOKS / '11-all-reduce-between-machines.ipynb', 4)
    with tempfile.TemporaryDirectory() as folder:
        notebook.cells += [nbformat.v4.new_code_cell(
            f'({name}).to_csv({str(Path(folder, file))!r})')
            for file, name in KEPT.items()]
        NotebookClient(notebook, timeout=600, resources={
            'metadata': {'path': str(NOTEBOOKS)}}).execute()
        for file in KEPT:
            table = pd.read_csv(Path(folder, file), index_col=0)
            print(f'{file}, seconds:\n{table.round(6).to_string()}\n')
            if args.write:
                table.round(7).to_csv(RESULTS / f'11-{file}.csv')


if __name__ == '__main__':
    main()
