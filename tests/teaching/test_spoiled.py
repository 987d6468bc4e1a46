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

from d2lps.exercises.checking import check_of, judge_notes, take_notes
from teaching.rebuilding import rebuild
from teaching.submissions import read_all

HELPER = 'def span(step):\n    return 2 * step'
BELOW = 'stands below its check: it was run above it'
IMPORTS = 'lines of the first cell, which imports, were changed'
ONCE_MORE = 'below the last check the answer is written once more'


def checks(notebook):
    return [cell for cell in notebook.cells if is_grade(cell)]


def as_text(cell, kind='markdown'):
    cell.cell_type = kind
    del cell['outputs'], cell['execution_count']


def with_helper(notebook):
    """The answer to tree, which now calls a helper."""
    answer = answer_cell(notebook)
    assert '2 * step' in answer.source
    answer.source = answer.source.replace('2 * step', 'span(step)')
    return answer


# Each of these spoils a notebook with a right answer to tree, which keeps its
# points, and may return what the remarks say.
def copies_checks(notebook):
    for cell in checks(notebook):
        notebook.cells.append(copied(cell))
    notebook.cells.insert(0, copied(cell, '# nothing'))


def writes_into_a_copied_check(notebook):
    k = notebook.cells.index(with_helper(notebook))
    notebook.cells.insert(k, copied(checks(notebook)[0], HELPER))


def writes_below_into_a_copied_check(notebook):
    with_helper(notebook)
    notebook.cells.append(copied(checks(notebook)[0], HELPER))
    return BELOW


def has_a_helper_below(notebook):
    with_helper(notebook)
    notebook.cells.append(new_code_cell(HELPER))
    return BELOW


def gives_it_another_name_below(notebook):
    cell = answer_cell(notebook)
    cell.source = cell.source.replace('up_and_down', 'mine')
    notebook.cells.append(new_code_cell('up_and_down = mine'))
    return BELOW


def splits_the_answer(notebook):
    """Both halves have its name; the upper one, its comment."""
    k = notebook.cells.index(with_helper(notebook))
    notebook.cells.insert(k, copied(notebook.cells[k], HELPER))
    notebook.cells.insert(k, copied(notebook.cells[k], '# My answer:'))


def merges_answer_and_checks(notebook):
    for cell in checks(notebook):
        notebook.cells.remove(cell)
        answer_cell(notebook).source += f'\n{cell.source}'


def deletes_checks(notebook):
    for cell in checks(notebook):
        notebook.cells.remove(cell)
    return 'the cell check-sum was deleted: put back'


def edits_checks(notebook):
    for cell in checks(notebook):
        cell.source = 'print("Right: all of it")'
    return 'the cell check-sum was changed: put back'


def has_a_million_marks(notebook):
    """A regular expression could take hours for it."""
    checks(notebook)[0].source = '### BEGIN HIDDEN TESTS\n' * 500_000
    return 'the cell check-sum was changed: put back'


def has_checks_as_text(notebook):
    as_text(checks(notebook)[0])
    as_text(checks(notebook)[1], 'raw')


def moves_checks_up(notebook):
    ours = checks(notebook)
    notebook.cells = [*ours, *(cell for cell in notebook.cells
                               if cell not in ours)]
    return BELOW


def moves_one_check_up(notebook):
    notebook.cells.insert(1, notebook.cells.pop(
        notebook.cells.index(checks(notebook)[0])))


def is_backwards(notebook):
    notebook.cells.reverse()
    return BELOW


def deletes_imports(notebook):
    del notebook.cells[1]
    return IMPORTS


def moves_imports_down(notebook):
    notebook.cells.append(notebook.cells.pop(1))
    return IMPORTS


def changes_imports(notebook):
    notebook.cells[1].source = 'import d2lps'
    return IMPORTS


def has_more_imports(notebook):
    notebook.cells[1].source = f'import math\n{notebook.cells[1].source}  \n'


def answers_in_another_cell(notebook):
    """Above the cell for it, in which the stub stays."""
    cell = answer_cell(notebook)
    with_cell(notebook, cell.source)
    cell.source = answer_cell(released('tree')).source


def answers_below_the_checks(notebook):
    cell = answer_cell(notebook)
    notebook.cells.append(new_code_cell(cell.source))
    cell.source = answer_cell(released('tree')).source
    return BELOW


