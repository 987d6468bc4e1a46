"""The pages of the book, as `make book` builds them.

Sphinx's -W checks links between pages and places in the contents; here is
what our own extensions do to them.
"""
import json
import os
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

pytestmark = pytest.mark.full
ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = [f'notebooks/{path.stem}' for path in sorted(
    (ROOT / 'notebooks').glob('[0-9]*.ipynb'))]
EXERCISES = re.findall(
    r'\(tasks/(.+?)\.ipynb\)',
    (ROOT / 'notebooks/exercises/README.md').read_text())
PAGES = {
    'docs/book/index', 'notebooks/index', 'docs/install', *CHAPTERS,
    'notebooks/exercises/README',
    *(f'notebooks/exercises/{folder}/{name}'
      for folder in ('tasks', 'solutions') for name in EXERCISES),
    'teaching/README', 'teaching/afternoons', 'docs/several-machines',
    'docs/bare-mxnet',
    'notebooks/glossary', 'docs/book/references', 'docs/book/in-a-browser',
    'docs/book/your-server', 'docs/book/planner'}


@cache
def read(path):
    """A page, without the data of pictures inside it, which take long."""
    words = re.sub(r'(data:image/[\w+]+)[^"]+', r'\1', path.read_text())
    return BeautifulSoup(words, 'html.parser')


@cache
def addresses(path):
    return {node['id'] for node in read(path).find_all(id=True)}


def test_all_pages_are_there(book):
    pages = {str(path.relative_to(book).with_suffix(''))
             for path in book.rglob('*.html')
             if path.relative_to(book).parts[0] != 'lite'}
    assert pages == {*PAGES, 'index', 'search'}
    assert 'url=docs/book/index.html' in (book / 'index.html').read_text()


@pytest.mark.parametrize('chapter', CHAPTERS)
def test_a_chapter_has_its_number_and_the_addresses_of_jupyterlab(book,
                                                                  chapter):
    path = book / f'{chapter}.html'
    title = ' '.join(read(path).h1.get_text().split())
    assert title.startswith(f'{int(chapter[10:12])}. ')
    cells = json.loads((ROOT / f'{chapter}.ipynb').read_text())['cells']
    names = {name for cell in cells if cell['cell_type'] == 'markdown'
             for name in re.findall(r'^#+ (.*?)\s*$', ''.join(cell['source']),
                                    re.M)}
    assert len(names) > 8
    assert {re.sub('[`*]', '', name).replace(' ', '-')
            for name in names} <= addresses(path)


def test_the_links_that_extensions_write_lead_somewhere(book):
    """The first page's HTML is not Sphinx's, which does not look at it."""
    here = book / 'docs/book/index.html'
    links = [a['href'] for a in read(here).select('article a.ideas, article '
                                                  '.ideas a, article td a')]
    assert len(links) > 20
    for link in links:
        parts = urlsplit(link)
        there = (here.parent / unquote(parts.path)).resolve()
        assert there.exists(), link
        if parts.fragment:
            assert unquote(parts.fragment) in addresses(there), link
    for picture in read(here).select('article img[src]'):
        source = picture['src']
        assert source.startswith('data:') or (
            here.parent / source).resolve().exists(), source


@pytest.mark.parametrize('name', sorted(PAGES))
def test_pictures_are_described_and_formulas_are_formulas(book, name):
    page = read(book / f'{name}.html')
    assert all(picture.get('alt') for picture in page.find_all('img'))
    for words in page.article.find_all(string=re.compile(r'\$')):
        assert words.find_parent(['pre', 'code', 'math', 'script', 'svg',
                                  'annotation']), words


def test_pages_hold_nothing_of_the_machine(book):
    for path in book.rglob('*'):
        if path.suffix in ('.html', '.js', '.css', '.svg', '.txt'):
            words = path.read_text()
            assert str(ROOT) not in words, path
            assert f'{Path.home()}/' not in words, path
    assert {path.relative_to(book).parts[0]
            for path in book.rglob('*.ipynb')} == {'lite'}  # runs them


def test_what_did_not_change_is_not_built_again(book, make_book):
    chapter = book / f'{CHAPTERS[2]}.html'
    before = chapter.stat().st_mtime_ns
    done = make_book(f'PAGES={book}', f'KEPT={book}.kept',
                     f'PYODIDE={os.environ.get("D2LPS_PYODIDE", "")}')
    assert done.returncode == 0, done.stdout
    assert chapter.stat().st_mtime_ns == before
