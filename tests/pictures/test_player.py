"""The step player shows who holds what, without a browser."""

import ipywidgets
import matplotlib
import numpy as np
import pytest
from matplotlib import colors
from matplotlib import pyplot as plt
from matplotlib.collections import PolyCollection
from matplotlib.quiver import Quiver

from d2lps.collectives import Schedule, Send, strategies
from d2lps_pictures import player
from d2lps_pictures.style import CHUNK_COLORS

matplotlib.use('Agg')


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close('all')


def parts(plan, number):
    """Bars, thick frames, arrows, and boxes with a tick."""
    ax = player.plot_holdings(plan, number)
    polygons = [c for c in ax.collections if type(c) is PolyCollection]
    frames = polygons[2].get_paths() if number else []
    arrows = [c for c in ax.collections if isinstance(c, Quiver)]
    ticks = [c for c in ax.collections if len(c.get_offsets()) and
             c not in arrows and c not in polygons]
    return polygons[1], frames, arrows, ticks[0].get_offsets() if ticks else ()


def middle(path):
    """(row, column) of the box that a polygon lies in."""
    x, y = path.get_extents().get_points().mean(axis=0)
    return round(y), int(x)


@pytest.mark.parametrize('plan', [
    strategies.ring(4), strategies.tree(5), strategies.parameter_server(3, 2),
    strategies.hierarchical(2, 2), strategies.running_sum(1)], ids=repr)
def test_bars_and_ticks_say_what_is_held(plan):
    for number, held in enumerate(plan.states()):
        bars, _, _, ticks = parts(plan, number)
        want = np.argwhere(held)
        assert [middle(path) for path in bars.get_paths()] == (
            [(row, column) for row, column, _ in want])
        assert np.allclose(bars.get_facecolor(), [
            colors.to_rgba(CHUNK_COLORS[who]) for _, _, who in want])
        assert {(y, int(x)) for x, y in ticks} == set(
            zip(*np.nonzero((held == 1).all(axis=2))))
        plt.close('all')


@pytest.mark.parametrize('number', [1, 2, 4, 6])
def test_arrows_and_frames_say_what_was_sent(number):
    plan = strategies.ring(4)
    sends = plan.rounds[number - 1]
    _, frames, [arrows], _ = parts(plan, number)
    assert sorted(map(middle, frames)) == sorted(
        zip(sends.dst, sends.chunk))
    x, y = arrows.get_offsets().T
    assert list(y) == list(sends.src)
    assert list(x.astype(int)) == list(sends.chunk)
    assert list(y + arrows.V) == list(sends.dst)
    filled = (arrows.get_facecolor() == (0, 0, 0, 1)).all(axis=1)
    assert list(filled) == [number <= 3] * 4


def test_arrows_of_one_chunk_do_not_cover_each_other():
    _, _, [arrows], _ = parts(strategies.sharded(6), 1)
    x = arrows.get_offsets()[:, 0]
    assert len(set(x)) == len(x) == 30
    assert (x % 1 > 0.72).all()


def test_what_is_counted_twice_is_written_in_the_bar():
    send = Send(0, 1, 0, True)
    ax = player.plot_holdings(Schedule([[send], [send]], 2), 2)
    assert [text.get_text() for text in ax.texts] == ['2']
    assert not player.plot_holdings(strategies.ring(3), 4).texts


def test_nodes_have_their_names():
    ax = player.plot_holdings(strategies.gather_broadcast(2, 'cpu'))
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        '0', '1', 'cpu']
    assert ax.get_title().endswith('after round 0 of 2')


def test_too_many_boxes_are_refused():
    player.plot_holdings(strategies.ring(12))
    with pytest.raises(ValueError, match=r'ring\(13\).*over 144'):
        player.plot_holdings(strategies.ring(13))


def test_forward_back_and_play(shown, monkeypatch):
    drawn, draw = [], player.plot_holdings
    monkeypatch.setattr(player, 'plot_holdings', lambda plan, number: (
        drawn.append(number), draw(plan, number))[1])
    player.step_player(strategies.ring(3), number=1)
    slider, buttons = shown[0].children
    play, back, forward = buttons.children
    assert isinstance(play, ipywidgets.Play)
    assert (play.min, play.max, play.value) == (0, 4, 1)
    forward.click()
    assert slider.value == play.value == drawn[-1] == 2
    play.value = 4  # what the browser does as time goes by
    assert slider.value == drawn[-1] == 4
    forward.click()
    assert slider.value == 4  # stays at the end
    slider.value = 0
    back.click()
    assert slider.value == play.value == 0
    assert drawn == [1, 2, 4, 0]  # one picture for each change, no more
    assert len(shown) == 1 + len(drawn)
    assert plt.get_fignums() == []


def test_a_picture_has_few_parts():
    # Boxes and bars are drawn in a few heaps: one artist each would be slow.
    ax = player.plot_holdings(strategies.ring(12), 6)
    bars = sum(len(c.get_paths()) for c in ax.collections)
    assert bars > 144 and len(ax.collections) < 10 and not ax.patches


@pytest.mark.parametrize('draw, words', [
    (lambda: player.plot_holdings(3), 'schedule must be a Schedule'),
    (lambda: player.plot_holdings(strategies.ring(2), 3), 'number .*0 to 2'),
    (lambda: player.plot_holdings(strategies.ring(2), -1), 'number must be'),
    (lambda: player.plot_holdings(strategies.ring(2), 0.5), 'number must be'),
    (lambda: player.plot_holdings(strategies.ring(2), ax=1),
     'ax must be axes'),
    (lambda: player.step_player(None), 'schedule must be a Schedule'),
    (lambda: player.step_player(strategies.ring(2), 3), 'number .*0 to 2'),
    (lambda: player.step_player(strategies.ring(13)), 'over 144'),
])
def test_bad_arguments_are_named(shown, draw, words):
    with pytest.raises(ValueError, match=words):
        draw()
    assert not shown and not plt.get_fignums()
