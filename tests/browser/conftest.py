"""A tab in which tests read the book: from its files, the network off."""
import pytest
from reading import LIMIT, Reader
from chromium import CHROMIUM, FLAGS


@pytest.fixture(scope='module')
def playwright():
    from playwright.sync_api import expect, sync_playwright
    if not CHROMIUM:
        pytest.skip('there is no Chromium')
    expect.set_options(timeout=LIMIT)
    with sync_playwright() as one:
        yield one


@pytest.fixture(scope='module')
def chromium(playwright):
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture
def reader(chromium, book):
    """Who reads with a mouse and keys, in a window as wide as it is set."""
    with Reader(chromium, book) as one:
        yield one


@pytest.fixture
def finger(chromium, book):
    """Who holds a phone."""
    with Reader(chromium, book, has_touch=True, is_mobile=True,
                viewport={'width': 390, 'height': 844}) as one:
        yield one


@pytest.fixture
def opened(chromium, book):
    """Open a chapter. In the end no script has failed, no request has left."""
    pages, failed, asked = [], [], []

    def open_chapter(chapter, **settings):
        page = chromium.new_page(**settings)
        pages.append(page)
        page.on('pageerror', lambda error: failed.append(error))
        page.on('console', lambda said: said.type == 'error' and failed.append(
            said.text))
        page.on('request', lambda request: asked.append(request.url))
        page.goto((book / 'notebooks' / f'{chapter}.html').as_uri())
        return page

    yield open_chapter
    for page in pages:
        page.close()
    assert not failed
    assert asked and all(url.startswith(('file:', 'data:')) for url in asked)
