"""nbgrader's gradebook: what it gets, and no points are lost when it fails."""
import shutil
import sqlite3
import subprocess
import sys

import pytest
from handins import answered, graded, hand_in, with_cell

from teaching.course import Course

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings(
    'ignore::sqlalchemy.exc.SAWarning')]  # of nbgrader's own code


class Class:
    """Ada's folder, two days late, and its gradings."""

    def __init__(self, folder):
        self.folder = folder
        self.course = Course(folder / 'out' / 'course')
        self.gradebook = self.course.folder / 'gradebook.db'

    def grade(self, *options):
        """Ada's row in the table."""
        [row] = graded(self.folder, *options).values()
        return row

    def grade_again(self):
        """The same for a notebook that has not changed."""
        shutil.rmtree(self.folder / 'out' / 'results' / 'ada')
        return self.grade()

    def set_due(self, time):
        (self.folder / 'due.csv').write_text(f'name,duedate\ntree,{time}\n')
        subprocess.run(
            [sys.executable, '-m', 'nbgrader', 'db', 'assignment', 'import',
             '../../due.csv'], cwd=self.course.folder, check=True, timeout=120)

    def page(self):
        return (self.folder / 'out' / 'feedback' / 'ada.html').read_text()


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


@pytest.fixture(scope='module')
def was_graded(tmp_path_factory):
    """The folder of a class that was graded once, for all tests."""
    folder = tmp_path_factory.mktemp('gradebook')
    hand_in(folder, 'ada', answered())
    (folder / 'in' / 'ada' / 'timestamp.txt').write_text(
        '2026-11-22 10:00:00.000000 UTC')
    graded(folder)
    return folder


@pytest.fixture
def a_class(was_graded, tmp_path):
    """A copy of it."""
    shutil.copytree(was_graded, tmp_path, dirs_exist_ok=True)
    return Class(tmp_path)


def test_due_dates_and_late_days(a_class):
    """As nbgrader's formgrader and `nbgrader db` write and read them."""
    a_class.set_due('2026-11-20 19:00+01:00')
    row = a_class.grade('--late', '10')
    assert (row['points'], row['late days']) == ('8', '2')
    with a_class.course.api.gradebook as gradebook:
        submission = gradebook.find_submission('tree', 'ada')
        assert submission.score == 10
        assert submission.late_submission_penalty == 2
        assert submission.total_seconds_late == 40 * 3600
    a_class.set_due('2026-11-21 18:00')  # in UTC
    row = a_class.grade()  # the percentage stays
    assert (row['points'], row['late days']) == ('9', '1')
    assert '1 day late: 9 points, not 10' in a_class.page()
    a_class.gradebook.write_bytes(b'no database' * 1000)
    assert a_class.grade()['points'] == '9'
    assert a_class.grade('--late', '0')['points'] == '10'


def test_points_by_hand_win_and_say_so(a_class):
    write_by_hand(a_class.course, check_sum=(1.5, 0), hidden_time=(None, 0.25))
    row = a_class.grade()
    assert row['points'] == '9.75'
    assert 'by hand: 9.75 points, not 10' in row['remarks']
    assert 'Why &lt;b&gt;two&lt;/b&gt; loops?' in a_class.page()
    assert '1.5 of 2 by hand' in a_class.page()
    hand_in(a_class.folder, 'ada', with_cell(answered(), 'again = True'))
    row = a_class.grade()
    assert row['points'] == '9.75' and 'graded again since' in row['remarks']
    write_by_hand(a_class.course, check_sum=(None, 0), hidden_time=(None, 0))
    row = a_class.grade()
    assert row['points'] == '10' and 'by hand' not in row['remarks']
    assert 'Why &lt;b&gt;two' in a_class.page()


def test_nothing_is_lost_when_it_is_in_use_or_damaged(a_class):
    other = sqlite3.connect(a_class.gradebook)
    other.execute('BEGIN EXCLUSIVE')
    row = a_class.grade_again()
    other.close()
    assert row['points'] == '10' and 'database is locked' in row['remarks']
    row = a_class.grade()  # the same again, which enters it
    assert row['points'] == '10' and not row['remarks']
    write_by_hand(a_class.course, check_sum=(1, 0))
    assert a_class.grade()['points'] == '9'
    a_class.gradebook.write_bytes(b'no database' * 1000)
    assert a_class.grade()['points'] == '9'
    assert 'Why &lt;b&gt;two' in a_class.page()
    a_class.gradebook.unlink()
    row = a_class.grade_again()
    assert row['points'] == '10' and not row['remarks']


def test_nbgraders_own_command_does_not_grade(a_class):
    """It would run students' code as the teacher."""
    done = subprocess.run(
        [sys.executable, '-m', 'nbgrader', 'autograde', 'tree', '--force'],
        cwd=a_class.course.folder, text=True, capture_output=True, timeout=120)
    assert done.returncode
    assert 'nbgrader does not grade this course' in done.stderr
