"""Spoiled notebooks: a right answer keeps its points, nobody hurts others.

Spoiled by accident, in the ways that users of nbgrader report, or on purpose.
"""
import json
import os
import socket
from contextlib import suppress

import nbformat
import pytest
from handins import (
    BEHIND,
    LOOP,
    ROOT,
    RUNNING,
    answer_cell,
    answered,
    copied,
    graded,
    hand_in,
    released,
    solution,
    with_cell,
)
from nbformat.v4 import new_code_cell
from nbgrader.utils import is_grade

from d2lps.exercises.checking import (Wrong, check_of, judge_notes,
                                      take_notes)
from teaching.rebuilding import STUB, rebuild
from teaching.submissions import read_all

BELOW = 'stands below its check: it was run above it'
IMPORTS = 'lines of the first cell, which imports, were changed'
CHANGED = 'the cell check-sum was changed: put back'
TWICE = 'below the last check the answer is written once more'
# A notebook with a right answer: what stands in it from its top to its end,
# see `cell_of`, and what the remarks say.
SPOILED = [
    ('imports answer sum rounds time', ''),
    ('copy-nothing imports answer sum rounds time sum rounds time', ''),
    ('imports copy-helper uses sum rounds time', ''),
    ('imports uses sum rounds time copy-helper', BELOW),
    ('imports uses sum rounds time helper', BELOW),
    ('imports mine sum rounds time is-mine', BELOW),
    ('imports half-nothing half-helper uses sum rounds time', ''),
    ('imports with-checks', ''),
    ('imports answer', 'the cell check-sum was deleted: put back'),
    ('imports answer copy-right rounds time', CHANGED),
    ('imports answer copy-marks rounds time', CHANGED),
    ('imports answer sum-text rounds-raw time', ''),
    ('sum rounds time imports answer', BELOW),
    ('sum imports answer rounds time', ''),
    ('time rounds sum answer imports', BELOW),
    ('answer sum rounds time', IMPORTS),
    ('answer sum rounds time imports', IMPORTS),
    ('less-imports answer sum rounds time', IMPORTS),
    ('more-imports answer sum rounds time', ''),
    ('imports new-answer stub sum rounds time', ''),
    ('imports stub sum rounds time new-answer', BELOW),
    ('imports wrong sum new-answer sum', 'check-rounds was deleted'),
    ('imports half-wrong sum rounds time answer sum', ''),
    ('imports wrong sum rounds time with-checks', ''),
    ('imports answer sum rounds time wrong', TWICE),
    ('imports answer sum rounds time half-wrong', TWICE),
    ('imports within-if sum rounds time', ''),
    ('imports ends-as-stub sum rounds time', ''),
    ('imports answer-text sum rounds time',
     'the cell for the answer was made text: it was run as code'),
    ('imports new-answer half-wrong-text sum rounds time', '')]
OURS = {cell.id.removeprefix('check-'): cell for cell in answered().cells}
OURS['imports'] = OURS['tree-2']
ANSWER, CHECK = OURS['answer'].source, OURS['sum'].source
HELPER = 'def span(step):\n    return 2 * step'
WRONG = 'def up_and_down(n):\n    return None'
# From a word to the source of a cell, after the names of others.
SOURCES = {
    'uses': ANSWER.replace('2 * step', 'span(step)'),
    'mine': ANSWER.replace('up_and_down', 'mine'),
    'with-checks': '\n'.join([ANSWER, *(OURS[part].source for part in (
        'sum', 'rounds', 'time'))]),
    'stub': answer_cell(released()).source,
    'within-if': 'if True:\n' + ANSWER.replace('\n', '\n    ').replace(
        'def', '    def', 1),
    'ends-as-stub': f'{ANSWER}\n    {STUB}',
    'helper': HELPER, 'is-mine': 'up_and_down = mine', 'wrong': WRONG,
    'new-answer': ANSWER, 'half-wrong': WRONG, 'half-helper': HELPER,
    'half-nothing': '# My answer:', 'copy-nothing': '# nothing',
    'copy-helper': HELPER, 'copy-right': 'print("Right: all of it")',
    # A regular expression could take hours for it.
    'copy-marks': '### BEGIN HIDDEN TESTS\n' * 50_000,
    'less-imports': 'import d2lps',
    'more-imports': f'import math\n{OURS["imports"].source}  \n'}
