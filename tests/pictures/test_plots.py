"""Pictures show what they are given: events, links and times."""
import numpy as onp
import pytest
from d2l import mxnet as d2l
from matplotlib_inline import backend_inline
from shapes import Shapes, chart_faults, read

from d2lps import Event, Timeline, devices
from d2lps.collectives import Schedule, Send, simulate, strategies, topology
from d2lps.pictures import style
from d2lps.pictures.plots import (load_color, plot_comparison, plot_timing,
                                  plot_topology)
from d2lps.pictures.style import GREEN
from d2lps.pictures.timeline_plots import PHASE_COLORS, plot_timeline

EVENTS = [Event('cpu(0)', 'forward', 'Convolution', 0, 0.002),
          Event('cpu(1)', 'backward', 'ImperativeBulk', 0.001, 0.004)]
SWITCH = topology.pcie_switch(4)


def on_switch(plan):
    return simulate.time(plan, SWITCH, 160e6)


def title(drawing):
    return ' '.join(text.words for text in Shapes(drawing).texts
                    if text.bold and text.size == 13)


@pytest.fixture
def timeline():
    timeline = Timeline(devices(2))
    timeline.events = EVENTS
    return timeline


def near(*values, by=0.02):
    return [pytest.approx(value, abs=by) for value in values]


def test_each_event_is_a_bar_in_the_row_of_its_device(timeline):
    shapes, frame = read(plot_timeline(timeline))
    assert [[*bar] for bar in frame.bars()] == [
        ['cpu(0)', *near(0, 2), PHASE_COLORS['forward']],
        ['cpu(1)', *near(1, 4), PHASE_COLORS['backward']]]
    assert [*frame.yticks] == ['cpu(0)', 'cpu(1)']
    assert 'time / ms' in shapes.words


def test_the_legend_has_the_phases_that_are_seen(timeline):
    assert Shapes(plot_timeline(timeline)).legend == {
        'forward': PHASE_COLORS['forward'],
        'backward': PHASE_COLORS['backward'], 'idle': 'white'}


def test_the_title_says_how_much_devices_overlap(timeline):
    drawing = plot_timeline(timeline, 'Ours', until=0.01)
    assert title(drawing) == (
        'Ours: 4 ms, more than one device at work 25% of the time')
    _, frame = read(drawing)
    assert frame.x(frame.left) == pytest.approx(0, abs=0.02)
    assert frame.x(frame.right) == pytest.approx(10, abs=0.02)
    assert 'cpu(1): backward 3 ms' in drawing.alt


def test_one_device_cannot_overlap():
    timeline = Timeline(devices(1))
    timeline.events = EVENTS[:1]
    assert title(plot_timeline(timeline)) == '2 ms'


def test_thousands_of_operations_make_a_small_picture():
    timeline = Timeline(devices(2))
    timeline.events = [Event(f'cpu({k % 2})', 'forward', 'op', k / 1e4,
                             (k + 0.9) / 1e4) for k in range(20_000)]
    assert not chart_faults(plot_timeline(timeline))


def links_of(drawing):
    """A line (x1, y1, x2, y2), a width and a colour for each link."""
    return [([float(x) for x in shape.get('d').replace('M', '').replace(
        'L', ' ').split()], float(shape.get('stroke-width')),
        shape.get('stroke')) for shape, *_ in Shapes(drawing).all
        if shape.get('class') == 'link']


def heads_of(drawing):
    return [onp.reshape([float(x) for x in shape.get('d').strip('Mz').replace(
        'L', ' ').split()], (3, 2)) for shape, *_ in Shapes(drawing).all
        if shape.get('class') == 'head']


def test_a_topology_has_a_line_for_each_link_and_a_name_for_each_node():
    slow = topology.cluster(2, 2, network=1e9)
    drawing = plot_topology(slow)
    assert not chart_faults(drawing)
    links = links_of(drawing)
    assert len(links) == len(heads_of(drawing)) == len(slow.links)
    names = [text.words for text in Shapes(drawing).texts if not text.bold]
    assert sorted(names) == sorted(map(str, [*slow.nodes, *slow.switches]))
    width = dict(zip([link[:2] for link in slow.links],
                     [width for _, width, _ in links]))
    assert width['network', 'switch 0'] < width[0, 'switch 0'] == width[
        'switch 1', 2]
    assert title(drawing) == 'cluster(2, 2)'
    assert title(plot_topology(slow, title='Two machines')) == 'Two machines'
    assert title(plot_topology(slow, title='')) == ''


