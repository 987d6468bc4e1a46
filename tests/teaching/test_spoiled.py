"""A class of spoiled notebooks: nobody's points are hurt by another's.

Spoiled by accident, in the ways that users of nbgrader report, or on purpose.
A right answer keeps its points, a stub has none, and the remarks say what was
changed. Honest right answers and stubs beside them have 10 points and none.
"""
import contextlib
import csv
import io
import json
import os
import zipfile
from typing import NamedTuple

import nbformat
import pytest
from handins import (
    MISCHIEF,
    answer_cell,
    answered,
    copied,
    is_check,
    released,
    with_cell,
)
from nbformat.v4 import new_code_cell

from teaching import walls
from teaching.grade import main as grade

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings(
    'ignore::sqlalchemy.exc.SAWarning')]

HELPER = 'def span(step):\n    return 2 * step'
BELOW = 'stands below its check: it was run above it'
IMPORTS = 'lines of the first cell, which imports, were changed'
ONCE_MORE = 'below the last check the answer is written once more'


def checks(notebook):
    return [cell for cell in notebook.cells if is_check(cell)]


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


def has_a_helper_below_what_it_tries(notebook):
    tries_something_below(notebook)
    return has_a_helper_below(notebook)


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


def splits_a_check(notebook):
    cell = checks(notebook)[0]
    k = notebook.cells.index(cell)
    notebook.cells.insert(k, copied(cell, '# first'))


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
                      if one is not cell and not is_check(one)]
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


def answers_in_raw_text(notebook):
    as_text(answer_cell(notebook), 'raw')
    return 'the cell for the answer was made text: it was run as code'


def keeps_an_old_answer_as_text(notebook):
    cell = answer_cell(notebook)
    with_cell(notebook, cell.source)
    cell.source = 'def up_and_down(n):\n    return None'
    as_text(cell)


def uses_our_names(notebook):
    with_cell(notebook, 'check = []\nhidden = 3')


def exits(notebook):
    """The cells below are executed, as after `sys.exit()`."""
    k = notebook.cells.index(answer_cell(notebook)) + 1
    notebook.cells[k:k] = map(new_code_cell, (
        'exit', 'quit()', '%exit', 'import sys\nsys.exit()',
        'get_ipython().kernel.do_shutdown(False)', 'input()', 'breakpoint()',
        'import os, signal\nos.kill(os.getpid(), signal.SIGINT)',
        'import threading\nthreading.Thread(target=exit).start()',
        'import os\nos.close(1)\nos.close(2)', 'import time\ntime.sleep(0.3)'))


def never_ends(notebook):
    with_cell(notebook, MISCHIEF['loops'][0])
    return 'did not end within 10 s'


SPOILERS = [
    copies_checks, writes_into_a_copied_check,
    writes_below_into_a_copied_check, has_a_helper_below,
    has_a_helper_below_what_it_tries, gives_it_another_name_below,
    splits_the_answer, splits_a_check,
    merges_answer_and_checks, deletes_checks, edits_checks,
    has_a_million_marks, has_checks_as_text, moves_checks_up,
    moves_one_check_up, is_backwards, deletes_imports, moves_imports_down,
    changes_imports, has_more_imports, answers_in_another_cell,
    answers_below_the_checks, deletes_the_cell_for_it, tries_something_below,
    answers_within_if, leaves_our_last_line, answers_in_text,
    answers_in_raw_text, keeps_an_old_answer_as_text, uses_our_names, exits,
    never_ends]


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
STUBS = {
    'half': added(source=f"'{HALF}'"),
    'zero-byte': added(source="'a\0b'"),
    'source-none': each_cell(lambda one: one.update(source=None)),
    'no-type': each_cell(lambda one: one.pop('cell_type')),
    'metadata-list': each_cell(lambda one: one.update(metadata=[1])),
    'grade-id-list': each_cell(lambda one: one.update(metadata={
        'nbgrader': {'grade_id': [1], 'grade': {}, 'points': 'x'}})),
    'outputs-odd': added(outputs=[{'output_type': 5, 'data': 'x'}, {
        'output_type': 'stream'}, {'output_type': 'display_data'}]),
    'cells-in': told(lambda it: it['cells'].extend([None, 5, 'x', [[]]])),
    'no-cells': told(lambda it: it.pop('cells')),
    'format-3-stub': of_format_3(released),
    'format-3-odd': json.dumps({'nbformat': 3, 'worksheets': [
        {'cells': [{'cell_type': 'code', 'input': 5}, None]}, 5]}),
    'nan': MARKED.replace(MARK, '[NaN, Infinity, -Infinity, 1e999]'),
    'deep': MARKED.replace(MARK, '[' * 100_000 + ']' * 100_000),
    'deep-code': added(source='(' * 5000 + ')' * 5000),
    'list': '[1, 2]',
    'half-file': '{"cells": [{"cell_t',
    'empty': '',
    'huge': ' ' * 20_000_001,
    'many-cells': told(lambda it: it['cells'].extend([{
        'cell_type': 'raw', 'metadata': {}, 'source': ''}] * 1000)),
    'bytes': b'\xff\xfe\x00',
    'a-zip': b'PK\x03\x04' + bytes(100)}
