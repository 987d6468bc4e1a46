"""The toys in the book's pages, which move without a kernel.

What JavaScript counts and times is compared with Python. Pictures that were
drawn while the book was built are compared with those of the notebook.
"""
import ast
import json
import random
import re
from base64 import b64decode
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from bs4 import BeautifulSoup
from chromium import PHONE
from playwright.sync_api import expect

import d2lps
from d2lps import pictures
from d2lps.collectives import Schedule, Send, simulate, topology
from d2lps.pictures import widgets
from d2lps.pictures.drawing import html_of
from d2lps.pictures.menus import CHOICES, LINKS, PLANS, STEPPED, STRATEGIES

pytestmark = pytest.mark.full

NOTEBOOKS = Path(__file__).parents[2] / 'notebooks'
CHAPTERS = sorted(path.stem for path in NOTEBOOKS.glob('[0-9]*.ipynb'))
SUMS, RINGS = 'notebooks/03-where-to-sum', 'notebooks/05-rings'


def player(tab):
    return tab.get_by_role('group', name='Step player')


def explorer(tab):
    return tab.get_by_role('group', name='Synchronisation explorer')


def says(toy):
    return toy.locator('[aria-live=polite]')


def choose(toy, values):
    """Move controls, by label, to an option or to a slider's place."""
    for label, value in values.items():
        control = toy.get_by_label(label, exact=True)
        if isinstance(value, str):
            control.select_option(value)
        else:
            control.fill(str(value))


# JavaScript's simulator.
def random_settings(number):
    """Links, strategy, devices, bytes, bytes/s of a cable, latency in s."""
    rng = random.Random(14)
    for _ in range(number):
        yield (rng.choice([*LINKS]), rng.choice(STRATEGIES),
               rng.choice(CHOICES['devices']), 10 ** rng.uniform(3, 10),
               10 ** rng.uniform(8, 11.5),
               rng.choice([0, 10 ** rng.uniform(-7, -2)]))


def test_times_are_those_of_the_simulator(read):
    settings = [*random_settings(100)]
    found = json.loads(read(SUMS).evaluate('''settings =>
        JSON.stringify(settings.map(
        ([links, name, n, bytes, bandwidth, latency]) => {
            const plan = d2lps.data.plans[name].schedules[n];
            const joined = d2lps.data.links[links][n];
            return d2lps.fits(plan, joined) ?
                d2lps.timed(plan, joined, bytes, bandwidth, latency) : null;
        }))''', settings))
    compared = 0
    for (links, name, n, nbytes, bandwidth, latency), one in zip(
            settings, found):
        plan, joined = PLANS[name][1](n), LINKS[links](n, bandwidth, latency)
        assert (one is not None) == ({*plan.nodes} <= {*joined.nodes})
        if one:
            timing = simulate.time(plan, joined, nbytes)
            assert one['seconds'] == pytest.approx(timing.seconds, rel=1e-9)
            assert one['busy'] == pytest.approx(
                [*timing.busy().values()], rel=1e-9, abs=1e-9)
            compared += 1
    assert compared > 70


def made_up(number):
    """Plans on a line of six nodes, no two cables of which are alike.

    Unlike real plans they have messages of many sizes on links that are
    full for different reasons.
    """
    rng = random.Random(15)
    for _ in range(number):
        weights = [rng.uniform(0.1, 3) for _ in range(4)]
        rounds = [[(*rng.sample(range(6), 2), rng.randrange(4), True)
                   for _ in range(rng.randrange(2, 16))] for _ in range(3)]
        links = [link for a in range(5) for link in topology.both_ways(
            a, a + 1, rng.uniform(1e9, 20e9), 1e-4)]
        yield Schedule([[Send(*send) for send in sends] for sends in rounds],
                       6, weights=weights), topology.Topology(links)


