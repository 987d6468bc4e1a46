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
from d2lps_pictures import player, widgets
from d2lps.kvstore import KVStore, Server
from d2lps_pictures import timeline
from d2lps_pictures.toys import devices, keys, latency, plans, store, sums
from matplotlib import pyplot as plt
from matplotlib.quiver import Quiver

pytestmark = pytest.mark.full

matplotlib.use('Agg')


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch):
    """As large as it is for `inside`: the same words are not set twice."""
    save = plt.Figure.savefig
    monkeypatch.setattr(plt.Figure, 'savefig', lambda *args, **how: save(
        *args, **how | {'dpi': 'figure', 'bbox_inches': None}))


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
    for module in plans, latency, keys, sums, devices, timeline:
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
    menu['forward'].click()
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
    assert 'take an even number' in words(drawn[-1])[0]
    assert 'to 2 or 4' in words(drawn[-1])[0]
    menu = controls(shown)
    menu['devices'].value = 4
    assert drawn[-1].get_title().startswith('hierarchical, 2 machines, 4')
    menu['plan'].value = 'two_rings'
    assert 'Move the slider "devices" to 8' in words(drawn[-1])[0]
    menu['forward'].click()


def test_a_chapter_chooses_plans(shown, drawn):
    pictures.explore_plans('sharded', plans=['gather_broadcast', 'sharded'])
    menu = controls(shown)['plan']
    assert [name for _, name in menu.options] == [
        'gather_broadcast', 'sharded']
    pictures.explore_plans('tree', number=99, plans=['ring'])
    assert drawn[-1].get_title() == (
        'tree, 4 devices: after round 4 of 4, 1 message replacing')


@pytest.mark.full
@pytest.mark.parametrize('name', plans.PLANS)
@pytest.mark.parametrize('sums', [False, True])
def test_all_that_is_drawn_is_within_the_picture(shown, drawn, name, sums):
    """In the largest pictures, no word is cut off."""
    pictures.explore_plans(name, 8, 1, sums=sums)
    inside(drawn[-1])


