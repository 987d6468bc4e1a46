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