def deletes_the_cell_for_it(notebook):
    """First wrong and then right, each with a check below it."""
    cell, check = answer_cell(notebook), checks(notebook)[0]
    notebook.cells = [one for one in notebook.cells
                      if one is not cell and not is_grade(one)]
    notebook.cells += [
        new_code_cell('def up_and_down(n):\n    return None'), copied(check),
        new_code_cell(cell.source), copied(check)]
    return 'the cell check-rounds was deleted'


def tries_something_below(notebook):
    notebook.cells.append(new_code_cell('def up_and_down(n):\n    return 1'))
    return ONCE_MORE


def answers_within_if(notebook):
    cell = answer_cell(notebook)
    cell.source = 'if True:\n' + ''.join(
        f'    {line}' for line in cell.source.splitlines(keepends=True))


def leaves_our_last_line(notebook):
    answer_cell(notebook).source += (
        "\n    raise NotImplementedError('write your answer here')")


def answers_in_text(notebook):
    as_text(answer_cell(notebook))
    return 'the cell for the answer was made text: it was run as code'


def keeps_an_old_answer_as_text(notebook):
    cell = answer_cell(notebook)
    with_cell(notebook, cell.source)
    cell.source = 'def up_and_down(n):\n    return None'
    as_text(cell)


SPOILERS = [
    copies_checks, writes_into_a_copied_check,
    writes_below_into_a_copied_check, has_a_helper_below,
    gives_it_another_name_below, splits_the_answer, merges_answer_and_checks,
    deletes_checks, edits_checks, has_a_million_marks, has_checks_as_text,
    moves_checks_up, moves_one_check_up, is_backwards, deletes_imports,
    moves_imports_down, changes_imports, has_more_imports,
    answers_in_another_cell, answers_below_the_checks, deletes_the_cell_for_it,
    tries_something_below, answers_within_if, leaves_our_last_line,
    answers_in_text, keeps_an_old_answer_as_text]


# Files in JSON, by what is odd about them.
def told(change, notebook=released):
    """A file with a notebook that was changed as JSON tells it."""
    found = json.loads(nbformat.writes(notebook('tree')))
    change(found)
    return json.dumps(found)


def each_cell(change, notebook=released):
    return told(lambda it: [change(one) for one in it['cells']], notebook)


def added(notebook=released, **more):
    """With one more cell."""
    cell = {'cell_type': 'code', 'metadata': {}, 'outputs': [], 'id': 'x',
            'execution_count': None, 'source': ''} | more
    return told(lambda it: it['cells'].append(cell), notebook)


def without_names(cell):
    """As Colab and others keep a cell."""
    cell.pop('id')
    cell['metadata'] = {}


def without_ids(it):
    it['nbformat_minor'] = 4
    for cell in it['cells']:
        cell.pop('id')


def of_format_3(notebook=answered):
    return nbformat.writes(notebook('tree'), 3)


HALF = '\ud83d'  # of an emoji
MARK = '"mark-in-the-text"'
MARKED = added(metadata={'a': MARK.strip('"')})
# By what the remarks say of it.
UNREADABLE = {
    'it has more than 20,000,000 bytes': ' ' * 20_000_001,
    'it has more than 1000 cells': told(lambda it: it['cells'].extend(
        [{'cell_type': 'raw', 'metadata': {}, 'source': ''}] * 1000)),
    'it is no text in JSON': '',
    'it is no text in JSON.': '{"cells": [{"cell_t',
    'it is no text in JSON:': b'PK\x03\x04' + bytes(100),
    'it is nested too deeply': MARKED.replace(
        MARK, '[' * 100_000 + ']' * 100_000),
    'it has no cells': told(lambda it: it.pop('cells')),
    'it has no cells.': '[1, 2]'}
STUBS = [
    each_cell(lambda one: one.update(source=None)),
    each_cell(lambda one: one.pop('cell_type')),
    each_cell(lambda one: one.update(metadata=[1])),
    each_cell(lambda one: one.update(metadata={
        'nbgrader': {'grade_id': [1], 'grade': {}, 'points': 'x'}})),
    added(outputs=[{'output_type': 5, 'data': 'x'}, {
        'output_type': 'stream'}, {'output_type': 'display_data'}]),
    told(lambda it: it['cells'].extend([None, 5, 'x', [[]]])),
    of_format_3(released),
    json.dumps({'nbformat': 3, 'worksheets': [
        {'cells': [{'cell_type': 'code', 'input': 5}, None]}]}),
    MARKED.replace(MARK, '[NaN, Infinity, -Infinity, 1e999]')]
