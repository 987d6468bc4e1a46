"""Pictures show what they are given: events, links and times."""
import matplotlib
import numpy as onp
import pytest
from d2l import mxnet as d2l
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from d2lps import Event, Timeline, devices, plots, schedule, simulate, topology
from d2lps.plots import (GREEN, LOAD_COLORS, PHASE_COLORS, plot_comparison,
                         plot_timeline, plot_timing, plot_topology)

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
    assert texts(legend.get_texts()) == ['forward', 'backward']


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
    timing = on_switch(schedule.sharded(4))
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
    timing = on_switch(schedule.gather_broadcast(4))
    ax = plot_topology(SWITCH, timing.busy())
    color = dict(zip([link[:2] for link in SWITCH.links],
                     map(tuple, ax.collections[0].get_colors())))
    assert color['switch', 0] == pytest.approx(LOAD_COLORS(0.5), abs=0.01)
    assert color[3, 'switch'] == pytest.approx(LOAD_COLORS(1 / 6), abs=0.01)
    assert color['cpu', 'switch'] == pytest.approx(LOAD_COLORS(0.0), abs=0.01)
    scale = ax.figure.axes[1]
    assert scale.get_ylabel() == 'share of the time in use'
    assert scale.get_ylim() == (0, 1)  # the same for all, to compare them
    assert len(plot_topology(SWITCH, timing.busy(), scale=False).figure.axes
               ) == 1


def test_busier_is_darker():
    red, green, blue, _ = LOAD_COLORS(onp.linspace(0, 1, 20)).T
    light = 0.3 * red + 0.59 * green + 0.11 * blue
    assert (onp.diff(light) < 0).all() and light[0] < 0.95


def test_a_comparison_marks_every_best_one():
    plans = (schedule.gather_broadcast(4), schedule.gather_broadcast(4, 'cpu'),
             schedule.sharded(4), schedule.ring(4))
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
    timings = [simulate.time(schedule.sharded(4), topology.pcie_switch(4, b),
                             160e6) for b in (1e12, 1e8, 123e6)]
    assert texts(plot_comparison(timings).texts) == [
        '0.24 best', '2,400', '1,950']


def test_a_timing_has_a_row_per_link_and_a_bar_per_send_on_it():
    ax = plot_timing(on_switch(schedule.gather_broadcast(4)))
    assert texts(ax.get_yticklabels()) == [
        '0 to switch', '1 to switch', '2 to switch', '3 to switch',
        'switch to 0', 'switch to 1', 'switch to 2', 'switch to 3']
    assert ax.get_title() == 'gather_broadcast(4, 0) on pcie_switch(4): 60 ms'
    spans = sorted((round(bar.get_y() + bar.get_height() / 2), bar.get_x(),
                    bar.get_width()) for bar in ax.patches)
    assert [row for row, *_ in spans] == [0, 0, 0, 1, 2, 3, 4, 4, 4, 5, 6, 7]
    for row, start, width in spans:
        assert width == pytest.approx(30)
        assert start == pytest.approx(0 if row in (1, 2, 3, 4) else 30)


def test_rows_of_a_timing_are_ordered_as_numbers():
    timing = simulate.time(schedule.ring(12), topology.pcie_switch(12), 1e6)
    assert texts(plot_timing(timing).get_yticklabels())[:12] == [
        f'{i} to switch' for i in range(12)]


def test_only_the_busiest_links_are_shown_if_there_are_too_many():
    ax = plot_timing(on_switch(schedule.gather_broadcast(4)), most=2)
    assert texts(ax.get_yticklabels()) == ['0 to switch', 'switch to 0']
    assert ax.get_title().endswith('60 ms, the busiest 2 links')
    assert len(ax.patches) == 6


def test_a_timing_of_nothing_is_an_empty_picture():
    assert not plot_timing(on_switch(schedule.sharded(1))).patches


def test_d2l_shows_pngs_as_well(monkeypatch):
    monkeypatch.setattr(d2l, 'use_svg_display', None)
    asked = []
    monkeypatch.setattr(plots.backend_inline, 'set_matplotlib_formats',
                        asked.append)
    plots.use_png_display()
    d2l.use_svg_display()
    assert asked == ['retina', 'retina']
