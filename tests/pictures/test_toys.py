"""Toys say what is so, at every setting, and follow what is moved."""
import inspect
import math
import re

import ipywidgets
import matplotlib
import numpy as np
import pytest
from d2lps import pictures
from d2lps.collectives import simulate, strategies, topology
from d2lps.pictures import player, widgets
from d2lps.pictures.toys import latency, plans, store
from matplotlib import pyplot as plt
from matplotlib.quiver import Quiver

matplotlib.use('Agg')


@pytest.fixture
def shown(shown, monkeypatch):
    """As in conftest, of the toys as well."""
    for toy in plans, store:
        monkeypatch.setattr(toy, 'display', widgets.display)
    return shown


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    left = plt.get_fignums()
    plt.close('all')
    assert not left


@pytest.fixture
def drawn(monkeypatch):
    """The axes, or what else was drawn, of each picture in order."""
    found = []
    show = widgets.live_picture

    def live_picture(draw, *args):
        def note(**values):
            found.append(draw(**values))
            return found[-1]
        show(note, *args)
    for module in plans, latency:
        monkeypatch.setattr(module, 'live_picture', live_picture)
    return found


def controls(shown):
    """All widgets by their description, or place."""
    found = {}

    def collect(widget):
        if isinstance(widget, ipywidgets.Box):
            for child in widget.children:
                collect(child)
        else:
            name = getattr(widget, 'description', '') or (
                getattr(widget, 'tooltip', '') or type(widget).__name__)
            found[name] = widget
    for thing in shown:
        if isinstance(thing, ipywidgets.Widget):
            collect(thing)
    return found


def words(ax):
    return [text.get_text() for text in ax.figure.findobj(
        matplotlib.text.Text) if text.get_text()]


# Plans, round by round.
def test_every_strategy_can_be_chosen():
    makers = {name for name, one in vars(strategies).items()
              if inspect.isfunction(one) and not name.startswith('_')
              and one.__module__ == strategies.__name__}
    named = {re.match(r'\w+', make(8).name)[0]
             for _, make in plans.PLANS.values()}
    assert named == makers - {'partial', 'zip_longest'}


@pytest.mark.parametrize('name', plans.PLANS)
@pytest.mark.parametrize('n', range(2, 9))
def test_every_plan_is_small_enough_to_be_drawn_or_says_why_not(name, n):
    plan = plans.PLANS[name][1](n)
    if isinstance(plan, str):
        assert 'devices' in plan and name in ('two_rings', 'hierarchical')
        assert re.search(r'to \d', plan)
    else:
        assert plan.check().num_devices == n
        assert len(plan.nodes) * len(plan.weights) <= 144


def test_a_plan_is_stepped_through(shown, drawn):
    pictures.explore_plans()
    menu = controls(shown)
    assert drawn[-1].get_title() == 'ring, 4 devices: before round 1 of 6'
    assert menu['round'].max == menu['Play'].max == 6
    menu['one on'].click()
    assert drawn[-1].get_title() == (
        'ring, 4 devices: after round 1 of 6, 4 messages added')
    menu['round'].value = 4
    assert drawn[-1].get_title().endswith('4 messages replacing')
    menu['devices'].value = 8
    assert menu['round'].max == menu['Play'].max == 14
    assert menu['round'].value == 4
    menu['plan'].value = 'sharded'  # only two rounds: one picture, no more
    assert menu['round'].value == menu['Play'].value == 2
    assert len(drawn) == 5
    assert drawn[-1].get_title() == (
        'sharded, 8 devices: after round 2 of 2, 56 messages replacing')


def test_the_picture_is_the_players(shown, drawn):
    pictures.explore_plans('tree', 5, 2)
    mine = drawn[-1]
    theirs = player.plot_holdings(strategies.tree(5), 2)
    for one, other in zip(mine.collections, theirs.collections, strict=True):
        assert np.array_equal(one.get_offsets(), other.get_offsets())
        if not isinstance(one, Quiver):  # its arrows are made when drawn
            assert len(one.get_paths()) == len(other.get_paths())
    assert any(isinstance(one, Quiver) for one in mine.collections)
    plt.close('all')


def test_boxes_can_have_numbers(shown, drawn):
    pictures.explore_plans('ring', 4, 3, sums=True)
    ax, = drawn
    held = list(strategies.ring(4).states())[3] @ [1, 2, 3, 4]
    assert [int(text.get_text()) for text in ax.texts] == held.ravel().tolist()
    full = [text for text in ax.texts if text.get_weight() == 'bold']
    assert [text.get_text() for text in full] == ['10'] * 4
    assert any('green: the whole sum' in text for text in words(ax))
    menu = controls(shown)
    menu['boxes'].value = False
    assert not drawn[-1].texts
    menu['round'].value = 0
    menu['boxes'].value = True
    assert [text.get_text() for text in drawn[-1].texts] == [
        str(k) for k in (1, 2, 3, 4) for _ in range(4)]


