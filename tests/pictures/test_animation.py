"""Chunks that travel: what the picture says is what the simulator says."""
import re
from base64 import b64decode
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lps import pictures
from d2lps.collectives import Schedule, Send, simulate, topology
from d2lps.collectives import strategies as sch
from d2lps.pictures.animation.__main__ import readme_pictures
from d2lps.pictures.animation.playtime import Looping, Playing
from d2lps.pictures.animation.layout import choose
from d2lps.pictures.animation.timing_panel import Panel
from d2lps.pictures.animation.story import Message, Story, lanes
from d2lps.pictures.night import night
from d2lps.pictures.units import TIMES, with_unit
from tests.plans import quick, schedules

ROOT = Path(__file__).resolve().parents[2]
NBYTES = 160e6


def circle(n):
    return topology.Topology([link for k in range(n) for link in
                              topology.both_ways(k, (k + 1) % n, 18e9)])


def servers(*counts):
    plans = [sch.parameter_server(4, count) for count in counts]
    return [simulate.time(plan, topology.ethernet(plan.nodes), NBYTES)
            for plan in plans]


def timed(plan, place, **more):
    return [simulate.time(plan, place, NBYTES, **more)]


SWITCH4, SWITCH8 = topology.pcie_switch(4), topology.pcie_switch(8)
LARGE = sch.parameter_server(16, 4)
USES = {  # timings, and how they are laid out
    'gather, sharded': (timed(sch.gather_broadcast(4), SWITCH4)
                        + timed(sch.sharded(4), SWITCH4), {}),
    'at the CPU': (timed(sch.gather_broadcast(4, 'cpu'), SWITCH4), {}),
    'ring(4)': (timed(sch.ring(4), circle(4)), {}),
    'ring(8)': (timed(sch.ring(8), circle(8)), {}),
    'two rings': (timed(sch.two_rings(), topology.nvlink_p3()), {}),
    'tree(8)': (timed(sch.tree(8), SWITCH8), {'layout': 'tree'}),
    'tree in a row': (timed(sch.tree(8), SWITCH8), {}),
    'halving_doubling(8)': (timed(sch.halving_doubling(8), SWITCH8),
                            {'layout': 'cube'}),
    'servers': (servers(1, 4), {}),
    'servers in a cube': (timed(LARGE, topology.ethernet(LARGE.nodes)),
                          {'layout': 'cube'}),
    'hierarchical': (timed(sch.hierarchical(2, 4), topology.cluster(2, 4)),
                     {}),
    'pipelined': (timed(sch.pipelined(sch.tree(4), 3), SWITCH4,
                        barrier=False), {}),
    'early': (timed(sch.recursive_doubling(3), topology.pcie_switch(3),
                    barrier=False), {}),
    'on a circle': (timed(sch.sharded(6), topology.pcie_switch(6)),
                    {'layout': 'circle'}),
    'one device': (timed(sch.ring(1), topology.pcie_switch(1)), {})}
each_use = pytest.mark.parametrize('use', USES)


@pytest.fixture(scope='module')
def made():
    """Each animation, made once."""
    return {name: pictures.animate(*timings, **more)
            for name, (timings, more) in USES.items()}


def times(animation):
    """(name, duration, delay, how often) of all that moves in an SVG."""
    found = re.findall(r'animation:([^;}"]*)', animation.svg())
    for one in ','.join(found).split(','):
        if 'none' not in one:
            name, *rest = one.split()
            seconds = [float(word[:-1]) for word in rest
                       if re.fullmatch(r'[\d.e-]+s', word)]
            often = [int(word) for word in rest if word.isdigit()] or [1]
            yield name, seconds[0], [*seconds, 0][1], often[0]


def messages(animation):
    """The sends of each moving message, and its two (begin, duration)."""
    svg = animation.svg()
    rules = dict(re.findall(r'\.(t\d+)\{visibility:hidden;animation:([^}]*)',
                            svg))
    for use in ElementTree.fromstring(svg).iter(
            '{http://www.w3.org/2000/svg}use'):
        if use.get('data-sends'):
            name, *_ = re.findall(r't\d+', use.get('style'))
            assert f'@keyframes {name}{{0%' in svg
            plays = [re.findall(r'([\d.e-]+)s', one)
                     for one in rules[use.get('class')].split(',')]
            assert plays[:2] == plays[2:]  # it moves while it is seen
            yield [int(k) for k in use.get('data-sends').split()], [
                (float(begin), float(long)) for long, begin in plays[:2]]