NEW = 'helper', 'is-mine', 'wrong', 'new-answer'  # no copies of our cells


def cell_of(word):
    """A cell: ours, a copy with another source, a new one, or one as text."""
    word, _, kind = (word.rpartition('-') if word.endswith(('-text', '-raw'))
                     else (word, '', ''))
    if word in OURS:
        cell = copied(OURS[word])
    elif word in NEW:
        cell = new_code_cell(SOURCES[word])
    else:
        ours = ('sum' if word.startswith('copy-') else
                'imports' if word.endswith('-imports') else 'answer')
        cell = copied(OURS[ours], SOURCES[word])
    if kind:
        cell.cell_type = kind.replace('text', 'markdown')
        del cell['outputs'], cell['execution_count']
    return cell


HALF = '\ud83d'  # of an emoji


def told(change, notebook=released):
    """A file with a notebook that was changed as JSON tells it."""
    content = json.loads(nbformat.writes(notebook()))
    change(content)
    return json.dumps(content)


def each_cell(change, notebook=released):
    return told(lambda it: [change(cell) for cell in it['cells']], notebook)


def added(notebook=released, **more):
    """With one more cell."""
    return told(lambda it: it['cells'].append(
        {'cell_type': 'code', 'source': ''} | more), notebook)


# Files, by what the remarks say of them.
UNREADABLE = {
    'it has more than 20,000,000 bytes': ' ' * 20_000_001,
    'it has more than 1000 cells': json.dumps({'cells': [{}] * 1001}),
    'it is no text in JSON': '{"cells": [{"cell_t',
    'it is nested too deeply': '[' * 100_000 + ']' * 100_000,
    'it has no cells': '[1, 2]'}
STUBS = [
    each_cell(lambda cell: cell.update(source=None)),
    each_cell(lambda cell: cell.pop('cell_type')),
    each_cell(lambda cell: cell.update(metadata=[1])),
    each_cell(lambda cell: cell.update(metadata={
        'nbgrader': {'grade_id': [1], 'grade': {}, 'points': 'x'}})),
    told(lambda it: it['cells'].extend([None, 5, 'x', [[]]])),
    nbformat.writes(released(), 3),
    json.dumps({'worksheets': [{'cells': [{'input': 5}]}]}),
    added(metadata={'a': 5.5}).replace('5.5', '[NaN, -Infinity, 1e999]')]
RIGHT = [
    nbformat.writes(answered(), 3), '\ufeff' + nbformat.writes(answered()),
    # As Colab and others keep cells.
    each_cell(lambda cell: cell.update(id=None, metadata={}), answered),
    added(answered, cell_type='markdown', source=f'Done {HALF}'),
    added(answered, outputs=5), added(answered, cell_type='sql')]


def read(folder, text):
    """A file of ada's with this text, as it is read."""
    (folder / 'ada').mkdir()
    (folder / 'ada' / 'tree.ipynb').write_text(text)
    [ada] = read_all(folder)
    return ada


def is_right(notebook, remarks=None):
    """Does the answer pass the visible checks? Without a kernel."""
    made, more = rebuild(solution('tree'), notebook)
    if remarks is not None:
        remarks += more
    names = {}
    for cell in made.cells:
        if is_grade(cell):
            break
        with suppress(Exception):  # as in Jupyter
            exec(cell.source if cell.cell_type == 'code' else '', names)
    for part in 'sum', 'rounds', 'time':
        check = check_of('tree', part)
        judge_notes(check, take_notes(check, names['up_and_down'],
                                      check.cases), check.cases)
    return True


def notebook_of(cells):
    notebook = answered()
    notebook.cells = [cell_of(word) for word in cells.split()]
    return notebook


def test_of_two_answers_with_checks_the_lower_one_counts():
    for cells in ('imports answer sum wrong sum',
                  'imports answer sum half-wrong sum'):
        with pytest.raises(Wrong):
            is_right(notebook_of(cells))


