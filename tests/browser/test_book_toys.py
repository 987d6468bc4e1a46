"""The toys in the book's pages, which move without a kernel.

Pictures that were drawn while the book was built are compared with those of
the notebook.
"""
import ast
import json
import random
import re
from base64 import b64decode
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from chromium import PHONE
from playwright.sync_api import expect

import d2lps
from d2lps import pictures
from d2lps.pictures import widgets
from d2lps.pictures.drawing import html_of

pytestmark = pytest.mark.full

NOTEBOOKS = Path(__file__).parents[2] / 'notebooks'
CHAPTERS = sorted(path.stem for path in NOTEBOOKS.glob('[0-9]*.ipynb'))
WIDGET = 'application/vnd.jupyter.widget-view+json'
STILL = {'ask_gpu_machine', 'explore_devices', 'explore_store',
         'explore_timeline', 'TrainingPanel'}


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


def drawn_before(chapter):
    """As the notebook's cells call them."""
    with widgets.collected_toys() as toys:
        for name, source in calls(chapter):
            if name not in STILL:
                eval(source, {'pictures': pictures, 'd2lps': d2lps})
    return toys


def places(tab):
    """The toys of a page, each when its pictures are there."""
    for toy in tab.locator('.toy').all():
        toy.scroll_into_view_if_needed()
        expect(toy).to_have_attribute('data-ready', 'yes')
        yield toy


def offered(toy):
    """What the page lets one choose."""
    return json.loads(toy.get_attribute('data-settings'))['controls']


def move(toy, control, number):
    field = toy.get_by_label(control['label'], exact=True)
    if control['kind'] == 'menu':
        field.select_option(control['options'][number])
    elif control['kind'] == 'checkbox':
        field.set_checked(bool(number))
    else:
        field.fill(str(number))


def shapes(svg):
    """What one sees in an SVG, but for its size.

    Without names, groups, and turns by nothing; of a path, its numbers.
    """
    svg = re.sub(r' id="[^"]*"| transform="rotate\(-0 [^"]*"', '', svg)
    root = ElementTree.fromstring(
        re.sub(r'(url\(#|href="#)toy-\d+-(\d+-)?', r'\1', svg))
    seen = [shape for shape in root.iter()
            if shape.tag.split('}')[1] not in ('svg', 'g', 'defs', 'style')
            and shape.get('style') != 'fill: none']
    return [(shape.tag, {**shape.attrib, 'd': {*re.findall(
        r'-?[\d.]+', shape.get('d', ''))}}, shape.text) for shape in seen]


# A slider and a box to tick, a drawing beside a chart, steps, a menu.
@pytest.mark.parametrize('chapter', [
    '06-trees', '02-three-ways-to-split', '03-where-to-sum', '15-overlap'])
def test_pictures_are_those_of_the_notebook(read, chapter):
    rng = random.Random(7)
    toys, tab = drawn_before(chapter), read(f'notebooks/{chapter}')
    for toy, place in zip(toys, places(tab), strict=True):
        for turn in range(4):
            values = {}
            for (name, control), there in zip(toy.controls.items(),
                                              offered(place), strict=True):
                assert there['label'] == control.label
                number = (rng.randrange(len(there['options'])) if turn else
                          there['value'])
                values[name] = dict(control.options)[there['options'][number]]
                if turn:  # before, it is as the cell calls it
                    move(place, there, number)
                else:
                    assert values[name] == control.value
            images = BeautifulSoup(html_of(toy.draw(**values)),
                                   'html.parser').find_all('img')
            expect(place.locator('.toy-alt')).to_have_text(
                ' '.join(image['alt'] for image in images),
                use_inner_text=False)
            svgs = place.locator('.toy-picture > svg').evaluate_all(
                '''all => all.map(
                    svg => new XMLSerializer().serializeToString(svg))''')
            assert [*map(shapes, svgs)] == [
                shapes(b64decode(image['src'].split(',')[1]).decode())
                for image in images], values


def test_keys_move_it_and_what_is_below_stays(read):
    tab = read('notebooks/16-asynchrony', **PHONE)
    for toy in places(tab):
        high = toy.bounding_box()['height']
        seen = {toy.locator('.toy-alt').text_content()}
        for control in offered(toy):
            toy.get_by_label(control['label'], exact=True).focus()
            for key in {'slider': ('Home', 'End'), 'checkbox': ('Space',),
                        'menu': ('ArrowDown', 'ArrowUp')}[control['kind']]:
                tab.keyboard.press(key)
                seen.add(toy.locator('.toy-alt').text_content())
                assert toy.bounding_box()['height'] == pytest.approx(
                    high, abs=0.5)
        assert len(seen) > len(offered(toy))


# Plans to step through.
def test_keys_and_buttons_go_through_the_rounds(read):
    tab = read('notebooks/05-rings', reduced_motion='reduce')
    [toy] = places(tab)
    says, press = toy.locator('.toy-alt'), tab.keyboard.press

    def click(name):
        toy.get_by_role('button', name=name).click()

    def told(words):
        expect(says).to_contain_text(words, use_inner_text=False)

    told('ring, 4 devices: after round 1 of 6, ')
    toy.get_by_label('plan').focus()
    press('ArrowDown')
    told('ring in both directions, 4 devices: after round 1 of 6, 8 messages')
    for name in 'devices', 'round':
        press('Tab')
        expect(toy.get_by_label(name, exact=True)).to_be_focused()
    press('End')
    told('after round 6 of 6')
    click('Back')
    told('after round 5 of 6')
    for _ in range(2):
        click('Forward')
    told('after round 6 of 6')
    click('Play')
    told('before round 1 of 6')
    told('after round 6 of 6')
    toy.get_by_role('button', name='Play').wait_for()


def test_rounds_are_those_of_the_plan_that_is_chosen(read):
    """Where there is no plan, the picture says why; then the round is kept."""
    tab = read('notebooks/05-rings')
    [toy] = places(tab)
    number = toy.get_by_label('round', exact=True)
    number.fill('4')
    for plan, devices, place, begin in [
            ('two rings of 8 V100 GPUs', '2', '4', 'The cables of 8 GPUs'),
            ('two rings of 8 V100 GPUs', '3', '4', 'two rings of 8 V100 GPUs,'
             ' 8 devices: after round 4 of 14'),
            ('sharded', '3', '2', 'sharded, 8 devices: after round 2 of 2'),
            ('ring', '3', '2', 'ring, 8 devices: after round 2 of 14')]:
        toy.get_by_label('plan').select_option(plan)
        toy.get_by_label('devices').fill(devices)
        expect(toy.locator('.toy-alt')).to_contain_text(
            begin, use_inner_text=False)
        expect(number).to_have_value(place)


@pytest.mark.parametrize('chapter', CHAPTERS)
def test_pages_show_toys_or_why_there_is_none(book, chapter):
    """It stands before the picture; and no page shows a widget's code."""
    names = [name for name, _ in calls(chapter)]
    page = (book / 'notebooks' / f'{chapter}.html').read_text()
    still = sum(name in STILL for name in names)
    assert page.count('<div class="toy" ') == len(names) - still
    notes = re.findall(r'<p class="toy-note">([^<]*)</p>\s*<(?:div|a )', page)
    assert len(notes) == still
    assert all('in the notebook.' in note for note in notes)
    assert not re.findall(r'Box\(children|(?:Slider|Player|Dropdown)\(|'
                          r'&lt;[\w.]+ object|object at 0x', page)