@each_use
def test_it_is_small_and_ends_after_two_plays(made, use):
    svg, cycle = made[use].svg(), made[use].clock.cycle
    ElementTree.fromstring(svg)
    assert len(svg) < 200_000
    assert not re.search('infinite|<script|<animate|http(?!://www.w3)', svg)
    assert 'prefers-reduced-motion:reduce){*{animation:none' in svg
    assert 7.5 < cycle < 28
    ends = [delay + long * often for _, long, delay, often
            in times(made[use])]
    assert all(long >= 0 <= delay for _, long, delay, _ in times(made[use]))
    assert max(ends) == pytest.approx(2 * cycle) and min(ends) > 0


@each_use
def test_each_send_travels_once_a_play_when_the_simulator_says(made, use):
    clock, seen = made[use].clock, list(messages(made[use]))
    for timing in made[use].timings:
        for k, event in enumerate(timing.events):
            begin = clock.real(event.start)
            long = clock.real(event.end) - begin
            here = next(plays for sends, plays in seen if k in sends and
                        np.allclose(plays[0], (begin, long), atol=2e-3))
            assert np.allclose(here[1], (begin + clock.cycle, long),
                               atol=2e-3)
    assert sum(len(sends) for sends, _ in seen) == sum(
        len(timing.events) for timing in made[use].timings)


@each_use
def test_the_clock_runs_to_the_end_and_says_who_is_done(made, use):
    svg, animation = made[use].svg(), made[use]
    unit = animation.clock.unit
    strip = svg[svg.index('class="clock"'):svg.index('.clock{')]
    shown = re.findall('>([^<>]+)</text>', strip)
    assert shown[-1] == with_unit(animation.seconds, unit) and len(shown) < 83
    values = [float(text.split()[0].replace(',', '')) for text in shown]
    assert values == sorted(values)
    for timing in animation.timings:
        assert f'done: {with_unit(timing.seconds, unit)}<' in svg
        assert with_unit(timing.seconds, TIMES) in animation.alt
    end = animation.clock.real(animation.seconds)
    assert animation.clock.cycle > end + 1  # the end can be looked at


def ticks_of_nodes(svg):
    """How many nodes have all of the sum, when nothing moves."""
    known = dict(re.findall(r'<defs><g id="(\w+)">(.*?)</g></defs>', svg))
    hidden = set(re.findall(r'\.(t\d+){visibility:hidden', svg))
    return sum(known[name].startswith('<circle') for name, its in re.findall(
        r'<use href="#(\w+)" x="[^"]*" y="[^"]*"(?: class="(\w+)")?/>', svg)
        if its not in hidden)


@each_use
def test_in_the_end_everybody_has_the_sum(made, use):
    devices = sum(timing.schedule.num_devices for timing
                  in made[use].timings)
    assert ticks_of_nodes(made[use].svg()) == devices
    assert ticks_of_nodes(made[use].still(1).svg()) == devices
    if use != 'one device':  # which has it from the start
        start = made[use].still(2).svg()
        assert ticks_of_nodes(start[:start.index('done:')]) == 0


def test_a_wrong_sum_has_no_tick_and_a_double_count_a_number():
    twice = Schedule([[Send(0, 1, 0, True)], [Send(0, 1, 0, True)],
                      [Send(1, 0, 0, False)]], 2)
    svg = pictures.animate(*timed(twice, topology.pcie_switch(2))).svg()
    assert ticks_of_nodes(svg) == 0 and '>2×</text>' in svg


