"""Pictures show what they are given: events, links and times."""
import matplotlib
import numpy as onp
import pytest
from d2l import mxnet as d2l
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib_inline import backend_inline

from d2lps import Event, Timeline, devices
from d2lps.collectives import Schedule, Send, simulate, strategies, topology
from d2lps_pictures import style
from d2lps_pictures.plots import (LOAD_COLORS, plot_comparison, plot_timing,
                                  plot_topology)
from d2lps_pictures.style import GREEN
from d2lps_pictures.timeline import PHASE_COLORS, plot_timeline

matplotlib.use('Agg')
EVENTS = [Event('cpu(0)', 'forward', 'Convolution', 0, 0.002),
          Event('cpu(1)', 'backward', 'ImperativeBulk', 0.001, 0.004)]
SWITCH = topology.pcie_switch(4)


def on_switch(plan):
    return simulate.time(plan, SWITCH, 160e6)


def texts(things):
    return [thing.get_text() for thing in things]


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close('all')


@pytest.fixture
def timeline():
    timeline = Timeline(devices(2))
    timeline.events = EVENTS
    return timeline


def test_each_event_is_a_bar_in_the_row_of_its_device(timeline):
    ax = plot_timeline(timeline)
    bars = [(*bar.get_paths()[0].get_extents().extents,
             to_hex(bar.get_facecolor()[0]).upper())
            for bar in ax.collections]
    expected = [(0, -0.36, 2, 0.36, PHASE_COLORS['forward']),
                (1, 0.64, 4, 1.36, PHASE_COLORS['backward'])]
    for bar, (*extents, color) in zip(bars, expected, strict=True):
        assert bar[:4] == pytest.approx(extents)
        assert bar[4] == color
    assert texts(ax.get_yticklabels()) == ['cpu(0)', 'cpu(1)']


def test_the_legend_has_the_phases_that_are_seen(timeline):
    legend = plot_timeline(timeline).get_legend()
    assert texts(legend.get_texts()) == ['forward', 'backward', 'idle']


def test_the_title_says_how_much_devices_overlap(timeline):
    ax = plot_timeline(timeline, 'Ours', until=0.01)
    assert ax.get_title(loc='left') == (
        'Ours: 4 ms, more than one device at work 25% of the time')
    assert ax.get_xlim() == (0, 10)


def test_one_device_cannot_overlap():
    timeline = Timeline(devices(1))
    timeline.events = EVENTS[:1]
    assert plot_timeline(timeline).get_title(loc='left') == '2 ms'


def drawers(timeline):
    timing = on_switch(strategies.sharded(4))
    return [(plot_timeline, timeline), (plot_topology, SWITCH),
            (plot_timing, timing), (plot_comparison, [timing])]


def test_a_picture_goes_where_it_is_told(timeline):
    for draw, thing in drawers(timeline):
        _, ax = plt.subplots()
        assert draw(thing, ax=ax) is ax and draw(thing) is not ax


def test_a_topology_has_a_line_for_each_link_and_a_name_for_each_node():
    slow = topology.cluster(2, 2, network=1e9)
    ax = plot_topology(slow)
    lines, heads = ax.collections
    assert len(lines.get_segments()) == len(heads.get_paths()) == len(
        slow.links)
    assert sorted(texts(ax.texts)) == sorted(
        map(str, [*slow.nodes, *slow.switches]))
    width = dict(zip([link[:2] for link in slow.links],
                     lines.get_linewidths()))
    assert width['network', 'switch 0'] < width[0, 'switch 0'] == width[
        'switch 1', 2]
    assert ax.get_title() == 'cluster(2, 2)' and len(ax.figure.axes) == 1


def test_devices_can_have_a_word_before_their_number():
    ax = plot_topology(topology.pcie_switch(2), device='GPU ')
    assert sorted(texts(ax.texts)) == ['GPU 0', 'GPU 1', 'cpu', 'switch']


def test_the_two_links_of_a_cable_lie_side_by_side():
    two = topology.Topology(topology.both_ways('a', 'b', 1e9))
    lines, heads = plot_topology(two).collections
    (a, b), (c, d) = lines.get_segments()
    assert onp.hypot(*(a - d)) == pytest.approx(0.06)
    assert onp.hypot(*(b - c)) == pytest.approx(0.06)
    for (start, stop), head in zip(lines.get_segments(), heads.get_paths()):
        tip, *base = head.vertices[:3]  # the first corner is the tip
        along = stop - start
        assert all((tip - corner) @ along > 0 for corner in base)


