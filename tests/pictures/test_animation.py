"""Chunks that travel: what the picture says is what the simulator says."""
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lps import pictures
from d2lps.collectives import Schedule, Send, simulate, topology
from d2lps.collectives import strategies as sch
from d2lps.pictures.animation import layout
from d2lps.pictures.animation.__main__ import readme_pictures
from d2lps.pictures.animation.layout import choose
from d2lps.pictures.animation.playtime import Looping
from d2lps.pictures.animation.race import LINKS, PLANS, racers
from d2lps.pictures.animation.story import Message, Story, lanes
from d2lps.pictures.drawing import color, width_of
from d2lps.pictures.ideas import drawings as ideas
from d2lps.pictures.ideas import for_readme
from tests.plans import schedules

ROOT = Path(__file__).resolve().parents[2]
NBYTES = 160e6


def circle(n):
    return topology.Topology([link for k in range(n) for link in
                              topology.both_ways(k, (k + 1) % n, 18e9)])


def timed(plan, place, **more):
    return simulate.timing(plan, place, NBYTES, **more)


SWITCH4, SWITCH8 = topology.pcie_switch(4), topology.pcie_switch(8)
SERVERS = sch.parameter_server(4, 2)
USES = {  # timings, and how they are laid out
    'gather, sharded': ([timed(sch.gather_broadcast(4), SWITCH4),
                         timed(sch.sharded(4), SWITCH4)], {}),
    'ring(8)': ([timed(sch.ring(8), circle(8))], {}),
    'tree': ([timed(sch.tree(8), SWITCH8)], {'layout': 'tree'}),
    'cube': ([timed(sch.halving_doubling(8), SWITCH8)], {'layout': 'cube'}),
    'servers': ([timed(SERVERS, topology.ethernet(SERVERS.nodes))], {}),
    'hierarchical': ([timed(sch.hierarchical(2, 4), topology.cluster(2, 4))],
                     {}),
    'pipelined': ([timed(sch.pipelined(sch.tree(4), 3), SWITCH4,
                         barrier=False)], {}),
    'two rings': ([timed(sch.two_rings(), topology.nvlink_p3())], {}),
    'one device': ([timed(sch.ring(1), topology.pcie_switch(1))], {})}
each_use = pytest.mark.parametrize('use', USES)


@pytest.fixture(scope='module')
def made():
    """Each animation, made once."""
    return {name: pictures.animate(*timings, **more)
            for name, (timings, more) in USES.items()}


def messages(animation):
    """The sends of each moving message, and its two (begin, duration)."""
    svg = animation.svg()
    rules = dict(re.findall(r'\.(t\d+)\{visibility:hidden;animation:([^}]*)',
                            svg))
    for use in ElementTree.fromstring(svg).iter(
            '{http://www.w3.org/2000/svg}use'):
        if use.get('data-sends'):
            plays = [re.findall(r'([\d.e-]+)s', one)
                     for one in rules[use.get('class')].split(',')]
            assert plays[:2] == plays[2:]  # it moves while it is seen
            yield [int(k) for k in use.get('data-sends').split()], [
                (float(begin), float(long)) for long, begin in plays[:2]]


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
def test_the_clock_says_who_is_done_and_nothing_moves_for_ever(made, use):
    svg, animation = made[use].svg(), made[use]
    for timing in animation.timings:
        done = animation.clock.in_words(timing.seconds)
        assert f'done: {done}<' in svg
    assert not re.search('infinite|<script|http(?!://www.w3)', svg)
    assert 'prefers-reduced-motion:reduce){*{animation:none' in svg


@each_use
def test_the_legend_fits_and_says_what_rows_and_columns_are(made, use):
    *_, signs = made[use].svg().split('<g class="signs">')
    lines = re.findall(r'<text x="([^"]*)"[^>]*start"[^>]*>([^<]*)', signs)
    for x, line in lines:
        assert float(x) + width_of(line, 13) < made[use].width, line
    one_chunk = use in ('tree', 'one device')
    assert ('columns: chunks' in signs) != one_chunk and 'rows: what' in signs
    assert ('wider' in signs) == (use == 'two rings')
    shapes = dict(re.findall(r'<g id="(s\d+)">(.*?)</g>', made[use].svg()))
    used = re.findall('<use href="#([^"]*)"', signs)
    assert len(used) == max(one.schedule.num_devices
                            for one in made[use].timings)
    for device, name in enumerate(used):  # as it is in the boxes
        assert f'fill="{color(device)}" stroke-width' in shapes[name]
        assert f'class="n">{device}<' in shapes[name]


def ticks_of_nodes(svg):
    """How many nodes have all of the sum, when nothing moves."""
    known = dict(re.findall(r'<defs><g id="(\w+)">(.*?)</g></defs>', svg))
    hidden = set(re.findall(r'\.(t\d+){visibility:hidden', svg))
    return sum(known[name].startswith('<circle') for name, its in re.findall(
        r'<use href="#(\w+)" x="[^"]*" y="[^"]*"(?: class="(\w+)")?/>', svg)
        if its not in hidden)