@pytest.mark.full
@quick
@given(schedules(5), st.integers(0, 2), st.booleans())
def test_who_holds_what_is_what_the_schedule_says(plan, where, barrier):
    """After each round, and in each message; for any plan, anywhere."""
    place = [topology.ethernet(plan.nodes), topology.Topology(
        [link for k, a in enumerate(plan.nodes) for b in plan.nodes[:k]
         for link in topology.both_ways(a, b, 1e9 * (k + 1))] or
        topology.both_ways(0, 'x', 1e9)), topology.Topology(
            [link for k, (a, b) in enumerate(zip(
                plan.nodes, [*plan.nodes[1:], 'end']))
             for link in topology.both_ways(a, b, 1e9, 1e-4)])][where]
    timing = simulate.time(plan, place, 1e6, barrier)
    story, states = Story(timing), [*plan.states()]
    for message in story.messages:
        for k, chunk, held in zip(message.sends, message.chunks,
                                  message.held):
            start, end, number, send = timing.events[k]
            assert (number, start, end, *send) == (
                message.round, message.start, message.end, message.src,
                message.dst, chunk, message.reduce)
            assert (held == states[number - 1][
                plan.nodes.index(send.src), chunk]).all()
    ends = [0.0] + [max(event.end for event in timing.events
                        if event.round == number)
                    for number in range(1, len(states))]
    for k, node in enumerate(plan.nodes):
        for chunk in range(len(plan.weights)):
            spans = list(story.held(node, chunk))
            assert (spans[-1][2] == states[-1][k, chunk]).all()
            for end, state in zip(ends, states if barrier else ()):
                now = next(counts for _, until, counts in spans
                           if until is None or end < until)
                assert (now == state[k, chunk]).all()
    animation = pictures.animate(timing)
    ElementTree.fromstring(animation.svg())
    ElementTree.fromstring(animation.still().svg())


ROUNDING = 1e-6  # a processor's own


@each_use
def test_no_box_covers_another_and_all_are_inside(made, use):
    for panel in made[use].panels:
        at, size = panel.layout.at, panel.layout.size
        boxes = [(*np.subtract(at[node], np.array(size(node)) / 2),
                  *size(node)) for node in at
                 if node not in panel.layout.bars]
        left, top = panel.layout.left - ROUNDING, panel.layout.top - ROUNDING
        right = left + panel.layout.width + 2 * ROUNDING
        for k, (x, y, wide, high) in enumerate(boxes):
            assert left <= x and top <= y and x + wide <= right
            assert not any(x < b + w and b < x + wide and y < c + h and
                           c < y + high for b, c, w, h in boxes[:k])


@each_use
def test_messages_on_one_cable_do_not_cover_each_other(made, use):
    """They are apart by a width, and on the right when others come."""
    for panel in made[use].panels:
        found = panel.story.messages
        routes = [[(m.src, m.dst)] if panel.direct else [
            link[:2] for link in panel.topology.route(m.src, m.dst)]
            for m in found]
        offsets, _ = lanes(found, routes, lambda message, link: 10)
        for (k, link), offset in offsets.items():
            for (j, other), second in offsets.items():
                meet = (found[j].start < found[k].end and
                        found[k].start < found[j].end)
                if j < k and meet and link == other:
                    assert abs(offset - second) > 9.9
                elif meet and link == other[::-1]:
                    assert offset > 0 and second > 0


def test_lanes_are_used_again():
    def message(start, end, src=0, dst=1):
        return Message(1, src, dst, start, end, True, [0], [0], [])
    found = [message(0, 2), message(1, 3), message(2, 4)]
    offsets, widest = lanes(found, [[(0, 1)]] * 3, lambda *_: 10)
    assert [*offsets.values()] == [-5, 5, -5] and widest == 20
    # With little room they overlap, and stay on their cable.
    offsets, widest = lanes(found, [[(0, 1)]] * 3, lambda *_: 10, room=12)
    assert [*offsets.values()] == [-3, 3, -3] and widest == 12


@each_use
def test_a_message_goes_from_box_to_box_along_its_route(made, use):
    for panel in made[use].panels:
        for message, (points, shares) in zip(panel.story.messages,
                                             panel.ways):
            assert shares[0] == 0 and shares[-1] == 1
            assert (np.diff(shares) > 0).all()
            for node, point in ((message.src, points[0]),
                                (message.dst, points[-1])):
                far = np.abs(np.subtract(point, panel.layout.at[node]))
                assert (far < np.array(panel.box) / 2).all()


def test_layouts_are_the_machines_own():
    plan = sch.sharded(4)

    def at(place, plan=plan, **more):
        return choose(place, plan, (70, 70), **more).at
    row = at(SWITCH4)
    assert row['cpu'][1] < row['switch'][1] < row[0][1] == row[3][1]
    ring = at(circle(4))
    assert len({round(np.hypot(*xy)) for xy in ring.values()}) == 1
    plan = sch.parameter_server(3, 2)
    row = at(topology.ethernet(plan.nodes), plan)
    assert row['server 1'][1] < row['switch'][1] < row[2][1]
    down = at(SWITCH8, sch.tree(8), layout='tree')
    assert down[0][1] < down[1][1] == down[2][1] < down[6][1] < down[7][1]
    frames = choose(topology.cluster(2, 4), sch.ring(8), (70, 70)).frames
    assert [name for *_, name in frames] == ['machine 0', 'machine 1']
    mine = {node: (9, k) for k, node in enumerate([*range(4), 'cpu',
                                                   'switch'])}
    assert at(SWITCH4, positions=mine) == mine


