"""Where PyTorch is not installed, all else works, and it says how to get it.
"""
import nbformat
from answers import ROOT

from d2lps.exercises.checking import EXERCISES, NO_TORCH, WITH_TORCH

TASKS = ROOT / 'notebooks' / 'exercises' / 'tasks'
HIDE = "import sys; sys.modules['torch'] = None\n"
WITHOUT = {'PYTHONPATH': str(ROOT), 'MPLBACKEND': 'agg'}
CELLS = HIDE + '''
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
shell.colors = 'NoColor'
for source in {sources!r}:
    print('CELL', flush=True)
    shell.run_cell(source)
'''


def test_every_check_says_it_in_a_line(python):
    """And nothing loads PyTorch to know the words of all checks."""
    done = python('-c', f'''
import sys
from d2lps.exercises import check, hidden, picture
from d2lps.exercises.checking import Missing, module_of
for name in {EXERCISES}:
    assert all(check.cases for check in module_of(name).CHECKS.values())
assert 'torch' not in sys.modules
sys.modules['torch'] = None
for exercise in {WITH_TORCH}:
    part = next(iter(module_of(exercise).CHECKS))
    for call in ((check, exercise, part, None), (picture, exercise, None),
                 (hidden, exercise, part, None)):
        try:
            call[0](*call[1:])
        except Missing as error:
            print(error, error._render_traceback_())
''', **WITHOUT)
    assert done.stdout.splitlines() == [
        f'{NO_TORCH} {[NO_TORCH]}'] * 3 * len(WITH_TORCH), done.stderr


def test_the_notebook_says_it_in_a_line(python):
    task = nbformat.read(TASKS / f'{WITH_TORCH[0]}.ipynb', 4)
    sources = [cell.source for cell in task.cells if cell.cell_type == 'code']
    said = python('-c', CELLS.format(sources=sources), **WITHOUT)
    cells = said.stdout.split('CELL\n')[1:]
    assert len(cells) == len(sources), said.stderr
    for source, shown in zip(sources, cells):
        if 'import' in source or source.startswith(('check(', 'picture(')):
            assert shown.strip() == NO_TORCH
