"""One page of each kind as readers see it, and what scripts do in pages."""
import re
from io import BytesIO

import pytest
from chromium import PAINTED, PHONE
from matplotlib.image import imread
from playwright.sync_api import expect
from reading import axe, too_wide, unfold

pytestmark = pytest.mark.full

FIRST, RINGS = 'docs/book/index', 'notebooks/05-rings'
SUMS, ASYNC = 'notebooks/03-where-to-sum', 'notebooks/16-asynchrony'
KINDS = [FIRST, SUMS, 'notebooks/exercises/README',
         'notebooks/exercises/solutions/checkpoint', 'notebooks/glossary',
         'teaching/README', 'search']
# The words of a picture, and whether it is there.
PICTURES = '''async () => {
  await Promise.allSettled([...document.images].map(it => it.decode()));
  return [...document.images].map(it => [it.alt, it.naturalWidth > 0]);
}'''


@pytest.mark.parametrize('name', KINDS)
@pytest.mark.parametrize('scheme, width', [('light', 1280), ('dark', 390)])
def test_a_page_can_be_read_by_everybody(read, name, scheme, width):
    """axe-core finds nothing serious; nothing is cut; pictures are there."""
    tab = read(name, width, color_scheme=scheme)
    unfold(tab)
    assert too_wide(tab) == []
    for alt, loaded in tab.evaluate(PICTURES):
        assert loaded and len(alt) > 3, alt
    assert axe(tab) == []


def test_next_leads_on_and_back_again(read, book):
    tab = read('index')  # which leads to the first page
    tab.wait_for_url('**/docs/book/index.html')
    for way, there in (('next', 'notebooks/index'),
                       ('next', 'docs/book/in-a-browser'),
                       ('next', 'docs/install'),
                       ('next', 'notebooks/01-data-parallelism'),
                       ('prev', 'docs/install')):
        tab.locator(f'a.{way}-page').click()
        tab.wait_for_url(f'**/{there}.html')


def test_search_finds(read):
    tab = read(FIRST)
    tab.locator('.sidebar-search').fill('straggler')
    tab.keyboard.press('Enter')
    tab.wait_for_url('**/search.html?q=straggler*')
    hits = tab.locator('#search-results li > a')
    terms = hits.and_(tab.locator('[href*="glossary.html#"]'))
    expect(terms.first).to_be_visible()
    assert hits.evaluate_all('all => new Set(all.map(it => '
                             'getComputedStyle(it).color)).size') == 1
    tab.locator('#search-results a[href*="16-asynchrony"]').first.click()
    tab.wait_for_url('**/16-asynchrony.html*')
    expect(tab.locator('article')).to_contain_text('straggler')


@pytest.mark.parametrize('menu, place', [
    ('__navigation', '.sidebar-drawer'), ('__toc', '.toc-drawer')])
def test_keys_open_and_close_a_menu(read, menu, place):
    tab = read(ASYNC, 390)
    drawer, box = tab.locator(place), tab.locator(f'#{menu}')
    expect(drawer).to_be_hidden()
    box.focus()
    tab.keyboard.press('Enter')
    expect(drawer).to_be_visible()
    assert tab.evaluate(f'!!document.activeElement.closest("{place}")')
    tab.keyboard.press('Escape')
    expect(drawer).to_be_hidden()
    expect(box).to_be_focused()


def test_one_can_skip_to_the_content(read):
    tab = read(ASYNC)
    tab.keyboard.press('Tab')
    expect(tab.locator('.skip-to-content')).to_be_focused()


def test_what_is_wider_than_its_box_is_reached_with_tab_and_fades(read):
    tab = read(SUMS, **PHONE)
    tab.evaluate(PAINTED)  # by then a script knows what scrolls
    boxes = tab.locator('.output:has(> img)')
    box = boxes.nth(boxes.evaluate_all(
        'all => all.findIndex(it => it.scrollWidth > it.clientWidth)'))
    expect(box).to_have_attribute('tabindex', '0')
    fades = 'it => getComputedStyle(it).maskImage !== "none"'
    assert box.evaluate(fades)
    box.evaluate('it => it.scrollTo(it.scrollWidth, 0)')
    tab.evaluate(PAINTED)
    assert not box.evaluate(fades)


def test_a_row_of_a_wide_table_is_a_card_on_a_phone(read):
    cells = read(KINDS[2], **PHONE).locator('table.cards tbody td')
    assert cells.evaluate_all('all => all.map(it => it.dataset.head)')[:5] == [
        'Exercise', 'Chapter', 'What you write', 'Minutes', 'Target']
    assert cells.evaluate_all('''all => all.every(it => {
      const {left, right} = it.getBoundingClientRect();
      return left >= 0 && right <= innerWidth;
    })''')