@each_use
def test_in_the_end_everybody_has_the_sum(made, use, readable):
    devices = sum(timing.schedule.num_devices for timing
                  in made[use].timings)
    still = made[use].still(1)
    readable(still)
    assert ticks_of_nodes(made[use].svg()) == devices
    assert ticks_of_nodes(still.svg()) == devices


def test_a_wrong_sum_has_no_tick_and_a_double_count_a_number():
    twice = Schedule([[Send(0, 1, 0, True)], [Send(0, 1, 0, True)],
                      [Send(1, 0, 0, False)]], 2)
    svg = pictures.animate(timed(twice, topology.pcie_switch(2))).svg()
    assert ticks_of_nodes(svg) == 0 and '>2×</text>' in svg


@given(schedules(5), st.booleans())
def test_who_holds_what_is_what_the_schedule_says(plan, barrier):
    """After each round, and in each message."""
    timing = simulate.timing(plan, topology.ethernet(plan.nodes), 1e6, barrier)
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
    for k, node in enumerate(plan.nodes):
        for chunk in range(len(plan.weights)):
            spans = list(story.held(node, chunk))
            assert (spans[-1][2] == states[-1][k, chunk]).all()
    ElementTree.fromstring(pictures.animate(timing).svg())


def test_lanes_are_used_again():
    def message(start, end, src=0, dst=1):
        return Message(1, src, dst, start, end, True, [0], [0], [])
    found = [message(0, 2), message(1, 3), message(2, 4)]
    offsets, widest = lanes(found, [[(0, 1)]] * 3, lambda *_: 10)
    assert [*offsets.values()] == [-5, 5, -5] and widest == 20
    # With little room they overlap, and stay on their cable.
    offsets, widest = lanes(found, [[(0, 1)]] * 3, lambda *_: 10, room=12)
    assert [*offsets.values()] == [-3, 3, -3] and widest == 12


def test_layouts_are_the_machines_own():
    def at(place, plan, **more):
        return choose(place, plan, (70, 70), **more).at
    row = at(SWITCH4, sch.sharded(4))
    assert row['cpu'][1] < row['switch'][1] < row[0][1] == row[3][1]
    ring = at(circle(4), sch.sharded(4))
    assert len({round(np.hypot(*xy)) for xy in ring.values()}) == 1
    down = at(SWITCH8, sch.tree(8), layout='tree')
    assert down[0][1] < down[1][1] == down[2][1] < down[6][1] < down[7][1]
    standing = layout.still_layout(topology.cluster(2, 2))
    (x, _, wide, *_, one), (right, *_, two) = standing.frames
    assert (one, two) == ('machine 0', 'machine 1') and x + wide < right
    for link in topology.cluster(2, 2).links:  # no cable crosses another
        (x1, _), (x2, _) = standing.ends(link)
        assert x1 == x2
    with pytest.raises(ValueError, match='make no tree'):
        at(SWITCH4, sch.sharded(4), layout='tree')


def test_what_loops_shows_the_same_as_what_plays_twice():
    """The simulator's times, as shares of a cycle without end."""
    animation = pictures.animate(*USES['gather, sharded'][0])
    loop = animation.looping().svg()
    clock = Looping(animation.seconds, animation.clock.real_seconds)
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


@pytest.mark.parametrize('folder, make', [
    ('docs/pictures', readme_pictures), ('notebooks/pictures', ideas)])
def test_the_committed_pictures_are_what_the_code_makes(folder, make):
    """Else: python -m d2lps.pictures.animation, or d2lps.pictures.ideas."""
    for name, drawing in make().items():
        path = ROOT / folder / f'{name}.svg'
        assert path.read_text() == for_readme(drawing)


# The race of the book's first page.
def test_the_race_is_what_the_simulator_says():
    """And what chapter 3 works out by hand: 60, 80 and 15 ms."""
    made = racers()
    switch = {name: racer.seconds for name, racer in made['switch'].items()}
    assert switch == pytest.approx({
        'gather': 60, 'cpu': 80, 'sharded': 15, 'ring': 15, 'one': 60,
        'tree': 60, 'halves': 15})
    assert [*made] == [*LINKS] and {*PLANS} - {*made['ring']} == {'cpu'}
    names = set()
    for racer in [*made['switch'].values(), *made['ring'].values()]:
        assert len(racer.complete) == 4
        assert racer.complete[-1] == pytest.approx(racer.seconds)
        ids = set(re.findall(r' id="([^"]+)"', racer.svg))
        assert ids and not ids & names  # they share a page
        names |= ids
        assert set(re.findall(r'(?:href="|url\()#([\w-]+)', racer.svg)) <= ids