def test_links_are_shared_as_in_the_simulator(read):
    pairs = [*made_up(100)]
    found = read(SUMS).evaluate('''all => all.map(
        ([plan, joined]) => d2lps.timed(plan, joined, 1e6, 1, 1e-4).seconds)
        ''', [[{'nodes': plan.nodes, 'weights': plan.weights.tolist(),
                 'rounds': [[[*send] for send in sends]
                            for sends in plan.rounds]},
                {'vertices': [*range(6)], 'nodes': 6,
                 'links': [link[:2] for link in joined.links],
                 'bandwidth': [link.bandwidth for link in joined.links]}]
               for plan, joined in pairs])
    assert found == pytest.approx(
        [simulate.time(*pair, 1e6).seconds for pair in pairs], rel=1e-9)


def test_counts_are_those_of_the_schedules(read):
    tab = read(RINGS)
    for name, (_, make) in PLANS.items():
        found = json.loads(tab.evaluate('''([name, numbers]) =>
            JSON.stringify(numbers.map(n => {
            const plan = d2lps.data.plans[name].schedules[n];
            return plan.rounds ? d2lps.states(plan, n) : plan;
        }))''', [name, [*STEPPED]]))
        for n, states in zip(STEPPED, found):
            plan = make(n)
            if isinstance(plan, Schedule):
                assert np.array_equal(states, [*plan.states()]), (name, n)
            else:
                assert states == plan  # why there is none


# The step player and the explorer of strategies.
def test_the_player_shows_what_is_held(read):
    plan = PLANS['double_tree'][1](8)
    toy = player(read(RINGS))
    expect(says(toy)).to_contain_text('ring, 4 devices, after round 1 of 6: ')
    choose(toy, {'plan': PLANS['double_tree'][0],
                 'devices': [*STEPPED].index(8)})
    for number, held in enumerate(plan.states()):
        choose(toy, {'round': number})
        whole = (held == 1).all(axis=2).sum()
        assert toy.locator('svg circle').count() == whole
        expect(says(toy)).to_contain_text(f'{whole} of ')
        sends = plan.rounds[number - 1] if number else []
        assert toy.locator('.toy-arrow').count() == len(sends)


def test_the_player_says_why_there_is_no_plan(read):
    toy = player(read(RINGS))
    choose(toy, {'plan': 'two rings of 8 V100 GPUs'})
    expect(says(toy)).to_contain_text('Move the slider "devices" to 8.')
    assert toy.locator('svg').count() == 0
    choose(toy, {'devices': 6})
    expect(says(toy)).to_contain_text('8 devices, after round 1 of 14')
    toy.get_by_role('button', name='Forward').click()
    expect(says(toy)).to_contain_text('8 devices, after round 2 of 14')


def test_keys_alone_move_the_player_and_it_plays_to_the_end(read):
    tab = read(RINGS, reduced_motion='reduce')
    toy, press = player(tab), tab.keyboard.press
    toy.get_by_label('plan').focus()
    press('ArrowDown')
    expect(says(toy)).to_contain_text(
        'ring in both directions, 4 devices, after round 1 of 6: 8 messages')
    for name in 'boxes', 'devices', 'round':
        press('Tab')
        expect(toy.get_by_label(name, exact=True)).to_be_focused()
    press('End')
    expect(says(toy)).to_contain_text('after round 6 of 6: 8 messages')
    toy.get_by_role('button', name='Play').click()
    expect(says(toy)).to_contain_text('before round 1 of 6')
    expect(says(toy)).to_contain_text('after round 6 of 6')
    toy.get_by_role('button', name='Play').wait_for()


@pytest.mark.parametrize('links', LINKS)
def test_the_explorer_shows_the_times(read, links):
    names = ['gather_broadcast', 'sharded', 'bidirectional_ring',
             'hierarchical']  # what the notebook's call names
    toy = explorer(read(SUMS))
    expect(says(toy)).to_have_text(
        '4 devices, one PCIe switch. Best: sharded(4) and 2 more, 15 ms. '
        'Worst: gather_broadcast(4, 0), 60 ms.')
    choose(toy, {'links': links, 'devices': 3, 'MB': 3, 'µs per cable': 4})
    expected = []
    for name in names:
        timing = simulate.time(PLANS[name][1](8), LINKS[links](8, 16e9, 1e-4),
                               10e6)
        expected += [timing.schedule.name, f'{1e3 * timing.seconds:,.3g}']
    bars = toy.locator('.toy-bars svg text').all_text_contents()
    assert [text.removesuffix(' best') for text in bars] == [
        *expected, 'time / ms']