def test_a_chapter_has_its_minutes_beside_its_title_on_a_phone(read):
    """And no label tells what every row has."""
    rows = read(FIRST, **PHONE).locator('table.cards tbody tr').all()
    assert len(rows) == 25
    for row in rows:
        title, seen, *_, minutes = row.locator('td').all()
        here, there = title.bounding_box(), minutes.bounding_box()
        assert here['y'] == there['y'] and here['x'] < there['x']
        assert seen.evaluate(
            'it => getComputedStyle(it, "::before").content') == 'none'


def test_nothing_lies_over_what_is_read(read):
    """Nor when one scrolls up, at which furo offers a way to the top."""
    tab = read(ASYNC)
    for y in 2000, 1000:
        tab.evaluate(f'scrollTo(0, {y})')
        tab.evaluate(PAINTED)
    expect(tab.locator('.show-back-to-top')).to_have_count(1)
    expect(tab.locator('.back-to-top')).to_be_hidden()


# What is folded.
@pytest.mark.parametrize('name, code', [
    ('notebooks/04-on-your-own-machine', 'pictures.Drawing('),
    ('notebooks/12-when-a-ring-hangs', '.plot(')])
def test_imports_and_drawing_code_are_folded_and_the_picture_is_not(
        read, name, code):
    tab = read(name)
    for kind, words, inside in ('imports', 'Imports: d2lps', 'import'), (
            'drawing', 'How this picture is drawn', code):
        fold = tab.locator(f'details.fold.{kind}').first
        expect(fold.locator('pre')).to_be_hidden()
        expect(fold.locator('pre')).to_contain_text(inside)
        expect(fold.locator('summary')).to_contain_text(words)
        assert not fold.locator('.cell_output').count()


def test_an_answer_opens_by_a_click_a_link_a_search_and_on_paper(read):
    tab = read(ASYNC)
    answers = tab.locator('details.answer')
    questions = tab.locator('article p > strong', has_text='Predict')
    assert answers.count() == questions.count() > 4
    shown = [answers.nth(k).locator('.cell_output').first for k in range(2)]
    expect(shown[0]).to_be_hidden()
    answers.nth(0).locator('> summary').click()
    expect(shown[0]).to_be_visible()
    told = answers.nth(1).locator('p').last
    expect(told).to_be_hidden()
    told.evaluate('it => { it.id = "there"; location.hash = "#there"; }')
    expect(told).to_be_in_viewport()
    words = answers.last.locator('p').last.text_content()
    elsewhere = answers.nth(1).text_content()
    word = max((word for word in re.findall(r'\w+', words)
                if word not in elsewhere), key=len)
    tab.goto(f'{tab.url.partition("#")[0]}?highlight={word}')
    expect(answers.last.locator('.highlighted').last).to_be_visible()
    expect(shown[1]).to_be_hidden()
    tab.emulate_media(media='print')
    expect(shown[1]).to_be_visible()


# What plays.
PLAYS = 'article img.plays'
# Whether a picture waits, and the number of this play.
HELD = '''it => {
  const svg = atob(it.src.split(',')[1]);
  return [svg.includes('animation-play-state:paused'),
          (svg.match(/<!-- (\\d+) -->/) ?? [])[1] ?? ''];
}'''


def test_a_picture_begins_when_it_is_seen_and_plays_again(read):
    tab = read(RINGS)
    last = tab.locator(PLAYS).last
    expect(last).not_to_be_in_viewport()
    assert last.evaluate(HELD) == [True, '']
    last.scroll_into_view_if_needed()
    expect(last).to_have_attribute('data-plays', '1')
    waits, first = last.evaluate(HELD)
    assert first and not waits
    tab.get_by_role('button', name='Play again').last.click()
    expect(last).to_have_attribute('data-plays', '2')
    assert last.evaluate(HELD)[1] not in ('', first)


def test_what_moves_stands_still_on_paper(read):
    tab = read(RINGS)
    still = tab.locator('.on-paper').first
    moves = tab.locator('img:has(+ .on-paper)').first
    expect(still).to_be_hidden()
    expect(moves).to_be_visible()
    tab.emulate_media(media='print')
    expect(still).to_be_visible()
    expect(moves).to_be_hidden()