@pytest.mark.parametrize('cells, remark', SPOILED)
def test_a_right_answer_stays_right(tmp_path, cells, remark):
    notebook, remarks = notebook_of(cells), []
    ada = read(tmp_path, json.dumps(notebook))
    assert not ada.remarks and is_right(ada.notebooks['tree'], remarks)
    assert remark in str(remarks) and bool(remark) == bool(remarks)


def test_the_solution_itself_is_remarked():
    remark = "it is the teacher's own solution, cell for cell"
    assert remark in rebuild(solution('tree'), solution('tree')).remarks
    assert not rebuild(solution('tree'), answered()).remarks


@pytest.mark.parametrize('text', RIGHT)
def test_a_right_answer_of_another_program_stays_right(tmp_path, text):
    ada = read(tmp_path, text)
    assert not ada.remarks and is_right(ada.notebooks['tree'], remarks := [])
    assert not remarks


@pytest.mark.parametrize('text', STUBS)
def test_odd_notebooks_can_be_rebuilt(tmp_path, text):
    rebuild(solution('tree'), read(tmp_path, text).notebooks['tree'])


@pytest.mark.parametrize('remark', UNREADABLE)
def test_what_is_no_notebook_is_named(tmp_path, remark):
    ada = read(tmp_path, UNREADABLE[remark])
    assert remark in str(ada.remarks['tree'])
    assert not ada.notebooks


SPY = """
import pathlib, socket
for place in PLACES:
    try:
        list(pathlib.Path(place).iterdir())
        print('could read', place)
    except OSError:
        print('walls')
try:
    socket.create_connection(('127.0.0.1', PORT), timeout=2)
    print('could connect')
except OSError:
    print('walls')
"""
GOES_ON = (
    'exit', 'quit()', '%exit', 'import sys\nsys.exit()',
    'get_ipython().kernel.do_shutdown(False)', 'input()', 'breakpoint()',
    'import os, signal\nos.kill(os.getpid(), signal.SIGINT)',
    'import threading\nthreading.Thread(target=exit).start()',
    'import os\nos.close(1)\nos.close(2)', 'import time\ntime.sleep(0.3)',
    'check = []\nhidden = 3')
# Cells above a right answer, with its points and a part of the remarks.
CELLS = {
    'loops': (LOOP, 10, 'did not end within 10 s'),
    'eats-memory': ('x = bytearray(6 * 2 ** 30)\nx[::4096] = b"1" * len('
                    'x[::4096])', None, ''),
    'forks': ('import os, time\nfor _ in range(10 ** 6):\n'
              '    os.fork() or time.sleep(60)', None, ''),
    'prints': ('for k in range(10 ** 5): print(k)', 10, ''),
    'ends-itself': ('import os; os._exit(0)', 0, 'the process ended'),
    'forges': ('import d2lps.exercises.checking as c\nc.judge_notes = '
               'lambda *args: None\nc.take_notes = lambda *args: "[]"', 0, ''),
    'leads': ('import os\nos.symlink(LED, os.environ["D2LPS_CASES"])',
              None, 'changed the folder of the grading'),
    'spies': (SPY, 10, ''), 'half': (f"'{HALF}'", 10, ''),
    'zero': ("'a\0b'", 10, ''), 'deep': ('(' * 5000 + ')' * 5000, 10, ''),
    'people.json': ('', 10, ''), 'late.json': ('', 10, '')}  # files of ours


