"""The pages of the book, as `make book` builds them."""
import json
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
ORDER = [
    'docs/book/index', 'notebooks/index', 'docs/install', *CHAPTERS,
    'notebooks/exercises/README',
    *(f'notebooks/exercises/{folder}/{name}'
      for folder in ('tasks', 'solutions') for name in EXERCISES),
    'docs/teaching', 'docs/several-machines', 'docs/bare-mxnet',
    'notebooks/glossary', 'docs/book/references']
each_chapter = pytest.mark.parametrize(
    'chapter', CHAPTERS, ids=lambda name: name[10:12])
LARGEST = 1e6  # bytes of a page, with its pictures
# Glorot and Bengio (2010), Li et al. 2014, Higham 2002: a paper in the prose.
CITED = re.compile(r'(?:[A-Z][\w-]+(?: and [A-Z][\w-]+| et al\.)?) '
                   r'(?:\((?:19|20)\d\d\)|(?:19|20)\d\d)')


def read_anew(path):
    """A page, without the data of pictures inside it, which take long."""
    words = re.sub(r'(data:image/[\w+]+)[^"]+', r'\1', path.read_text())
    return BeautifulSoup(words, 'html.parser')


read = cache(read_anew)


@cache
def addresses(path):
    return {node['id'] for node in read(path).find_all(id=True)}


@pytest.fixture
def page(book):
    return lambda name: read(book / f'{name}.html')


def text(node):
    return ' '.join(node.get_text().split())


def headings(chapter):
    """The headings of a notebook, as they are written there."""
    for cell in json.loads((ROOT / f'{chapter}.ipynb').read_text())['cells']:
        if cell['cell_type'] == 'markdown':
            yield from re.findall(r'^#+ (.*?)\s*$', ''.join(cell['source']),
                                  re.M)


def test_the_first_page_is_where_one_looks_for_it(book):
    assert 'url=book/index.html' in (book / 'index.html').read_text()


def test_all_pages_are_there_and_are_small(book):
    pages = {str(path.relative_to(book).with_suffix(''))
             for path in book.rglob('*.html')}
    assert pages == {*ORDER, 'index', 'search'}
    sizes = {path.name: path.stat().st_size for path in book.rglob('*.html')}
    assert max(sizes.values()) < LARGEST, sizes
    assert len(CHAPTERS) == 20 and len(EXERCISES) == 24


def test_pages_follow_each_other(book, page):
    for way, order in (('next', ORDER), ('prev', ORDER[::-1])):
        name, seen = order[0], []
        while name:
            seen.append(name)
            link = page(name).select_one(f'.related-pages a.{way}-page')
            name = link and str((book / name).parent.joinpath(
                link['href']).resolve().relative_to(book.resolve())
                ).removesuffix('.html')
        assert seen == order


@each_chapter
def test_a_chapter_has_the_number_of_its_file(page, chapter):
    number = int(chapter[10:12])
    assert text(page(chapter).h1).startswith(f'{number}. ')
    menu = page('docs/book/index').select('.sidebar-tree a')
    [entry] = [text(a) for a in menu if a['href'].endswith(
        f'{chapter}.html')]
    assert entry.startswith(f'{number}. ')


@each_chapter
def test_headings_have_the_addresses_of_jupyterlab(book, chapter):
    names = [re.sub('[`*]', '', name) for name in headings(chapter)]
    assert len(names) > 8
    assert {name.replace(' ', '-') for name in names} <= addresses(
        book / f'{chapter}.html')


@pytest.mark.parametrize('name', [*ORDER, 'search'])
def test_no_link_is_broken_and_nothing_is_fetched(book, page, name):
    here = book / f'{name}.html'
    for node in page(name).find_all(['a', 'script', 'link', 'img', 'source',
                                     'iframe', 'video', 'audio', 'object']):
        for key in ('href', 'src', 'srcset', 'data', 'poster'):
            parts = urlsplit(node.get(key, ''))
            outside = parts.scheme not in ('', 'data') or parts.netloc
            assert not outside or node.name == 'a', node
            if parts.scheme or parts.netloc or not node.get(key):
                continue
            there = (here.parent / unquote(parts.path)).resolve() if (
                parts.path) else here
            assert there.exists(), f'{name}: {node}'
            if parts.fragment and there.suffix == '.html':
                assert unquote(parts.fragment) in addresses(there), node


