"""What students hand in, right, wrong or bad, and how it is graded here."""
import asyncio
import csv
import json
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_output
from nbgrader.utils import is_grade

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'tests' / 'exercises'))
from answers import (  # noqa: E402, F401
    RUNNING,
    answer_cell,
    answers_of,
    solution,
    with_answer,
)

from teaching import grade, grading, walls  # noqa: E402
from teaching.executing import execute, hidden_cases  # noqa: E402
from teaching.judging import judge  # noqa: E402
from teaching.rebuilding import rebuild  # noqa: E402

TASKS = ROOT / 'notebooks' / 'exercises' / 'tasks'
BEHIND = 'none' if walls.problem() else 'bwrap'
LOOP = 'import time\nwhile True: time.sleep(1)'


def released(exercise='tree'):
    return nbformat.read(TASKS / f'{exercise}.ipynb', 4)


def answered(exercise='tree'):
    """A student's notebook with the right answer."""
    return with_answer(released(exercise),
                       answer_cell(solution(exercise)).source)


def with_cell(notebook, code):
    """With another cell, before the answer."""
    k = notebook.cells.index(answer_cell(notebook))
    notebook.cells.insert(k, new_code_cell(code))
    return notebook


def copied(cell, source=None):
    """As Jupyter copies a cell: with all that it knows of it."""
    copy = nbformat.from_dict(json.loads(json.dumps(cell)))
    if source is not None:
        copy.source = source
    return copy


def hand_in(folder, student, notebook, name='tree'):
    """Put a notebook, or a text, into the student's folder in `in`."""
    place = folder / 'in' / student
    place.mkdir(parents=True, exist_ok=True)
    (place / f'{name}.ipynb').write_text(
        notebook if isinstance(notebook, str) else json.dumps(notebook))


def graded(folder, *options):
    """Grade `in` into `out`, as a teacher does: the rows of grades.csv.

    They are by student and exercise.
    """
    grade.main([str(folder / 'in'), '--to', str(folder / 'out'), '--walls',
                BEHIND, *options])
    with open(folder / 'out' / 'grades.csv', newline='') as file:
        return {(row['student'], row['exercise']): row
                for row in csv.DictReader(file)}


def executed(notebook, exercise='tree', **options):
    """Rebuild and execute a notebook without walls, and judge it.

    Returns what was executed, the verdicts, and the problems.
    """
    made, _ = rebuild(solution(exercise), notebook)
    cases = hidden_cases(grading.HIDDEN, exercise)
    problems = asyncio.run(execute(
        made, cases, 0, **{'behind_walls': False} | options))
    return made, judge(exercise, made, cases, problems), problems


def judged():
    """The solution of tree, as the grading hands it over."""
    notebook = solution('tree')
    for cell in filter(is_grade, notebook.cells):
        cell.outputs = [new_output('stream', name='stdout', text='Right\n')]
    return notebook
