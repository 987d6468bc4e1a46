"""A teacher and a student on a hub, as teaching/README.md tells them."""
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


def test_from_release_to_feedback(tmp_path):
    """What both type into terminals of JupyterLab on the hub."""
    with working(tmp_path) as hub:
        teacher, student = hub.enter(TEACHER), hub.enter(STUDENT)
        teacher.types(f'cd {ROOT} && python -c "{MAKE.format(user=TEACHER)}"')
        teacher.types('cd ~/course && nbgrader release_assignment tree')
        student.types('nbgrader fetch_assignment tree')
        given = student.reads('tree/tree.ipynb')
        assert 'write your answer here' in str(given)
        student.writes('tree/tree.ipynb', answered())
        student.types('nbgrader submit tree')
        said = teacher.types('cd ~/course && nbgrader collect tree')
        assert STUDENT in said and ('cheating' in said) != REAL
        said = teacher.types(f'cd {ROOT} && python -m teaching.grade '
                             '~/course/submitted --to ~/graded')
        assert '1 students' in said
        teacher.types(f'cd {ROOT} && python -m teaching.handback ~/graded '
                      '~/course')
        teacher.types('cd ~/course && nbgrader release_feedback tree')
        student.types('nbgrader fetch_feedback tree')
        [page] = [one['path'] for folder in student.reads('tree/feedback')
                  for one in student.reads(folder['path'])]
        assert f'Exercises: {STUDENT}' in student.reads(page)
        assert '10 of 10' in student.reads(page)
        if REAL:  # only root has users beside itself
            for folder in (f'/home/{TEACHER}/course',
                           '/srv/nbgrader/exchange/d2lps/inbound'):
                said = student.types(f'ls {folder} || true')
                assert 'Permission denied' in said
