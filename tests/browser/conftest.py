"""Tabs in which tests read the book: from its files, the network off."""
import pytest
from chromium import CHROMIUM, FLAGS

LIMIT = 60_000  # ms to wait for what must come
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
