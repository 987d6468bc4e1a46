"""nbgrader's gradebook: what it gets, and no points are lost when it fails."""
import csv
import sqlite3
import subprocess
import sys

import nbformat
import pytest
from handins import answered, with_cell

from teaching import walls
from teaching.grade import Grading, folder_for_results
from teaching.submissions import read_all

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings(
    'ignore::sqlalchemy.exc.SAWarning')]  # of nbgrader's own code
DUE = {'tree': '2026-11-20T18:00:00+00:00'}


class Class:
    """Ada's folder, two days late, and its gradings."""

    def __init__(self, folder):
        self.folder = folder
        self.gradebook = folder / 'out' / 'course' / 'gradebook.db'
        (folder / 'in' / 'ada').mkdir(parents=True)
        self.hand_in(answered())
        (folder / 'in' / 'ada' / 'timestamp.txt').write_text(
            '2026-11-22 10:00:00.000000 UTC')

    def hand_in(self, notebook):
        nbformat.write(notebook, self.folder / 'in' / 'ada' / 'tree.ipynb')

    def grade(self, **options):
        """The course, and Ada's row in the table."""
        grading = Grading(
            read_all(self.folder / 'in'), ['tree'],
            folder_for_results(self.folder / 'out', self.folder / 'in'),
            not walls.problem(), **options)
        grading.run()
        with open(self.folder / 'out' / 'grades.csv', newline='') as file:
            [row] = csv.DictReader(file)
        return grading._course, row

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
    course, row = a_class.grade(due=DUE, late=10)
    assert (row['points'], row['late days']) == ('8', '2')
    with course.api.gradebook as gradebook:
        found = gradebook.find_submission('tree', 'ada')
        assert (found.score, found.late_submission_penalty) == (10, 2)
        assert found.total_seconds_late == 40 * 3600
    subprocess.run(
        [sys.executable, '-m', 'nbgrader', 'db', 'assignment', 'add', 'tree',
         '--duedate=2026-11-21 18:00'], cwd=course.folder, check=True,
        timeout=120)
    course, row = a_class.grade()  # the percentage stays
    assert (row['points'], row['late days']) == ('9', '1')
    assert '1 day late: 9 points, not 10' in a_class.page()
    with course.api.gradebook as gradebook:
        found = gradebook.find_submission('tree', 'ada')
        assert found.late_submission_penalty == 1
    a_class.gradebook.write_bytes(b'no database' * 1000)
    assert a_class.grade()[1]['points'] == '9'
    assert a_class.grade(late=0)[1]['points'] == '10'


def test_points_by_hand_win_and_say_so(a_class):
    course, _ = a_class.grade()
    write_by_hand(course, check_sum=(1.5, 0), hidden_time=(None, 0.25))
    _, row = a_class.grade()
    assert row['points'] == '9.75'
    assert 'by hand: 9.75 points, not 10' in row['remarks']
    assert 'Why &lt;b&gt;two&lt;/b&gt; loops?' in a_class.page()
    assert '1.5 of 2 by hand' in a_class.page()
    a_class.hand_in(with_cell(answered(), 'again = True'))
    _, row = a_class.grade()
    assert row['points'] == '9.75' and 'graded anew since' in row['remarks']
    write_by_hand(course, check_sum=(None, 0), hidden_time=(None, 0))
    _, row = a_class.grade()
    assert row['points'] == '10' and 'by hand' not in row['remarks']
    assert 'Why &lt;b&gt;two' in a_class.page()


def test_nothing_is_lost_when_it_is_in_use_or_damaged(a_class):
    a_class.grade()
    other = sqlite3.connect(a_class.gradebook)
    other.execute('BEGIN EXCLUSIVE')
    course, row = a_class.grade(again=['ada'])
    other.close()
    assert row['points'] == '10' and 'database is locked' in row['remarks']
    course, row = a_class.grade()  # the same again, which enters it
    assert row['points'] == '10' and not row['remarks']
    write_by_hand(course, check_sum=(1, 0))
    assert a_class.grade()[1]['points'] == '9'
    a_class.gradebook.write_bytes(b'no database' * 1000)
    assert a_class.grade()[1]['points'] == '9'
    assert 'Why &lt;b&gt;two' in a_class.page()
    a_class.gradebook.unlink()
    course, row = a_class.grade(again=['ada'])
    assert row['points'] == '10' and not row['remarks']


def test_nbgraders_own_command_does_not_grade(a_class):
    """It would run students' code as the teacher."""
    course, _ = a_class.grade()
    done = subprocess.run(
        [sys.executable, '-m', 'nbgrader', 'autograde', 'tree', '--force'],
        cwd=course.folder, text=True, capture_output=True, timeout=120)
    assert done.returncode
    assert 'nbgrader does not grade this course' in done.stderr
