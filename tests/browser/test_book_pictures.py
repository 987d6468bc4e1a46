"""What moves, is folded, is dark or narrow in the book's pages."""
import pytest
from chromium import PAINTED
from playwright.sync_api import expect

from d2lps.exercises.checking import EXERCISES

pytestmark = pytest.mark.full

RINGS, ASYNC = 'notebooks/05-rings', 'notebooks/16-asynchrony'
LIST = 'notebooks/exercises/README'
PLAYS = 'article img.plays'
# What a picture has: whether it waits, and the comment of this play.
HELD = '''it => {
  const svg = atob(it.src.split(',')[1]);
  return [svg.includes('animation-play-state:paused'),
          (svg.match(/<!-- (\\d+) -->/) ?? [])[1] ?? ''];
}'''
FILTER = 'it => getComputedStyle(it).filter'


def test_a_picture_begins_when_it_is_seen_and_plays_again(reader):
    tab = reader.open(RINGS, 1280)
    pictures = tab.locator(PLAYS)
    last = pictures.last
    for _ in range(3):  # much later it still waits
        tab.evaluate(PAINTED)
    expect(last).not_to_be_in_viewport()
    assert last.evaluate(HELD) == [True, '']
    width = last.bounding_box()['width']
    last.scroll_into_view_if_needed()
    expect(last).to_have_attribute('data-plays', '1')
    waits, first = last.evaluate(HELD)
    assert first and not waits
    assert last.bounding_box()['width'] == width

    # Seen once more, it goes on; it starts again for its button only.
    tab.evaluate('scrollTo(0, 0)')
    expect(last).not_to_be_in_viewport()
    last.scroll_into_view_if_needed()
    tab.evaluate(PAINTED)
    assert last.evaluate(HELD) == [False, first]
    again = tab.get_by_role('button', name='Play again').last
    again.click()
    expect(last).to_have_attribute('data-plays', '2')
    assert last.evaluate(HELD)[1] not in ('', first)
    assert pictures.count() == tab.locator('.play-again').count()


def test_half_of_a_picture_is_enough(reader):
    tab = reader.open(RINGS, 1280)
    picture = tab.locator(PLAYS).first
    show = '''(it, share) => {
      const {top, height} = it.getBoundingClientRect();
      scrollBy(0, top - innerHeight + share * height);
    }'''
    picture.evaluate(show, 0.2)
    tab.evaluate(PAINTED)
    assert picture.get_attribute('data-plays') is None
    picture.evaluate(show, 0.6)
    expect(picture).to_have_attribute('data-plays', '1')


def test_without_scripts_a_picture_plays(chromium, book):
    context = chromium.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((book / f'{RINGS}.html').as_uri())
    assert 'base64' in tab.locator(PLAYS).first.get_attribute('src')
    expect(tab.locator('.play-again')).to_have_count(0)
    answer = tab.locator('details.answer').first
    answer.locator('> summary').click()
    expect(answer.locator('.cell_output').first).to_be_visible()
    context.close()


def test_imports_and_drawing_code_are_folded_and_the_picture_is_not(reader):
    tab = reader.open('notebooks/03-where-to-sum', 1280)
    for kind, words in ('imports', 'Imports: d2lps'), (
            'drawing', 'How this picture is drawn'):
        fold = tab.locator(f'details.fold.{kind}').first
        code = fold.locator('pre')
        expect(code).to_be_hidden()
        expect(fold.locator('summary')).to_contain_text(words)
        assert not fold.locator('.cell_output').count()
        fold.evaluate('it => it.closest("details.answer") && '
                      '(it.closest("details.answer").open = true)')
        fold.locator('summary').click()
        expect(code).to_be_visible()


def test_an_answer_opens_by_a_click_and_by_a_link(reader):
    tab = reader.open(ASYNC, 1280)
    answers = tab.locator('details.answer')
    questions = tab.locator('article p > strong', has_text='Predict')
    assert answers.count() == questions.count() > 4
    first, second = answers.nth(0), answers.nth(1)
    shown = first.locator('.cell_output').first
    expect(shown).to_be_hidden()
    first.locator('> summary').click()
    expect(shown).to_be_visible()
    told = second.locator('p').last
    expect(told).to_be_hidden()
    told.evaluate('it => { it.id = "there"; location.hash = "#there"; }')
    expect(told).to_be_in_viewport()


def test_what_the_search_finds_in_an_answer_is_open(reader):
    tab = reader.open(ASYNC)
    words = tab.locator('details.answer p').last.text_content()
    word = max(words.replace(',', ' ').replace('.', ' ').split(), key=len)
    tab.goto(f'{tab.url}?highlight={word}')
    found = tab.locator('details.answer .highlighted').last
    expect(found).to_be_visible()


