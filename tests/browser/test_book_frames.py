"""Toys in the book's pages whose pictures were drawn while it was built.

They are compared with those of the notebook, and moved with keys, a mouse and
a finger.
"""
import ast
import json
import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

import d2lps
from d2lps import pictures
from d2lps.pictures import widgets

pytestmark = pytest.mark.full

NOTEBOOKS = Path(__file__).parents[2] / 'notebooks'
CHAPTERS = sorted(path.stem for path in NOTEBOOKS.glob('[0-9]*.ipynb'))
WIDGET = 'application/vnd.jupyter.widget-view+json'
SCRIPTED = {'explore_plans', 'explore_synchronisation'}
STILL = {'explore_devices', 'explore_store', 'explore_timeline',
         'TrainingPanel'}
WHY = 'in the notebook.'


def calls(chapter):
    """[(name, source), ...] of the toys in a chapter, in order."""
    cells = json.loads((NOTEBOOKS / f'{chapter}.ipynb').read_text())['cells']
    for cell in cells:
        if any(WIDGET in output.get('data', {})
               for output in cell.get('outputs', ())):
            for call in ast.walk(ast.parse(''.join(cell['source']))):
                name = getattr(getattr(call, 'func', None), 'attr', '')
                if name.startswith('explore_') or name in STILL:
                    yield name, ast.unparse(call)


def framed(chapter):
    """Those that were drawn before: as the notebook's cells call them."""
    with widgets.caught() as toys:
        for name, source in calls(chapter):
            if name not in SCRIPTED | STILL:
                eval(source, {'pictures': pictures, 'd2lps': d2lps})
    return toys


WITH_FRAMES = [chapter for chapter in CHAPTERS if any(
    name not in SCRIPTED | STILL for name, _ in calls(chapter))]
each_chapter = pytest.mark.parametrize('chapter', WITH_FRAMES)


def places(page):
    """The toys of a page, each when its pictures are there."""
    for toy in page.locator('[data-toy=frames]').all():
        toy.scroll_into_view_if_needed()
        expect(toy).to_have_attribute('data-ready', 'yes')
        yield toy


def offered(toy):
    """What the page lets one choose."""
    return json.loads(toy.get_attribute('data-settings'))['controls']


def move(toy, control, number):
    field = toy.get_by_label(control['label'], exact=True)
    if control['kind'] == 'menu':
        field.select_option(control['words'][number])
    elif control['kind'] == 'checkbox':
        field.set_checked(bool(number))
    else:
        field.fill(str(number))


def shapes(svg):
    """What is in an SVG, but for its size and the names of patterns."""
    root = ElementTree.fromstring(
        re.sub(r'(\bid="|url\(#|href="#)toy-frames-\d+-', r'\1', svg))
    return [(one.tag, one.attrib, one.text) for one in root.iter()][1:]


def pictures_of(toy):
    return toy.locator('.toy-picture > svg').evaluate_all(
        'all => all.map(one => new XMLSerializer().serializeToString(one))')


def drawings(shown):
    return getattr(shown, 'drawings', [shown])


@each_chapter
def test_pictures_are_those_of_the_notebook(opened, chapter):
    rng = random.Random(7)
    toys, page = framed(chapter), opened(chapter)
    for toy, place in zip(toys, places(page), strict=True):
        for turn in range(5):
            values = {}
            for (name, control), there in zip(toy.controls.items(),
                                              offered(place), strict=True):
                assert there['label'] == control.label
                number = (rng.randrange(len(there['words'])) if turn else
                          there['value'])
                values[name] = dict(control.options)[there['words'][number]]
                if turn:  # before, it is as the cell calls it
                    move(place, there, number)
                else:
                    assert values[name] == control.value
            shown = toy.draw(**values)
            assert place.locator('.toy-words').text_content() == shown.alt
            assert [*map(shapes, pictures_of(place))] == [
                shapes(one.svg()) for one in drawings(shown)], values


def height(toy):
    return toy.bounding_box()['height']


