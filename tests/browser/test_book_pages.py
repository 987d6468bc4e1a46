"""The book as a reader uses it: next page, contents, search, keys, a phone."""
import time

import pytest
from playwright.sync_api import expect
from reading import LIMIT, Reader
from chromium import CHROMIUM, FLAGS, PAINTED

pytestmark = pytest.mark.full

FIRST, CHAPTER = 'docs/book/index', 'notebooks/16-asynchrony'
CHAPTERS = range(1, 21)
# A word, and the chapter that tells of it.
SOUGHT = {'straggler': '16-asynchrony', 'checkpoint': '17-when-a-server-dies',
          'nvlink': '05-rings', 'bucket': '15-overlap'}
# Where Tab is, and how one sees it.
FOCUSED = '''() => {
  const it = document.activeElement;
  const shown = it.matches('.sidebar-search') ? it.closest('form') :
    it.matches('.toctree-checkbox') ? it.nextElementSibling : it;
  const {left, top, right, bottom} = shown.getBoundingClientRect();
  return {
    number: [...document.querySelectorAll('*')].indexOf(it),
    what: it.outerHTML.slice(0, 90),
    seen: it === document.body || right > 0 && bottom > 0 &&
      left < innerWidth && top < innerHeight,
    framed: getComputedStyle(shown).outlineStyle !== 'none',
    place: ['.skip-to-content', '.sidebar-drawer', '.main', '.toc-drawer'
      ].findIndex(place => it.closest(place))};
}'''
REACHABLE = '''() => [...document.querySelectorAll(
  'a[href], button, input:not([type=hidden]), select, summary, [tabindex]')
  ].filter(it => it.checkVisibility({visibilityProperty: true}) &&
                 !it.disabled && it.tabIndex >= 0).map(it => [
    [...document.querySelectorAll('*')].indexOf(it),
    it.outerHTML.slice(0, 90)])'''
MOST_KEYS = 300


def pages(book):
    """All that a reader is led to."""
    names = {str(path.relative_to(book).with_suffix(''))
             for path in book.rglob('*.html')}
    return names - {'index', 'search'}


def at_top(tab, heading):
    """Wait until a heading is in the upper half of the window."""
    tab.wait_for_function('''address => {
      const it = document.getElementById(address);
      const {top, bottom} = it.getBoundingClientRect();
      return bottom > 0 && top >= -1 && top < innerHeight / 2;
    }''', arg=heading)


def test_next_leads_on_and_back_again(reader):
    """Also at the end; test_book.py follows the links of all pages."""
    tab = reader.open('index', 1280)  # which leads to the first page
    tab.wait_for_url('**/book/index.html')
    seen = [reader.name()]
    for _ in range(4):
        reader.follow(tab.locator('a.next-page'))
        seen.append(reader.name())
    assert seen[0] == FIRST and seen[2] == 'docs/install'
    assert len({*seen}) == 5
    assert [name[10:13] for name in seen[3:]] == ['01-', '02-']
    reader.follow(tab.locator('a.prev-page'))
    assert reader.name() == seen[-2]
    tab.go_back()
    assert reader.name() == seen[-1]
    reader.open('docs/book/references')
    assert not tab.locator('a.next-page').count()


def test_the_contents_lead_to_every_page(reader):
    tab = reader.open(FIRST, 1280)
    # The name above the contents leads to the first page.
    assert tab.locator('.sidebar-brand').get_attribute('href') == '#'
    links = tab.locator('.sidebar-tree a')
    assert {name.partition('#')[0] for name in links.evaluate_all(
        'links => links.map(it => decodeURI(it.href))')} == {
            (reader.book / f'{name}.html').as_uri()
            for name in pages(reader.book) - {FIRST}}
    expect(links.get_by_text('Solved: ').first).to_be_hidden()
    tab.locator('.toctree-checkbox').focus()
    tab.keyboard.press('Enter')
    expect(links.get_by_text('Solved: ').first).to_be_visible()
    reader.follow(links.get_by_text('16. '))
    assert reader.name() == CHAPTER
    expect(tab.locator('h1')).to_contain_text('16. Asynchrony')
    expect(tab.locator('.sidebar-tree .current-page')).to_contain_text('16. ')


@pytest.mark.parametrize('start', [
    CHAPTER, 'notebooks/20-today'])