def test_colours_of_links_follow_the_load():
    timing = on_switch(strategies.gather_broadcast(4))
    ax = plot_topology(SWITCH, timing.busy())
    color = dict(zip([link[:2] for link in SWITCH.links],
                     map(tuple, ax.collections[0].get_colors())))
    assert color['switch', 0] == pytest.approx(LOAD_COLORS(0.5), abs=0.01)
    assert color[3, 'switch'] == pytest.approx(LOAD_COLORS(1 / 6), abs=0.01)
    assert color['cpu', 'switch'] == pytest.approx(LOAD_COLORS(0.0), abs=0.01)
    scale = ax.figure.axes[1]
    assert scale.get_ylabel() == 'share of capacity'
    assert scale.get_ylim() == (0, 1)  # the same for all, to compare them
    assert len(plot_topology(SWITCH, timing.busy(), scale=False).figure.axes
               ) == 1


def test_busier_is_darker():
    red, green, blue, _ = LOAD_COLORS(onp.linspace(0, 1, 20)).T
    light = 0.3 * red + 0.59 * green + 0.11 * blue
    assert (onp.diff(light) < 0).all() and light[0] < 0.95


def test_a_comparison_marks_every_best_one():
    plans = (strategies.gather_broadcast(4),
             strategies.gather_broadcast(4, 'cpu'),
             strategies.sharded(4), strategies.ring(4))
    ax = plot_comparison([on_switch(plan) for plan in plans])
    assert texts(ax.get_yticklabels()) == [plan.name for plan in plans]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(
        [60, 80, 15, 15])
    assert texts(ax.texts) == ['60', '80', '15 best', '15 best']
    green = [to_hex(bar.get_facecolor()).upper() == GREEN
             for bar in ax.patches]
    assert green == [False, False, True, True]
    first, *_, last = ax.patches
    assert ax.transData.transform(first.get_xy())[1] > ax.transData.transform(
        last.get_xy())[1]  # the first is on top


def test_a_comparison_has_readable_numbers():
    timings = [simulate.time(strategies.sharded(4), topology.pcie_switch(4, b),
                             160e6) for b in (1e12, 1e8, 123e6)]
    assert texts(plot_comparison(timings).texts) == [
        '0.24 best', '2,400', '1,950']


def test_a_comparison_marks_those_that_show_the_best_figures():
    timings = [simulate.time(strategies.sharded(4), topology.pcie_switch(4, b),
                             160e6) for b in (16e9, 16.01e9, 15.5e9)]
    assert texts(plot_comparison(timings).texts) == [
        '15 best', '15 best', '15.5']


def bars_of(ax):
    """Row, start, end, height and top of each bar; a full row is 0.8 high."""
    bars = []
    for bar in ax.patches:
        (left, low), (right, high) = bar.get_bbox().get_points()
        low, high = sorted((low, high))
        bars.append((round((low + high) / 2), left, right, high - low, low))
    return sorted(bars)


def test_a_timing_has_a_row_per_link_and_a_bar_per_send_on_it():
    ax = plot_timing(on_switch(strategies.gather_broadcast(4)))
    assert texts(ax.get_yticklabels()) == [
        '0 to switch', '1 to switch', '2 to switch', '3 to switch',
        'cpu to switch', 'switch to 0', 'switch to 1', 'switch to 2',
        'switch to 3', 'switch to cpu']
    assert ax.get_title() == 'gather_broadcast(4, 0) on pcie_switch(4): 60 ms'
    bars = bars_of(ax)
    assert [row for row, *_ in bars] == [0, 0, 0, 1, 2, 3, 5, 5, 5, 6, 7, 8]
    for row, start, end, height, _ in bars:
        assert (start, end) == pytest.approx(
            (0, 30) if row in (1, 2, 3, 5) else (30, 60))
        assert height == pytest.approx(0.8 / 3)  # three share device 0's cable
    tops = [top for row, *_, top in bars if row == 0]  # one upon the other
    assert tops == pytest.approx([0.4 - 0.8, 0.4 - 1.6 / 3, 0.4 - 0.8 / 3])


