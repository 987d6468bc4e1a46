"""nbgrader's gradebook: what it gets, and no points are lost when it fails."""
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
        hand_in(folder, 'ada', answered())
        (folder / 'in' / 'ada' / 'timestamp.txt').write_text(
            '2026-11-22 10:00:00.000000 UTC')

    def grade(self, *options):
        """Ada's row in the table."""
        [row] = graded(self.folder, *options).values()
        return row

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


@pytest.fixture
def a_class(tmp_path):
    return Class(tmp_path)


def test_due_dates_and_late_days(a_class):
    """As nbgrader's formgrader and `nbgrader db` write and read them."""
    due = a_class.folder / 'due.csv'
    due.write_text('exercise,due\ntree,2026-11-20T18:00Z')
    row = a_class.grade('--due', str(due), '--late', '10')
    assert (row['points'], row['late days']) == ('8', '2')
    with a_class.course.api.gradebook as gradebook:
        found = gradebook.find_submission('tree', 'ada')
        assert (found.score, found.late_submission_penalty) == (10, 2)
        assert found.total_seconds_late == 40 * 3600
    subprocess.run(
        [sys.executable, '-m', 'nbgrader', 'db', 'assignment', 'add', 'tree',
         '--duedate=2026-11-21 18:00'], cwd=a_class.course.folder, check=True,
        timeout=120)
    row = a_class.grade()  # the percentage stays
    assert (row['points'], row['late days']) == ('9', '1')
    assert '1 day late: 9 points, not 10' in a_class.page()
    a_class.gradebook.write_bytes(b'no database' * 1000)
    assert a_class.grade()['points'] == '9'
    assert a_class.grade('--late', '0')['points'] == '10'


def test_points_by_hand_win_and_say_so(a_class):
    a_class.grade()
    write_by_hand(a_class.course, check_sum=(1.5, 0), hidden_time=(None, 0.25))
    row = a_class.grade()
    assert row['points'] == '9.75'
    assert 'by hand: 9.75 points, not 10' in row['remarks']
    assert 'Why &lt;b&gt;two&lt;/b&gt; loops?' in a_class.page()
    assert '1.5 of 2 by hand' in a_class.page()
    hand_in(a_class.folder, 'ada', with_cell(answered(), 'again = True'))
    row = a_class.grade()
    assert row['points'] == '9.75' and 'graded anew since' in row['remarks']
    write_by_hand(a_class.course, check_sum=(None, 0), hidden_time=(None, 0))
    row = a_class.grade()
    assert row['points'] == '10' and 'by hand' not in row['remarks']
    assert 'Why &lt;b&gt;two' in a_class.page()


def test_nothing_is_lost_when_it_is_in_use_or_damaged(a_class):
    a_class.grade()
    other = sqlite3.connect(a_class.gradebook)
    other.execute('BEGIN EXCLUSIVE')
    row = a_class.grade('--again', 'ada')
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
    row = a_class.grade('--again', 'ada')
    assert row['points'] == '10' and not row['remarks']


def test_nbgraders_own_command_does_not_grade(tmp_path):
    """It would run students' code as the teacher."""
    course = Course.make(tmp_path / 'course', ['tree'])
    hand_in(tmp_path, 'ada', answered())
    (course.folder / 'submitted' / 'ada').mkdir(parents=True)
    (tmp_path / 'in' / 'ada').rename(
        course.folder / 'submitted' / 'ada' / 'tree')
    done = subprocess.run(
        [sys.executable, '-m', 'nbgrader', 'autograde', 'tree', '--force'],
        cwd=course.folder, text=True, capture_output=True, timeout=120)
    assert done.returncode
    assert 'nbgrader does not grade this course' in done.stderr