@each_chapter
@pytest.mark.parametrize('width', [1280, 390])
def test_keys_alone_move_it_and_what_is_below_stays(opened, chapter, width):
    page = opened(chapter, viewport={'width': width, 'height': 900})
    for toy in places(page):
        before, seen = height(toy), {toy.locator('.toy-words').text_content()}
        for control in offered(toy):
            field = toy.get_by_label(control['label'], exact=True)
            field.focus()
            for key in {'slider': ('Home', 'ArrowRight', 'End', 'ArrowLeft'),
                        'menu': ('ArrowDown', 'ArrowDown', 'ArrowUp'),
                        'checkbox': ('Space',)}[control['kind']]:
                page.keyboard.press(key)
                seen.add(toy.locator('.toy-words').text_content())
                assert height(toy) == pytest.approx(before, abs=0.5)
        assert len(seen) > len(offered(toy))
        assert page.evaluate('document.documentElement.scrollWidth') <= width


@each_chapter
def test_a_mouse_moves_it_while_it_is_dragged(opened, chapter):
    page = opened(chapter)
    for toy in places(page):
        slider, seen = toy.locator('input[type=range]').first, set()
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        y = box['y'] + box['height'] / 2
        page.mouse.move(box['x'] + 8, y)
        page.mouse.down()
        for part in range(5):
            x = box['x'] + 8 + part * (box['width'] - 16) / 4
            page.mouse.move(x, y)
            seen.add(toy.locator('.toy-words').text_content())
        page.mouse.up()
        assert len(seen) >= 2


@each_chapter
def test_on_a_phone_a_control_has_a_line(opened, chapter):
    page = opened(chapter, has_touch=True, is_mobile=True,
                  viewport={'width': 390, 'height': 844})
    for toy in places(page):
        tops = [one.bounding_box()['y']
                for one in toy.locator('.toy-field').all()]
        assert all(b - a > 20 for a, b in zip(tops, tops[1:]))
        # Nothing of a picture is smaller than 8 pixels, it scrolls instead.
        assert min(toy.locator('.toy-picture text').evaluate_all(
            '''all => all.map(one => parseFloat(getComputedStyle(one).fontSize)
                * one.ownerSVGElement.getScreenCTM().a)''')) > 8
        # What is wider than its box is reached with Tab, to scroll it.
        picture = toy.locator('.toy-picture')
        wider = picture.evaluate('it => it.scrollWidth > it.clientWidth + 1')
        assert (picture.get_attribute('tabindex') == '0') == wider
        slider = toy.locator('input[type=range]').first
        slider.tap(position={'x': 3, 'y': 12})
        expect(slider).to_have_value('0')


def test_pictures_are_loaded_when_one_comes_near(opened):
    page = opened('10-many-machines')
    page.wait_for_load_state('load')
    scripts = page.locator('script[src*="/toys/"]')
    far = page.locator('[data-toy=frames]').last
    assert far.bounding_box()['y'] > 3000
    file = json.loads(far.get_attribute('data-settings'))['file']
    page.wait_for_timeout(300)
    assert file not in ' '.join(scripts.evaluate_all(
        'all => all.map(one => one.src)'))
    far.scroll_into_view_if_needed()
    expect(far).to_have_attribute('data-ready', 'yes')


@each_chapter
def test_without_scripts_its_first_picture_is_there(opened, chapter):
    page = opened(chapter, java_script_enabled=False)
    for toy in page.locator('[data-toy=frames]').all():
        assert toy.locator('button, select, input').count() == 0
        for svg in toy.locator('.toy-picture > svg').all():
            expect(svg).to_be_visible()


@pytest.mark.parametrize('chapter', CHAPTERS)
def test_pages_show_toys_or_why_there_is_none(book, chapter):
    """It stands before the picture; and no page shows a widget's code."""
    names = [name for name, _ in calls(chapter)]
    page = (book / 'notebooks' / f'{chapter}.html').read_text()
    still = sum(name in STILL for name in names)
    assert page.count('data-toy=') == len(names) - still
    notes = re.findall(r'<p class="toy-note">([^<]*)</p>\s*<(?:div|a )', page)
    assert len(notes) == still and all(WHY in note for note in notes)
    assert not re.findall(r'Box\(children|(?:Slider|Player|Dropdown)\(|'
                          r'&lt;[\w.]+ object|object at 0x', page)


def test_most_toys_move(book):
    names = {name for chapter in CHAPTERS for name, _ in calls(chapter)}
    assert len(names - STILL) >= 14


def test_files_of_pictures_are_small_and_needed(book):
    files = [*(book / '_static' / 'toys').iterdir()]
    pages = ''.join(path.read_text() for path in book.rglob('*.html'))
    assert len(files) >= len(WITH_FRAMES)
    for path in files:
        assert path.stat().st_size < 600_000, path
        assert path.name in pages
