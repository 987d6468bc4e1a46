"""The book's pages, read by axe-core and measured at up to four widths.

All pages are opened and measured. Of the exercises, which are made alike, axe
reads one task and its solution.
"""
import re
from collections import Counter

import pytest

pytestmark = pytest.mark.full

WIDTHS = 320, 390, 1024, 1280  # 320: 1,280 enlarged four times
ALIKE = re.compile('notebooks/exercises/(tasks|solutions)/(?!ring-both-ways)')
KINDS = ['docs/book/index', 'notebooks/03-where-to-sum',
         'notebooks/exercises/solutions/checkpoint']


# Their words, and whether they are there: in a page that is open.
PICTURES = '''async () => {
  await Promise.allSettled([...document.images].map(it => it.decode()));
  // One of each pair is for a dark page.
  const all = document.querySelectorAll('img:not(.only-dark)');
  return [...all].map(it => [it.alt, it.naturalWidth > 0]);
}'''


def names(book):
    """All pages, but for the one that only leads to the first."""
    return sorted(str(path.relative_to(book).with_suffix(''))
                  for path in book.rglob('*.html')
                  if path != book / 'index.html')


@pytest.fixture(scope='module')
def facts(chromium, book):
    """What is to be known of each page, by its name; each is opened once."""
    from reading import Reader
    found = {}
    with Reader(chromium, book) as reader:
        for name in names(book):
            alike = ALIKE.match(name)
            tab = reader.open(name, WIDTHS[0])
            found[name] = {
                'wide': {width: reader.overflowing(width)
                         for width in WIDTHS[::3 if alike else 1]},
                'pictures': tab.evaluate(PICTURES),
                'axe': [] if alike else reader.axe()}
    assert len(found) > 40
    return found


def test_axe_finds_nothing_serious(facts):
    """The contrast of WCAG AA is among its rules."""
    assert [line for fact in facts.values() for line in fact['axe']] == []


def test_no_page_scrolls_sideways_and_nothing_is_cut(facts):
    """What is wider than its box scrolls there, and Tab reaches the box."""
    wide = {(name, width): found for name, fact in facts.items()
            for width, found in fact['wide'].items() if found}
    assert wide == {}


def test_pictures_are_there_and_are_described(facts):
    shown = 0
    for name, fact in facts.items():
        words = Counter()
        for alt, loaded in fact['pictures']:
            assert loaded, f'{name}: {alt}'
            assert len(alt) > 3, name
            assert not re.search(r'\.(png|svg|jpe?g|gif)\b', alt), name
            words[alt] += 1
            shown += 1
        assert [*words.values()] == [1] * len(words), (name, words)
    assert shown > 100


@pytest.mark.parametrize('name', KINDS)
@pytest.mark.parametrize('scheme, width', [
    ('dark', 1280), ('dark', 390), ('light', 390)])
def test_axe_finds_nothing_serious_at_night_or_on_a_phone(
        reader, name, scheme, width):
    reader.tab.emulate_media(color_scheme=scheme)
    reader.open(name, width)
    reader.unfold()
    assert reader.axe(colours=scheme == 'dark') == []
