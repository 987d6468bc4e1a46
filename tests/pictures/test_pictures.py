"""Each picture renders, and says in words what one sees."""
import re
from base64 import b64decode
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from d2lps import Operation, Timeline, devices, pictures
from d2lps.asynchrony.asynchronous_training import Point
from d2lps.asynchrony.clock import virtual_clock
from d2lps.asynchrony.overlap import simulate_step
from d2lps.collectives import (Schedule, Send, machines, simulate, strategies,
                               topology)
from d2lps.collectives.machines.expectation import expected_bandwidth
from d2lps.pictures import sketch
from d2lps.pictures.drawing import Drawing, color
from d2lps.pictures.ideas import drawings as ideas
from d2lps.pictures.toys.explore_gpu_machine import DGX1
from d2lps.pipelines import interleaved, time_passes
from d2lps.planning import H100, LLAMA3_8B, Division, best_divisions

SWITCH = topology.pcie_switch(4)
RING = simulate.timing(strategies.ring(4), SWITCH, 160e6)
SHARDED = simulate.timing(strategies.sharded(4), SWITCH, 160e6)
CLOCKS = {name: virtual_clock([[1], [5]], name, 8)
          for name in ('sync', 'async')}
POINTS = {name: [[Point(10, 1.0, 0.2), Point(20, 2.0, 0.6)]]
          for name in ('sync', 'async, divided')}
GPU_MACHINE = machines.from_nvidia_smi(DGX1, 'V100')
STEP = simulate_step([1, 2], [3, 4], 1, forward=[1, 1])
PIPELINE = time_passes([[*interleaved(k, 2, 2)] for k in range(2)],
                       {'F': 1, 'B': 2})
PLANNED = best_divisions(LLAMA3_8B, 8, 64, H100)
PUBLISHED = pd.DataFrame({'published MFU': [0.4, 0.5],
                          'predicted MFU': [0.42, 0.45]})
TWICE = Schedule([[Send(0, 1, 0, True)]] * 2, 2)


def timeline():
    one = Timeline(devices(2))
    one.events = [Operation('cpu(0)', 'forward', 'Convolution', 0, 0.002),
                  Operation('cpu(1)', 'backward', 'ImperativeBulk', 0.001,
                            0.004)]
    return one


def made_by(name, *arguments, **named):
    """One of `pictures`, drawn when the test runs."""
    return pytest.param(
        lambda: getattr(pictures, name)(*arguments, **named),
        id=f'{name}-{len(NAMES)}'), NAMES.append(name)


NAMES = []
PICTURES = [picture for picture, _ in (
    made_by('animate', RING, SHARDED, title='Side by side'),
    made_by('animate', RING, layout='cube'),
    made_by('animate', simulate.timing(strategies.hierarchical(2, 4),
                                       topology.cluster(2, 4), 1e6)),
    made_by('draw_cables', topology.P3_CABLES,
            topology.rings_of(topology.P3_CABLES)),
    made_by('draw_cluster', 4, together=True),
    made_by('draw_collectives'),
    made_by('draw_keys', {'w': 3_000_000, 'b': 7}, 2),
    made_by('draw_layer_partition'),
    made_by('draw_roads', ['Ash', 'Bree', 'Cove'], [(0, 1, 7), (1, 2, 12)]),
    made_by('draw_rounds', strategies.ring(4), np.eye(4).tolist(), rounds=3),
    made_by('draw_seven_steps', 4),
    made_by('draw_gpu_machine', GPU_MACHINE,
            topology.rings_of(GPU_MACHINE.cables)),
    made_by('draw_sharded_update'),
    made_by('draw_split_batch'),
    made_by('draw_splits'),
    made_by('draw_store'),
    made_by('draw_sums', [strategies.ring(8), strategies.tree(8)]),
    made_by('draw_training_step'),
    made_by('plot_accuracy', POINTS),
    made_by('plot_comparison', [RING, SHARDED], target=0.01),
    made_by('plot_division', Division(2, 2, 2), H100),
    made_by('plot_exchange', {'equal': np.ones((3, 3)) * 1e6}),
    made_by('plot_expected', expected_bandwidth(GPU_MACHINE), pd.DataFrame(
        {'size': [2e6, 2e9], 'busbw': [4e10, 1.3e11]})),
    made_by('plot_holdings', strategies.ring(4), 2, signs=True),
    made_by('plot_holdings', TWICE, 2, sums=True),
    made_by('plot_launch'),
    made_by('plot_messages', {'simulated': RING.events}),
    made_by('plot_parts', PLANNED.loc[:1]),
    made_by('plot_pipeline', PIPELINE),
    made_by('plot_plan', CLOCKS['sync'], until=7, title='sync'),
    made_by('plot_published', PUBLISHED, pd.Series(['ours', 'theirs'])),
    made_by('plot_staleness', CLOCKS),
    made_by('plot_step', STEP, 'a step', best=3.5),
    made_by('plot_timeline', timeline(), 'Ours'),
    made_by('plot_timing', RING),
    made_by('plot_topology', topology.cluster(2, 3), device='GPU '),
    made_by('plot_topology', SWITCH, RING.busy()))]


@pytest.mark.parametrize('make', PICTURES)
def test_it_renders_and_has_alternative_text(make, readable):
    readable(make())


