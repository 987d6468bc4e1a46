"""Tabs in which tests read the book: from its files, or from a server."""
import http.server
import json
import threading
from functools import partial

import pytest
from chromium import CHROMIUM, FLAGS

LIMIT = 60_000  # ms to wait for what must come
LONG = 300_000  # ms, for all cells of a chapter on a busy machine
OURS = 'file:', 'data:', 'blob:'


@pytest.fixture(scope='module')
def chromium():
    """A browser, which ends with the module.

    Playwright has an event loop in this thread, and tests that come later
    could not call `asyncio.run`.
    """
    from playwright.sync_api import expect, sync_playwright
    if not CHROMIUM:
        pytest.skip('there is no Chromium')
    expect.set_options(timeout=LIMIT)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM,
                                             args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def read(chromium, book):
    """Open a page by its name, without .html, in a tab of its own.

    In the end, no script has failed, and all that was asked for was ours.
    """
    contexts, asked, failed = [], [], []

    def open_page(name, width=1280, **settings):
        context = chromium.new_context(
            offline=True, viewport={'width': width, 'height': 900},
            **settings)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(LIMIT)
        tab.on('request', lambda one: asked.append(one.url))
        tab.on('pageerror', lambda one: failed.append(str(one)))
        tab.on('console', lambda told: told.type == 'error' and
               failed.append(told.text))
        tab.goto((book / f'{name}.html').as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert not failed
    assert asked and all(url.startswith(OURS) for url in asked)


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, quietly, and keeps in `methods` how it was asked."""
    methods = set()

    def log_message(self, *_):
        self.methods.add(self.command)


@pytest.fixture(scope='module')
def site(book):
    """The address of the book."""
    where = json.loads((book / 'lite/tab.json').read_text())['pyodide']
    if where.startswith('https:'):
        pytest.skip('D2LPS_PYODIDE names no folder with the files of Pyodide')
    server = http.server.ThreadingHTTPServer(
        ('127.0.0.1', 0), partial(Pages, directory=book))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f'http://127.0.0.1:{server.server_port}'
    server.shutdown()
    server.server_close()


@pytest.fixture(scope='module')
def visit(chromium, site):
    """Open pages of the book; in the end, only the book was asked."""
    contexts, asked = [], []

    def open_page(path, width=1280, **settings):
        context = chromium.new_context(
            viewport={'width': width, 'height': 900}, **settings)
        contexts.append(context)
        context.on('request', lambda one: asked.append(one.url))
        page = context.new_page()
        page.set_default_timeout(LONG)
        page.goto(f'{site}/{path}')
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert any('pyodide' in url for url in asked)  # a worker asks for it
    assert {url for url in asked if not url.startswith((
        f'{site}/', 'data:', 'blob:'))} == set()
    assert Pages.methods <= {'GET', 'HEAD'}  # the server is told nothing
