"""A class is graded with `teaching.grade`, as a teacher does."""
import csv
import html
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from handins import (
    MISCHIEF,
    ROOT,
    RUNNING,
    answered,
    make_class,
    released,
    with_cell,
)

from teaching import walls
from d2lps.exercises.checking import EXERCISES

pytestmark = pytest.mark.full
needs_walls = pytest.mark.skipif(bool(walls.problem()),
                                 reason=f'no walls: {walls.problem()}')


def command(folder, *options):
    """Grades `in` below a folder into `out`."""
    return [sys.executable, '-m', 'teaching.grade', str(folder / 'in'), '--to',
            str(folder / 'out'), '--walls',
            'none' if walls.problem() else 'bwrap', *options]


class Graded:
    """What the command made of a class, and said."""

    def __init__(self, folder, *options):
        done = subprocess.run(command(folder, *options), cwd=ROOT, text=True,
                              capture_output=True, timeout=1800)
        assert done.returncode == 0, done.stdout + done.stderr
        self.folder, self.said = folder / 'out', done.stdout
        with open(self.folder / 'grades.csv', newline='') as file:
            self.rows = {(row['student'], row['exercise']): row
                         for row in csv.DictReader(file)}

    def points(self, student, exercise='tree'):
        return float(self.rows[student, exercise]['points'])

    def remarks(self, student):
        return self.rows[student, 'tree']['remarks']

    def page(self, student):
        path = self.folder / 'feedback' / f'{student}.html'
        return html.unescape(path.read_text())

    def outputs(self, student):
        notebook = nbformat.read(
            self.folder / 'course' / 'autograded' / student / 'tree' /
            'tree.ipynb', 4)
        return '\n'.join(output.get('text', '') + output.get('ename', '')
                         for cell in notebook.cells
                         for output in cell.get('outputs', ()))


@pytest.fixture(scope='module')
def graded(tmp_path_factory):
    """Most tests below look at one grading of one class."""
    folder = tmp_path_factory.mktemp('class')
    with socket.create_server(('127.0.0.1', 0)) as somebody:
        make_class(folder / 'in', somebody.getsockname()[1])
        return Graded(folder, '--exercises', *EXERCISES)


def test_the_solutions_have_all_points(graded):
    assert {exercise: graded.points('solved', exercise)
            for exercise in RUNNING} == dict.fromkeys(RUNNING, 10)


def test_everybody_has_a_row_for_each_exercise_and_a_page(graded):
    students = {student for student, _ in graded.rows}
    assert len(graded.rows) == len(students) * len(EXERCISES)
    pages = (graded.folder / 'feedback').glob('*.html')
    assert {page.stem for page in pages} == students
    for student in students:  # no code of checks, and no solution
        page = graded.page(student)
        assert 'hidden(' not in page and 'def ' not in page


@pytest.mark.parametrize('student', MISCHIEF)
def test_mischief_stops_nothing_and_is_named(graded, student):
    _, words = MISCHIEF[student]
    if words:
        assert words in graded.remarks(student)
    points = {'loops': 10, 'prints': 10, 'ends-itself': 0, 'forges': 0}
    if student in points:
        assert graded.points(student) == points[student]
    if student == 'ends-itself':
        assert 'before it came to this cell' in graded.page(student)
        assert 'before it came' not in graded.remarks(student)


def test_a_link_leads_the_hidden_cases_nowhere(graded):
    assert 'changed the folder of the grading' in graded.remarks('leads')
    assert 0 < graded.points('leads') < 10
    assert not (graded.folder.parent / 'in' / 'led').exists()


@needs_walls
def test_memory_and_processes_have_limits(graded):
    """What the kernel could not have, the cell was told, and went on."""
    assert 'MemoryError' in graded.outputs('eats-memory')
    assert graded.points('eats-memory') == 10
    assert 'BlockingIOError' in graded.outputs('forks') or (
        graded.remarks('forks'))


@needs_walls
def test_solutions_and_others_cannot_be_read(graded):
    assert graded.outputs('spies').split('\nRight')[0].split() == [
        'walls'] * 5
    assert graded.points('spies') == 10


def test_a_hundred_thousand_lines_are_cut(graded):
    assert 900 < len(graded.outputs('prints')) < 200_000


def test_names_of_folders_do_no_harm(graded):
    assert '<h1>Exercises: =cmd() &lt;b&gt;</h1>' in (
        graded.folder / 'feedback' / '_cmd____b_.html').read_text()
    table = (graded.folder / 'grades.csv').read_text()
    assert "_cmd____b_,'=cmd() <b>,tree" in table and ',=' not in table


def test_nothing_is_left_running(graded):
    left = [one for one in psutil.process_iter(['cmdline'])
            if str(walls.START) in (one.info['cmdline'] or ())
            and not any(map(is_at_work, one.parents()))]
    assert not left


def is_at_work(process):
    """Is it one of the tests that run beside this one?"""
    try:
        words = ' '.join(process.cmdline())
    except psutil.Error:
        return False
    return 'pytest' in words or 'teaching.grade' in words or (
        'execnet' in words)


def put(folder, student, notebook, name='tree'):
    (folder / 'in' / student).mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / 'in' / student / f'{name}.ipynb')


def test_what_is_missing_stays_and_what_nobody_asked_for_does_not_count(
        tmp_path):
    put(tmp_path, 'ada', answered())
    put(tmp_path, 'bob', released('tree'))
    put(tmp_path, 'bob', answered('minibatch'), 'minibatch')
    first = Graded(tmp_path)
    assert first.points('ada') == 10 and first.points('bob') == 0
    assert ('ada', 'minibatch') not in first.rows
    assert 'not handed in by all' in first.said
    assert 'minibatch (1)' in first.said
    assert 'minibatch' not in first.page('ada')
    (tmp_path / 'in' / 'bob' / 'minibatch.ipynb').unlink()
    second = Graded(tmp_path, '--exercises', 'tree', 'minibatch',
                    '--again', 'ada')
    assert 'bob, minibatch: not handed in this time' in second.said
    assert '1 notebooks graded' in second.said
    assert second.points('bob', 'minibatch') == 10
    assert second.points('ada', 'minibatch') == 0


@needs_walls
@pytest.mark.parametrize('sign', [signal.SIGINT, signal.SIGTERM])
def test_it_can_be_ended_and_what_was_graded_stays(tmp_path, sign):
    put(tmp_path, 'anna', with_cell(answered(), MISCHIEF['loops'][0]))
    # Not in tmp_path: the name of a socket must be short.
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder)
        grading = subprocess.Popen(
            command(tmp_path), cwd=ROOT, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**os.environ, 'TMPDIR': folder})
        try:
            until = time.time() + 300
            while not list(temporary.glob('d2lps-*/connection.json')):
                assert time.time() < until and grading.poll() is None
                time.sleep(0.1)
            time.sleep(2)  # the kernel starts, or runs
            grading.send_signal(sign)
            said, _ = grading.communicate(timeout=300)
        finally:
            grading.kill()
        assert grading.returncode == 1
        assert said.strip() == (
            'd2lps: ended before all were graded; what was graded stays, and '
            'the same again goes on from there')
        assert not list(temporary.glob('*'))
    put(tmp_path, 'anna', answered())
    assert 'anna, tree: 10 of 10' in Graded(tmp_path).said
