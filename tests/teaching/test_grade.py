"""A class is graded with `teaching.grade`, and nbgrader's gradebook tells."""
import csv
import html
import os
import signal
import socket
import subprocess
import sys
import time

import importers
import nbformat
import psutil
import pytest
from handins import (
    MISCHIEF,
    ROOT,
    RUNNING,
    SOME,
    answered,
    make_class,
    released,
    with_answer,
    with_cell,
    wrong_answer,
)

from teaching import walls
from teaching.course import Course
from d2lps.exercises.checking import EXERCISES

pytestmark = pytest.mark.full
needs_walls = pytest.mark.skipif(bool(walls.problem()),
                                 reason=f'no walls: {walls.problem()}')


class Graded:
    """What the command made of a class."""

    def __init__(self, folder, said):
        self.folder, self.said = folder, said
        with open(folder / 'grades.csv', newline='') as file:
            self.rows = {(row['student'], row['exercise']): row
                         for row in csv.DictReader(file)}

    def points(self, student, exercise='tree'):
        return float(self.rows[student, exercise]['points'])

    def remarks(self, student, exercise='tree'):
        return self.rows[student, exercise]['remarks']

    def page(self, student):
        path = self.folder / 'feedback' / f'{student}.html'
        return html.unescape(path.read_text())


@pytest.fixture(scope='module')
def quick(tmp_path_factory):
    """An environment without what jsonschema takes two seconds to load, for
    addresses in other alphabets, in each process of nbgrader's."""
    folder = tmp_path_factory.mktemp('quick')
    (folder / 'rfc3987_syntax.py').write_text('raise ImportError')
    path = os.pathsep.join([str(folder), os.environ.get('PYTHONPATH', '')])
    return {**os.environ, 'PYTHONPATH': path}


