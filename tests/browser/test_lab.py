"""The widgets in a real JupyterLab, in headless Chromium.

`make browser` runs them. They need Debian's Chromium and a machine that is
not too busy, so a plain `pytest` leaves them out.
"""
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import nbformat
import pytest

CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser')
pytestmark = pytest.mark.skipif(
    'D2LPS_BROWSER' not in os.environ, reason='run by: make browser')

SETUP = '''%matplotlib inline
import d2lps
from d2lps import pictures
from d2lps.collectives import strategies
pictures.use_png_display()'''
FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-background-networking',
         '--disable-component-update', '--disable-sync']


@pytest.fixture
def lab(tmp_path):
    """Start JupyterLab in an empty folder; yield its address and token."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    token = secrets.token_hex(16)
    process = subprocess.Popen(
        [sys.executable, '-m', 'jupyterlab', '--no-browser',
         '--allow-root', '--ip=127.0.0.1', f'--port={port}',
         f'--IdentityProvider.token={token}'], cwd=tmp_path,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f'http://127.0.0.1:{port}'
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f'{address}/api', timeout=5)
                break
            except OSError:
                assert time.monotonic() < deadline, 'JupyterLab did not start'
                time.sleep(0.5)
        yield address, token
    finally:
        process.terminate()
        process.wait(timeout=30)


def picture(page):
    """What the picture under the widget shows, as the browser has it."""
    image = page.locator('.jp-OutputArea-output img').last
    image.wait_for(timeout=60_000)
    return image.get_attribute('src')


def run_all(page, widget=None):
    """Run all cells; return the widget that appears then, or a slider."""
    slider = widget or page.locator('.noUi-handle').first
    question = page.locator('.jp-Dialog .jp-mod-accept')
    # A run before there is a kernel would open a dialog.
    # In a narrow window the indicator is there and hidden.
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator'
                           '[data-status=idle]', timeout=60_000,
                           state='attached')
    for _ in range(4):
        page.click('text=Run >> nth=0')
        page.locator('.lm-Menu-itemLabel', has_text='Run All Cells'
                     ).first.click()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if slider.is_visible():
                return slider
            if question.is_visible():  # "Select Kernel": it was too early
                question.evaluate('button => button.click()')
                break
            time.sleep(0.2)
    raise AssertionError('the widget did not appear')


@contextmanager
def opened(lab, folder, codes):
    """A page with a notebook of these cells; in the end, none has warned."""
    from playwright.sync_api import sync_playwright
    cells = [nbformat.v4.new_code_cell(code) for code in codes]
    kernel = {'kernelspec': {'name': 'python3', 'display_name': 'Python 3'}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel),
                   folder / 'cells.ipynb')
    address, token = lab
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={'width': 1200, 'height': 900})
        page.goto(f'{address}/lab/tree/cells.ipynb?token={token}',
                  wait_until='domcontentloaded')
        page.wait_for_selector('.jp-NotebookPanel .jp-Cell', timeout=60_000)
        yield page
        assert page.locator('.jp-RenderedText[data-mime-type*=stderr]'
                            ).count() == 0
        browser.close()


@pytest.mark.parametrize('call', [
    'pictures.explore_timeline(num_devices=2, batch_size=64)',
    'pictures.explore_synchronisation()',
    'pictures.explore_servers()',
    'pictures.step_player(strategies.ring(4))'])
def test_picture_follows_the_slider(lab, tmp_path, call):
    with opened(lab, tmp_path, [SETUP, call]) as page:
        slider = run_all(page)
        before = picture(page)
        slider.focus()
        page.keyboard.press('ArrowRight')
        deadline = time.monotonic() + 60
        while picture(page) == before:
            assert time.monotonic() < deadline, 'the picture did not change'
            time.sleep(0.2)