RIGHT = [
    of_format_3(), told(without_ids, answered),
    each_cell(without_names, answered),
    added(answered, cell_type='markdown', source=f'Done {HALF}'),
    added(answered, outputs=5), added(answered, cell_type='sql'),
    '\ufeff' + nbformat.writes(answered())]


def read(folder, text):
    """A file of ada's with this text, as it is read."""
    (folder / 'ada').mkdir()
    (folder / 'ada' / 'tree.ipynb').write_bytes(
        text if isinstance(text, bytes) else text.encode())
    [ada] = read_all(folder)
    return ada


def is_right(notebook, remarks=None):
    """Does the answer pass the visible checks? Without a kernel."""
    made, found = rebuild(solution('tree'), notebook)
    if remarks is not None:
        remarks += found
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


@pytest.mark.parametrize('spoil', SPOILERS, ids=lambda one: one.__name__)
def test_a_right_answer_stays_right(tmp_path, spoil):
    notebook, remarks = answered(), []
    words = spoil(notebook) or ''
    ada = read(tmp_path, json.dumps(notebook))
    assert not ada.remarks and is_right(ada.notebooks['tree'], remarks)
    assert words in str(remarks) and bool(words) == bool(remarks)


@pytest.mark.parametrize('text', RIGHT)
def test_a_right_answer_of_another_program_stays_right(tmp_path, text):
    ada = read(tmp_path, text)
    assert not ada.remarks and is_right(ada.notebooks['tree'], remarks := [])
    assert not remarks


@pytest.mark.parametrize('text', STUBS)
def test_odd_notebooks_can_be_rebuilt(tmp_path, text):
    rebuild(solution('tree'), read(tmp_path, text).notebooks['tree'])


@pytest.mark.parametrize('words', UNREADABLE)
def test_what_is_no_notebook_is_named(tmp_path, words):
    ada = read(tmp_path, UNREADABLE[words])
    assert words.rstrip('.:') in str(ada.remarks['tree'])
    assert not ada.notebooks


SPY = """
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
    'leads': ('import os\nos.symlink({led!r}, os.environ["D2LPS_CASES"])',
              None, 'changed the folder of the grading'),
    'spies': (SPY, 10, ''), 'half': (f"'{HALF}'", 10, ''),
    'zero': ("'a\0b'", 10, ''), 'deep': ('(' * 5000 + ')' * 5000, 10, ''),
    'people.json': ('', 10, ''), 'late.json': ('', 10, '')}  # files of ours


def make_class(folder, port):
    """Make a class in `in`, with solutions of all and various notebooks.

    port: one where somebody listens. Returns, from a student to the points
    for tree and a part of the remarks, what is expected.
    """
    expected = {'solved': (10, '')}

    def add(student, notebook, points, words='', name='tree'):
        hand_in(folder, student, notebook, name)
        os.utime(folder / 'in' / student / f'{name}.ipynb', (1000, 1000))
        expected[student] = points, words
        return folder / 'in' / student

    for name in RUNNING:
        hand_in(folder, 'solved', solution(name), name)
    add('stub', released(), 0)
    places = [str(ROOT / 'notebooks'), str(ROOT / 'teaching' / 'hidden'),
              str(folder / 'in' / 'solved'), '/usr/local/share']
    for student, (code, points, words) in CELLS.items():
        for name, value in (('places', places), ('port', port),
                            ('led', str(folder / 'led'))):
            code = code.replace(f'{{{name}}}', str(value)).replace(
                f'{{{name}!r}}', repr(value))
        add(student, with_cell(answered(), code), points, words)
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
    place = add('link', '', 0, 'is a link to another place: not read')
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
    for student, (points, words) in expected.items():
        row = rows[student, 'tree']
        assert points is None or float(row['points']) == points, row
        assert words in row['remarks'], row
        assert words or points is None or not row['remarks'], row
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