def test_a_cross_reference_leads_to_its_heading(reader, start):
    tab = reader.open(start, 1280)
    links = tab.locator('article a.internal:not(.headerlink)[href*=".html#"]'
                        ':not([href*="glossary.html"])')
    link = links.first
    link.scroll_into_view_if_needed()
    before = tab.evaluate('scrollY')
    reader.follow(link)
    there, _, heading = reader.name().partition('#')
    assert heading and there != start
    at_top(tab, heading)
    tab.go_back()
    assert reader.name() == start
    tab.wait_for_function('y => Math.abs(scrollY - y) < 200', arg=before)


def test_a_term_leads_to_the_glossary(reader):
    tab = reader.open(CHAPTER, 1280)
    reader.follow(tab.locator('article a[href*="glossary.html#"]').first)
    there, _, term = reader.name().partition('#')
    assert there == 'notebooks/glossary' and term
    at_top(tab, term)


@pytest.mark.parametrize('word', SOUGHT)
def test_search_finds(reader, word):
    tab = reader.open(FIRST, 1280)
    tab.locator('.sidebar-search').fill(word)
    tab.keyboard.press('Enter')
    tab.wait_for_url(f'**/search.html?q={word}*')
    found = tab.locator(f'#search-results a[href*="{SOUGHT[word]}"]').first
    reader.follow(found)
    assert reader.name().startswith(f'notebooks/{SOUGHT[word]}')
    expect(tab.locator('article')).to_contain_text(word, ignore_case=True)


def test_search_says_if_it_finds_nothing(reader):
    tab = reader.open(FIRST, 1280)
    tab.locator('.sidebar-search').fill('zeppelin')
    tab.keyboard.press('Enter')
    expect(tab.locator('#search-results')).to_contain_text(
        'did not match any documents')


@pytest.mark.parametrize('name', [
    FIRST, 'notebooks/exercises/solutions/checkpoint'])
def test_tab_reaches_all_in_order_and_one_sees_where_it_is(reader, name):
    tab = reader.open(name, 1400)  # with both sides beside the page
    tab.evaluate(PAINTED)  # by then a script knows what scrolls
    left = dict(tab.evaluate(REACHABLE))
    assert len(left) > 30
    places = []
    for _ in range(MOST_KEYS):
        tab.keyboard.press('Tab')
        tab.wait_for_function(f'({FOCUSED})().seen')  # what slides takes time
        now = tab.evaluate(FOCUSED)
        if now['number'] not in left:
            break
        left.pop(now['number'])
        assert now['framed'], now['what']
        places.append(now['place'])
    assert not left
    assert places[0] == 0 and places == sorted(places)
    assert {*places} >= {0, 1, 2}


def test_one_can_skip_to_the_content(reader):
    tab = reader.open(CHAPTER, 1280)
    tab.keyboard.press('Tab')
    expect(tab.locator('.skip-to-content')).to_be_focused()
    tab.keyboard.press('Enter')
    tab.keyboard.press('Tab')
    assert tab.evaluate('() => !!document.activeElement.closest("article")')


MENUS = {'__navigation': '.sidebar-drawer', '__toc': '.toc-drawer'}


@pytest.mark.parametrize('menu', MENUS)
@pytest.mark.parametrize('key', ['Enter', 'Space'])
def test_keys_open_and_close_a_menu(reader, menu, key):
    tab = reader.open(CHAPTER, 390)
    drawer = tab.locator(MENUS[menu])
    expect(drawer).to_be_hidden()
    for _ in range(5):
        tab.keyboard.press('Tab')
        if tab.evaluate('() => document.activeElement.id') == menu:
            break
    else:
        raise AssertionError(f'Tab does not reach {menu}')
    tab.keyboard.press(key)
    expect(drawer).to_be_visible()
    assert tab.evaluate('() => !!document.activeElement.closest('
                        f'"{MENUS[menu]}")')
    tab.keyboard.press('Escape')
    expect(drawer).to_be_hidden()
    expect(tab.locator(f'#{menu}')).to_be_focused()


def test_a_finger_opens_and_closes_the_menus(finger):
    tab = finger.open(CHAPTER)
    contents, here = map(tab.locator, MENUS.values())
    tab.locator('.nav-overlay-icon').tap()
    expect(contents).to_be_in_viewport(ratio=0.9)
    expect(contents.get_by_text('1. Data Parallelism')).to_be_visible()
    tab.touchscreen.tap(370, 600)  # beside the menu
    expect(contents).to_be_hidden()
    tab.locator('.toc-header-icon').tap()
    expect(here).to_be_in_viewport(ratio=0.9)
    link = here.locator('a[href^="#"]').nth(3)
    link.tap()
    expect(here).to_be_hidden()
    at_top(tab, finger.name().partition('#')[2])
    tab.locator('.nav-overlay-icon').tap()
    contents.get_by_text('1. Data Parallelism').tap()
    expect(tab.locator('h1')).to_contain_text('Data Parallelism')
    expect(contents).to_be_hidden()


