"""The toys in the book's pages, which count and time without a kernel.

JavaScript's counts and times are compared with Python's. Keys, a finger and
narrow windows are tried in headless Chromium.
"""
import json
import random
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from d2lps.collectives import Schedule, Send, simulate, topology
from d2lps.pictures.menus import CHOICES, LINKS, PLANS, STEPPED, STRATEGIES
from d2lps.pictures.plots import shown_ms
from d2lps.pictures.style import CHUNK_COLORS

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]


def player(page):
    return page.get_by_role('group', name='Step player')


def explorer(page):
    return page.get_by_role('group', name='Synchronisation explorer')


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


def random_settings(number):
    """Links, strategy, devices, bytes, bytes/s of a cable, latency in s."""
    rng = random.Random(14)
    for _ in range(number):
        yield (rng.choice([*LINKS]), rng.choice(STRATEGIES),
               rng.choice(CHOICES['devices']), 10 ** rng.uniform(3, 10),
               10 ** rng.uniform(8, 11.5),
               rng.choice([0, 10 ** rng.uniform(-7, -2)]))


def test_times_are_those_of_the_simulator(opened):
    settings = [*random_settings(400)]
    found = json.loads(opened('03-where-to-sum').evaluate('''settings =>
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
    assert compared > 300


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


def test_links_are_shared_as_in_the_simulator(opened):
    pairs = [*made_up(200)]
    found = opened('03-where-to-sum').evaluate('''all => all.map(
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


def test_counts_are_those_of_the_schedules(opened):
    page = opened('05-rings')
    for name, (words, make) in PLANS.items():
        found = json.loads(page.evaluate('''([name, numbers]) =>
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


@pytest.mark.parametrize('chapter, name, rounds, plans', [
    ('03-where-to-sum', 'sharded', 2, 2), ('05-rings', 'ring', 6, len(PLANS)),
    ('20-today', 'sharded', 2, 3)])
def test_the_player_begins_as_in_the_notebook(opened, chapter, name, rounds,
                                              plans):
    toy = player(opened(chapter))
    expect(says(toy)).to_contain_text(
        f'{PLANS[name][0]}, 4 devices, after round 1 of {rounds}: ')
    assert toy.get_by_label('plan').locator('option').count() == plans
    sums = 'sums' if chapter != '05-rings' else 'bars'
    assert sums in toy.get_by_label('boxes').locator('option:checked'
                                                     ).inner_text()


@pytest.mark.parametrize('name, n', [
    ('ring', 3), ('double_tree', 8), ('parameter_servers', 5)])
def test_the_picture_shows_what_is_held(opened, name, n):
    plan = PLANS[name][1](n)
    toy = player(opened('05-rings'))
    choose(toy, {'plan': PLANS[name][0], 'devices': [*STEPPED].index(n)})
    for number, held in enumerate(plan.states()):
        choose(toy, {'boxes': 'bars for who is in', 'round': number})
        colored = toy.locator('svg rect').evaluate_all(
            'all => all.map(one => one.getAttribute("fill"))')
        assert sum(color in CHUNK_COLORS for color in colored) == (
            held.sum() + n)  # and the labels
        whole = (held == 1).all(axis=2).sum()
        assert toy.locator('svg circle').count() == whole
        expect(says(toy)).to_contain_text(f'{whole} of ')
        choose(toy, {'boxes': 'sums of 1, 2, 3, …'})
        numbers = toy.locator('svg text').all_text_contents()
        sums = (held @ np.arange(1, n + 1)).ravel()
        sums = [str(value) for value in sums if value]
        assert numbers[:len(sums)] == sums
        sends = plan.rounds[number - 1] if number else []
        assert toy.locator('.toy-arrow').evaluate_all(
            'all => all.map(one => one.getAttribute("fill") === "#000000")'
        ) == [send.reduce for send in sends]


def test_why_there_is_no_plan(opened):
    toy = player(opened('05-rings'))
    choose(toy, {'plan': 'two rings of 8 V100 GPUs'})
    expect(says(toy)).to_contain_text('Move the slider "devices" to 8.')
    assert toy.locator('svg').count() == 0
    for button in toy.get_by_role('button').all():
        expect(button).to_be_disabled()
    expect(toy.get_by_label('round', exact=True)).to_be_hidden()
    expect(toy.locator('.toy-signs')).to_be_hidden()
    choose(toy, {'devices': 6})
    expect(says(toy)).to_contain_text('8 devices, after round 1 of 14')
    assert toy.locator('svg').count() == 1
    expect(toy.get_by_label('round', exact=True)).to_be_visible()
    toy.get_by_role('button', name='Forward').click()
    expect(says(toy)).to_contain_text('8 devices, after round 2 of 14')


@pytest.mark.parametrize('plan', ['ring', 'hierarchical', 'double_tree'])
def test_what_is_below_the_player_stays(opened, plan):
    """Also where there is no plan for so many devices."""
    toy = player(opened('05-rings'))
    choose(toy, {'plan': PLANS[plan][0]})
    high = set()
    for devices in range(len(STEPPED)):
        choose(toy, {'devices': devices})
        high.add(round(toy.bounding_box()['height']))
    assert len(high) == 1


def focused(page):
    """The words of what has the keyboard, of which one sees that it has."""
    return page.evaluate('''() => {
        const one = document.activeElement, style = getComputedStyle(one);
        const seen = style.outlineStyle !== 'none' &&
            parseFloat(style.outlineWidth) >= 2;
        return seen && (one.labels.length ? one.labels[0] : one).textContent;
    }''')


def test_keys_alone_move_the_player(opened):
    page = opened('05-rings')
    toy, key = player(page), page.keyboard.press
    toy.get_by_label('plan').focus()
    key('ArrowDown')
    expect(says(toy)).to_contain_text(
        'ring in both directions, 4 devices, after round 1 of 6: 8 messages')
    words = []
    for _ in range(6):
        key('Tab')
        words.append(focused(page))
    assert words == ['boxes', 'devices', 'round', 'Back', 'Forward', 'Play']
    for back, moved, expected in (
            (1, 'Enter', 'after round 2 of 6'), (1, 'Space', 'round 1 of 6'),
            (1, 'End', 'after round 6 of 6: 8 messages replacing'),
            (1, 'ArrowRight', '5 devices, after round 6 of 8')):
        for _ in range(back):
            key('Shift+Tab')
        key(moved)
        expect(says(toy)).to_contain_text(expected)


@pytest.mark.parametrize('motion', ['reduce', 'no-preference'])
def test_it_plays_to_the_end(opened, motion):
    """Also for those who want nothing to move: then arrows are just there."""
    toy = player(opened('05-rings', reduced_motion=motion))
    arrow = toy.locator('.toy-arrow').first
    assert arrow.evaluate('one => getComputedStyle(one).animationName') == (
        'none' if motion == 'reduce' else 'toy-arrow')
    choose(toy, {'plan': 'sharded', 'round': 2})
    toy.get_by_role('button', name='Play').click()
    expect(says(toy)).to_contain_text('before round 1 of 2')
    toy.get_by_role('button', name='Pause').wait_for()
    expect(says(toy)).to_contain_text('after round 2 of 2')
    toy.get_by_role('button', name='Play').wait_for()


def test_a_finger_moves_the_toys(opened):
    page = opened('03-where-to-sum', has_touch=True, is_mobile=True,
                  viewport={'width': 390, 'height': 800})
    toy = player(page)
    toy.get_by_role('button', name='Forward').tap()
    expect(says(toy)).to_contain_text('after round 2 of 2')
    toy.get_by_label('round', exact=True).tap(position={'x': 3, 'y': 12})
    expect(says(toy)).to_contain_text('before round 1 of 2')
    toy = explorer(page)
    toy.get_by_label('devices').tap(position={'x': 3, 'y': 12})
    expect(says(toy)).to_contain_text('2 devices, one PCIe switch')


@pytest.mark.parametrize('links', LINKS)
def test_the_explorer_shows_the_times(opened, links):
    names = ['gather_broadcast', 'sharded', 'bidirectional_ring',
             'hierarchical']  # what the notebook's call names
    toy = explorer(opened('03-where-to-sum'))
    expect(says(toy)).to_contain_text('4 devices, one PCIe switch')
    choose(toy, {'links': links, 'devices': 3, 'MB': 3, 'µs per cable': 4})
    timings = [simulate.time(PLANS[name][1](8), LINKS[links](8, 16e9, 1e-4),
                             10e6) for name in names]
    best = min(map(shown_ms, timings))
    expected = []
    for timing in timings:
        mark = ' best' if shown_ms(timing) == best else ''
        expected += [timing.schedule.name, f'{shown_ms(timing):,g}{mark}']
    bars = toy.locator('.toy-bars svg text')
    assert bars.all_text_contents() == [*expected, 'time / ms']
    worst = max(timings, key=shown_ms)
    expect(says(toy)).to_contain_text(f'Worst: {worst.schedule.name}')
    choose(toy, {'links of the': 'worst'})
    expect(toy.locator('.toy-title')).to_contain_text(worst.schedule.name)
    (src, dst), share = max(worst.busy().items(), key=lambda item: item[1])
    assert f'{src} to {dst}: {round(100 * share)} %' in toy.locator(
        '.toy-network desc').text_content()


@pytest.mark.parametrize('devices, megabytes, sentence, count', [
    # 16.125 and 16.0625 ms; 30.06 and 30.08 ms.
    (7, 2, 'Best: gather_broadcast(16, 0) and 1 more, 16.1 ms. '
     'Worst: bidirectional_ring(16) and 1 more, 30.1 ms.', 2),
    (0, 0, 'All take 2 ms.', 4)])
def test_the_best_are_those_with_the_same_figures(opened, devices, megabytes,
                                                  sentence, count):
    toy = explorer(opened('03-where-to-sum'))
    choose(toy, {'links': 'cables in a ring', 'devices': devices,
                 'MB': megabytes, 'µs per cable': 5})
    expect(says(toy)).to_contain_text(f'cables in a ring. {sentence}')
    bars = toy.locator('.toy-bars svg text').all_text_contents()
    assert sum(text.endswith(' best') for text in bars) == count


def test_keys_alone_move_the_explorer(opened):
    page = opened('03-where-to-sum')
    toy, key = explorer(page), page.keyboard.press
    expect(says(toy)).to_have_text(
        '4 devices, one PCIe switch. Best: sharded(4) and 2 more, 15 ms. '
        'Worst: gather_broadcast(4, 0), 60 ms.')
    toy.get_by_label('links', exact=True).focus()
    key('End')
    expect(says(toy)).to_contain_text('two machines, 10 Gbit/s apart. Best')
    words = []
    for _ in range(5):
        key('Tab')
        words.append(focused(page))
        before = toy.locator('.toy-bars').inner_text()
        key('ArrowRight')
        expect(toy.locator('.toy-bars')).not_to_have_text(before)
    assert words == ['devices', 'MB', 'GB/s', 'µs per cable', 'links of the']


def test_nothing_is_cut_and_words_can_be_read(opened):
    pages = opened('03-where-to-sum'), opened('05-rings')
    choose(explorer(pages[0]), {'links': 'two machines, 10 Gbit/s apart',
                                'devices': 7, 'MB': 6, 'µs per cable': 5})
    choose(player(pages[1]), {'devices': 6, 'boxes': 'sums of 1, 2, 3, …'})
    for scheme, width in (('light', 1280), ('light', 1024), ('light', 390),
                          ('dark', 390)):
        for page in pages:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({'width': width, 'height': 900})
        fits(pages[0])
        for name in 'bidirectional_ring', 'parameter_servers', 'cpu':
            choose(player(pages[1]), {'plan': PLANS[name][0]})
            fits(pages[1])


def fits(page):
    """No text is small or beyond its picture; the page scrolls one way."""
    page.wait_for_function('''() => {  // drawn for this width
        const all = [...document.querySelectorAll(
            '[data-toy^=explore] svg')];
        return all.every(one => Number(one.getAttribute('width')) ===
                                one.parentElement.clientWidth);
    }''', timeout=60_000)
    assert page.evaluate('document.documentElement.scrollWidth') <= (
        page.viewport_size['width'])
    for toy in page.locator('.toy[data-toy^=explore]').all():
        assert toy.evaluate('one => one.scrollWidth <= one.clientWidth')
    assert page.locator('.toy-field span').evaluate_all(  # numbers are whole
        'all => all.every(one => one.getClientRects().length <= 1 &&'
        ' one.clientHeight < 40)')
    texts = page.locator('[data-toy^=explore] svg text')
    wrong = texts.evaluate_all('''all => all.filter(
        text => {
            const size = parseFloat(getComputedStyle(text).fontSize);
            const own = text.getBoundingClientRect();
            const all = text.ownerSVGElement.getBoundingClientRect();
            return size < 11 || own.left < all.left - 1 ||
                own.right > all.right + 1 || own.top < all.top - 4 ||
                own.bottom > all.bottom + 4;
        }).map(text => text.textContent)''')
    assert wrong == []


@pytest.mark.parametrize('chapter', ['03-where-to-sum', '05-rings',
                                     '20-today'])
def test_without_scripts_the_saved_picture_is_there(opened, chapter):
    page = opened(chapter, java_script_enabled=False)
    for toy in page.locator('.toy[data-toy^=explore]').all():
        expect(toy.locator('img').first).to_be_visible()
        assert toy.locator('button, select, input').count() == 0


def test_lines_of_scripts_are_short_and_what_they_read_is_small(book):
    for path in sorted((ROOT / 'docs' / 'book' / 'static').glob('*.js')):
        lines = path.read_text().splitlines()
        assert max(map(len, lines)) <= 79, path
    assert (book / '_static' / 'toys-data.js').stat().st_size < 1_000_000
