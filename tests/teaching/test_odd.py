"""Whatever a notebook or its process may be: points or a zero, and a remark.

Nobody gains by a notebook that cannot be graded, and nobody else loses.
"""
import asyncio
import csv
import json

import nbformat
import pytest
from handins import ROOT, answer_cell, answered, released, solution, with_cell

from teaching import executing, walls
from teaching.executing import execute
from teaching.grade import Grading, folder_for_results
from teaching.judging import judge
from teaching.submissions import hidden_cases, read_all, rebuild

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings(
    'ignore::sqlalchemy.exc.SAWarning')]


def deep(times):
    """A text: lists in lists. Python's own json could not write it."""
    return '[' * times + ']' * times


def told(notebook):
    """As JSON tells it, to be changed."""
    return json.loads(nbformat.writes(notebook))


def changed(change, notebook=released):
    found = told(notebook('tree'))
    change(found)
    return json.dumps(found)


def cells(change):
    """In all cells of a stub."""
    return changed(lambda it: [change(one) for one in it['cells']])


def code(**more):
    return {'cell_type': 'code', 'metadata': {}, 'outputs': [], 'id': 'x',
            'execution_count': None, 'source': ''} | more


def added(cell, notebook=released):
    return changed(lambda it: it['cells'].append(cell), notebook)


def in_place_of(one, other, text):
    """What only a text can have: JSON with one piece of it replaced."""
    assert one in text
    return text.replace(one, other, 1)


HALF = '\ud83d'  # of an emoji
MARK = 'mark-in-the-text'
# Stubs in JSON of all kinds: 0 points, whether they can be read or not.
STUBS = {
    'half': added(code(source=f"'{HALF}'")),
    'zero-byte': added(code(source="'a\0b'")),
    'source-none': cells(lambda one: one.update(source=None)),
    'no-type': cells(lambda one: one.pop('cell_type')),
    'metadata-list': cells(lambda one: one.update(metadata=[1])),
    'grade-id-list': cells(lambda one: one.update(metadata={
        'nbgrader': {'grade_id': [1], 'grade': {}, 'points': 'x'}})),
    'outputs-odd': added(code(outputs=[{'output_type': 5, 'data': 'x'}, {
        'output_type': 'stream'}, {'output_type': 'display_data'}])),
    'cells-in': changed(lambda it: it['cells'].extend([None, 5, 'x', [[]]])),
    'no-cells': changed(lambda it: it.pop('cells')),
    'format-3-odd': json.dumps({'nbformat': 3, 'worksheets': [
        {'cells': [{'cell_type': 'code', 'input': 5}, None]}, 5]}),
    'nan': in_place_of(f'"{MARK}"', '[NaN, Infinity, -Infinity, 1e999]',
                       added(code(metadata={'a': MARK}))),
    'deep': in_place_of(f'"{MARK}"', deep(100_000),
                        added(code(metadata={'a': MARK}))),
    'deep-code': added(code(source='(' * 5000 + ')' * 5000)),
    'list': '[1, 2]',
    'half-file': '{"cells": [{"cell_t',
    'bytes': b'\xff\xfe\x00',
    'zip': b'PK\x03\x04' + bytes(100)}
# Right answers, with something odd beside them: all points.
RIGHT = {
    'right-half': added(code(source=f"'{HALF}'"), lambda _: answered()),
    'right-comment': nbformat.writes(answered()).replace(
        'def up_and_down(n):', f'def up_and_down(n):  # {HALF}'),
    'right-half-words': added({
        'cell_type': 'markdown', 'metadata': {}, 'id': 'x',
        'source': f'Done {HALF}'}, lambda _: answered()),
    'right-outputs': added(code(outputs=5), lambda _: answered()),
    'right-sql': added(code(cell_type='sql'), lambda _: answered()),
    'right-bom': '\ufeff' + nbformat.writes(answered())}


@pytest.fixture(scope='module')
def rows(tmp_path_factory):
    """What the table says of each of them."""
    folder = tmp_path_factory.mktemp('odd')
    for name, text in {**STUBS, **RIGHT, 'honest': changed(
            lambda it: None)}.items():
        (folder / 'in' / name).mkdir(parents=True)
        (folder / 'in' / name / 'tree.ipynb').write_bytes(
            text if isinstance(text, bytes)
            else text.encode('utf-8', 'surrogatepass'))
    Grading(read_all(folder / 'in'), ['tree'], folder_for_results(
        folder / 'out', folder / 'in'), not walls.problem()).run()
    with open(folder / 'out' / 'grades.csv', newline='') as file:
        return {row['student']: row for row in csv.DictReader(file)}


@pytest.mark.parametrize('student', [*STUBS, 'honest'])
def test_a_stub_has_no_points_whatever_it_is(rows, student):
    assert rows[student]['points'] == '0', rows[student]
    remarks = rows[student]['remarks']
    assert 'could not be' not in remarks and 'Error' not in remarks


@pytest.mark.parametrize('student', RIGHT)
def test_something_odd_beside_a_right_answer_costs_nothing(rows, student):
    assert rows[student]['points'] == '10', rows[student]


