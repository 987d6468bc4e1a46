"""A teacher opens a hostile submission in the formgrader and JupyterLab."""
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import requests
from handins import ROOT, judged
from hostile import HTML, MARKDOWN, PWNED, hostile

from teaching.course import Course

sys.path.append(str(ROOT / 'tests' / 'browser'))
from chromium import CHROMIUM, FLAGS
from labserver import GUARD, until

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not CHROMIUM, reason='there is no Chromium'),
    pytest.mark.filterwarnings('ignore::sqlalchemy.exc.SAWarning')]
LIMIT = 120_000  # ms, for what is a moment on a machine with nothing to do
LINKS = (f'a[href*="{PWNED}"]:not([href^="#"]), a[href^="javascript"], '
         'a[href^="/"]')
# From the top to the end: JupyterLab draws a cell when it comes into view.
SCROLL = '''async last => {
  const panel = document.querySelector('.jp-WindowedPanel-outer');
  const drawn = () => panel.querySelector(
    `[data-windowed-list-index="${last}"]`);
  for (let k = 0; k < 2000 && !drawn(); k++) {
    panel.scrollTop += panel.clientHeight / 2;
    await new Promise(done => setTimeout(done, 50));
  }
  return Boolean(drawn());
}'''


@pytest.fixture(scope='module')
def course(tmp_path_factory):
    """Of eve, as we enter her; of raw, the notebook as a student has it."""
    made = Course.make(tmp_path_factory.mktemp('hostile') / 'course', ['tree'])
    for student in 'eve', 'raw':
        made.grade(student, 'tree', hostile(judged()))
    place = made.folder / 'autograded' / 'raw' / 'tree' / 'tree.ipynb'
    notebook = judged()  # without what would end nbconvert
    notebook.cells += [nbformat.v4.new_markdown_cell(html)
                       for html in HTML[:5]]
    place.write_text(json.dumps(notebook))
    return made


@pytest.fixture(scope='module')
def lab(course):
    """JupyterLab, started in the course's folder; its address and a token."""
    token = secrets.token_hex(16)
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
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
def browser_page():
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM,
                                             args=FLAGS)
        page = browser.new_page(viewport={'width': 1280, 'height': 900})
        page.set_default_timeout(LIMIT)
        yield page
        browser.close()


def seen(page, address, token, path, ready):
    """What a page asked for, with PWNED in it, when all of it was shown."""
    asked = []
    # Of words that may be a file's name, JupyterLab asks whether it is there.
    page.on('request', lambda request: asked.append(request.url)
            if PWNED in request.url and 'resolvePath' not in request.url
            else None)
    page.goto(f'{address}/{path}?token={token}')
    page.wait_for_selector(ready, state='attached')
    return asked


def submission(course, student):
    with course.api.gradebook as gradebook:
        return gradebook.find_submission_notebook('tree', 'tree', student).id


def ran(page):
    return [frame.url for frame in page.frames
            if frame.evaluate(f'window.{PWNED}')]


def test_nothing_runs_in_the_formgrader(browser_page, lab, course):
    path = 'formgrader/submissions/{}/'
    page = browser_page
    asked = seen(page, *lab, path.format(submission(course, 'eve')),
                 '#answer-comment')
    page.wait_for_load_state('networkidle')
    assert page.locator('.text_cell').count() > len(MARKDOWN)
    assert PWNED in page.locator('#notebook-container').first.inner_text()
    assert not asked and not ran(page)
    assert not page.locator(f'#notebook-container :is({LINKS})').count()
    # The same as it was handed in: so the test sees what runs.
    asked = seen(page, *lab, path.format(submission(course, 'raw')), 'body')
    assert asked


def test_nothing_runs_in_jupyterlab(browser_page, lab, course):
    path = course.folder / 'autograded' / 'eve' / 'tree' / 'tree.ipynb'
    shutil.copy(path, course.folder / 'a.ipynb')  # Lab has no second `tree`
    page, last = browser_page, len(nbformat.read(path, 4).cells) - 1
    asked = seen(page, *lab, 'lab/tree/a.ipynb', '.jp-RenderedMarkdown')
    assert page.evaluate(SCROLL, last)
    assert not asked and not ran(page)
    assert not page.locator(f'.jp-Notebook :is({LINKS})').count()