def test_switches_are_grey_and_what_they_join_is_white():
    shapes = Shapes(plot_topology(SWITCH))
    fill = {text.words: box.color for text in shapes.texts
            for box in shapes.boxes if not text.bold and
            box.x1 < text.x < box.x2 and box.y1 < text.y < box.y2}
    assert fill.pop('switch') == '#e4e4e4' and {*fill.values()} == {'white'}


def test_a_link_joins_what_it_names():
    drawing = plot_topology(SWITCH)
    shapes = Shapes(drawing)
    at = {text.words: (text.x, text.y) for text in shapes.texts}
    for link, ((x1, y1, x2, y2), _, _) in zip(SWITCH.links,
                                              links_of(drawing)):
        for x, y, node in (x1, y1, link.src), (x2, y2, link.dst):
            assert onp.hypot(x - at[str(node)][0], y - at[str(node)][1]) < 6


def test_devices_can_have_a_word_before_their_number():
    drawing = plot_topology(topology.pcie_switch(2), device='GPU ')
    assert sorted(text.words for text in Shapes(drawing).texts
                  if not text.bold) == ['GPU 0', 'GPU 1', 'cpu', 'switch']


def test_the_two_links_of_a_cable_lie_side_by_side():
    two = topology.Topology(topology.both_ways('a', 'b', 1e9))
    drawing = plot_topology(two)
    (a, _, _), (b, _, _) = links_of(drawing)
    ends = onp.reshape([a, b], (2, 2, 2))
    for one, other in (ends[0, 0], ends[1, 1]), (ends[0, 1], ends[1, 0]):
        assert onp.hypot(*(one - other)) == pytest.approx(9, abs=0.2)
    for (start, stop), (tip, *base) in zip(ends, heads_of(drawing)):
        along = stop - start  # the first corner is the tip
        assert all((tip - corner) @ along > 0 for corner in base)


def test_colours_of_links_follow_the_load():
    timing = on_switch(strategies.gather_broadcast(4))
    drawing = plot_topology(SWITCH, timing.busy())
    assert not chart_faults(drawing)
    color = dict(zip([link[:2] for link in SWITCH.links],
                     [color for *_, color in links_of(drawing)]))
    assert color['switch', 0] == load_color(0.5)
    assert color[3, 'switch'] == load_color(1 / 6)
    assert color['cpu', 'switch'] == load_color(0)
    assert len({*color.values()}) == 3
    scale = [shape.get('fill') for shape, *_ in Shapes(drawing).all
             if shape.get('class') == 'scale']
    # From 0 to 1 whatever the load is, to compare pictures.
    assert (scale[0], scale[-1]) == (load_color(0), load_color(1))
    assert 'share of capacity: 0' in Shapes(drawing).words
    assert 'scale' not in plot_topology(SWITCH, timing.busy(),
                                        scale=False).svg()
    assert 'Busiest, 50% of what they can carry: 0 to switch, switch to 0' in (
        drawing.alt)


def test_busier_is_darker():
    colors = [load_color(share) for share in onp.linspace(0, 1, 20)]
    red, green, blue = onp.transpose([
        [int(color[k:k + 2], 16) for k in (1, 3, 5)] for color in colors])
    light = (0.3 * red + 0.59 * green + 0.11 * blue) / 255
    assert (onp.diff(light) < 0).all() and light[0] < 0.95


def test_a_comparison_marks_every_best_one():
    plans = (strategies.gather_broadcast(4),
             strategies.gather_broadcast(4, 'cpu'),
             strategies.sharded(4), strategies.ring(4))
    drawing = plot_comparison([on_switch(plan) for plan in plans])
    shapes, frame = read(drawing)
    assert [*frame.yticks] == [plan.name for plan in plans]
    ends = {row: end for row, _, end, _ in frame.bars()}
    assert [ends[plan.name] for plan in plans] == near(60, 80, 15, 15, by=.2)
    labels = [text.words for text in shapes.texts if text.anchor == 'start']
    assert labels == ['60', '80', '15 best', '15 best']
    assert {row for row, _, _, color in frame.bars() if color == GREEN} == {
        'sharded(4)', 'ring(4)'}
    heights = [*frame.yticks.values()]
    assert heights == sorted(heights)  # the first is on top
    assert 'sharded(4): 15 best' in drawing.alt


