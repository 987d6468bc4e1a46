"""Whatever a notebook's process sends: points or a zero, and a remark.

Nobody gains by a notebook that cannot be graded, and nobody else loses.
"""
import nbformat
import pytest
from handins import answer_cell, answered, executed, released, with_cell

from teaching import executing

pytestmark = pytest.mark.full

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


def test_no_message_ends_the_grading():
    """Nor changes the points: what is no message is not listened to."""
    made, verdicts, _ = executed(with_messages(answered()))
    assert [verdict.wrong for verdict in verdicts] == [None] * 6
    said = [output for cell in made.cells for output in
            cell.get('outputs', ()) if output.output_type == 'error']
    assert not said, said  # each of them was sent
    nbformat.validate(made)
    nbformat.writes(made).encode()  # a file can have it
    _, verdicts, _ = executed(with_messages(released()))
    assert len(verdicts) == 6 and all(verdict.wrong for verdict in verdicts)


def test_who_never_stops_sending_is_stopped(monkeypatch):
    """Also what is for nobody: others, and the clock, have their turn."""
    monkeypatch.setattr(executing, 'SECONDS', 1)
    notebook = released()
    for _ in range(3):
        with_cell(notebook, SENDS + "while True:\n"
                  "    signed(header(), {'msg_id': 'b'}, {}, text)")
    _, verdicts, _ = executed(notebook)
    assert all(verdict.wrong for verdict in verdicts)


def test_a_message_of_a_check_cell_is_judged_or_wrong():
    """Notes of odd types, beside those that the check hands over."""
    for notes in '[5]', "'[{}]' * 9":
        notebook = answered()
        answer_cell(notebook).source += (
            f'\n{SENDS}\nright = up_and_down\ndef up_and_down(n):\n'
            "    mine['msg_id'] = kernel.get_parent()['header']['msg_id']\n"
            f"    say('display_data', {{'data': {{notes: {notes}}}, "
            "'metadata': {}})\n    return right(n)")
        _, verdicts, _ = executed(notebook)
        assert len(verdicts) == 6
        is_text = notes.startswith("'")  # else it is not listened to
        assert all(bool(verdict.wrong) == is_text
                   for verdict in verdicts), verdicts
