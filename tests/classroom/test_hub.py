"""A teacher and a student on a hub, as docs/teaching.md tells them."""
import re
import sys

import pytest
from handins import answered

from classroom import walls

pytestmark = [pytest.mark.full, pytest.mark.skipif(
    sys.platform != 'linux' or bool(walls.problem()),
    reason=f'a hub, behind walls: {walls.problem()}')]
if sys.platform == 'linux':
    from hub import REAL, ROOT, STUDENT, TEACHER, working

MAKE = ("from classroom.course import Course; "
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


@pytest.fixture(scope='module')
def handed_back(teacher, student):
    """What is typed into terminals of JupyterLab, from release to feedback.

    The pages that the student has in the end, by their paths.
    """
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
    said = teacher.types(f'cd {ROOT} && python -m classroom.grade '
                         '~/course/submitted --to ~/graded')
    assert f'{STUDENT}, tree: 10 of 10' in said
    said = teacher.types(f'cd {ROOT} && python -m classroom.handback '
                         '~/graded ~/course')
    assert 'nbgrader release_feedback tree' in said
    teacher.types('cd ~/course && nbgrader release_feedback tree')
    student.types('nbgrader fetch_feedback tree')
    return [one['path'] for folder in student.reads('tree/feedback')
            for one in student.reads(folder['path'])]


def test_the_page_comes_to_the_student(student, handed_back):
    [path] = handed_back
    assert re.fullmatch(r'tree/feedback/20.+/tree\.html', path)
    page = student.reads(path)
    assert f'Exercises: {STUDENT}' in page and '10 of 10' in page


def test_the_kernel_is_that_of_the_course(student):
    """Notebooks ask for python3, which has all that they need."""
    specs = student.ask('GET', f'/user/{STUDENT}/api/kernelspecs')
    assert specs['default'] == 'python3'
    words = 'import d2lps_exercises, mxnet, sys; print(sys.prefix)'
    assert sys.prefix in student.types(f"python -c '{words}'")


@pytest.mark.skipif(not REAL, reason='only root has users beside itself')
@pytest.mark.parametrize('folder', [
    f'/home/{TEACHER}/course', '/srv/nbgrader/exchange/d2lps/inbound',
    '/srv/nbgrader/exchange/d2lps/feedback'])
def test_a_student_sees_nobody_elses_work(student, handed_back, folder):
    said = student.types(f'ls {folder} || true')
    assert 'Permission denied' in said