RIGHT = {
    'format-3': of_format_3(),
    'without-ids': told(without_ids, answered),
    'without-names': each_cell(without_names, answered),
    'right-half': added(answered, source=f"'{HALF}'"),
    'right-comment': nbformat.writes(answered()).replace(
        'def up_and_down(n):', f'def up_and_down(n):  # {HALF}'),
    'right-half-words': added(answered, cell_type='markdown',
                              source=f'Done {HALF}'),
    'right-outputs': added(answered, outputs=5),
    'right-sql': added(answered, cell_type='sql'),
    'right-bom': '\ufeff' + nbformat.writes(answered())}
WORDS = {'huge': 'it has more than 20,000,000 bytes',
         'many-cells': 'it has more than 1000 cells',
         'empty': 'it is no text in JSON', 'deep': 'it is nested too deeply',
         'no-cells': 'it has no cells'}
HONEST = 'minibatch', 'tree', 'alpha-beta'


class Class:
    """A folder of a class, and what each student must have.

    expected: from (student, exercise) to points and a part of the remarks.
    """

    def __init__(self, folder):
        self.folder, self.expected = folder, {}
        folder.mkdir()

    def add(self, student, text, points, words='', exercise='tree', name=None,
            path=None):
        """A file in the student's folder, or at another path."""
        path = self.folder / (path or f'{student}/{name or exercise}.ipynb')
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(text if isinstance(text, bytes)
                         else text.encode('utf-8', 'surrogatepass'))
        os.utime(path, (1000, 1000))
        self.expected[student, exercise] = points, words

    def add_archive(self, text, names):
        """The same file by other names, of an archive of a platform."""
        archive = self.folder.parent / 'download.zip'
        with zipfile.ZipFile(archive, 'w') as file:
            for name in names:
                file.writestr(name, text)
        with zipfile.ZipFile(archive) as file:
            file.extractall(self.folder)