ANIMATION = 'article .cell_output > .output img[src^="data:image/svg"]'


@pytest.mark.parametrize('name', [
    'notebooks/03-where-to-sum', 'notebooks/05-rings'])
def test_an_animation_plays(reader, name):
    picture = reader.open(name, 1280).locator(ANIMATION).first
    picture.scroll_into_view_if_needed()
    before = picture.screenshot()
    deadline = time.monotonic() + LIMIT / 1000
    while picture.screenshot() == before:
        assert time.monotonic() < deadline, 'nothing moves'


def test_it_stands_still_for_who_wants_no_motion(playwright, book):
    """What one tells Chromium of a page does not reach the pictures in it."""
    still = playwright.chromium.launch(
        executable_path=CHROMIUM,
        args=[*FLAGS, '--force-prefers-reduced-motion'])
    try:
        with Reader(still, book) as reader:
            tab = reader.open('notebooks/05-rings', 1280)
            picture = tab.locator(ANIMATION).first
            picture.scroll_into_view_if_needed()
            before = picture.screenshot()
            for _ in range(5):
                tab.wait_for_timeout(400)
                assert picture.screenshot() == before
    finally:
        still.close()


@pytest.mark.parametrize('name, toy', [
    ('05-rings', 'explore_plans'),
    ('03-where-to-sum', 'explore_synchronisation')])
def test_the_toys_are_there(reader, name, toy):
    tab = reader.open(f'notebooks/{name}', 1280)
    there = tab.locator(f'.toy[data-toy={toy}]').first
    expect(there.locator('button, input, select').first).to_be_visible()
    expect(there.locator('svg').first).to_be_visible()


def test_the_glossary_has_letters_to_go_to(reader):
    """The first letters of all terms."""
    tab = reader.open('notebooks/glossary', 390)
    terms = tab.locator('article h3').all_inner_texts()
    links = tab.locator('article h1 ~ p a[href^="#"]')
    assert links.all_inner_texts() == sorted(
        {term[0].upper().replace('Α', 'A') for term in terms})
    links.get_by_text('S', exact=True).click()
    at_top(tab, 'S')


def test_printed_words_can_be_read_to_the_end(reader):
    tab = reader.open('notebooks/09-a-real-parameter-server', 390)
    reader.unfold()
    printed = tab.locator('.output:is(.stream, .text_plain):not(.columns) pre')
    assert printed.count() > 10
    assert printed.evaluate_all(
        'all => all.every(it => it.scrollWidth <= it.clientWidth)')
    tab = reader.open('notebooks/18-in-pytorch', 320)
    reader.unfold()
    table = tab.locator('.output.columns pre', has_text='[worker 0]').first
    assert table.evaluate('it => it.scrollWidth > it.clientWidth')


def test_one_sees_that_there_is_more_to_the_right(finger):
    tab = finger.open('notebooks/03-where-to-sum')
    fades = 'it => getComputedStyle(it).maskImage !== "none"'
    tab.evaluate(PAINTED)
    boxes = tab.locator('.output:has(> img)')
    number = boxes.evaluate_all(
        'all => all.findIndex(it => it.scrollWidth > it.clientWidth)')
    assert number >= 0
    box = boxes.nth(number)
    assert box.evaluate(fades)
    box.evaluate('it => it.scrollTo(it.scrollWidth, 0)')
    tab.evaluate(PAINTED)
    assert not box.evaluate(fades)


def test_what_moves_stands_still_on_paper(reader):
    tab = reader.open('notebooks/05-rings', 1280)
    still, skip = tab.locator('.on-paper').first, '.skip-to-content'
    moves = tab.locator('img:has(+ .on-paper)').first
    expect(still).to_be_hidden()
    expect(moves).to_be_visible()
    tab.emulate_media(media='print')
    expect(still).to_be_visible()
    expect(moves).to_be_hidden()
    expect(tab.locator(f'{skip}, footer, summary').filter(visible=True)
           ).to_have_count(0)
    before = still.screenshot()
    tab.wait_for_timeout(500)
    assert still.screenshot() == before
