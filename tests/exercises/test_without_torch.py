"""Where PyTorch is not installed, all else works, and it says how to get it.
"""
import nbformat
import pytest
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


def test_all_exercises_and_their_checks_are_known(python):
    """Teachers' pages need the words of checks; no module needs PyTorch."""
    done = python('-c', HIDE + f'''
from d2lps.exercises.checking import module_of
for name in {EXERCISES}:
    assert all(check.cases for check in module_of(name).CHECKS.values())
assert 'd2lps.exercises.torchgroup' not in sys.modules
''', **WITHOUT)
    assert done.returncode == 0, done.stderr


def test_nothing_loads_pytorch_that_does_not_need_it(python):
    done = python('-c', f'''
import sys
from d2lps.exercises.checking import check_of, module_of
for name in {EXERCISES}:
    module_of(name)
assert 'torch' not in sys.modules
''', **WITHOUT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize('hide', [HIDE, "import os; os.environ["
                                  "'D2LPS_WITHOUT'] = 'mxnet torch'\n"])
@pytest.mark.parametrize('exercise', WITH_TORCH)
def test_every_check_says_it_in_a_line(python, exercise, hide):
    done = python('-c', hide + f'''
from d2lps.exercises import check, hidden, picture
from d2lps.exercises.checking import Missing, module_of
part = next(iter(module_of({exercise!r}).CHECKS))
for call in ((check, {exercise!r}, part, None), (picture, {exercise!r}, None),
             (hidden, {exercise!r}, part, None)):
    try:
        call[0](*call[1:])
    except Missing as error:
        print(error, error._render_traceback_())
''', **WITHOUT)
    assert done.stdout.splitlines() == [f'{NO_TORCH} {[NO_TORCH]}'] * 3, (
        done.stderr)


@pytest.mark.parametrize('exercise', WITH_TORCH)
def test_the_notebook_says_it_in_a_line(python, exercise):
    task = nbformat.read(TASKS / f'{exercise}.ipynb', 4)
    sources = [cell.source for cell in task.cells if cell.cell_type == 'code']
    said = python('-c', CELLS.format(sources=sources), **WITHOUT)
    cells = said.stdout.split('CELL\n')[1:]
    assert len(cells) == len(sources), said.stderr
    for source, shown in zip(sources, cells):
        if 'import' in source or source.startswith(('check(', 'picture(')):
            assert shown.strip() == NO_TORCH
