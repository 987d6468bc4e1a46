"""`make lab` asks nothing, and sends nothing to the outside.

Seen from the browser: every request it makes. Seen from the server and its
kernels: every name that their Python looks up, every address it connects to.
"""
import os
import secrets
import signal
import socket
import subprocess
import textwrap
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from test_lab import CHROMIUM, FLAGS, pytestmark  # noqa: F401

ROOT = Path(__file__).parents[2]
SPY = '''
    import sys
    def spy(event, arguments):
        if event == 'socket.getaddrinfo':
            note(arguments[0])
        elif event == 'socket.connect' and isinstance(arguments[1], tuple):
            note(arguments[1][0])
    def note(host):
        with open({path!r}, 'a') as file:
            print(host, file=file)
    sys.addaudithook(spy)
'''
OURS = {'127.0.0.1', 'localhost', '::1', 'None', ''}


@pytest.fixture
def make_lab(tmp_path):
    """Run `make lab` as a reader does whose home is new.

    Yields its address, token, and the file of hosts that it talked to.
    """
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    spied, token = tmp_path / 'hosts', secrets.token_hex(16)
    spied.touch()
    (tmp_path / 'sitecustomize.py').write_text(
        textwrap.dedent(SPY.format(path=str(spied))))
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(('JUPYTER', 'MAKE', 'MFLAGS'))}
    process = subprocess.Popen(
        ['make', 'lab', f'ARGS=--no-browser --port={port}'], cwd=ROOT,
        env=env | {'HOME': str(tmp_path), 'JUPYTER_TOKEN': token,
                   'PYTHONPATH': str(tmp_path)}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f'http://127.0.0.1:{port}'
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f'{address}/api', timeout=5)
                break
            except OSError:
                assert time.monotonic() < deadline, 'make lab did not start'
                assert process.poll() is None, 'make lab ended'
                time.sleep(0.5)
        yield address, token, spied
    finally:
        family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)
        for one in psutil.wait_procs(family, 30)[1]:
            one.kill()


def test_nothing_is_asked_and_nothing_is_sent(make_lab):
    from playwright.sync_api import sync_playwright
    address, token, spied = make_lab
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={'width': 1200, 'height': 900})
        asked = []
        page.on('request', lambda request: asked.append(request.url))
        page.on('websocket', lambda socket: asked.append(socket.url))
        page.goto(f'{address}/?token={token}', wait_until='domcontentloaded')
        page.wait_for_selector('.jp-NotebookPanel .jp-Cell', timeout=60_000)
        page.wait_for_selector('.jp-Notebook-ExecutionIndicator'
                               '[data-status=idle]', timeout=60_000)
        # News and updates are asked for when all is loaded.
        page.wait_for_load_state('networkidle', timeout=60_000)
        page.wait_for_timeout(5_000)
        shown = page.locator('.jp-Dialog, .Toastify__toast').all_inner_texts()
        assert not shown
        assert page.url.endswith('/lab/tree/index.ipynb')
        # Its panel asks whether it may fetch data from the web.
        assert not page.locator('[data-id^=extensionmanager]').count()
        browser.close()
    hosts = {urlsplit(url).hostname for url in asked
             if not url.startswith(('data:', 'blob:'))}
    assert hosts == {'127.0.0.1'}
    spied_on = set(spied.read_text().splitlines())
    assert spied_on and spied_on <= OURS  # the spy is there
