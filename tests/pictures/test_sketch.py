"""The drawing of a schedule."""
from xml.etree import ElementTree

import re
import pytest
from d2lps import pictures
from d2lps.collectives import strategies as sch
from d2lps_pictures import sketch


@pytest.mark.parametrize('plan', [sch.sharded(4), sch.sharded(16),
                                  sch.gather_broadcast(8, 'cpu')])
def test_no_dot_hides_another_and_rounds_have_a_number(plan):
    drawing = ElementTree.fromstring(sketch.draw(plan).svg())
    space = '{http://www.w3.org/2000/svg}'
    dots = [(dot.get('cx'), dot.get('cy'))
            for dot in drawing.iter(f'{space}circle')]
    assert len({*dots}) == len(dots) == sum(map(len, plan.rounds))
    words = [text.text for text in drawing.iter(f'{space}text')]
    assert words == [plan.name, *map(str, plan.nodes), 'round 1', 'round 2']


def test_a_drawing_says_in_words_what_it_is():
    page = sketch.html(sch.gather_broadcast(4, '<cpu>'))
    image = ElementTree.fromstring(page.replace('>', '/>'))
    assert image.get('alt') == repr(sch.gather_broadcast(4, '<cpu>'))


def test_what_is_drawn():
    ElementTree.fromstring(sketch.draw(sch.gather_broadcast(4, '<cpu>')).svg())
    strokes = sketch.draw(sch.ring(4)).svg().count('<circle')
    assert strokes == 2 * 3 * 4
    assert sketch.draw(sch.ring(1)).svg()
    assert sketch.draw(sch.ring(64)) is None


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


def test_pictures_of_schedules_and_topologies_load_no_mxnet(python):
    code = """if True:
        import sys
        import matplotlib
        matplotlib.use('Agg')
        from d2lps import pictures
        from d2lps.collectives import simulate, strategies, topology
        ring, links = strategies.ring(4), topology.pcie_switch(4)
        pictures.plot_holdings(ring, 2)
        pictures.plot_topology(links)
        pictures.plot_timing(simulate.time(ring, links, 8))
        pictures.explore_synchronisation, pictures.step_player
        print('mxnet' in sys.modules, *dir(pictures))
    """
    loaded, *names = python('-c', code).stdout.split()
    assert loaded == 'False'
    assert {'plot_timeline', 'plot_servers', 'BLUE'} <= {*names}


def test_every_picture_is_found_by_its_name():
    offered = [name for name in dir(pictures) if re.match(
        'animate|choose|draw_|explore_|live_|plot_|step_', name)]
    assert len(offered) > 40
    for name in offered:
        module = getattr(pictures, name).__module__
        assert module.startswith('d2lps_pictures.')
    with pytest.raises(AttributeError, match="pictures has no 'plot_nothing'"):
        assert pictures.plot_nothing
