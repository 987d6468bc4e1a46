"""nbgrader's gradebook: filled fast, and no points are lost when it fails."""
import csv
import shutil
import sqlite3
import subprocess
import sys

import nbformat
import pytest
from handins import answered, judged

from teaching import walls
from teaching.byhand import ByHand
from teaching.course import Course
from teaching.grade import Grading, folder_for_results
from teaching.judging import Verdict
from teaching.results import Result, Results
from teaching.submissions import Submission, read_all

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings(
    'ignore::sqlalchemy.exc.SAWarning')]  # of nbgrader's own code


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp('made') / 'course'
    Course.make(folder, ['tree'])
    return folder


@pytest.fixture
def course(made, tmp_path):
    shutil.copytree(made, tmp_path / 'course')
    return Course(tmp_path / 'course')


def write_by_hand(course, **points):
    """What the formgrader saves when a teacher writes into its fields."""
    with course.api.gradebook as gradebook:
        for name, (score, extra) in points.items():
            grade = gradebook.find_grade(name.replace('_', '-'), 'tree',
                                         'tree', 'ada')
            grade.manual_score, grade.extra_credit = score, extra
        gradebook.find_comment('answer', 'tree', 'tree',
                               'ada').manual_comment = 'Why <b>two</b> loops?'
        gradebook.db.commit()


def test_what_a_teacher_wrote_there_stays(course):
    assert course.by_hand() == {}
    course.grade('ada', 'tree', judged(course, ['check-sum']))
    course.grade('bob', 'tree', judged(course))
    write_by_hand(course, check_sum=(1.5, 0), hidden_time=(None, 0.25))
    points = {'check-sum': 1.5, 'hidden-time': 2.25}
    comments = ['Why <b>two</b> loops?']
    assert course.by_hand() == {
        ('ada', 'tree'): ByHand(points, comments, False)}
    course.grade('ada', 'tree', judged(course))  # what was handed in anew
    assert course.by_hand() == {
        ('ada', 'tree'): ByHand(points, comments, True)}
    assert course.points('ada', 'tree')[0]['check-sum'] == 2


def graded(folder, *people):
    """Results of people who have 8 of 10, as a new grading finds them."""
    results = Results(folder, [Submission(one, {}, {}) for one in people])
    for one in people:
        results.add(Result(one, 'tree', 8., 10., ['late'], [
            Verdict('sum', False, 'no sum', 2.),
            Verdict('sum', True, None, 8.)]))
    return results


def row(folder, student):
    with open(folder / 'grades.csv', newline='') as file:
        [found] = [one for one in csv.DictReader(file)
                   if one['student'] == student]
    return found


def test_points_by_hand_win_and_say_so(tmp_path):
    results = graded(tmp_path, 'ada', 'bob')
    results.note_by_hand({('ada', 'tree'): ByHand(
        {'check-sum': 1.5}, ['Why <b>two</b> loops?\n\nLook at line 3.'],
        False)})
    found = row(tmp_path, 'ada')
    assert found['points'] == '9.5' and 'late' in found['remarks']
    assert 'by hand: 9.5 points, not 8' in found['remarks']
    assert row(tmp_path, 'bob')['points'] == '8'
    page = (tmp_path / 'feedback' / 'ada.html').read_text()
    assert '9.5 of 10' in page and '1.5 of 2 by hand' in page
    assert 'Why &lt;b&gt;two&lt;/b&gt; loops?' in page
    assert 'by hand' not in (tmp_path / 'feedback' / 'bob.html').read_text()
    # A grading that cannot read the gradebook has them, too.
    graded(tmp_path, 'ada')
    assert row(tmp_path, 'ada')['points'] == '9.5'
    # Taken back; and a comment alone.
    results = graded(tmp_path, 'ada')
    results.note_by_hand({('ada', 'tree'): ByHand({}, ['Fine.'], False)})
    assert row(tmp_path, 'ada')['points'] == '8'
    assert 'by hand' not in row(tmp_path, 'ada')['remarks']
    assert 'Fine.' in (tmp_path / 'feedback' / 'ada.html').read_text()


def test_the_same_again_brings_what_was_written(tmp_path):
    """And loses none of it when the gradebook is in use, or is damaged."""
    (tmp_path / 'in' / 'ada').mkdir(parents=True)
    nbformat.write(answered(), tmp_path / 'in' / 'ada' / 'tree.ipynb')

    def grade():
        grading = Grading(read_all(tmp_path / 'in'), ['tree'],
                          folder_for_results(tmp_path / 'out',
                                             tmp_path / 'in'),
                          not walls.problem())
        grading.run()
        [result] = grading.results.all()
        return result, row(tmp_path / 'out', 'ada')
    course = Course.open(tmp_path / 'out' / 'course', ['tree'])
    file = tmp_path / 'out' / 'course' / 'gradebook.db'
    other = sqlite3.connect(file)
    other.execute('BEGIN EXCLUSIVE')
    result, _ = grade()
    other.close()
    assert result.points == 10
    assert 'database is locked' in result.remarks[-1]
    result, _ = grade()  # the same again, which enters it
    assert result.points == 10 and not result.remarks
    assert sum(course.points('ada', 'tree')[0].values()) == 10
    write_by_hand(course, check_sum=(1, 0))
    result, told = grade()
    assert result.points == 9 and told['points'] == '9'
    assert result.comments == ['Why <b>two</b> loops?']
    file.write_bytes(b'no database' * 1000)
    result, told = grade()
    assert result.points == 9 and told['points'] == '9'


def test_nbgraders_own_command_does_not_grade(course):
    """It would run students' code as the teacher."""
    course.grade('ada', 'tree', judged(course))
    done = subprocess.run(
        [sys.executable, '-m', 'nbgrader', 'autograde', 'tree', '--force'],
        cwd=course.folder, text=True, capture_output=True, timeout=120)
    assert done.returncode
    assert 'nbgrader does not grade this course' in done.stderr
