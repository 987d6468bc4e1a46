"""Charts with a row for each device, link or worker, and bars in them."""
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

from d2lps import Operation, Timeline, devices, figures
from d2lps.asynchrony.overlap import Task
from d2lps.collectives import Schedule, Send, simulate, strategies, topology
from d2lps.pictures import (GREEN, plot_comparison, plot_messages,
                            plot_pipeline, plot_step, plot_timeline,
                            plot_timing)
from d2lps.pictures.rows import draw_bars, new_figure, row_axes
from d2lps.pipelines import one_f_one_b, time_passes

SWITCH = topology.pcie_switch(4)
TIMINGS = [simulate.timing(getattr(strategies, name)(4), SWITCH, 160e6)
           for name in ('ring', 'tree', 'sharded')]


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close('all')


def boxes(patch):
    """(left, right, low, high) of each bar of a shape."""
    corners = patch.get_path().vertices.reshape(-1, 5, 2)
    return [tuple(np.round([*one[:, 0].take([0, 1]), *one[:, 1].take([0, 2])],
                           6)) for one in corners]


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_bars_of_a_timeline_are_in_the_rows_of_devices():
    timeline = Timeline(devices(2))
    timeline.events = [Operation('cpu(0)', 'forward', 'Convolution', 0, 0.002),
                       Operation('cpu(1)', 'backward', 'Bulk', 0.001, 0.004)]
    ax = plot_timeline(timeline, 'Ours', until=0.005)
    _, forward, _, backward = ax.patches  # each after its legend's
    assert boxes(forward) == [(0, 2, -0.36, 0.36)]
    assert boxes(backward) == [(1, 4, 0.64, 1.36)]
    assert [one.get_text() for one in ax.get_yticklabels()] == [
        'cpu(0)', 'cpu(1)']
    assert ax.get_xlim() == (0, 5) and ax.yaxis_inverted()
    [legend] = ax.figure.legends
    assert [one.get_text() for one in legend.get_texts()] == [
        'forward', 'backward', 'idle']
    assert ax.get_title('left') == (
        'Ours: 4 ms, more than one device at work 25% of the time')
    assert 'cpu(1): backward 3 ms.' in figures.alt_text(ax.figure)
    del timeline.events[1]  # nothing is trained: what is left is a product
    figure = plot_timeline(timeline).figure
    assert figure.legends[0].get_texts()[0].get_text() == 'operation'
    assert 'cpu(0): operation 2 ms' in figures.alt_text(figure)


def test_a_long_title_is_broken_and_has_room():
    titles = 'ring', 'a step that has very many words above it ' * 3
    charts = [plot_timeline(Timeline(devices(1)), title) for title in titles]
    assert '\n' in charts[1].get_title('left')
    short, tall = (ax.figure.get_figheight() for ax in charts)
    assert tall > short + 0.1
    narrow = row_axes(['a'], 1, title=titles[1],
                      ax=new_figure(3, 2).subplots())
    assert narrow.get_title('left').count('\n') > 2


def test_slivers_on_one_spot_are_one_bar_of_a_small_file():
    ax = row_axes(['a', 'b'], 1)
    at = np.linspace(0, 0.5, 20_000)
    draw_bars(ax, [(x, x + 1e-5, k % 2) for k, x in enumerate(at)], 'red')
    assert [box[:2] for patch in ax.patches for box in boxes(patch)] == [
        pytest.approx((0, 0.5), abs=1e-3)] * 2
    assert len(figures.svg(ax.figure)) < 20_000


def test_a_step_has_a_number_on_each_bar_and_lines_on_the_forward_pass():
    tasks = [Task('backward', (1,), 0, 1), Task('push', (0, 1), 1, 3),
             Task('forward', (0,), 3, 4)]
    ax = plot_step(tasks, 'fifo', best=2)
    assert words(ax) == ['2', '1-2', '1']
    assert ax.get_title('left') == (
        'fifo: 4000 ms, dashed: no less than 2000 ms')
    assert [*ax.lines[0].get_xdata()] == [2000, 2000]
    assert {patch.get_hatch(): boxes(patch)[0][:2] for patch in ax.patches
            if patch.get_hatch()} == {'//': (3000, 4000)}
    same = plot_step(tasks, rows=['a', 'b', 'a'], ax=new_figure().subplots())
    assert [one.get_text() for one in same.get_yticklabels()] == ['a', 'b']
    with pytest.raises(ValueError, match='one for each of the 3 tasks'):
        plot_step(tasks, rows=['a'])


