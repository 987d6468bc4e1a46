"""The drawing of a schedule."""
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from d2lps import pictures
from d2lps.collectives import Schedule, Send
from d2lps.collectives import strategies as sch
from d2lps.pictures import sketch


SVG = '{http://www.w3.org/2000/svg}'
PLANS = [
    sch.gather_broadcast(1, 0), sch.gather_broadcast(8, 'cpu'), sch.sharded(4),
    sch.sharded(8), sch.ring(1), sch.ring(4), sch.ring(8), sch.tree(8),
    sch.tree(16), sch.double_tree(8), sch.recursive_doubling(8),
    Schedule([[Send(1, 0, chunk, True)] for chunk in range(12)], 2),
    Schedule([[Send(1, 0, k, True) for k in range(12)]], 2)]


@pytest.mark.parametrize('plan', PLANS, ids=repr)
def test_words_can_be_read_and_it_fits_a_page(plan, faults):
    drawing = sketch.draw(plan)
    assert not faults(drawing)
    assert drawing.width <= 720 and drawing.height <= 980


def arrows(plan):
    """(x, y of the dot, y of the tip, dashed?), without those of the legend.

    And where the lines of nodes are.
    """
    shapes = [*ElementTree.fromstring(sketch.draw(plan).svg())]
    paths = [path for path in shapes if path.get('stroke-width') == '2']
    dots = [(float(dot.get('cx')), float(dot.get('cy')))
            for dot in shapes if dot.tag == f'{SVG}circle']
    heads = [shape.get('d') for shape in shapes if shape.tag == f'{SVG}path'
             and shape.get('fill') != 'none']
    tips = [float(re.match(r'M\S+ ([\d.]+)L', head)[1]) for head in heads]
    lines = [float(line.get('d').split('L')[0].split()[1])
             for line in shapes if line.get('stroke') == '#b5b5b5']
    found = [(*dot, tip, bool(path.get('stroke-dasharray')))
             for dot, tip, path in zip(dots, tips, paths, strict=True)]
    return found[:-2], lines


@pytest.mark.parametrize('plan', PLANS, ids=repr)
def test_each_message_is_an_arrow_of_its_own_place(plan):
    """From a line to a line; none lies on another, or touches one."""
    found, lines = arrows(plan)
    assert len(found) == sum(map(len, plan.rounds))
    assert {y for _, *both, _ in found for y in both} <= {*lines}
    places = sorted((lines.index(y) // len(plan.nodes), x)
                    for x, y, *_ in found)
    places += [(-1, 0)]
    assert all(row != other or x2 - x >= 10 - 0.01
               for (row, x), (other, x2) in pairwise(places))


@pytest.mark.parametrize('plan', PLANS, ids=repr)
def test_arrows_are_the_messages_of_the_plan(plan):
    found, lines = arrows(plan)
    n = len(plan.nodes)
    told = [(lines.index(y) % n, lines.index(tip) % n, not dashed)
            for _, y, tip, dashed in found]
    rest = iter(told)
    for sends in plan.rounds:
        assert sorted(next(rest) for _ in sends) == sorted(
            (plan.nodes.index(send.src), plan.nodes.index(send.dst),
             send.reduce) for send in sends)


def test_rounds_chunks_and_nodes_are_named(texts):
    assert texts(sketch.draw(sch.sharded(4))) == [
        'sharded(4)', *'0123', 'chunk', 'round 1', *'0123', 'round 2',
        *'0123', 'is added', 'replaces']
    assert 'chunk' not in texts(sketch.draw(sch.tree(4)))


def test_a_drawing_says_in_words_what_it_is():
    page = sketch.html(sch.gather_broadcast(4, '<cpu>'))
    image = ElementTree.fromstring(page.replace('>', '/>'))
    assert image.get('alt') == repr(sch.gather_broadcast(4, '<cpu>'))


def test_what_is_drawn():
    ElementTree.fromstring(sketch.draw(sch.gather_broadcast(4, '<cpu>')).svg())
    assert sketch.draw(sch.ring(1)).svg()
    for large in sch.ring(64), sch.sharded(16), sch.tree(17):
        assert sketch.draw(large) is None


def test_notebooks_show_it_and_nothing_for_a_large_one(python):
    code = """if True:
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        from d2lps import pictures
        from d2lps.collectives import strategies
        for n in 4, 64:
            data, _ = shell.display_formatter.format(strategies.ring(n))
            print(sorted(data))
    """
    assert python('-c', code).stdout.splitlines() == [
        "['text/html', 'text/plain']", "['text/plain']"]


def test_pictures_load_neither_mxnet_nor_what_else_draws(python):
    code = """if True:
        import sys
        from d2lps import pictures
        from d2lps.collectives import simulate, strategies, topology
        ring, links = strategies.ring(4), topology.pcie_switch(4)
        pictures.plot_holdings(ring, 2)
        pictures.plot_topology(links)
        pictures.plot_timing(simulate.time(ring, links, 8))
        pictures.plot_curves({'a': ([1, 2], [3, 4])})
        pictures.plot_bars({'a': 1})
        pictures.explore_synchronisation, pictures.explore_plans
        heavy = {'mxnet', 'matplotlib', 'pandas', 'ipywidgets'}
        print(bool(heavy & {*sys.modules}), *dir(pictures))
    """
    loaded, *names = python('-c', code).stdout.split()
    assert loaded == 'False'
    assert {'plot_timeline', 'plot_servers', 'BLUE'} <= {*names}


def test_every_picture_is_found_by_its_name():
    offered = [name for name in dir(pictures) if re.match(
        'animate|draw_|explore_|live_|plot_', name)]
    assert len(offered) > 40
    for name in offered:
        module = getattr(pictures, name).__module__
        assert module.startswith('d2lps.pictures.')
    with pytest.raises(AttributeError, match="pictures has no 'plot_nothing'"):
        assert pictures.plot_nothing