def test_what_cannot_be_is_explained_in_the_picture(shown, drawn):
    pictures.explore_plans('hierarchical', 3)
    assert 'their number must be even' in words(drawn[-1])[0]
    assert 'to 2 or 4' in words(drawn[-1])[0]
    menu = controls(shown)
    menu['devices'].value = 4
    assert drawn[-1].get_title().startswith('hierarchical, 2 machines, 4')
    menu['plan'].value = 'two_rings'
    assert 'Move the slider "devices" to 8' in words(drawn[-1])[0]
    menu['one on'].click()


def test_a_chapter_chooses_plans(shown, drawn):
    pictures.explore_plans('sharded', plans=['gather_broadcast', 'sharded'])
    menu = controls(shown)['plan']
    assert [name for _, name in menu.options] == [
        'gather_broadcast', 'sharded']
    pictures.explore_plans('tree', number=99, plans=['ring'])
    assert drawn[-1].get_title() == (
        'tree, 4 devices: after round 4 of 4, 1 message replacing')


@pytest.mark.parametrize('name', plans.PLANS)
@pytest.mark.parametrize('sums', [False, True])
def test_all_that_is_drawn_is_within_the_picture(shown, drawn, name, sums):
    """In the largest pictures, no word is cut off."""
    pictures.explore_plans(name, 8, 1, sums=sums)
    inside(drawn[-1])


def inside(ax):
    """All words are within the figure."""
    figure = ax.figure
    figure.canvas.draw()
    wide, high = figure.canvas.get_width_height()
    for text in figure.findobj(matplotlib.text.Text):
        if text.get_text() and text.get_visible():
            box = text.get_window_extent()
            assert box.x0 >= 0 and box.x1 <= wide, text
            assert box.y0 >= 0 and box.y1 <= high, text


# Latency.
@pytest.mark.parametrize('name', latency.PLANS)
@pytest.mark.parametrize('n', [*range(2, 18), 32, 48])
def test_the_formula_is_what_is_simulated(name, n):
    plan = latency.PLANS[name][0](n)
    links = topology.pcie_switch(n, 16e9, 5e-6)
    rounds, times = latency._costs(plan)
    for size in (0, 1e3, 1e6, 1e9):
        assert rounds * 1e-5 + times * size / 16e9 == pytest.approx(
            simulate.time(plan, links, size).seconds)


@pytest.mark.parametrize('n', [4, 8, 16, 64])
def test_the_formulas_are_those_of_the_books(n):
    k = math.log2(n)
    share = (n - 1) / n
    for name, (rounds, times) in {
            'ring': (2 * (n - 1), 2 * share),
            'tree': (2 * k, 2 * (2 * k - 1)) if n > 4 else (4, 6),
            'recursive doubling': (k, k),
            'halving and doubling': (2 * k, 2 * share),
            'sharded': (2, 2 * share)}.items():
        assert latency._costs(latency.PLANS[name][0](n)) == (
            rounds, pytest.approx(times)), name


def test_lines_cross_where_they_are_equal(shown, drawn):
    pictures.explore_latency(8, 0.1, 10, 16)
    ax, = drawn
    assert ax.get_title() == (
        '100 kB on 8 devices: best: recursive doubling, 48.8 µs')
    told = words(ax)
    assert ' 384 kB ' in told  # where the best one changes
    crossings = next(text for text in told if text.startswith('Lines cross'))
    assert crossings.splitlines()[1:] == [
        '155 kB: ring – tree',
        '384 kB: recursive doubling – halving and doubling',
        '1.41 MB: ring – recursive doubling']
    curves = {line.get_label().split(':')[0]: line.get_ydata()
              for line in ax.lines if ':' in line.get_label()}
    assert len(curves) == 4
    best = min(curves, key=lambda name: curves[name][-1])
    assert best in ('ring', 'halving and doubling')
    points = [line for line in ax.lines if line.get_marker() == 'o' and
              list(line.get_xdata()) == [1e5]]
    assert len(points) == 4


def test_the_best_one_depends_on_everything(shown, drawn):
    pictures.explore_latency()
    menu, best = controls(shown), []
    for name, value in (('MB', 1), ('devices', 6), ('µs a message', 1000),
                        ('GB/s', 1), ('also sharded', True)):
        menu[name].value = value
        best.append(re.search('best: (.*),', drawn[-1].get_title())[1])
    assert best == ['halving and doubling', 'ring',
                    'recursive doubling', 'recursive doubling', 'sharded']


@pytest.mark.parametrize('arguments', [
    {}, dict(num_devices=6, sharded=True), dict(latency=0),
    dict(num_devices=2),
    dict(num_devices=64, megabytes=1000, latency=1000, bandwidth=.1,
         sharded=True), dict(num_devices=9, sharded=True, latency=123.4),
    dict(megabytes=.0001, latency=1e-9, bandwidth=1e4),
    dict(num_devices=64, megabytes=1000, latency=1e6, bandwidth=.001)])
def test_every_setting_of_latency_can_be_drawn(shown, drawn, arguments):
    pictures.explore_latency(**arguments)
    inside(drawn[-1])


