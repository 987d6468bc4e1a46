"""A teacher and a student on a hub, as teaching/README.md tells them."""
import re
import sys

import pytest
from handins import answered

from teaching import walls

pytestmark = [pytest.mark.full, pytest.mark.skipif(
    sys.platform != 'linux' or bool(walls.problem()),
    reason=f'a hub, behind walls: {walls.problem()}')]
if sys.platform == 'linux':
    from hub import REAL, ROOT, STUDENT, TEACHER, working

MAKE = ("from teaching.course import Course; "
        "Course.make('/home/{user}/course', ['tree'])")


@pytest.fixture(scope='module')
def hub(tmp_path_factory):
    with working(tmp_path_factory.mktemp('hub')) as one:
        yield one


@pytest.fixture(scope='module')
def teacher(hub):
    return hub.enter(TEACHER)


@pytest.fixture(scope='module')
def student(hub):
    return hub.enter(STUDENT)


def grade_and_hand_back(teacher, student):
    """The page that the student has after that."""
    said = teacher.types(f'cd {ROOT} && python -m teaching.grade '
                         '~/course/submitted --to ~/graded')
    assert '1 students' in said
    said = teacher.types(f'cd {ROOT} && python -m teaching.handback '
                         '~/graded ~/course')
    assert 'nbgrader release_feedback tree' in said
    teacher.types('cd ~/course && nbgrader release_feedback tree')
    student.types('nbgrader fetch_feedback tree')
    [path] = [one['path'] for folder in student.reads('tree/feedback')
              for one in student.reads(folder['path'])]
    assert re.fullmatch(r'tree/feedback/20.+/tree\.html', path)
    return student.reads(path)


@pytest.fixture(scope='module')
def page(teacher, student):
    """What is typed into terminals of JupyterLab, from release to feedback."""
    teacher.types(f'cd {ROOT} && python -c "{MAKE.format(user=TEACHER)}"')
    teacher.types('cd ~/course && nbgrader release_assignment tree')
    assert 'tree' in student.types('nbgrader list')
    student.types('nbgrader fetch_assignment tree')
    given = student.reads('tree/tree.ipynb')
    assert 'write your answer here' in str(given)
    student.writes('tree/tree.ipynb', answered())
    student.types('nbgrader submit tree')
    said = teacher.types('cd ~/course && nbgrader collect tree')
    assert STUDENT in said and ('cheating' in said) != REAL
    return grade_and_hand_back(teacher, student)


def test_the_page_comes_to_the_student(page):
    assert f'Exercises: {STUDENT}' in page and '10 of 10' in page


def test_so_does_what_the_teacher_writes(page, teacher, student):
    """In the formgrader, as the menu's "Formgrader (local)" opens it."""
    grader = f'/user/{TEACHER}/formgrader'
    teacher.ask('GET', f'{grader}?path=graded/course')
    [one] = teacher.ask('GET', f'{grader}/api/submitted_notebooks/tree/tree')
    [comment] = teacher.ask('GET', f'{grader}/api/comments', params={
        'submission_id': one['id']})
    teacher.ask('PUT', f'{grader}/api/comment/{comment["id"]}',
                json={'manual_comment': 'A short plan!'})
    assert 'A short plan!' in grade_and_hand_back(teacher, student)


def test_jupyterlab_lists_what_there_is(page, student):
    """The menu's "Assignment List" asks this."""
    told = student.ask('GET', f'/user/{STUDENT}/assignments',
                       params={'course_id': 'd2lps'})['value']
    submitted = [one for one in told if one['status'] == 'submitted']
    assert [one['assignment_id'] for one in submitted] == ['tree']
    assert submitted[0]['submissions'][0]['has_local_feedback'], submitted


def test_the_kernel_is_that_of_the_course(student):
    """Notebooks ask for python3, which has all that they need."""
    specs = student.ask('GET', f'/user/{STUDENT}/api/kernelspecs')
    assert specs['default'] == 'python3'
    words = 'import d2lps.exercises, mxnet, sys; print(sys.prefix)'
    assert sys.prefix in student.types(f"python -c '{words}'")


@pytest.mark.skipif(not REAL, reason='only root has users beside itself')
@pytest.mark.parametrize('folder', [
    f'/home/{TEACHER}/course', '/srv/nbgrader/exchange/d2lps/inbound',
    '/srv/nbgrader/exchange/d2lps/feedback'])
def test_a_student_sees_nobody_elses_work(student, page, folder):
    said = student.types(f'ls {folder} || true')
    assert 'Permission denied' in said