def test_cables_say_how_fast_they_are(made):
    assert '16 GB/s each way' in made['ring(8)'].svg().replace('18', '16')
    both = made['hierarchical'].svg()
    assert '16 GB/s each way' in both and '1.25 GB/s each way' in both
    ring, machines = timed(sch.sharded(4), circle(4)) + timed(
        sch.sharded(4), topology.cluster(2, 2))
    shared = pictures.animate(ring, machines)
    assert len({(*panel.wire(rate).values(),) for panel in shared.panels
                for rate in (18e9, 16e9, 1.25e9)}) == 3
    fast, slow = (Panel.wire(made['hierarchical'].panels[0], rate)
                  for rate in (16e9, 1.25e9))
    assert fast['width'] > slow['width'] and (
        fast['stroke'] != slow['stroke'])


@pytest.mark.parametrize('seconds, text', [
    (0.06, '60 ms'), (0.0592593, '59.3 ms'), (1.024, '1.02 s'),
    (3e-6, '3 µs'), (0, '0 µs'), (1234.5, '1,230 s')])
def test_times_in_words(seconds, text):
    assert with_unit(seconds, TIMES) == text


def test_one_clock_for_all(made):
    """60 ms and 15 ms: a quarter of the time, in words and as it plays."""
    animation = made['gather, sharded']
    clock = animation.clock
    assert (clock.real(0.015) - clock.real(0)) * 4 == pytest.approx(
        clock.real(0.06) - clock.real(0))
    assert 'done: 60 ms' in animation.svg()
    assert 'done: 15 ms' in animation.svg()
    in_seconds = pictures.animate(*animation.timings, unit='s').svg()
    assert 'done: 0.015 s' in in_seconds and ' ms<' not in in_seconds


def test_the_still_shows_moments(made):
    for use in ('gather, sharded', 'ring(8)'):
        for moments in (1, 2, 3, 4, 6):
            drawing = made[use].still(moments)
            svg = drawing.svg()
            assert 'animation:' not in svg and '@keyframes' not in svg
            assert f'{moments} moments' in drawing.alt
            clocks = len(re.findall(r'font-size="22"', svg))
            assert clocks == moments
            assert bool(re.search('data-sends', svg)) == (moments > 2)


def test_it_shows_itself_with_words(made):
    for animation in made.values():
        html = animation._repr_html_()
        first, again = re.findall('src="data:image/svg.xml;base64,([^"]*)',
                                  html)
        assert b64decode(first).decode() == animation.svg() and first != again
        assert html.index('<details><summary>') < html.index(again)
        assert 'position:absolute;top:0;left:0' in html  # over the first
        ElementTree.fromstring(b64decode(again))
        assert 'max-width:100%' in html
        for timing in animation.timings:
            assert timing.schedule.name.split('(')[0] in animation.alt


RING = timed(sch.ring(4), SWITCH4)


@pytest.mark.parametrize('timings, more, says', [
    (timed(sch.ring(32), topology.pcie_switch(32)), {},
     'has 32 devices, .*at most 16 .*plot_comparison'),
    (timed(sch.ring(2), topology.pcie_switch(99)), {}, '101 nodes'),
    (timed(sch.pipelined(sch.tree(2), 40), topology.pcie_switch(2)), {},
     '40 chunks'),
    ([], {}, 'timings'), ([3], {}, 'Timing'),
    (RING, {'names': ['a', 'b']}, '1 entries'),
    (RING, {'layout': 'star'}, "'circle', 'tree'"),
    (RING, {'layout': 'tree'}, 'make no tree'),
    (RING, {'positions': {0: (1, 2)}}, '1 is missing'),
    (RING, {'positions': dict.fromkeys([*range(4), 'cpu', 'switch'], 'x')},
     'positions'),
    (RING, {'unit': 'min'}, "'ms' or 'µs'"), (RING, {'title': 3}, 'title')])
def test_what_cannot_be_shown_is_refused(timings, more, says):
    with pytest.raises(ValueError, match=says):
        pictures.animate(*timings, **more)