# What code of a student's can send as its kernel: the first line of each cell
# that sends one. The kernel's key is theirs.
SENDS = r"""
import itertools, json
kernel = get_ipython().kernel
session, parent = kernel.session, kernel.get_parent()
mine = {'msg_id': parent['header']['msg_id']}
text = {'name': 'stdout', 'text': 'x'}
notes = 'application/vnd.d2lps.notes'
numbers = globals().get('numbers') or itertools.count()
def raw(*frames, to=kernel.iopub_socket):
    to.send_multipart([*frames])
def signed(*four, **to):
    four = [one if isinstance(one, bytes) else json.dumps(one).encode()
            for one in four]
    ident = [kernel._parent_ident['shell'][0]] if to else [b'x']
    raw(*ident, b'<IDS|MSG>', session.sign(four), *four, **to)
def header(kind='stream', **more):
    return {'msg_id': f'a{next(numbers)}', 'msg_type': kind, 'session': 's',
            'username': 'u', 'date': '2026-11-20T17:00:00Z',
            'version': '5.3'} | more
def say(kind, content):
    signed(header(kind), mine, {}, content)
def reply(content):
    signed(header('execute_reply'), mine, {}, content, to=kernel.shell_stream)
"""
MESSAGES = [
    *(f"say('stream', {content})" for content in (
        '{}', "'x'", "{'name': 'stdout', 'text': 5}",
        "{'name': [], 'text': 'x'}")),
    *(f"say('display_data', {content})" for content in (
        "{'data': [notes], 'metadata': {}}",
        "{'data': {'text/plain': {'a': 1}}, 'metadata': {}}",
        "{'data': {'image/png': 5, 'text/html': None}, 'metadata': {}}")),
    "say('execute_result', {})",
    "say('error', {'ename': 5, 'evalue': 5, 'traceback': 5})",
    "say('status', {'execution_state': ['idle']})",
    "say('execute_input', {'execution_count': int('9' * 4000)})",
    "say('nonsense', [[]])", "reply('x')", "reply({'status': []})",
    "raw(b'')", "raw(b'<IDS|MSG>', b'wrong', b'{}', b'{}', b'{}', b'{}')",
    "raw(*[b'x'] * 10_000)", "signed()", "signed({}, {}, {}, {})",
    "signed(header(msg_id=5), mine, {}, text)",
    "signed(header(date=5), mine, {}, text)",
    "signed(header(), {'msg_id': []}, {}, text)",
    r"signed(header(), mine, {}, b'\xff')",
    "signed(header(), mine, {}, b'[' * 100_000)",
    r"signed(header(), mine, {}, {'name': 'stdout', 'text': '\ud800'})"]


def with_messages(notebook):
    """With a cell that tells how to send, and one for each message."""
    for message in MESSAGES:
        with_cell(notebook, SENDS + message)
    return notebook


def graded_here(notebook):
    made, _ = rebuild(solution('tree'), notebook)
    cases = hidden_cases(ROOT / 'teaching' / 'hidden', 'tree')
    problems = asyncio.run(execute(made, cases, 0, behind_walls=False))
    return made, judge('tree', made, cases, problems)


def test_no_message_ends_the_grading(tmp_path):
    """Nor changes the points: what is no message is not listened to."""
    made, verdicts = graded_here(with_messages(answered()))
    assert len(verdicts) == 6 and not any(one.wrong for one in verdicts)
    said = [output for cell in made.cells for output in
            cell.get('outputs', ()) if output.output_type == 'error']
    assert not said, said  # each of them was sent
    nbformat.validate(made)
    nbformat.writes(made).encode()  # a file can have it
    _, verdicts = graded_here(with_messages(released('tree')))
    assert len(verdicts) == 6 and all(one.wrong for one in verdicts)


def test_who_never_stops_sending_is_stopped(monkeypatch):
    """Also what is for nobody: others, and the clock, have their turn."""
    monkeypatch.setattr(executing, 'SECONDS', 3)
    notebook = released('tree')
    for _ in range(3):
        with_cell(notebook, SENDS + "while True:\n"
                  "    signed(header(), {'msg_id': 'b'}, {}, text)")
    _, verdicts = graded_here(notebook)
    assert all(one.wrong for one in verdicts)


def test_a_message_of_a_check_cell_is_judged_or_wrong():
    """Notes of odd types, beside those that the check hands over."""
    for notes in '5', "[5]", "'['", "'[{}]' * 9":
        notebook = answered()
        answer_cell(notebook).source += (
            f'\n{SENDS}\nright = up_and_down\ndef up_and_down(n):\n'
            "    mine['msg_id'] = kernel.get_parent()['header']['msg_id']\n"
            f"    say('display_data', {{'data': {{notes: {notes}}}, "
            "'metadata': {}})\n    return right(n)")
        _, verdicts = graded_here(notebook)
        assert len(verdicts) == 6
        is_text = notes.startswith("'")  # else it is not listened to
        assert all(bool(one.wrong) == is_text for one in verdicts), verdicts


def test_what_exits_ends_no_cell_but_its_own():
    """The cells below are executed, as after `sys.exit()`."""
    notebook = answered()
    k = notebook.cells.index(answer_cell(notebook)) + 1
    notebook.cells[k:k] = map(nbformat.v4.new_code_cell, (
        'exit', 'quit()', '%exit', 'import sys\nsys.exit()',
        'get_ipython().kernel.do_shutdown(False)', 'input()', 'breakpoint()',
        'import os, signal\nos.kill(os.getpid(), signal.SIGINT)',
        'import threading\nthreading.Thread(target=exit).start()',
        'import os\nos.close(1)\nos.close(2)', 'import time\ntime.sleep(0.3)'))
    _, verdicts = graded_here(notebook)
    assert len(verdicts) == 6 and not any(one.wrong for one in verdicts)