def labels_of(timings):
    return [text.words for text in Shapes(plot_comparison(timings)).texts
            if text.anchor == 'start']


def test_a_comparison_has_readable_numbers():
    timings = [simulate.time(strategies.sharded(4), topology.pcie_switch(4, b),
                             160e6) for b in (1e12, 1e8, 123e6)]
    assert labels_of(timings) == ['0.24 best', '2,400', '1,950']


def test_a_comparison_marks_those_that_show_the_best_figures():
    timings = [simulate.time(strategies.sharded(4), topology.pcie_switch(4, b),
                             160e6) for b in (16e9, 16.01e9, 15.5e9)]
    assert labels_of(timings) == ['15 best', '15 best', '15.5']


def test_a_comparison_may_have_a_target():
    shapes, frame = read(plot_comparison(
        [on_switch(strategies.sharded(4))], 'To beat', target=0.01))
    assert any(frame.x(line.points[0][0]) == pytest.approx(10, abs=0.1)
               and line.dash for line in shapes.lines)


def bars_of(drawing):
    """Row, start, end, height and top of each bar; a full row is 0.8 high."""
    shapes = Shapes(drawing)
    frame = shapes.frame()
    rows = [*frame.yticks]
    first = frame.yticks[rows[0]]
    step = (frame.yticks[rows[-1]] - first) / max(len(rows) - 1, 1) or 24
    bars = []
    for box in shapes.boxes:
        low, high = ((y - first) / step for y in (box.y1, box.y2))
        bars.append((round((low + high) / 2), frame.x(box.x1),
                     frame.x(box.x2), high - low, low))
    return sorted(bars)


def test_a_timing_has_a_row_per_link_and_a_bar_per_send_on_it():
    drawing = plot_timing(on_switch(strategies.gather_broadcast(4)))
    _, frame = read(drawing)
    assert [*frame.yticks] == [
        '0 to switch', '1 to switch', '2 to switch', '3 to switch',
        'cpu to switch', 'switch to 0', 'switch to 1', 'switch to 2',
        'switch to 3', 'switch to cpu']
    assert title(drawing) == 'gather_broadcast(4, 0) on pcie_switch(4): 60 ms'
    bars = bars_of(drawing)
    assert [row for row, *_ in bars] == [0, 0, 0, 1, 2, 3, 5, 5, 5, 6, 7, 8]
    for row, start, end, height, _ in bars:
        assert [start, end] == near(
            *((0, 30) if row in (1, 2, 3, 5) else (30, 60)), by=0.1)
        # Three share device 0's cable.
        assert height == pytest.approx(0.8 / 3, abs=2e-3)
    tops = sorted(top for row, *_, top in bars if row == 0)  # on each other
    assert tops == near(0.4 - 0.8, 0.4 - 1.6 / 3, 0.4 - 0.8 / 3, by=2e-3)


def test_a_timing_may_have_another_title_and_a_longer_axis():
    timing = on_switch(strategies.sharded(4))
    drawing = plot_timing(timing, title='sharded', until=0.06)
    assert title(drawing) == 'sharded' and drawing.width <= 720
    _, frame = read(drawing)
    assert frame.x(frame.right) == pytest.approx(60, abs=0.2)
    assert max(end for _, _, end, *_ in bars_of(drawing)) == pytest.approx(
        15, abs=0.1)


def test_two_messages_that_share_a_cable_are_half_as_high_each():
    plan = Schedule([[Send(0, 2, 0, True),
                      Send(1, 2, 1, True)]], 3,
                             weights=[1, 3])
    switch = topology.ethernet(3, 10.0)
    drawing = plot_timing(simulate.time(plan, switch, 40))
    # Bytes 10 and 30: half each for 2 s, then the second has the cable.
    into_2 = [bar[1:4] for bar in bars_of(drawing) if bar[0] == 5]
    assert into_2 == [(*near(start, end, by=5), pytest.approx(high, abs=2e-3))
                      for start, end, high in (
        (0, 2000, 0.4), (0, 2000, 0.4), (2000, 4000, 0.8))]


@pytest.mark.parametrize('barrier', [True, False])
@pytest.mark.parametrize('plan', [
    strategies.gather_broadcast(4), strategies.tree(4), strategies.ring(4),
    strategies.halving_doubling(3), strategies.gather_broadcast(4, 'cpu'),
    strategies.parameter_server(4, 2, colocated=True)], ids=repr)