def test_a_play_lasts_longer_with_more_rounds_but_not_for_ever():
    assert Playing(1, None, 7).cycle < 10
    rounds = [pictures.animate(*timed(sch.ring(n), circle(n))).clock.longer
              for n in (3, 4, 8, 12)]
    assert rounds == sorted(rounds) and 6 <= rounds[0] < rounds[-1] <= 12


def test_the_shortest_of_several_can_be_watched():
    for counts in ((1, 2), (1, 4)):
        animation = pictures.animate(*servers(*counts))
        shortest = min(timing.seconds for timing in animation.timings)
        clock = animation.clock
        assert clock.real(shortest) - clock.real(0) >= 4 - 1e-9


def test_the_pictures_of_the_readme_are_what_the_code_makes():
    """Else: python -m d2lps.pictures.animation docs/pictures"""
    made = readme_pictures()
    for name, drawing in made.items():
        path = ROOT / 'docs' / 'pictures' / name
        assert Path(f'{path}.svg').read_text() == drawing.svg()
        assert Path(f'{path}-dark.svg').read_text() == night(drawing.svg())
    assert {path.name for path in (ROOT / 'docs' / 'pictures').iterdir()} == {
        f'{name}{end}.svg' for name in made for end in ('', '-dark')}


def test_what_loops_shows_the_same_as_what_plays_twice():
    """The simulator's times, as shares of a cycle without end."""
    animation = pictures.animate(*USES['gather, sharded'][0])
    loop = animation.looping().svg()
    ElementTree.fromstring(loop)
    clock = Looping(animation.seconds, None, animation.clock.longer)
    assert set(re.findall(r'([\d.]+)s [\w-]+ infinite', loop)) == {
        f'{clock.cycle:g}'}
    frames = dict(re.findall(r'@keyframes (t\d+)\{(.*?\})\}', loop))
    rules = dict(re.findall(r'\.(t\d+)\{[^}]*animation:(t\d+)', loop))
    seen = 0
    for use in ElementTree.fromstring(loop).iter(
            '{http://www.w3.org/2000/svg}use'):
        if use.get('data-sends'):
            steps = re.findall(r'([\d.]+)%', frames[rules[use.get('class')]])
            timing = animation.timings[seen >= 6]  # the first has six
            event = timing.events[int(use.get('data-sends').split()[0])]
            assert steps[1] + '%' == clock.share(event.start)
            assert steps[-1] + '%' == clock.share(event.end)
            seen += 1
    assert seen == 6 + 24
    assert clock.cycle - clock.real(animation.seconds) > 3  # a pause
    assert 'prefers-reduced-motion:reduce){*{animation:none' in loop


@pytest.mark.parametrize('use', USES)
def test_words_can_be_read_and_names_are_on_top(made, use):
    svg = made[use].svg()
    sizes = {float(size) for size in re.findall(
        r'font(?:-size="|:bold )([\d.]+)', svg)}
    assert min(sizes) >= 12
    assert made[use].width <= 760 or 'cube' in use
    names = svg[svg.rindex('<g class="over">'):]
    assert 'data-sends' not in names and 'font-weight="bold">' in names


def test_a_dark_picture_has_the_same_shapes_in_colours_that_are_seen():
    svg = readme_pictures()['where-to-sum-still'].svg()
    dark = night(svg)

    def shapes(words):
        return re.sub(r'#[0-9a-f]{3,6}\b|white', '', words, flags=re.I)
    assert shapes(dark) == shapes(svg)
    assert 'url(#p1)' in dark and 'href="#s1"' in dark
    ground, ink = night('fill="white"'), night('fill="#222"')
    assert ground == 'fill="#171717"' and ink > 'fill="#d' and (
        'white' not in night('stroke:white;'))
    assert night('>a white box</text>') == '>a white box</text>'


@pytest.mark.parametrize('barrier, said', [
    (True, ['round 1 of 3', 'round 2 of 3', 'round 3 of 3']),
    (False, ['rounds 1 to 2 of 3', 'round 3 of 3'])])
def test_rounds_that_begin_together_have_one_name(barrier, said):
    """Else two lines of words lie on each other."""
    timing = simulate.time(sch.recursive_doubling(3), topology.pcie_switch(3),
                           NBYTES, barrier=barrier)
    svg = pictures.animate(timing, title='early').svg()
    assert re.findall(r'rounds? [\d to]+ of 3', svg) == said