def inside(ax):
    """All words of a picture, which was drawn, are within the figure."""
    figure = ax.figure
    wide, high = figure.canvas.get_width_height()
    beyond = {label for axis in (ax.xaxis, ax.yaxis) for place, label in zip(
        axis.get_majorticklocs(), axis.get_ticklabels()) if not (
            min(axis.get_view_interval()) <= place <= max(
                axis.get_view_interval()))}  # which are not drawn
    for text in {*figure.findobj(matplotlib.text.Text)} - beyond:
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
    for name, value in (('MB', 1), ('devices', 6), ('latency µs', 1000),
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
    assert play.waiting == {} and play.pulled == ['11', None]
    assert play.words[1] == 'Worker 0 pulls 11.'
    assert [arrow[:2] for arrow in play.arrows] == [(1, 'push'), (0, 'pull')]


def test_without_a_push_a_pull_waits_for_nobody():
    assert after('pull 1').pulled == [None, '0']
    assert after('push 0', 'pull 1').pulled == [None, '0']


def test_a_pull_waits_for_all_who_are_missing():
    play = after('push 0', 'pull 0', 'push 2', num_workers=3)
    assert play.waiting == {0: [1]}
    play.do('pull', 2)
    play.do('push', 1)
    assert play.pulled == ['111', None, '111'] and not play.waiting


def test_asynchronously_nobody_waits():
    play = after(*['push 0'] * 3, 'push 1', 'pull 1', consistency='async')
    assert play.pulled == [None, '13'] and play.shard.round == 4
    assert play.words == ['Worker 1 pulls 13.']


def test_a_bound_lets_a_worker_run_ahead():
    play = after('push 0', 'pull 0', consistency=1)
    assert play.pulled == ['1', None]
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


def test_it_is_the_server_of_the_package():
    assert type(after().server) is Server
    for consistency in 'sync', 'async', 0, 1, 3:
        theirs = KVStore(2, consistency=consistency).servers[0]
        mine = after(consistency=consistency).server
        assert type(mine) is type(theirs)
        assert getattr(mine, 'bound', None) == getattr(theirs, 'bound', None)


# Keys.
def test_weights_and_biases_of_lenet_lie_apart(shown, drawn):
    pictures.explore_keys()
    assert '0 of 8 keys cut into parts' in drawn[-1].alt
    assert 'has 99.8% of them, 2.00 times its share' in drawn[-1].alt
    assert 'Server 1 has 208 elements: 1, 3, 5, 7.' in drawn[-1].alt
    menu = controls(shown)
    menu['split from'].value = 100
    assert '5 of 8 keys' in drawn[-1].alt
    assert 'its share: they are equal' in drawn[-1].alt
    menu['servers'].value = 1
    assert '0 of 8 keys' in drawn[-1].alt
    assert len(shown) == 2 + 2


@pytest.mark.parametrize('num_servers', range(1, 9))
@pytest.mark.parametrize('split_from', [1, 1000, 10 ** 9])
def test_what_the_words_say_of_keys_adds_up(num_servers, split_from):
    sizes = {'a': 5000, 'b': 10, 3: 777}
    words = keys._in_words(sizes, num_servers, split_from)
    assert words.startswith('5,787 elements')
    cut = sum(size >= split_from for size in sizes.values())
    assert f'{cut if num_servers > 1 else 0} of 3 keys' in words


def test_keys_of_ones_own(shown, drawn):
    pictures.explore_keys({'w': 100}, 4, 50)
    assert '100 elements, 1 of 1 keys cut into parts' in drawn[-1].alt
    assert 'LeNet' not in drawn[-1].alt


# Sums.
@pytest.mark.parametrize('precision, kind', [
    ('float16', np.float16), ('float32', np.float32)])
def test_sums_are_those_of_numpy(precision, kind):
    numbers = np.random.default_rng(3).random(300).astype(kind)
    total, sums_ = kind(0), []
    for number in numbers:
        total = kind(total + number)
        sums_.append(total)
    rows = numbers.astype(np.float32)[None]
    assert sums._one_by_one(rows, precision)[0].tolist() == sums_
    four = sums._in_pairs(rows[:, :4], precision)
    a, b, c, d = numbers[:4]
    assert four.tolist() == [kind(kind(a + b) + kind(c + d))]


def test_bfloat16_has_eight_digits_and_rounds_to_even():
    for x, rounded in ((1 + 2 ** -7, 1 + 2 ** -7), (1 + 2 ** -8, 1),
                       (1 + 3 * 2 ** -8, 1 + 2 ** -6), (257, 256),
                       (1 + 2 ** -8 + 2 ** -20, 1 + 2 ** -7), (0, 0)):
        assert sums._rounded(np.float32([x]), 'bfloat16') == [rounded]


@pytest.mark.parametrize('precision', sums.DIGITS)
def test_errors_stay_below_the_lines(precision):
    """That of pairs below the lower one, which only pairs are sure of."""
    exact, found = sums._measure(precision, 0)
    unit, n = 2.0 ** -sums.DIGITS[precision], np.array(sums.SIZES)[:, None]
    errors = {name: abs(sums_ - exact) / exact
              for name, sums_ in found.items()}
    for error in errors.values():
        assert (error <= (n - 1) * unit).all()
    assert (errors['tree'] <= np.log2(n) * unit).all()
    assert errors['ring'][-1].mean() > 8 * errors['tree'][-1].mean()
    assert np.allclose(exact[0], found['tree'][0], rtol=unit)


def test_the_picture_of_a_sum(shown, drawn):
    pictures.explore_sums()
    assert drawn[-1].get_title() == (
        '4,096 numbers in bfloat16: 256 instead of 2033.29, error 87 %')
    menu = controls(shown)
    menu['format'].value = 'float32'
    menu['numbers'].value = 8
    menu['order'].value = 'tree'
    title = drawn[-1].get_title()
    assert re.match(r'8 numbers in float32: .*, error (1 in [\d,]+|none)$',
                    title)
    curves = {line.get_label(): line.get_ydata()
              for line in drawn[-1].lines if line.get_marker() == 'o'}
    assert curves['one by one, as in a ring'][-1] > (
        8 * curves['in pairs, as in recursive doubling'][-1])
    assert len(drawn) == 4


@pytest.mark.full
@pytest.mark.parametrize('precision', sums.DIGITS)
@pytest.mark.parametrize('seed', [0, 10 ** 9])
def test_every_sum_can_be_drawn(shown, drawn, precision, seed):
    """The least numbers or the most; with another seed, the others."""
    for k, order in enumerate(sums.ORDERS):
        n = sums.SIZES[-((k + seed // 10 ** 9) % 2)]
        pictures.explore_sums(order, precision, n, seed)
        inside(drawn[-1])


# This machine.
def test_each_way_is_measured(shown, drawn):
    pictures.explore_devices(2, 0.01)
    names = [label.get_text() for label in drawn[-1].get_yticklabels()]
    assert names == [*devices.COPIES]
    predicted, measured = drawn[-1].containers
    copy = float(re.search('takes (.*) ms', drawn[-1].get_title())[1])
    assert [bar.get_width() for bar in predicted] == pytest.approx(
        [k * copy / 1e3 for k in (2, 2, 4, 1)], rel=0.01)
    assert all(bar.get_width() > 0 for bar in measured)
    menu = controls(shown)
    menu['devices'].value = 4
    menu['way'].value = 'sharded'
    predicted, measured = drawn[-1].containers
    copy = float(re.search('takes (.*) ms', drawn[-1].get_title())[1])
    assert predicted[0].get_width() == pytest.approx(
        1.5 * copy / 1e3, rel=0.01)
    assert len(measured) == 1


@pytest.mark.parametrize('n', [2, 3, 4])
def test_each_way_sums(n):
    for name in devices.COPIES:
        arrays = [devices.mx.np.ones(5, ctx=device)
                  for device in devices.devices(n)]
        job = devices._jobs(arrays, name)[name]
        job()
        assert all(array.tolist() == [n] * 5 for array in arrays), name


@pytest.mark.parametrize('way', [devices.ALL, 'sharded'])
def test_no_word_of_the_measurement_is_cut_off(shown, drawn, way):
    pictures.explore_devices(4, 0.04, way)
    inside(drawn[-1])


def test_the_timeline_begins_where_a_step_takes_a_moment(shown, drawn):
    pictures.explore_timeline()
    title = drawn[-1].get_title(loc='left')
    assert title.startswith('8 examples on each device: ')
    inside(drawn[-1])
    menu = controls(shown)
    assert max(value for _, value in menu['batch size'].options) == 128
    menu['devices'].value = 1
    assert drawn[-1].get_title(loc='left').startswith('16 examples on each')


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
    (lambda: pictures.explore_keys({}), 'sizes must be'),
    (lambda: pictures.explore_keys(num_servers=9), 'from 1 to 8'),
    (lambda: pictures.explore_keys(dict.fromkeys(range(13), 1)), 'at most 12'),
    (lambda: pictures.explore_sums('upwards'), 'order must be'),
    (lambda: pictures.explore_sums(precision='float8'), 'precision must be'),
    (lambda: pictures.explore_sums(num_numbers=5), 'num_numbers must be'),
    (lambda: pictures.explore_sums(seed=-1), 'seed must be'),
    (lambda: pictures.explore_devices(5), 'from 2 to 4'),
    (lambda: pictures.explore_devices(2, 41), 'from 0.01 to 40'),
    (lambda: pictures.explore_devices(way='ring'), 'way must be'),
    (lambda: pictures.explore_store(5), 'from 1 to 4'),
    (lambda: pictures.explore_store(2, 'soon'), 'consistency must be'),
])
def test_bad_arguments_are_named(shown, show, message):
    with pytest.raises(ValueError, match=message):
        show()
    assert not shown
