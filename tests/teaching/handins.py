"""A class: one student with all solutions, one with none, and all sorts."""
import json
import os
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_output

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'tests' / 'exercises'))
from answers import (  # noqa: E402, F401
    RUNNING,
    answer_cell,
    answers_of,
    each_that_runs,
    solution,
    with_answer,
)

from d2lps.exercises.checking import EXERCISES  # noqa: E402

# tests/exercises judges stubs and wrong answers of all, without a kernel.
SOME = 'minibatch', 'tree', 'checkpoint'
TASKS = ROOT / 'notebooks' / 'exercises' / 'tasks'
SPY = '''
import pathlib, socket
for place in {places}:
    try:
        list(pathlib.Path(place).iterdir())
        print('could read', place)
    except OSError:
        print('walls')
try:
    socket.create_connection(('127.0.0.1', {port}), timeout=2)
    print('could connect')
except OSError:
    print('walls')
'''
# What each of them puts into a cell before the check cells, and what the
# table says of it, a part of the remarks.
MISCHIEF = {
    'loops': ('import time\nwhile True: time.sleep(1)',
              'did not end within 10 s'),
    'eats-memory': ('x = bytearray(6 * 2 ** 30)\nx[::4096] = b"1" * len('
                    'x[::4096])', None),
    'forks': ('import os, time\nfor _ in range(10 ** 6):\n'
              '    os.fork() or time.sleep(60)', None),
    'prints': ('for k in range(10 ** 5): print(k)', None),
    'ends-itself': ('import os; os._exit(0)', 'the process ended'),
    'forges': ('import d2lps.exercises.checking as c\nc.judge_notes = '
               'lambda *args: None\nc.take_notes = lambda *args: "[]"', None)}


def released(exercise):
    return nbformat.read(TASKS / f'{exercise}.ipynb', 4)


def wrong_answer(exercise):
    """The most plausible one; tests/exercises looks at all of them."""
    return next(one for one in answers_of(exercise) if one.says)


def answered(exercise='tree'):
    """A student's notebook with the right answer."""
    return with_answer(released(exercise),
                       answer_cell(solution(exercise)).source)


def with_cell(notebook, code):
    """With another cell, before the answer."""
    k = notebook.cells.index(answer_cell(notebook))
    notebook.cells.insert(k, new_code_cell(code))
    return notebook


def is_check(cell):
    return cell.metadata.get('nbgrader', {}).get('grade')


def copied(cell, source=None):
    """As Jupyter copies a cell: with all that it knows of it."""
    copy = nbformat.from_dict(json.loads(json.dumps(cell)))
    if source is not None:
        copy.source = source
    return copy


def judged(course, wrong=(), exercise='tree'):
    """A notebook as the grading hands it over: judged, these checks wrong."""
    notebook = course.template(exercise)
    for cell in filter(is_check, notebook.cells):
        cell.outputs = [
            new_output('error', ename='Wrong', evalue='',
                       traceback=['Where is your sum?'])
            if cell.metadata.nbgrader.grade_id in wrong else
            new_output('stream', name='stdout', text='Right\n')]
    return notebook


def make_class(folder, port):
    """A folder of a class; port: one where somebody listens."""
    def put(student, notebook, name='tree'):
        (folder / student).mkdir(exist_ok=True, parents=True)
        nbformat.write(notebook, folder / student / f'{name}.ipynb')

    for name in EXERCISES:
        put('solved', solution(name), name)
    for name in SOME:
        put('stub', released(name), name)
        put('wrong', with_answer(released(name), wrong_answer(name).code),
            name)
    for student, (code, _) in MISCHIEF.items():
        put(student, with_cell(answered(), code))
    places = [str(ROOT / 'notebooks'), str(ROOT / 'teaching' / 'hidden'),
              str(folder / 'solved'), '/usr/local/share']
    put('spies', with_cell(answered(), SPY.format(places=places, port=port)))
    put('leads', with_cell(answered(), 'import os\nos.symlink('
                           f'{str(folder / "led")!r}, '
                           'os.environ["D2LPS_CASES"])'))
    notebook = answered()
    notebook.cells = [cell for cell in notebook.cells if not is_check(cell)]
    put('deletes', notebook)
    notebook = answered()
    for cell in filter(is_check, notebook.cells):
        cell.source = 'print("Right: all of it")'
    put('edits', notebook)
    (folder / 'no-notebook').mkdir()
    (folder / 'no-notebook' / 'tree.ipynb').write_text('{"cells": [')
    put('misnames', answered(), 'Übung 3 (1)')
    (folder / 'misnames' / 'timestamp.txt').write_text(
        '2026-11-22 10:00:00.000000 UTC')
    (folder / 'missing').mkdir()
    (folder / 'links').mkdir()
    os.symlink(folder / 'solved' / 'tree.ipynb',
               folder / 'links' / 'tree.ipynb')
    (folder / '=cmd() <b>').mkdir()
