"""nbgrader's gradebook: filled fast, and no points are lost when it fails."""
import shutil
import sqlite3
import time

import nbformat
import pytest
from handins import answered, judged
from nbgrader.api import Gradebook
from sqlalchemy.exc import DatabaseError

from classroom import walls
from classroom.course import Course
from classroom.grade import Grading, folder_for_results
from classroom.submissions import read_all

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


def test_it_says_what_was_judged(course):
    course.grade('ada', 'tree', judged(course, ['check-sum']))
    points, most = course.points('ada', 'tree')
    assert points.pop('check-sum') == 0 < most.pop('check-sum')
    assert points == most and len(points) == 5
    course.grade('ada', 'tree', judged(course))
    assert sum(course.points('ada', 'tree')[0].values()) == 10


def test_a_class_is_entered_in_one_go(course, monkeypatch):
    """To open it takes 50 ms, the statements of one notebook 10."""
    opened = []

    def open_it(*args):
        opened.append(args)
        return Gradebook(*args)
    monkeypatch.setattr('nbgrader.apps.api.Gradebook', open_it)
    notebook = judged(course)
    start = time.perf_counter()
    for k in range(60):
        course.grade(f'student{k}', 'tree', notebook)
    print(f'{(time.perf_counter() - start) / 60 * 1000:.0f} ms a notebook')
    assert len(opened) == 1
    with course.api.gradebook as gradebook:
        assert len(gradebook.assignment_submissions('tree')) == 60


def test_what_a_teacher_wrote_there_stays(course):
    course.grade('ada', 'tree', judged(course, ['check-sum']))
    with course.api.gradebook as gradebook:
        gradebook.find_grade('check-sum', 'tree', 'tree',
                             'ada').manual_score = 1.5
        gradebook.find_comment('answer', 'tree', 'tree',
                               'ada').manual_comment = 'Well done!'
        gradebook.db.commit()
    course.grade('ada', 'tree', judged(course))
    with course.api.gradebook as gradebook:
        grade = gradebook.find_grade('check-sum', 'tree', 'tree', 'ada')
        assert (grade.auto_score, grade.score) == (2, 1.5)
        assert grade.needs_manual_grade
        assert gradebook.find_comment('answer', 'tree', 'tree',
                                      'ada').comment == 'Well done!'


def test_after_an_error_it_is_opened_anew(course, tmp_path):
    file = tmp_path / 'course' / 'gradebook.db'
    course.grade('ada', 'tree', judged(course))
    whole = file.read_bytes()
    file.write_bytes(b'no database' * 1000)
    with pytest.raises(DatabaseError):
        course.grade('bob', 'tree', judged(course))
    file.write_bytes(whole)
    course.grade('bob', 'tree', judged(course))
    assert sum(course.points('bob', 'tree')[0].values()) == 10


def test_points_stay_when_somebody_keeps_the_gradebook(tmp_path):
    (tmp_path / 'in' / 'ada').mkdir(parents=True)
    nbformat.write(answered(), tmp_path / 'in' / 'ada' / 'tree.ipynb')

    def grade():
        grading = Grading(read_all(tmp_path / 'in'), ['tree'],
                          folder_for_results(tmp_path / 'out',
                                             tmp_path / 'in'),
                          not walls.problem())
        grading.run()
        [result] = grading.results.all()
        return result
    Course.open(tmp_path / 'out' / 'course', ['tree'])
    other = sqlite3.connect(tmp_path / 'out' / 'course' / 'gradebook.db')
    other.execute('BEGIN EXCLUSIVE')
    result = grade()
    other.close()
    assert result.points == 10
    assert 'database is locked' in result.remarks[-1]
    result = grade()  # the same again, which enters it
    assert result.points == 10 and not result.remarks
    course = Course(tmp_path / 'out' / 'course')
    assert sum(course.points('ada', 'tree')[0].values()) == 10