def test_two_messages_that_share_a_cable_are_half_as_high_each():
    plan = Schedule([[Send(0, 2, 0, True),
                      Send(1, 2, 1, True)]], 3,
                             weights=[1, 3])
    switch = topology.ethernet(3, 10.0)
    ax = plot_timing(simulate.time(plan, switch, 40))
    # Bytes 10 and 30: half each for 2 s, then the second has the cable.
    into_2 = [bar[1:4] for bar in bars_of(ax) if bar[0] == 5]
    assert into_2 == [pytest.approx(bar) for bar in (
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
    ax, busy = plot_timing(timing), timing.busy()
    names = texts(ax.get_yticklabels())
    filled = dict.fromkeys(names, 0)
    for row, start, end, height, top in bars_of(ax):
        filled[names[row]] += (end - start) * height / 0.8
        assert row - 0.4 - 1e-6 <= top and top + height <= row + 0.4 + 1e-6
    assert filled == pytest.approx({
        f'{a} to {b}': share * timing.seconds * 1e3
        for (a, b), share in busy.items()}, abs=1e-6)
    assert len(names) == len(place.links)  # idle ones have a row, too


def test_rows_of_a_timing_are_ordered_as_numbers():
    timing = simulate.time(strategies.ring(12), topology.pcie_switch(12), 1e6)
    assert texts(plot_timing(timing).get_yticklabels())[:12] == [
        f'{i} to switch' for i in range(12)]


def test_only_the_busiest_links_are_shown_if_there_are_too_many():
    ax = plot_timing(on_switch(strategies.gather_broadcast(4)), most=2)
    assert texts(ax.get_yticklabels()) == ['0 to switch', 'switch to 0']
    assert ax.get_title().endswith('60 ms, the busiest 2 links')
    assert len(ax.patches) == 6


def test_the_axes_end_with_the_timing_and_latency_is_white():
    slow = topology.pcie_switch(2, 1e9, latency=1e-3)
    ax = plot_timing(simulate.time(strategies.gather_broadcast(2), slow, 1e6))
    spans = [bar[1:3] for bar in bars_of(ax)]
    assert spans == [pytest.approx(span) for span in (
        (5, 6), (2, 3), (2, 3), (5, 6))]


def test_bars_of_one_name_have_rows_of_their_own():
    timings = [simulate.time(strategies.sharded(4), topology.pcie_switch(4, b),
                             160e6) for b in (1e10, 2e10)]
    ax = plot_comparison(timings)
    assert texts(ax.get_yticklabels()) == ['sharded(4)'] * 2
    assert len({bar.get_y() for bar in ax.patches}) == 2


@pytest.mark.parametrize('draw, words', [
    (lambda: plot_topology('switch'), 'topology must be a Topology'),
    (lambda: plot_topology(topology.Topology([])), 'topology must be one'),
    (lambda: plot_topology(SWITCH, 1), 'load must be a dict'),
    (lambda: plot_topology(SWITCH, {(0, 'switch'): 2}), 'load.* from 0 to 1'),
    (lambda: plot_topology(SWITCH, {(0, 1): 1}), r'load: .* no link \(0, 1\)'),
    (lambda: plot_topology(SWITCH, ax=3), 'ax must be axes of matplotlib'),
    (lambda: plot_topology(SWITCH, scale=3), 'scale must be True or False'),
    (lambda: plot_comparison([]), 'timings is too short'),
    (lambda: plot_comparison([1]), r'timings\[0\] must be a Timing'),
    (lambda: plot_timing(SWITCH), 'timing must be a Timing'),
    (lambda: plot_timing(on_switch(strategies.ring(4)), most=0),
     'most must be'),
])
def test_bad_arguments_are_named(draw, words):
    with pytest.raises(ValueError, match=words):
        draw()
    assert not plt.get_fignums()


def test_a_timing_of_nothing_is_an_empty_picture():
    assert not plot_timing(on_switch(strategies.sharded(1))).patches


def test_d2l_shows_pngs_as_well(monkeypatch):
    monkeypatch.setattr(d2l, 'use_svg_display', None)
    asked = []
    monkeypatch.setattr(backend_inline, 'set_matplotlib_formats',
                        asked.append)
    style.use_png_display()
    d2l.use_svg_display()
    assert asked == ['retina', 'retina']