def test_all_of_it_is_printed(reader):
    tab = reader.open(ASYNC, 1280)
    hidden = tab.locator('details.answer .cell_output').first
    expect(hidden).to_be_hidden()
    tab.emulate_media(media='print')
    expect(hidden).to_be_visible()
    expect(tab.locator('details.imports pre')).to_be_visible()


def test_plans_side_by_side_are_below_each_other_on_a_phone(finger, reader):
    widths = []
    for one, width in ((finger, 390), (reader, 1280)):
        tab = one.open('notebooks/03-where-to-sum', width)
        widths.append(tab.locator(PLAYS).first.evaluate(
            'it => [it.naturalWidth, it.naturalHeight]'))
        assert tab.locator(PLAYS).first.bounding_box()['width'] <= width - 32
    (narrow, high), (wide, low) = widths
    assert narrow < 0.7 * wide and high > 1.4 * low


@pytest.mark.parametrize('name', [RINGS, ASYNC])
def test_at_night_pictures_are_dark(reader, name):
    tab = reader.open(name, 1280)
    picture = tab.locator('article .cell_output img').first
    assert picture.evaluate(FILTER) == 'none'
    tab.emulate_media(color_scheme='dark')
    assert 'invert' in picture.evaluate(FILTER)
    # A reader's own choice is stronger than the system's.
    tab.evaluate('document.body.dataset.theme = "light"')
    assert picture.evaluate(FILTER) == 'none'
    tab.emulate_media(color_scheme='light')
    tab.evaluate('document.body.dataset.theme = "dark"')
    assert 'invert' in picture.evaluate(FILTER)
    tab.emulate_media(media='print')
    assert picture.evaluate(FILTER) == 'none'


@pytest.mark.parametrize('width', [1250, 1280, 1312, 1440])
def test_the_contents_of_a_page_are_beside_it(reader, width):
    tab = reader.open(RINGS, width)
    contents = tab.locator('.toc-sticky')
    expect(contents).to_be_in_viewport(ratio=0.9)
    expect(tab.locator('.toc-content-icon')).to_be_hidden()
    page, beside = (it.bounding_box() for it in (
        tab.locator('article'), contents))
    assert page['x'] + page['width'] < beside['x']
    assert beside['x'] + beside['width'] <= width
    reader.unfold()
    assert tab.locator('article .cell_input pre').evaluate_all(
        'all => all.filter(it => it.scrollWidth > it.clientWidth)'
        '.map(it => it.textContent)') == []


def test_a_row_of_a_wide_table_is_a_card_on_a_phone(finger):
    tab = finger.open(LIST)
    cells = tab.locator('table.cards tbody td')
    assert cells.count() == len(EXERCISES) * 5
    assert cells.evaluate_all('''all => all.every(it => {
      const {left, right} = it.getBoundingClientRect();
      return left >= 0 && right <= innerWidth;
    })''')
    assert cells.evaluate_all('all => all.map(it => it.dataset.head)')[:5] == [
        'Exercise', 'Chapter', 'What you write', 'Minutes', 'Target']
    assert tab.get_by_role('row').count() == len(EXERCISES)


def test_what_a_row_is_about_stays_in_sight(finger):
    tab = finger.open('notebooks/03-where-to-sum')
    finger.unfold()
    tab.evaluate(PAINTED)
    moved = tab.locator('.output:has(> div > table)').evaluate_all('''all =>
      all.filter(it => it.scrollWidth > it.clientWidth + 10 &&
                       !it.querySelector('tbody th + th')).map(it => {
        it.scrollTo(it.scrollWidth, 0);
        return it.querySelector('tbody th').getBoundingClientRect().left -
               it.getBoundingClientRect().left;
      })''')
    assert moved and all(0 <= left < 20 for left in moved)


@pytest.mark.parametrize('name', [
    'docs/book/index', RINGS, 'notebooks/03-where-to-sum'])
def test_pictures_are_large_enough_on_a_phone(finger, name):
    tab = finger.open(name)
    finger.unfold()
    tab.evaluate(PAINTED)
    small = tab.locator('article .cell_output img').evaluate_all('''
      all => all.filter(it => it.checkVisibility()).map(it => {
        const svg = atob(it.src.split(',')[1]);
        const sizes = [...svg.matchAll(/font-size="([^"]+)"|bold 12px/g)].map(
          ([, size]) => Number(size ?? 12) * it.clientWidth / it.naturalWidth);
        return [Math.min(...sizes), it.alt];
      }).filter(([size]) => size < 9)''')
    assert small == []
