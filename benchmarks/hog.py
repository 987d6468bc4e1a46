"""One notebook that takes the whole machine, beside right answers of others.

python benchmarks/hog.py [--times 10] [--kind cell thread check]

Grades a class in which one student's notebook starts seventy processes, each
in a session of its own, so that Linux gives each as much of a processor as a
notebook of the others has. They must all have their points, each time. A class
takes about a minute on two cores.
"""
import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / 'tests' / 'teaching')]
from handins import answer_cell, answered, with_cell  # noqa: E402

from teaching import walls  # noqa: E402

OTHERS = {'bob': 'rails', 'cleo': 'halving-and-doubling',
          'dan': 'sum-in-parts'}
HOG = 'aaa'  # is graded first
PROCESSES, SECONDS, SLEEPS = 70, 60, 9
SPIN = f'''
import os, threading, time
def spin():
    for _ in range({PROCESSES}):
        try:
            ended = os.fork()
        except OSError:
            break
        if not ended:
            os.setsid()
            end = time.time() + {SECONDS}
            while time.time() < end:
                pass
            os._exit(0)
'''
# When the processes start: in a cell, in a thread a little later, or as the
# first check calls the answer.
STARTS = {'cell': 'spin()',
          'thread': 'threading.Timer(3, spin).start()',
          'check': '''
right = up_and_down
def up_and_down(n, started=[]):
    if not started:
        started.append(spin())
    return right(n)
'''}


def hog(kind):
    """A right answer to tree that takes the machine."""
    notebook = answered('tree')
    if kind == 'check':
        answer_cell(notebook).source += SPIN + STARTS[kind]
        return notebook
    for _ in range(SLEEPS):
        with_cell(notebook, 'time.sleep(5)')
    first = next(k for k, cell in enumerate(notebook.cells)
                 if cell.source.startswith('time.sleep'))
    notebook.cells.insert(first, new_code_cell(SPIN + STARTS[kind]))
    return notebook


def graded(kind, folder):
    """From (student, exercise) to points, after one grading of the class."""
    for student, exercise in {HOG: 'tree', **OTHERS}.items():
        place = folder / 'in' / student
        place.mkdir(parents=True)
        nbformat.write(hog(kind) if student == HOG else answered(exercise),
                       place / f'{exercise}.ipynb')
    subprocess.run(
        [sys.executable, '-m', 'teaching.grade', str(folder / 'in'), '--to',
         str(folder / 'out'), '--walls', 'none' if walls.problem() else
         'bwrap'], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with open(folder / 'out' / 'grades.csv', newline='') as file:
        return {(row['student'], row['exercise']): row['points']
                for row in csv.DictReader(file)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--times', type=int, default=10)
    parser.add_argument('--kind', nargs='*', default=['cell'], choices=STARTS)
    args = parser.parse_args()
    bad = 0
    for kind in args.kind:
        for k in range(args.times):
            start = time.monotonic()
            with tempfile.TemporaryDirectory(prefix='d2lps-hog-') as folder:
                found = graded(kind, Path(folder))
            good = all(float(found[one] or 0) == 10 for one in OTHERS.items())
            bad += not good
            print(f'{kind}, {k + 1} of {args.times}, '
                  f'{time.monotonic() - start:.0f} s:', ', '.join(
                      f'{student} {points}' for (student, _), points
                      in found.items()), '' if good else 'WRONG', flush=True)
    print(f'in {bad} classes others lost points' if bad else
          'all others had 10 points each, each time')
    return bad


if __name__ == '__main__':
    sys.exit(bool(main()))
