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
    'lone': added(code(source="'\ud800'")),
    'half-words': added({'cell_type': 'markdown', 'metadata': {}, 'id': 'x',
                         'source': f'# {HALF}'}),
    'zero-byte': added(code(source="'a\0b'")),
    'source-number': cells(lambda one: one.update(source=5)),
    'source-none': cells(lambda one: one.update(source=None)),
    'source-numbers': cells(lambda one: one.update(source=[5, None])),
    'source-dict': cells(lambda one: one.update(source={'a': 1})),
    'no-source': cells(lambda one: one.pop('source')),
    'no-type': cells(lambda one: one.pop('cell_type')),
    'type-sql': added(code(cell_type='sql')),
    'type-list': added(code(cell_type=[])),
    'no-metadata': cells(lambda one: one.pop('metadata')),
    'metadata-none': cells(lambda one: one.update(metadata=None)),
    'metadata-list': cells(lambda one: one.update(metadata=[1])),
    'nbgrader-list': cells(lambda one: one.update(metadata={'nbgrader': [1]})),
    'grade-id-list': cells(lambda one: one.update(metadata={
        'nbgrader': {'grade_id': [1], 'grade': {}, 'points': 'x'}})),
    'tags': cells(lambda one: one.update(metadata={'tags': 5,
                                                   'collapsed': [1]})),
    'id-list': cells(lambda one: one.update(id=[1])),
    'id-none': cells(lambda one: one.update(id=None)),
    'ids-equal': cells(lambda one: one.update(id='answer')),
    'outputs-number': added(code(outputs=5)),
    'outputs-none': added(code(outputs=[None, 5, 'x'])),
    'outputs-odd': added(code(outputs=[{'output_type': 5, 'data': 'x'}, {
        'output_type': 'stream'}, {'output_type': 'display_data'}])),
    'count': added(code(execution_count=[1])),
    'attachments': added({'cell_type': 'markdown', 'metadata': {}, 'id': 'x',
                          'source': '![](attachment:a)', 'attachments': 5}),
    'cells-none': changed(lambda it: it.update(cells=None)),
    'cells-number': changed(lambda it: it.update(cells=5)),
    'cells-text': changed(lambda it: it.update(cells='abc')),
    'cells-dict': changed(lambda it: it.update(cells={'a': 1})),
    'cells-in': changed(lambda it: it['cells'].extend([None, 5, 'x', [[]]])),
    'no-cells': changed(lambda it: it.pop('cells')),
    'empty': changed(lambda it: it.update(cells=[])),
    'no-format': changed(lambda it: it.pop('nbformat')),
    'format-text': changed(lambda it: it.update(nbformat='4')),
    'format-3': changed(lambda it: it.update(nbformat=3)),
    'format-3-odd': json.dumps({'nbformat': 3, 'worksheets': [
        {'cells': [{'cell_type': 'code', 'input': 5}, None]}, 5]}),
    'format-1': changed(lambda it: it.update(nbformat=1)),
    'format-99': changed(lambda it: it.update(nbformat=99)),
    'format-huge': changed(lambda it: it.update(nbformat=10 ** 100)),
    'minor': changed(lambda it: it.update(nbformat_minor=[2])),
    'top-metadata': changed(lambda it: it.update(metadata=5)),
    'kernelspec': changed(lambda it: it.update(metadata={'kernelspec': 5,
                                                         'widgets': 'x'})),
    'nan': in_place_of(f'"{MARK}"', '[NaN, Infinity, -Infinity, 1e999]',
                       added(code(metadata={'a': MARK}))),
    'digits': in_place_of(f'"{MARK}"', '9' * 10_000,
                          added(code(metadata={'a': MARK}))),
    'digits-some': in_place_of(f'"{MARK}"', '9' * 4000,
                               added(code(execution_count=MARK))),
    'deep': in_place_of(f'"{MARK}"', deep(100_000),
                        added(code(metadata={'a': MARK}))),
    'deep-some': in_place_of(f'"{MARK}"', deep(900),
                             added(code(metadata={'a': MARK}))),
    'deep-few': in_place_of(f'"{MARK}"', deep(300),
                            added(code(metadata={'a': MARK}))),
    'deep-code': added(code(source='(' * 5000 + ')' * 5000)),
    'deep-blocks': added(code(source='\n'.join(
        ' ' * k + 'if 1:' for k in range(500)))),
    'twice': in_place_of('"cells"', '"cells": [5], "cells"',
                         changed(lambda it: None)),
    'list': '[1, 2]', 'number': '5', 'none': 'null', 'text': '"tree"',
    'nothing': '', 'space': ' \n', 'half-file': '{"cells": [{"cell_t',
    'bytes': b'\xff\xfe\x00', 'bytes-in': added(code(source=MARK)).encode(
        ).replace(MARK.encode(), b'\xc3('),
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
        "{'name': 'stdout'}", "{'text': 'x'}", "{}", "[]", "'x'", 'None', '5',
        "{'name': 'stdout', 'text': 5}", "{'name': 5, 'text': 'x'}",
        "{'name': '<b>', 'text': 'x'}", "{'name': [], 'text': 'x'}",
        "{'name': 'stdout', 'text': ['x', 5]}",
        "{'name': 'stdout', 'text': 'x', 'execution_count': 'x'}",
        "{'name': 'stdout', 'text': 'x', 'transient': 5}")),
    *(f"say('display_data', {content})" for content in (
        "{'data': 'x', 'metadata': {}}", "{'data': None, 'metadata': {}}",
        "{'data': [notes], 'metadata': {}}", "{'data': {}}",
        "{'data': {'text/plain': {'a': 1}}, 'metadata': {}}",
        "{'data': {'text/plain': 'x'}, 'metadata': 'x'}",
        "{'data': {'text/plain': 'x'}, 'metadata': {}, 'transient': 'x'}",
        "{'data': {'text/plain': 'x'}, 'metadata': {}, "
        "'transient': {'display_id': ['x']}}",
        "{'data': {'image/png': 5, 'text/html': None}, 'metadata': {}}",
        "{'data': {'text/plain': 'x'}, 'metadata': {}, "
        "'transient': {'display_id': 'x'}}", "{'metadata': {}}")),
    "say('update_display_data', {'data': 'x', 'metadata': {}, "
    "'transient': {'display_id': 'x'}})",
    "say('execute_result', {'data': {'text/plain': 'x'}, 'metadata': {}, "
    "'execution_count': '<b>'})",
    "say('execute_result', {'data': {'text/plain': 'x'}, 'metadata': {}})",
    "say('execute_result', {})",
    *(f"say('error', {content})" for content in (
        "{}", "{'ename': 5, 'evalue': 5, 'traceback': 5}",
        "{'ename': 'a', 'evalue': 'b', 'traceback': [5, None]}",
        "{'ename': [], 'evalue': {}, 'traceback': {}}")),
    *(f"say('status', {content})" for content in (
        "{}", "[]", "{'execution_state': 5}", "{'execution_state': ['idle']}",
        "None")),
    "say('execute_input', {'execution_count': '<b>'})",
    "say('execute_input', {'execution_count': int('9' * 4000)})",
    "say('execute_input', [])", "say('clear_output', 5)",
    "say('comm_open', {})", "say('comm_msg', {'data': 5})", "say('', {})",
    "say('nonsense', [[]])",
    *(f"reply({content})" for content in (
        '{}', '[]', 'None', "{'status': 5}", "{'status': []}",
        "{'status': 'error'}", "{'status': 'aborted'}")),
    "raw(b'')", "raw(b'x', b'y')", "raw(b'<IDS|MSG>')",
    "raw(b'<IDS|MSG>', b'', b'{}', b'{}', b'{}', b'{}')",
    "raw(b'<IDS|MSG>', b'wrong', b'{}', b'{}', b'{}', b'{}')",
    "raw(*[b'x'] * 10_000)",
    "signed()", "signed({})", "signed({}, {}, {}, {})",
    "signed(header(msg_id=5), mine, {}, text)",
    "signed(header(msg_type=None), mine, {}, text)",
    "signed(header(kind=['stream']), mine, {}, text)",
    "signed({'msg_type': 'stream'}, mine, {}, text)",
    "signed({'msg_id': 'a'}, mine, {}, text)",
    "signed([], mine, {}, text)", "signed(5, mine, {}, text)",
    "signed(header(date='2026-99-99T99:99:99Z'), mine, {}, text)",
    "signed(header(date=5), mine, {}, text)",
    "signed(header(), [], {}, text)", "signed(header(), None, {}, text)",
    "signed(header(), 5, {}, text)", "signed(header(), 'x', {}, text)",
    "signed(header(), {'msg_id': []}, {}, text)",
    "signed(header(), mine, 5, text)", "signed(header(), mine, [], text)",
    "signed(header(), mine, {}, b'{')", r"signed(header(), mine, {}, b'\xff')",
    "signed(header(), mine, {}, b'[' * 100_000)",
    "signed(header(), mine, {}, b'{\"a\":' + b'[' * 900 + b']' * 900 + b'}')",
    "signed(header(), mine, {}, b'9' * 10_000)",
    "signed(header(), mine, {}, b'NaN')",
    r"signed(header(), mine, {}, {'name': 'stdout', 'text': '\ud800'})",
    r"signed(header('display_data'), mine, {}, {'metadata': {}, "
    r"'data': {'text/plain': '\ud800'}})"]


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


def test_what_fails_while_it_runs_is_the_students(monkeypatch):
    """Whatever it is: the check cells behind it say so."""
    notebook = with_cell(answered(), 'tell = 5')
    understood = executing.Client.process_message

    def fails(self, message, cell, k):
        if cell.source == 'tell = 5':
            raise KeyError('of a kind that nobody has thought of')
        return understood(self, message, cell, k)
    monkeypatch.setattr(executing.Client, 'process_message', fails)
    _, verdicts = graded_here(notebook)
    assert all('could not be understood' in one.wrong for one in verdicts)


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
