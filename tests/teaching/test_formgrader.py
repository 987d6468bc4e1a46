"""A teacher looks at what was graded in JupyterLab, with nbgrader's tool."""
import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from handins import ROOT, judged
from hub import free_ports

from teaching.course import Course

sys.path.append(str(ROOT / 'tests' / 'browser'))
from chromium import CHROMIUM, FLAGS
from labserver import GUARD, until

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not CHROMIUM, reason='there is no Chromium'),
    pytest.mark.filterwarnings('ignore::sqlalchemy.exc.SAWarning')]
LIMIT = 120_000  # ms, for what is a moment on a machine with nothing to do
WORDS = 'Why **two** loops?'


@pytest.fixture(scope='module')
def course(tmp_path_factory):
    made = Course.make(tmp_path_factory.mktemp('formgrader') / 'course',
                       ['tree'])
    made.grade('ada', 'tree', judged(made, ['check-sum']))
    return made


@pytest.fixture(scope='module')
def lab(course):
    """JupyterLab, started in the course's folder; its address and a token."""
    token, port = secrets.token_hex(16), free_ports(1)[0]
    said = course.folder.parent / 'said'
    # A question about news would lie above what is to be clicked.
    shutil.copytree(ROOT / 'setup' / 'jupyter' / 'labconfig',
                    course.folder.parent / '.jupyter' / 'labconfig')
    env = {name: value for name, value in os.environ.items()
           if not name.startswith('JUPYTER')}
    env |= {'HOME': str(course.folder.parent), 'JUPYTER_TOKEN': token,
            'PATH': os.pathsep.join([str(Path(sys.executable).parent),
                                     env['PATH']])}
    with open(said, 'w') as file:
        server = subprocess.Popen(
            [sys.executable, '-m', 'jupyterlab', '--no-browser',
             '--ip=127.0.0.1', f'--port={port}', '--allow-root'],
            cwd=course.folder, env=env, stdout=file, stderr=file,
            start_new_session=True)
    guard = subprocess.Popen([sys.executable, '-c', GUARD, str(server.pid)],
                             stdin=subprocess.PIPE, start_new_session=True)
    address = f'http://127.0.0.1:{port}'

    def is_up():
        assert server.poll() is None, said.read_text()
        try:
            return requests.get(f'{address}/api/status', timeout=30,
                                params={'token': token}).ok
        except requests.ConnectionError:
            return False
    try:
        until(is_up, 'JupyterLab starts')
        yield address, token
    finally:
        guard.communicate(timeout=30)
        server.wait(timeout=60)


@pytest.fixture
def formgrader(lab):
    """The formgrader as JupyterLab's menu opens it: a frame."""
    from playwright.sync_api import expect, sync_playwright
    expect.set_options(timeout=LIMIT)
    address, token = lab
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM,
                                             args=FLAGS)
        page = browser.new_page(viewport={'width': 1280, 'height': 900})
        page.set_default_timeout(LIMIT)
        page.goto(f'{address}/lab?token={token}')
        page.click('.lm-MenuBar-itemLabel:text-is("Nbgrader")')
        page.click('.lm-Menu-itemLabel:text-is("Formgrader")')
        page.wait_for_selector('iframe')
        yield page.frame_locator('iframe')
        browser.close()


def grade(course, name='check-sum'):
    with course.api.gradebook as gradebook:
        return gradebook.find_grade(name, 'tree', 'tree', 'ada').to_dict()


def test_a_comment_and_points_by_hand(formgrader, course):
    from playwright.sync_api import expect
    assert grade(course)['auto_score'] == 0
    formgrader.get_by_role('link', name='Manual Grading').click()
    # By address: assignment and notebook have one name, and a page stays
    # until the next is there.
    for page in 'gradebook/tree', 'gradebook/tree/tree':
        formgrader.locator(f'td a[href$="{page}"]').click()
    formgrader.locator('td a', has_text='Submission #1').click()
    expect(formgrader.get_by_text('Where is your sum?')).to_be_visible()
    for name, hint in ('answer-comment', 'Type any'), ('check-sum', '0'):
        expect(formgrader.locator(f'#{name}')).to_have_attribute(
            'placeholder', re.compile(hint))  # by then it listens
    formgrader.locator('#answer-comment').fill(WORDS)
    formgrader.locator('#check-sum').fill('1.5')
    formgrader.locator('#check-rounds').click()  # what was written is saved

    def saved():
        with course.api.gradebook as gradebook:
            comment = gradebook.find_comment('answer', 'tree', 'tree', 'ada')
            return (comment.comment == WORDS
                    and grade(course)['manual_score'] == 1.5)
    until(saved, 'the gradebook has what was written')
    formgrader.get_by_role('link', name='Manual Grading').click()
    expect(formgrader.locator('td.score')).to_have_text('9.5 / 10')


def test_it_does_not_grade(formgrader, course):
    """Its button would run students' code as the teacher."""
    from playwright.sync_api import expect
    place = course.folder / 'autograded' / 'ada' / 'tree' / 'tree.ipynb'
    before = place.read_text(), grade(course)
    formgrader.locator('td.num-submissions a').click()
    formgrader.locator('td.autograde a').click()
    told = formgrader.locator('.modal-body')
    expect(told).to_contain_text('nbgrader does not grade this course')
    assert (place.read_text(), grade(course)) == before


def test_nor_does_its_command(course):
    done = subprocess.run(
        [sys.executable, '-m', 'nbgrader', 'autograde', 'tree', '--force'],
        cwd=course.folder, text=True, capture_output=True, timeout=120)
    assert done.returncode
    assert 'nbgrader does not grade this course' in done.stderr
