"""Tables that chapters read from notebooks/results: python record.py

Runs chapters 10 and 13, then computes and prints their tables. --write keeps
the tables in notebooks/results. Chapter 10 reads its table where the slow
network is not permitted. Run it on a quiet machine. Chapter 13 trains with
one seed, and its table has 20 seeds, which take minutes.
"""
import argparse
import tempfile
from pathlib import Path

import nbformat
from d2lps.cluster import network_problem
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / 'notebooks'
# {notebook: {file in results: the table, in the notebook's names}}
TABLES = {
    '10-many-machines': {
        '10-slow-network': """pd.DataFrame({
            'push_then_pull': pd.Series(times), 'in_flight': pd.Series(
                dict(zip(flights, both['four in flight']))),
            'in_flight_whole': pd.Series(
                {('apart', 4, 4): whole})}).rename_axis(
            ['servers on', 'workers', 'servers']).round(3)"""},
    '13-training-by-all-reduce': {
        '13-seeds': """pd.DataFrame(
            [{name: train_lossy(rounding, feedback, seed)
              for name, (rounding, feedback) in ways.items()}
             for seed in range(20)]).rename_axis('seed').round(4)"""}}


def measured(name):
    """{file: table} of a notebook, which is run."""
    notebook = nbformat.read(NOTEBOOKS / f'{name}.ipynb', 4)
    with tempfile.TemporaryDirectory() as folder:
        paths = {file: Path(folder, f'{file}.csv') for file in TABLES[name]}
        notebook.cells += [nbformat.v4.new_code_cell(
            f'({table}).to_csv({str(paths[file])!r})')
            for file, table in TABLES[name].items()]
        NotebookClient(notebook, timeout=600, resources={
            'metadata': {'path': str(NOTEBOOKS)}}).execute()
        return {file: path.read_text() for file, path in paths.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('chapters', nargs='*', metavar='CHAPTER',
                        help='only these, such as 10 (default: all)')
    parser.add_argument('--write', action='store_true')
    args = parser.parse_args()
    for name in TABLES:
        if args.chapters and name[:2] not in args.chapters:
            continue
        if name.startswith('10') and (problem := network_problem()):
            print(problem)
            continue
        for file, text in measured(name).items():
            print(f'{file}\n{text}')
            if args.write:
                (NOTEBOOKS / 'results' / f'{file}.csv').write_text(text)


if __name__ == '__main__':
    main()