def test_on_paper_nothing_is_cut_and_no_heading_stands_alone(read):
    """Firefox cuts what could scroll, and needs room below a heading."""
    tab = read(RINGS)
    tab.emulate_media(media='print')
    for what, name, wanted in [
            ('.cell_output, .output', 'overflow', 'visible'),
            ('.output, .cell_input', 'breakInside', 'avoid'),
            ('h2, h3', 'breakInside', 'avoid'), ('ul', 'breakInside', 'auto')]:
        assert tab.locator(f'article :is({what})').evaluate_all(
            f'all => [...new Set(all.map(it => getComputedStyle(it).{name}))]'
            ) == [wanted], what
    assert tab.locator('h2').first.evaluate(
        'it => parseFloat(getComputedStyle(it, "::after").height)') > 64


def test_at_night_pictures_are_dark(read):
    tab = read(RINGS)
    picture = tab.locator('article .cell_output img').first
    look = 'it => getComputedStyle(it).filter'
    assert picture.evaluate(look) == 'none'
    tab.emulate_media(color_scheme='dark')
    assert 'invert' in picture.evaluate(look)
    # A reader's own choice is stronger than the system's.
    tab.evaluate('document.body.dataset.theme = "light"')
    assert picture.evaluate(look) == 'none'


@pytest.mark.parametrize('system, choice, shown', [
    ('dark', 'auto', 'dark'), ('dark', 'light', 'light'),
    ('light', 'dark', 'dark'), ('light', 'auto', 'light')])
def test_at_night_menus_are_dark(read, system, choice, shown):
    """A browser draws them by itself, and in white unless it is told."""
    tab = read(FIRST, color_scheme=system)
    tab.evaluate(f'document.body.dataset.theme = "{choice}"')
    look = 'it => getComputedStyle(it).colorScheme'
    assert tab.locator('.race select').first.evaluate(look) == shown
    tab.emulate_media(media='print')
    assert tab.locator('html').evaluate(look) == 'light'


def test_a_picture_that_is_dark_by_itself_stays_so(read):
    """Those of the README would be light again by the page's filter."""
    tab = read(FIRST, color_scheme='dark')
    shown = imread(BytesIO(tab.locator('.ideas img').first.screenshot()))
    assert shown[3, 3, :3].max() < 0.2


def test_without_scripts_pictures_play_toys_stand_and_answers_open(read):
    tab = read(SUMS, java_script_enabled=False)
    assert 'base64' in tab.locator(PLAYS).first.get_attribute('src')
    answer = tab.locator('details.answer').first
    answer.locator('> summary').click()
    expect(answer.locator('.cell_output').first).to_be_visible()
    tab = read(ASYNC, java_script_enabled=False)
    assert tab.locator('.toy :is(button, select, input)').count() == 0
    expect(tab.locator('.toy svg').first).to_be_visible()


# The race of the first page.
SHOWN = '''() => [...document.querySelectorAll('.race-picture')].map(it =>
  [...it.querySelectorAll('text')].filter(one => one.checkVisibility({
    visibilityProperty: true}) && /^(round|done)/.test(one.textContent)
    ).map(one => one.textContent))'''


def test_the_race_shows_what_the_clock_says(read):
    tab = read(FIRST)
    time, says = tab.locator('.race input'), tab.locator('.race-says')
    first, second = tab.locator('.race-lane select').all()
    assert tab.locator('.race output').inner_text() == '6 ms'
    assert tab.evaluate(SHOWN) == [['round 1 of 2'], ['round 1 of 2']]
    time.focus()
    tab.keyboard.press('ArrowRight')
    expect(tab.locator('.race output')).to_have_text('6.5 ms')
    time.fill('15')
    assert tab.evaluate(SHOWN) == [['round 1 of 2'], ['done: 15 ms']]
    tab.keyboard.press('End')
    expect(says).to_contain_text('60 ms: 4 times as long.')
    tab.locator('.race-links select').select_option('ring')
    first.select_option('ring')
    second.select_option('ring')
    time.press('End')
    expect(says).to_have_text('At 13.3 ms: A tie: both took 13.3 ms.')
    assert tab.evaluate(SHOWN) == [['done: 13.3 ms'], ['done: 13.3 ms']]


def test_the_race_plays_and_pauses(read):
    tab = read(FIRST)
    time, play = tab.locator('.race output'), tab.locator('.race button')
    play.click()
    expect(play).to_have_text('Pause')
    expect(time).not_to_have_text('6 ms')
    play.click()
    expect(play).to_have_text('Play')
    now = time.inner_text()
    tab.evaluate(PAINTED)
    assert time.inner_text() == now