def make_class(folder, port):
    """Make a class in `in`, with solutions of all and various notebooks.

    port: one where somebody listens. Returns, from a student to the points
    for tree and a part of the remarks, what is expected.
    """
    expected = {'solved': (10, "it is the teacher's own solution")}

    def add(student, notebook, points, remark='', name='tree'):
        hand_in(folder, student, notebook, name)
        os.utime(folder / 'in' / student / f'{name}.ipynb', (1000, 1000))
        expected[student] = points, remark
        return folder / 'in' / student

    for name in RUNNING:
        hand_in(folder, 'solved', solution(name), name)
    add('stub', released(), 0, 'there is no answer yet')
    stopped = answered()
    answer_cell(stopped).source = 'import nosuch\n' + ANSWER
    add('stopped', stopped, 0, "a cell stopped: No module named 'nosuch'")
    # A file beside a notebook, whose import would end all, is not looked at.
    place = add('beside', answered(), 10)
    for name in 'numpy', 'sitecustomize':
        (place / f'{name}.py').write_text('import os\nos._exit(1)')
    places = [str(ROOT / 'notebooks'), str(ROOT / 'teaching' / 'hidden'),
              str(folder / 'in' / 'solved'), '/usr/local/share']
    for student, (code, points, remark) in CELLS.items():
        for name, value in (('PLACES', places), ('PORT', port),
                            ('LED', str(folder / 'led'))):
            code = code.replace(name, repr(value))
        add(student, with_cell(answered(), code), points, remark)
    notebook = answered()
    k = notebook.cells.index(answer_cell(notebook)) + 1
    notebook.cells[k:k] = map(new_code_cell, GOES_ON)
    add('goes-on', notebook, 10)
    for name in 'minibatch', 'Übung 3 (1)', 'TREE (1)':
        add(f'odd-{name[0]}', answered(), 10,
            f'{name}.ipynb was taken for it', name)
    add('two', released(), 10)
    add('two', answered(), 10, 'more than once: tree.ipynb was left out',
        'tree-Copy1')
    add('empty', '', 0, 'it is no text in JSON')
    place = add('py', '', 0, 'must end with .ipynb')
    (place / 'tree.ipynb').rename(place / 'tree.py')
    place = add('link', '', 0, 'is a link: not read')
    (place / 'tree.ipynb').unlink()
    (place / 'tree.ipynb').symlink_to(folder / 'in' / 'solved' / 'tree.ipynb')
    place = add('pipe', '', 0, 'is no plain file: not read')
    (place / 'tree.ipynb').unlink()
    os.mkfifo(place / 'tree.ipynb')
    (folder / 'in' / 'zip').mkdir()
    (folder / 'in' / 'zip' / 'homework.zip').write_bytes(b'PK')
    (folder / 'in' / '.ada').mkdir()
    return expected


@pytest.fixture(scope='module')
def a_class(tmp_path_factory):
    """The folder of a class that was graded, what was expected, the rows."""
    folder = tmp_path_factory.mktemp('spoiled')
    with socket.create_server(('127.0.0.1', 0)) as somebody:
        expected = make_class(folder, somebody.getsockname()[1])
        return folder, expected, graded(folder)


def shown(folder, student):
    """What the student's cells have shown, as the course keeps it."""
    notebook = nbformat.read(folder / 'out' / 'course' / 'autograded' /
                             student / 'tree' / 'tree.ipynb', 4)
    return '\n'.join(output.get('text', '') + output.get('ename', '')
                     for cell in notebook.cells
                     for output in cell.get('outputs', ()))


@pytest.mark.full
def test_each_has_the_points_of_its_answer_and_its_remarks(a_class):
    folder, expected, rows = a_class
    assert {exercise: rows['solved', exercise]['points']
            for exercise in RUNNING} == dict.fromkeys(RUNNING, '10')
    assert {student for student, _ in rows} == {*expected}
    for student, (points, remark) in expected.items():
        row = rows[student, 'tree']
        assert points is None or float(row['points']) == points, row
        assert remark in row['remarks'], row
        assert remark or points is None or not row['remarks'], row
        page = (folder / 'out' / 'feedback' / f'{student}.html').read_text()
        assert 'hidden(' not in page and 'def ' not in page
    assert 0 < float(rows['leads', 'tree']['points']) < 10
    assert not (folder / 'led').exists()
    with open(folder / 'out' / 'students.csv') as table:
        assert 'homework.zip is no notebook: its name must end' in table.read()


@pytest.mark.full
@pytest.mark.skipif(BEHIND == 'none', reason='there are no walls')
def test_walls_and_limits(a_class):
    """What the kernel could not have, the cell was told, and went on."""
    folder, _, rows = a_class
    assert shown(folder, 'spies').split('\nRight')[0].split() == ['walls'] * 5
    assert 'MemoryError' in shown(folder, 'eats-memory')
    assert rows['eats-memory', 'tree']['points'] == '10'
    assert 'BlockingIOError' in shown(folder, 'forks') or (
        rows['forks', 'tree']['remarks'])
    assert 900 < len(shown(folder, 'prints')) < 200_000