def test_the_filled_part_of_a_row_is_what_busy_says(plan, barrier):
    uneven = topology.cluster(2, 2, 3e9, 1e9, latency=1e-5)
    place = SWITCH if 'cpu' in plan.nodes else uneven
    timing = simulate.time(plan, place, 1e6, barrier)
    drawing, busy = plot_timing(timing), timing.busy()
    names = [*read(drawing)[1].yticks]
    filled = dict.fromkeys(names, 0)
    for row, start, end, height, top in bars_of(drawing):
        filled[names[row]] += (end - start) * height / 0.8
        assert row - 0.4 - 2e-3 <= top and top + height <= row + 0.4 + 2e-3
    whole = timing.seconds * 1e3
    assert filled == pytest.approx({
        f'{a} to {b}': share * whole for (a, b), share in busy.items()},
        abs=6e-3 * whole)
    assert len(names) == len(place.links)  # idle ones have a row, too


def test_rows_of_a_timing_are_ordered_as_numbers():
    timing = simulate.time(strategies.ring(12), topology.pcie_switch(12), 1e6)
    assert [*read(plot_timing(timing))[1].yticks][:12] == [
        f'{i} to switch' for i in range(12)]


def test_only_the_busiest_links_are_shown_if_there_are_too_many():
    drawing = plot_timing(on_switch(strategies.gather_broadcast(4)), most=2)
    assert [*read(drawing)[1].yticks] == ['0 to switch', 'switch to 0']
    assert title(drawing).endswith('60 ms, the busiest 2 links')
    assert len(bars_of(drawing)) == 6


def test_the_axes_end_with_the_timing_and_latency_is_white():
    slow = topology.pcie_switch(2, 1e9, latency=1e-3)
    drawing = plot_timing(simulate.time(strategies.gather_broadcast(2), slow,
                                        1e6))
    spans = [[*bar[1:3]] for bar in bars_of(drawing)]
    assert spans == [near(*span) for span in (
        (5, 6), (2, 3), (2, 3), (5, 6))]
    _, frame = read(drawing)
    assert frame.x(frame.right) == pytest.approx(6, abs=0.02)


def test_bars_of_one_name_have_rows_of_their_own():
    timings = [simulate.time(strategies.sharded(4), topology.pcie_switch(4, b),
                             160e6) for b in (1e10, 2e10)]
    shapes = Shapes(plot_comparison(timings))
    assert shapes.words.count('sharded(4)') == 2
    assert len({box.y1 for box in shapes.boxes}) == 2


def test_a_plan_of_very_many_messages_is_a_small_picture():
    timing = simulate.time(strategies.ring(16), topology.pcie_switch(16), 1e8)
    assert not chart_faults(plot_timing(timing))


@pytest.mark.parametrize('draw, words', [
    (lambda: plot_topology('switch'), 'topology must be a Topology'),
    (lambda: plot_topology(topology.Topology([])), 'topology must be one'),
    (lambda: plot_topology(SWITCH, 1), 'load must be a dict'),
    (lambda: plot_topology(SWITCH, {(0, 'switch'): 2}), 'load.* from 0 to 1'),
    (lambda: plot_topology(SWITCH, {(0, 1): 1}), r'load: .* no link \(0, 1\)'),
    (lambda: plot_topology(SWITCH, title=3), 'title must be a text'),
    (lambda: plot_topology(SWITCH, scale=3), 'scale must be True or False'),
    (lambda: plot_comparison([]), 'timings is too short'),
    (lambda: plot_comparison([1]), r'timings\[0\] must be a Timing'),
    (lambda: plot_timing(SWITCH), 'timing must be a Timing'),
    (lambda: plot_timing(on_switch(strategies.ring(4)), until=-1),
     'until must be'),
    (lambda: plot_timing(on_switch(strategies.ring(4)), most=0),
     'most must be'),
])
def test_bad_arguments_are_named(draw, words):
    with pytest.raises(ValueError, match=words):
        draw()


def test_a_timing_of_nothing_is_an_empty_picture():
    assert not Shapes(plot_timing(on_switch(strategies.sharded(1)))).boxes


def test_d2l_shows_pngs_as_well(monkeypatch):
    monkeypatch.setattr(d2l, 'use_svg_display', None)
    asked = []
    monkeypatch.setattr(backend_inline, 'set_matplotlib_formats',
                        asked.append)
    style.use_png_display()
    d2l.use_svg_display()
    assert asked == ['retina', 'retina']
