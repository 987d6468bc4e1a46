"""Six small pictures, and the race of the book's first page."""
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from d2lps.collectives import simulate, strategies, topology
from d2lps.pictures.animation.race import LINKS, NBYTES, PLANS, racers
from d2lps.pictures.ideas import HIGH, WIDE, drawings
from d2lps.pictures.night import night

PICTURES = Path(__file__).resolve().parents[2] / 'notebooks' / 'pictures'


def test_the_committed_pictures_are_what_the_code_makes():
    """Else: python -m d2lps.pictures.ideas"""
    made = drawings()
    assert {path.name for path in PICTURES.iterdir()} == {
        f'{name}{end}.svg' for name in made for end in ('', '-dark')}
    for name, drawing in made.items():
        svg = drawing.svg()
        assert (PICTURES / f'{name}.svg').read_text() == svg
        assert (PICTURES / f'{name}-dark.svg').read_text() == night(svg)


def test_they_are_small_alike_and_can_be_read():
    for drawing in drawings().values():
        svg = drawing.svg()
        assert (drawing.width, drawing.height) == (WIDE, HIGH)
        assert len(svg) < 9000 and len(drawing.alt) > 40
        assert all(float(size) >= 12
                   for size in re.findall(r'font-size="(.*?)"', svg))
        for text in ElementTree.fromstring(svg).iter(
                '{http://www.w3.org/2000/svg}text'):
            assert 0 < float(text.get('x')) < WIDE
            assert 8 < float(text.get('y')) < HIGH


@pytest.fixture(scope='module')
def made():
    return racers()


def test_the_race_is_what_the_simulator_says(made):
    """And what chapter 3 works out by hand: 60, 80 and 15 ms."""
    switch = {name: racer.seconds for name, racer in made['switch'].items()}
    assert switch == pytest.approx({
        'gather': 60, 'cpu': 80, 'sharded': 15, 'ring': 15, 'one': 60,
        'tree': 60, 'halves': 15})
    assert [*made] == [*LINKS] and [*switch] == [*PLANS]
    assert {*PLANS} - {*made['ring']} == {'cpu'}
    for racer in [*made['switch'].values(), *made['ring'].values()]:
        begins = [begin for _, begin in racer.rounds]
        assert begins == sorted(begins) and begins[0] == 0
        assert len(racer.complete) == 4
        assert racer.complete[-1] == pytest.approx(racer.seconds)


def test_the_clock_of_the_page_drives_all_that_moves(made):
    names = set()
    for links in made.values():
        for plan, racer in links.items():
            svg = racer.svg
            ElementTree.fromstring(svg)
            moves = re.findall(r'animation:([^;}]*)', svg)
            assert len(moves) > 4 and all(
                one.count('var(--now)') == one.count('paused') > 0
                for one in moves)
            assert f'done: {racer.seconds:.3g} ms' in svg
            ids = set(re.findall(r' id="([^"]+)"', svg))
            assert len(ids) > 10 and not ids & names  # they share a page
            names |= ids
            assert set(re.findall(r'(?:href="|url\()#([\w-]+)', svg)) <= ids
            assert not re.search(r'[. :]t\d|class="n"', svg), plan


def test_no_plan_is_called_what_it_is_not():
    """The words say who sends to whom."""
    tree = [{(send.src, send.dst) for send in sends}
            for sends in PLANS['tree'][2].rounds]
    assert tree[:2] == [{(3, 1)}, {(1, 0), (2, 0)}]
    assert tree[2:] == [{(0, 1), (0, 2)}, {(1, 3)}]
    halves = PLANS['halves'][2].rounds
    assert [len(sends) / 4 for sends in halves] == [2, 1, 1, 2]  # quarters
    assert len(PLANS['ring'][2].rounds) == 6


def test_the_answers_of_the_first_page_are_right(made):
    page = ' '.join((PICTURES.parents[1] / 'docs' / 'book' / 'index.md'
                     ).read_text().split())
    eight = simulate.time(strategies.ring(8), topology.pcie_switch(8), NBYTES)
    assert f'{eight.seconds * 1e3:g} ms. It has more rounds' in page
    assert (f'{len(strategies.ring(8).rounds)} in place of '
            f'{len(strategies.ring(4).rounds)}') in page
    sent = [2 * (n - 1) / n * NBYTES / 1e6 for n in (4, 8)]
    assert '{:.0f} MB for four, {:.0f} MB for eight'.format(*sent) in page
    assert (f'A tree of eight GPUs has {len(strategies.tree(8).rounds)} '
            'rounds, a ring of eight has 14') in page
    small = [simulate.time(plan, topology.pcie_switch(8, latency=1e-5), 1e4)
             .seconds for plan in (strategies.tree(8), strategies.ring(8))]
    assert small[0] < small[1] / 2  # so a tree is good for small sums
    gather = simulate.time(PLANS['gather'][2], LINKS['switch'][1], NBYTES)
    *_, rates = next(gather.rates())
    assert rates.tolist() == pytest.approx([topology.PCIE3 / 3] * 3)
    sharded = simulate.time(PLANS['sharded'][2], LINKS['switch'][1], NBYTES)
    assert all(share == pytest.approx(1) for share in sharded.busy().values())