def test_styles_fetch_nothing(book):
    styles = [path.read_text() for path in book.rglob('*.css')]
    styles += [str(style) for path in book.rglob('*.html')
               for style in read(path).find_all('style')]
    assert len(styles) > 3
    for style in styles:
        assert not re.search(r'@import|url\(\s*[\'"]?(?!data:|#)\w*:?//',
                             style)


@pytest.mark.parametrize('name', ORDER)
def test_a_page_serves_readers_who_do_not_see_it(page, name):
    soup = page(name)
    assert soup.html['lang'] == 'en' and soup.title.string
    assert soup.select_one('a.skip-to-content')
    assert len(soup.find_all('h1')) == 1
    assert all(picture.get('alt') for picture in soup.find_all('img'))


def test_pages_hold_nothing_of_the_machine(book):
    for path in book.rglob('*'):
        if path.suffix in ('.html', '.js', '.css', '.svg', '.txt'):
            words = path.read_text()
            assert str(ROOT) not in words, path
            assert f'{Path.home()}/' not in words, path
    assert not [*book.rglob('*.ipynb'), *book.rglob('_sources/**/*.txt')]


@each_chapter
def test_terms_lead_to_the_glossary_once(page, chapter):
    terms = page(chapter).select('a[href*="glossary.html#"]')
    assert len(terms) == len({a['href'] for a in terms}) > 10


def test_a_term_is_explained_and_leads_to_its_place(page):
    terms = page('notebooks/glossary').select('section > section:has(> h3)')
    assert len(terms) > 120
    names = [text(term.h3).lower() for term in terms]
    assert len({*names}) == len(names)
    for term in terms:
        said = term.p
        if text(said).startswith('The same as '):
            assert said.select_one('a[href^="#"]'), text(term)
            continue
        sentences = re.split(r'[.)] +(?=[A-Z"])', text(said))
        assert 2 <= len(sentences) <= 6, text(term)  # with the link
        assert said.select_one('a[href*=".html"]'), text(term)


@pytest.mark.parametrize('name', ORDER)
def test_formulas_are_formulas(book, name):
    """None is left as the text that it was written in."""
    article = read_anew(book / f'{name}.html').find('article')
    for node in article.find_all(['pre', 'code', 'math', 'script', 'svg']):
        node.decompose()
    assert [words for words in article.stripped_strings if '$' in words] == []


@each_chapter
def test_references_are_complete(page, chapter):
    """Each entry, and each paper in the prose, leads to where it is found."""
    listed = {a['href'] for a in page('docs/book/references').select('article a')}
    section = page(chapter).find(id='References').parent
    entries = section.select('li')
    assert entries
    for entry in entries:
        assert {a['href'] for a in entry.select('a')} & listed, text(entry)
    prose = [node for node in page(chapter).select('article p')
             if section not in node.parents]
    linked = {text(a) for node in prose for a in node.select('a.external')
              if a['href'] in listed}
    for node in prose:
        for one in CITED.findall(text(node)):
            assert any(one in link for link in linked), one


def test_lines_of_what_builds_the_book_are_short():
    files = [path for path in (ROOT / 'docs' / 'book').rglob('*')
             if path.suffix in ('.py', '.js', '.css')]
    assert len(files) > 10
    for path in files:
        lines = path.read_text().splitlines()
        assert max(map(len, lines)) <= 79, path


def test_what_did_not_change_is_not_built_again(book, make_book):
    chapter = book / f'{CHAPTERS[2]}.html'
    before = chapter.stat().st_mtime_ns
    done = make_book(f'PAGES={book}', f'KEPT={book}.kept')
    assert done.returncode == 0, done.stdout
    assert chapter.stat().st_mtime_ns == before