@pytest.fixture(scope='module')
def graded(tmp_path_factory, quick):
    """Everything below looks at one grading of one class."""
    folder = tmp_path_factory.mktemp('class')
    (folder / 'due.csv').write_text('exercise,due\ntree,2026-11-20 18:00Z\n')
    (folder / 'exported.csv').write_text(
        'Student,ID,SIS Login ID,Section\n    Points Possible,,,\n'
        '"Lovelace, Ada",101,solved,A\n"Lee, Kim",102,misnames,A\n')
    with socket.create_server(('127.0.0.1', 0)) as somebody:
        make_class(folder / 'in', somebody.getsockname()[1])
        done = subprocess.run(
            [sys.executable, '-m', 'teaching.grade', str(folder / 'in'),
             '--to', str(folder / 'out'), '--exercises', *EXERCISES,
             '--due', str(folder / 'due.csv'), '--late', '10',
             '--lms', str(folder / 'exported.csv'),
             '--walls', 'none' if walls.problem() else 'bwrap'],
            cwd=ROOT, env=quick, text=True, capture_output=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return Graded(folder / 'out', done.stdout)


def test_the_solutions_have_all_points(graded):
    assert {exercise: graded.points('solved', exercise)
            for exercise in RUNNING} == dict.fromkeys(RUNNING, 10)


def test_stubs_and_wrong_answers_lose_points_and_are_told_why(graded):
    assert graded.page('stub').count('There is no answer yet') == len(SOME)
    for exercise in SOME:
        assert graded.points('stub', exercise) == 0
        assert graded.points('wrong', exercise) < 10
        assert wrong_answer(exercise).says in graded.page('wrong')


def test_late_days_cost_points_and_canvas_gets_them(graded):
    assert graded.points('misnames') == 8
    assert '2 days late: 8 points, not 10' in graded.page('misnames')
    entered, _ = importers.canvas(
        (graded.folder / 'for-import.csv').read_text(), {'101', '102'})
    assert entered['101', 'tree'] == '10' and entered['102', 'tree'] == '8'


def test_the_gradebook_of_nbgrader_says_the_same(graded):
    course = Course(graded.folder / 'course')
    for student, exercises in ('solved', RUNNING), ('wrong', SOME):
        for exercise in exercises:
            points, most = course.points(student, exercise)
            assert sum(points.values()) == graded.points(student, exercise)
            assert sum(most.values()) == 10


def test_everybody_has_a_row_for_each_exercise_and_a_page(graded):
    students = {student for student, _ in graded.rows}
    assert len(graded.rows) == len(students) * len(EXERCISES)
    pages = (graded.folder / 'feedback').glob('*.html')
    assert {page.stem for page in pages} == students


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
    assert 'MemoryError' in outputs(graded, 'eats-memory')
    assert graded.points('eats-memory') == 10
    assert 'BlockingIOError' in outputs(graded, 'forks') or (
        graded.remarks('forks'))


def outputs(graded, student, exercise='tree'):
    notebook = nbformat.read(
        graded.folder / 'course' / 'autograded' / student / exercise /
        f'{exercise}.ipynb', 4)
    return '\n'.join(output.get('text', '') + output.get('ename', '')
                     for cell in notebook.cells
                     for output in cell.get('outputs', ()))


@needs_walls
def test_solutions_and_others_cannot_be_read(graded):
    assert outputs(graded, 'spies').split('\nRight')[0].split() == [
        'walls'] * 5
    assert graded.points('spies') == 10


def test_a_hundred_thousand_lines_are_cut(graded):
    assert 900 < len(outputs(graded, 'prints')) < 200_000


@pytest.mark.parametrize('student, points, words', [
    ('deletes', 10, 'the cell check-sum was deleted: put back'),
    ('edits', 10, 'the cell check-sum was changed: put back'),
    ('no-notebook', 0, 'tree.ipynb is no notebook'),
    ('misnames', 8, 'wrongly named: Übung 3 (1).ipynb was taken for it'),
    ('missing', 0, 'missing'),
    ('links', 0, 'is a link to another place: not read')])
def test_bad_submissions_are_named_with_what_was_wrong(
        graded, student, points, words):
    assert graded.points(student) == points
    assert words in graded.remarks(student)


def test_names_of_folders_do_no_harm(graded):
    page = (graded.folder / 'feedback' / '_cmd____b_.html').read_text()
    assert '<h1>Exercises: =cmd() &lt;b&gt;</h1>' in page
    table = (graded.folder / 'grades.csv').read_text()
    assert "_cmd____b_,'=cmd() <b>,tree" in table
    for line in table.splitlines():
        assert not line.startswith('=') and ',=' not in line


def test_pages_tell_no_code_of_checks_and_no_solution(graded):
    for student, _ in graded.rows:
        page = graded.page(student)
        assert 'hidden(' not in page and 'BEGIN' not in page
        assert 'def ' not in page


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


def make_grade(folder, quick, *options):
    """Grade `in` below a folder into `out`; what the command printed."""
    done = subprocess.run(
        [sys.executable, '-m', 'teaching.grade', str(folder / 'in'), '--to',
         str(folder / 'out'), '--walls',
         'none' if walls.problem() else 'bwrap', *options],
        cwd=ROOT, env=quick, text=True, capture_output=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_only_what_has_changed_is_graded_again(tmp_path, quick):
    def put(student, notebook, name='tree'):
        (tmp_path / 'in' / student).mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, tmp_path / 'in' / student / f'{name}.ipynb')
    put('ada', answered())
    put('bob', with_answer(released('tree'), wrong_answer('tree').code))
    put('bob', answered('minibatch'), 'minibatch')
    said = make_grade(tmp_path, quick)
    assert [line.split(':')[0] for line in said.splitlines()[:3]] == [
        f'{k} of 3' for k in (1, 2, 3)]
    assert '3 notebooks graded' in said and '0 results of before' in said
    first = Graded(tmp_path / 'out', said)
    assert first.points('ada') == 10 > first.points('bob')
    assert ('ada', 'minibatch') not in first.rows  # and nobody asked for it
    assert 'not handed in by all' in said and 'minibatch (1)' in said
    assert 'minibatch' not in first.page('ada')
    # A correction, and one exercise alone: the others stay.
    put('bob', answered())
    said = make_grade(tmp_path, quick, '--exercises', 'tree')
    assert '1 notebooks graded' in said and '2 results of before' in said
    second = Graded(tmp_path / 'out', said)
    assert [second.points(who) for who in ('ada', 'bob')] == [10] * 2
    assert second.points('bob', 'minibatch') == 10
    # What is gone from FROM keeps its points; and one student again.
    (tmp_path / 'in' / 'bob' / 'tree.ipynb').unlink()
    said = make_grade(tmp_path, quick, '--exercises', 'tree', '--again', 'ada')
    assert 'bob, tree: not handed in this time; the result of' in said
    assert '1 notebooks graded' in said
    assert Graded(tmp_path / 'out', said).points('bob') == 10


@needs_walls
def test_ctrl_c_ends_it_and_what_was_graded_stays(tmp_path, quick):
    (tmp_path / 'in' / 'anna').mkdir(parents=True)
    notebook = with_cell(answered(), MISCHIEF['loops'][0])
    nbformat.write(notebook, tmp_path / 'in' / 'anna' / 'tree.ipynb')
    grading = subprocess.Popen(
        [sys.executable, '-m', 'teaching.grade', str(tmp_path / 'in'),
         '--to', str(tmp_path / 'out')], cwd=ROOT, env=quick, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        until = time.time() + 300
        while not list(tmp_path.glob('out/course/release/tree/*.ipynb')):
            assert time.time() < until and grading.poll() is None
            time.sleep(0.1)
        time.sleep(3)  # the kernel starts, or runs
        grading.send_signal(signal.SIGINT)
        said, _ = grading.communicate(timeout=300)
    finally:
        grading.kill()
    assert grading.returncode == 1
    assert said.strip() == (
        'd2lps: ended before all were graded; what was graded stays, and the '
        'same again goes on from there')
    assert {path.name for path in tmp_path.iterdir()} == {'in', 'out'}
    nbformat.write(answered(), tmp_path / 'in' / 'anna' / 'tree.ipynb')
    assert 'anna, tree: 10 of 10' in make_grade(tmp_path, quick)