def made_class(folder):
    whole = Class(folder)
    right, stub = nbformat.writes(answered()), nbformat.writes(
        released('tree'))
    for student in 'people.json', 'late.json':  # as files of ours are called
        whole.add(student, right, 10)
    for exercise in HONEST:
        whole.add('right', nbformat.writes(answered(exercise)), 10, '',
                  exercise)
        whole.add('stub', nbformat.writes(released(exercise)), 0, '',
                  exercise)
    for spoil in SPOILERS:
        notebook = answered()
        words = spoil(notebook) or ''
        whole.add(spoil.__name__, json.dumps(notebook), 10, words)
    for student, text in STUBS.items():
        whole.add(student, text, 0, WORDS.get(student, ''))
    for student, text in RIGHT.items():
        whole.add(student, text, 10)
    for student, (code, words) in MISCHIEF.items():
        if student in ('ends-itself', 'forks', 'eats-memory'):
            whole.add(student, nbformat.writes(with_cell(answered(), code)),
                      0 if student == 'ends-itself' else None, words or '')
    whole.add('two', stub, 10, 'more than once: tree.ipynb was left out')
    whole.add('two', right, *whole.expected['two', 'tree'],
              name='tree-Copy1')
    whole.add('other', right, 10, 'minibatch.ipynb was taken for it',
              name='minibatch')
    whole.add('odd-name', right, 10, 'Übung 3 (1).ipynb was taken for it',
              name='Übung 3 (1)')
    whole.add('capitals', right, 10, 'TREE (1).IPYNB was taken for it',
              path='capitals/a/TREE (1).IPYNB')
    whole.add('names-it-py', right, 0, 'must end with .ipynb',
              path='names-it-py/tree.py')
    (folder / 'pipe').mkdir()
    os.mkfifo(folder / 'pipe' / 'tree.ipynb')
    whole.expected['pipe', 'tree'] = 0, 'is no plain file: not read'
    (folder / 'zip').mkdir()
    (folder / 'zip' / 'homework.zip').write_bytes(b'PK')
    (folder / '.ada').mkdir()
    whole.add_archive(right, [
        'Zoë Müller_12_assignsubmission_file_/tree.ipynb',
        'Zoë Müller_12_assignsubmission_onlinetext_/onlinetext.html',
        'Kim_13_assignsubmission_file_tree.ipynb',
        'lovelaceada_101_9001_tree.ipynb',
        'lovelaceada_101_9002_tree-1.ipynb', 'müller_LATE_102_9003_tree.ipynb',
        'anon_aB3x9_9004_tree (1).ipynb', 'eve_105_101_9009_tree.ipynb'])
    return whole, {
        ('Zoë_Müller_12', 'tree'): (10, ''), ('Kim_13', 'tree'): (10, ''),
        ('lovelaceada_101', 'tree'): (10, 'handed in more than once: '
                                      'lovelaceada_101_9001_tree.ipynb was'),
        ('müller_102', 'tree'): (10, '1 day late'),
        ('anon_aB3x9', 'tree'): (10, 'tree (1).ipynb was taken for it')}


class Graded(NamedTuple):
    """What was expected of a class, the rows of both tables, and what the
    command said."""
    expected: dict
    rows: dict
    students: dict
    said: str


@pytest.fixture(scope='module')
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp('spoiled')
    whole, platforms = made_class(folder / 'in')
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        grade([str(folder / 'in'), '--to', str(folder / 'out'), '--walls',
               'none' if walls.problem() else 'bwrap'])

    def rows(name, *keys):
        with open(folder / 'out' / name, encoding='utf-8-sig',
                  newline='') as file:
            return {tuple(row[key] for key in keys): row
                    for row in csv.DictReader(file)}
    return Graded(whole.expected | platforms,
                  rows('grades.csv', 'student', 'exercise'),
                  rows('students.csv', 'student'), said.getvalue())


def test_each_has_the_points_of_its_answer_and_no_other(graded):
    found = {key: float(row['points']) for key, row in graded.rows.items()}
    expected = {key: points for key, (points, _) in graded.expected.items()}
    assert found.keys() == expected.keys()
    assert {key: found[key] for key, points in expected.items()
            if points not in (None, found[key])} == {}


def test_remarks_say_what_was_changed_and_nothing_else(graded):
    for key, (points, words) in graded.expected.items():
        remarks = graded.rows[key]['remarks']
        assert words in remarks, (key, remarks)
        assert words or not remarks or key[0] in STUBS or points is None, (
            key, remarks)
        assert 'could not be' not in remarks and 'Error' not in remarks, key


def test_what_is_no_answer_is_named(graded):
    assert graded.students['zip',]['remarks'] == (
        'homework.zip is no notebook: its name must end with .ipynb, and an '
        'archive must be unpacked')
    assert ("in no student's folder, so left out: .ada "
            'eve_105_101_9009_tree.ipynb\n') in graded.said