def test_each_picture_is_among_them():
    offered = {name for name in dir(pictures)
               if re.match('animate|draw_|plot_', name)}
    assert offered == {*NAMES}
    with pytest.raises(AttributeError, match="pictures has no 'plot_nothing'"):
        assert pictures.plot_nothing


@pytest.mark.parametrize('idea', ideas())
def test_an_idea_renders_and_has_alternative_text(idea, readable):
    readable(ideas()[idea])


def test_a_drawing_shows_itself_as_an_image_with_its_words(tmp_path):
    drawing = Drawing(200, 100, 'a < b, "c" & d').box(0, 0, 50, 20, '<&>')
    image = ElementTree.fromstring(drawing._repr_html_().replace('>', '/>'))
    assert image.get('alt') == repr(drawing) == 'a < b, "c" & d'
    data = image.get('src').removeprefix('data:image/svg+xml;base64,')
    assert b64decode(data).decode() == drawing.svg()
    assert drawing.save(tmp_path / 'a.svg') is drawing
    assert (tmp_path / 'a.svg').read_text() == drawing.svg()


def test_a_sum_has_a_band_with_a_colour_and_a_pattern_for_each_device():
    svg = Drawing(90, 90, 'A sum.').box(10, 20, 30, 60, fill=[0, 2]).svg()
    for device in 0, 2:
        assert f'fill="{color(device)}"' in svg and f'url(#p{device})' in svg
    assert 'id="p1"' not in svg  # a pattern is defined when it is used


@pytest.mark.parametrize('name, arguments, words', [
    ('draw_cluster', {'num_workers': 5}, 'num_workers must'),
    ('draw_seven_steps', {'step': 'one'}, 'step must'),
    ('plot_holdings', {'schedule': strategies.ring(2), 'number': 3},
     'number .*0 to 2'),
    ('plot_holdings', {'schedule': strategies.ring(13)}, 'over 144'),
    ('plot_topology', {'topology': SWITCH, 'load': {(0, 1): 1}}, 'no link'),
    ('draw_sums', {'plans': [strategies.recursive_doubling(4)]},
     'do not go along a tree')])
def test_a_wrong_argument_is_named(name, arguments, words):
    with pytest.raises(ValueError, match=words):
        getattr(pictures, name)(**arguments)


def test_an_arrow_is_seen_on_the_busiest_links():
    svg = pictures.plot_topology(SWITCH, RING.busy()).svg()
    heads = re.findall('<path class="head"[^>]*>', svg)
    assert len(heads) == len(SWITCH.links)
    assert all('stroke="white"' in head for head in heads)


def test_cpus_are_written_as_gpus_are():
    place = topology.cluster(2, 2)
    shown = [drawing.svg() for drawing in (pictures.plot_topology(place),
             pictures.plot_topology(place, device='GPU '))]
    assert ['>CPU 0<' in svg for svg in shown] == [False, True]


def test_the_schedulers_lines_end_at_workers_and_servers():
    svg = pictures.draw_cluster().svg()
    boxes = re.findall('<rect x="([^"]*)" y="([^"]*)" width="120" '
                       'height="([^"]*)" rx', svg)
    ends = [(float(x) + 60, float(y) + (float(high) if float(y) > 200 else 0))
            for x, y, high in boxes]
    begins = re.findall('d="M([^ ]*) ([^L]*)L[^"]*" fill="none" '
                        'stroke="#555" stroke-width="1"', svg)
    assert len(ends) == 4
    assert sorted(ends) == sorted((float(x), float(y)) for x, y in begins)


# Schedules show themselves.
def test_a_schedule_is_a_drawing_unless_it_is_too_large(texts):
    assert texts(sketch.draw(strategies.sharded(4))) == [
        'sharded(4)', *'0123', 'chunk', 'round 1', *'0123', 'round 2',
        *'0123', 'is added', 'replaces']
    few, one = strategies.gather_broadcast(2, '<cpu>'), strategies.ring(1)
    assert sketch.draw(few).alt == (
        "gather_broadcast(2, '<cpu>'): a line for each of 3 nodes, an arrow "
        'for each message. Round 1: 2 messages added: 0 to <cpu>, 1 to <cpu>. '
        'Round 2: 2 messages replacing: <cpu> to 0, <cpu> to 1.')
    assert repr(one) == '<ring(1): 1 device, 1 chunk, 0 rounds, 0 sends>'
    assert 'alt="gather' in sketch.html(few)
    assert sketch.draw(strategies.ring(64)) is None


def test_notebooks_show_a_small_one_and_load_little(python):
    """Neither MXNet nor pandas nor widgets, which take seconds."""
    code = """if True:
        import sys
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        from d2lps import pictures
        from d2lps.collectives import simulate, strategies, topology
        for n in 4, 64:
            data, _ = shell.display_formatter.format(strategies.ring(n))
            print(sorted(data))
        ring, links = strategies.ring(4), topology.pcie_switch(4)
        pictures.plot_holdings(ring, 2)
        pictures.plot_timing(simulate.timing(ring, links, 8))
        pictures.explore_synchronisation, pictures.explore_plans
        heavy = {'mxnet', 'pandas', 'ipywidgets'}
        print(heavy & {*sys.modules})
    """
    assert python('-c', code).stdout.splitlines() == [
        "['text/html', 'text/plain']", "['text/plain']", 'set()']