# Toys whose pictures were drawn while the book was built.
WIDGET = 'application/vnd.jupyter.widget-view+json'
SCRIPTED = {'explore_plans', 'explore_synchronisation'}
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
    with widgets.caught() as toys:
        for name, source in calls(chapter):
            if name not in SCRIPTED | STILL:
                eval(source, {'pictures': pictures, 'd2lps': d2lps})
    return toys


def places(tab):
    """The toys of a page, each when its pictures are there."""
    for toy in tab.locator('[data-toy=frames]').all():
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
    """What one sees in an SVG, but for its size.

    Without names, groups, and turns by nothing; of a path, its numbers.
    """
    svg = re.sub(r' id="[^"]*"| transform="rotate\(-0 [^"]*"', '', svg)
    root = ElementTree.fromstring(
        re.sub(r'(url\(#|href="#)toy-\d+-(\d+-)?', r'\1', svg))
    seen = [one for one in root.iter()
            if one.tag.split('}')[1] not in ('svg', 'g', 'defs', 'style')
            and one.get('style') != 'fill: none']
    return [(one.tag, {**one.attrib, 'd': {*re.findall(
        r'-?[\d.]+', one.get('d', ''))}}, one.text) for one in seen]


# A slider and a box to tick, a drawing beside a chart, a menu.
@pytest.mark.parametrize('chapter', [
    '06-trees', '02-three-ways-to-split', '15-overlap'])
def test_pictures_are_those_of_the_notebook(read, chapter):
    rng = random.Random(7)
    toys, tab = drawn_before(chapter), read(f'notebooks/{chapter}')
    for toy, place in zip(toys, places(tab), strict=True):
        for turn in range(4):
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
            images = BeautifulSoup(html_of(toy.draw(**values)),
                                   'html.parser').find_all('img')
            expect(place.locator('.toy-words')).to_have_text(
                ' '.join(image['alt'] for image in images),
                use_inner_text=False)
            svgs = place.locator('.toy-picture > svg').evaluate_all(
                '''all => all.map(
                    one => new XMLSerializer().serializeToString(one))''')
            assert [*map(shapes, svgs)] == [
                shapes(b64decode(image['src'].split(',')[1]).decode())
                for image in images], values


def test_keys_move_it_and_what_is_below_stays(read):
    tab = read('notebooks/16-asynchrony', **PHONE)
    for toy in places(tab):
        high = toy.bounding_box()['height']
        seen = {toy.locator('.toy-words').text_content()}
        for control in offered(toy):
            toy.get_by_label(control['label'], exact=True).focus()
            for key in {'slider': ('Home', 'End'), 'checkbox': ('Space',),
                        'menu': ('ArrowDown', 'ArrowUp')}[control['kind']]:
                tab.keyboard.press(key)
                seen.add(toy.locator('.toy-words').text_content())
                assert toy.bounding_box()['height'] == pytest.approx(
                    high, abs=0.5)
        assert len(seen) > len(offered(toy))


@pytest.mark.parametrize('chapter', CHAPTERS)
def test_pages_show_toys_or_why_there_is_none(book, chapter):
    """It stands before the picture; and no page shows a widget's code."""
    names = [name for name, _ in calls(chapter)]
    page = (book / 'notebooks' / f'{chapter}.html').read_text()
    still = sum(name in STILL for name in names)
    assert page.count('data-toy=') == len(names) - still
    notes = re.findall(r'<p class="toy-note">([^<]*)</p>\s*<(?:div|a )', page)
    assert len(notes) == still
    assert all('in the notebook.' in note for note in notes)
    assert not re.findall(r'Box\(children|(?:Slider|Player|Dropdown)\(|'
                          r'&lt;[\w.]+ object|object at 0x', page)