# The store.
def after(*moves, num_workers=2, consistency='sync'):
    play = store._Play(num_workers, consistency)
    for move in moves:
        what, rank = move.split()
        play.do(what, int(rank))
    return play


def test_a_push_waits_for_the_others():
    play = after('push 0', 'push 0')
    assert play.words == ['Worker 0 pushes 1. It waits in the queue for a '
                          'push of worker 1.']
    picture = play.draw().svg()
    assert "value is 0" in picture and play.shard.round == 0
    play.do('push', 1)
    assert "value is 11" in play.draw().svg() and play.shard.round == 1
    assert play.words == ['Worker 1 pushes 10. The server adds one push of '
                          'each worker to its value.']
    assert [len(queue) for queue in play.shard.pushes] == [1, 0]


def test_a_pull_waits_for_the_push_of_the_others():
    play = after('push 0', 'pull 0')
    assert play.waiting == {0: [1]} and play.pulled == [None, None]
    assert play.words == ['Worker 0 pulls, and waits for worker 1.']
    assert 'worker 0 waits' in play.draw().svg()
    for what in 'push', 'pull':  # nothing happens, and the picture says why
        play.do(what, 0)
        assert play.words == [f'Worker 0 waits in its pull: it cannot {what}.'
                              ' Let worker 1 push.']
        assert [len(queue) for queue in play.shard.pushes] == [1, 0]
    play.do('push', 1)
    assert play.waiting == {} and play.pulled == [11, None]
    assert play.words[1] == 'Worker 0 pulls 11.'
    assert [arrow[:2] for arrow in play.arrows] == [('push', 1), ('pull', 0)]


def test_without_a_push_a_pull_waits_for_nobody():
    assert after('pull 1').pulled == [None, 0]
    assert after('push 0', 'pull 1').pulled == [None, 0]


def test_a_pull_waits_for_all_who_are_missing():
    play = after('push 0', 'pull 0', 'push 2', num_workers=3)
    assert play.waiting == {0: [1]}
    play.do('pull', 2)
    play.do('push', 1)
    assert play.pulled == [111, None, 111] and not play.waiting


def test_asynchronously_nobody_waits():
    play = after(*['push 0'] * 3, 'push 1', 'pull 1', consistency='async')
    assert play.pulled == [None, 13] and play.shard.round == 4
    assert play.words == ['Worker 1 pulls 13.']


def test_a_bound_lets_a_worker_run_ahead():
    play = after('push 0', 'pull 0', consistency=1)
    assert play.pulled == [1, None]
    play.do('push', 0)
    play.do('pull', 0)
    assert play.waiting == {0: [1]}


def test_buttons_move_the_real_server(shown):
    pictures.explore_store()
    menu = controls(shown)
    assert 'waits for worker 1' in shown[-1].alt  # the first picture
    menu['worker 1: push 10'].click()
    assert "Worker 0 pulls 11. The server's value is 11." in shown[-1].alt
    menu['worker 1: pull'].click()
    assert shown[-1].alt.startswith('Worker 1 pulls 11.')
    menu['start again'].click()
    assert shown[-1].alt == ("Nobody has pushed yet. The server's value is 0.")
    menu['server'].value = 'async'
    menu['worker 0: push 1'].click()
    assert shown[-1].alt.endswith('value is 1.')
    assert len(shown) == 1 + 6


@pytest.mark.parametrize('num_workers', [1, 2, 3, 4])
@pytest.mark.parametrize('consistency', ['sync', 'async', 0, 1, 7])
def test_every_store_can_be_played_with(shown, num_workers, consistency):
    pictures.explore_store(num_workers, consistency)
    menu = controls(shown)
    assert menu['server'].value == consistency
    for name, widget in menu.items():
        if name.startswith('worker'):
            for _ in range(9):
                widget.click()
    assert len(shown) == 2 + 18 * num_workers
    assert f'{num_workers - 1}: pull' in [*menu][-3]


@pytest.mark.parametrize('show, message', [
    (lambda: pictures.explore_plans('star'), 'plan must be'),
    (lambda: pictures.explore_plans(num_devices=9), 'from 2 to 8'),
    (lambda: pictures.explore_plans(number=-1), 'number must be'),
    (lambda: pictures.explore_plans(plans=['star']), r'plans\[0\] must be'),
    (lambda: pictures.explore_plans(sums='yes'), 'sums must be'),
    (lambda: pictures.explore_latency(65), 'from 2 to 64'),
    (lambda: pictures.explore_latency(megabytes=0), 'from 0.0001 to 1000'),
    (lambda: pictures.explore_latency(latency=-1), 'latency must be'),
    (lambda: pictures.explore_latency(bandwidth=0), 'bandwidth must be'),
    (lambda: pictures.explore_store(5), 'from 1 to 4'),
    (lambda: pictures.explore_store(2, 'soon'), 'consistency must be'),
])
def test_bad_arguments_are_named(shown, show, message):
    with pytest.raises(ValueError, match=message):
        show()
    assert not shown