def test_slices_of_a_gradient_have_one_number_together():
    slices = [Task('push', (6,), k, k + 1) for k in range(60)]
    ax = plot_step(slices)
    assert words(ax) == ['7'] and ax.texts[0].get_bbox_patch()
    later = [Task('push', (0,), 60, 90), Task('push', (6,), 90, 120)]
    assert words(plot_step(slices + later)) == ['7', '1', '7']


def test_a_row_of_a_link_is_filled_as_far_as_it_was_busy():
    for timing in TIMINGS:
        ax = plot_timing(timing)
        filled = dict.fromkeys(timing.busy(), 0)
        rows = [one.get_text() for one in ax.get_yticklabels()]
        for left, right, low, high in sum(map(boxes, ax.patches), []):
            row = round((low + high) / 2)
            assert row - 0.4 <= low + 1e-5 and high - 1e-5 <= row + 0.4
            pair = next(pair for pair in filled
                        if rows[row] == f'{pair[0]} to {pair[1]}')
            filled[pair] += (right - left) * (high - low) / 0.8
        until = 1e3 * timing.seconds
        assert ax.get_xlim() == (0, pytest.approx(until))
        assert {pair: area / until for pair, area in filled.items()} == (
            pytest.approx(timing.busy(), abs=1e-4))
    around = simulate.timing(strategies.ring(4), topology.Topology([
        link for k in range(4) for link in topology.both_ways(
            k, (k + 1) % 4, 18e9)]), 160e6)
    assert [one.get_text() for one in plot_timing(around).get_yticklabels()
            ] == ['0 to 1', '1 to 2', '2 to 3', '3 to 0', '0 to 3', '1 to 0',
                  '2 to 1', '3 to 2']  # one direction, and then the other
    place = topology.pcie_switch(13)
    few = plot_timing(simulate.timing(strategies.ring(13), place, 1e6),
                      title='Few')
    assert len(few.get_yticks()) == 24
    assert few.get_title('left') == 'Few, the busiest 24 links'


def test_the_best_are_marked_and_no_number_is_on_the_dashed_line():
    ax = plot_comparison(TIMINGS, 'Plans', target=0.016)
    assert words(ax) == ['15 best', '60', '15 best']
    assert [to_hex(bar.get_facecolor()).upper() == GREEN
            for bar in ax.patches] == [True, False, True]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(
        [15, 60, 15])
    assert [*ax.lines[0].get_xdata()] == [16, 16]
    assert [text.xy[0] for text in ax.texts] == pytest.approx([16, 60, 16])
    assert figures.alt_text(ax.figure) == (
        'Plans, time in ms. ring(4): 15 best; tree(4): 60; '
        'sharded(4): 15 best.')
    assert words(plot_comparison(TIMINGS, target=0.014)) == ['15', '60', '15']


def test_panels_of_messages_share_their_axes():
    ring, tree, _ = TIMINGS
    first, second = plot_messages({'ring': ring.events, 'tree': tree.events})
    assert first.get_xlim() == second.get_xlim() == (0, pytest.approx(61.2))
    assert first.get_ylim() == second.get_ylim() == (3.5, -0.5)
    assert len(first.patches) == len(ring.events)
    assert sorted(words(second)) == sorted(
        str(event.round) for event in tree.events)
    assert not first.get_xlabel() and 'time / ms' in second.get_xlabel()
    assert 'tree: 6 messages to 4 workers in 4 rounds' in figures.alt_text(
        first.figure)


def test_a_later_message_hides_the_number_of_an_earlier_one():
    both = Schedule([[Send(1, 0, 0, True), Send(2, 0, 1, True)]], 3)
    timing = simulate.timing(both, topology.pcie_switch(3), 3e6)
    [ax] = plot_messages({'both': timing.events})
    drawn = [one for one in ax.get_children()
             if one in [*ax.patches, *ax.texts]]
    assert [one in ax.texts for one in drawn] == [False, True, False, True]
    assert len({one.get_zorder() for one in drawn}) == 1


def test_what_stages_keep_does_not_depend_on_the_order_of_the_list():
    timed = time_passes([one_f_one_b(stage, 2, 4) for stage in range(2)],
                        {'F': 1, 'B': 2})
    words = [figures.alt_text(plot_pipeline(one).figure)
             for one in (timed, timed[::-1])]
    assert words[0] == words[1]
    assert 'activations of at most 2, 1 micro-batches' in words[0]
