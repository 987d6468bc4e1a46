"""Answers to the exercises, wrong and right, for the checks to judge.

`answers/` has a file for each exercise: the three likeliest mistakes, answers
that once fooled a check, and one that is right in an unusual way. A file
reads as a notebook does:

    # %% wrong: the root is left out
    # loses: sum, time
    def climb(n): ...

`loses` names the parts of the exercise in which this answer loses points. In
place of the code there may be the lines that differ from the solution, old and
new:

    #-    slowest = min(self.pushed)
    #+    slowest = max(self.pushed)
"""
import re
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from d2lps.missing import is_hidden

from d2lps.exercises.checking import EXERCISES, WITH_TORCH

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / 'notebooks' / 'exercises' / 'solutions'
TASKS = SOLUTIONS.with_name('tasks')
ANSWERS = Path(__file__).with_name('answers')


class Answer(NamedTuple):
    """An answer in words and code; a right one loses nothing."""
    exercise: str
    title: str
    loses: frozenset[str]
    code: str


RUNNING = [exercise for exercise in EXERCISES
           if exercise not in WITH_TORCH or (
               find_spec('torch') and not is_hidden('torch'))]


def runs(exercise, *values):
    """A test's parameters; it is skipped if PyTorch is needed and missing.

    values: the parameters after the exercise.
    """
    marks = [pytest.mark.skipif(exercise not in RUNNING,
                                reason='needs PyTorch')]
    if exercise in WITH_TORCH:  # which make test-all installs
        marks.append(pytest.mark.full)
    return pytest.param(exercise, *values, marks=marks)


each_that_runs = pytest.mark.parametrize('exercise', [*map(runs, EXERCISES)])


def answers_of(exercise):
    """The kept answers to an exercise, as a list of `Answer`."""
    text = (ANSWERS / f'{exercise}.py').read_text()
    _, *parts = re.split(r'^# %% (wrong|right): (.*)\n', text, flags=re.M)
    answers = []
    for kind, title, code in zip(parts[::3], parts[1::3], parts[2::3]):
        loses = frozenset()
        if kind == 'wrong':
            [lost] = re.match(r'# loses: (.*)\n', code).groups()
            loses = frozenset(lost.split(', '))
        if re.search('^#-', code, flags=re.M):
            code = _changed(exercise, code)
        answers.append(Answer(exercise, title, loses, code))
    return answers


def _changed(exercise, changes):
    """The solution with other lines."""
    code = answer_cell(solution(exercise)).source
    code = re.sub('^ *### .* SOLUTION\n?', '', f'\n{code}\n', flags=re.M)
    for old, new in re.findall(r'((?:^#-.*\n)+)((?:^#\+.*\n)*)', changes,
                               flags=re.M):
        old, new = (re.sub('^#.', '', lines, flags=re.M)
                    for lines in (old, new))
        assert code.count(f'\n{old}') == 1, f'{exercise}: {old}'
        code = code.replace(f'\n{old}', f'\n{new}')
    return code.strip()


def solution(exercise):
    """The notebook with the solution in it."""
    return nbformat.read(SOLUTIONS / f'{exercise}.ipynb', 4)


def answer_cell(notebook):
    """The cell that a student writes."""
    [cell] = [cell for cell in notebook.cells
              if cell.metadata.get('nbgrader', {}).get('grade_id') == 'answer']
    return cell


def with_answer(notebook, code):
    """The same notebook with another answer."""
    answer_cell(notebook).source = code
    return notebook
