"""Toys say what is so, at every setting, and follow what is moved."""
import inspect
import math
import re

import ipywidgets
import numpy as np
import pytest
from d2lps import pictures
from d2lps.collectives import simulate, strategies, topology
from d2lps.kvstore import KVStore, Server
from d2lps.training.lenet import init_params
from d2lps.pictures import player
from d2lps.pictures.toys import (explore_devices, explore_keys, explore_latency, explore_plans, explore_rounding,
                                 explore_store, explore_sums)
from shapes import chart_faults

pytestmark = pytest.mark.full


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


def titles(shown):
    """The first sentence of each picture, or what stands before a colon."""
    return [one.alt.split('. ')[0] for one in shown
            if not isinstance(one, ipywidgets.Widget)]


# Plans, round by round.
def test_every_strategy_can_be_chosen():
    makers = {name for name, one in vars(strategies).items()
              if inspect.isfunction(one) and not name.startswith('_')
              and one.__module__ == strategies.__name__}
    named = {re.match(r'\w+', make(8).name)[0]
             for _, make in explore_plans.PLANS.values()}
    assert named == makers


@pytest.mark.parametrize('name', explore_plans.PLANS)
@pytest.mark.parametrize('n', range(2, 9))
def test_every_plan_is_small_enough_to_be_drawn_or_says_why_not(name, n):
    plan = explore_plans.PLANS[name][1](n)
    if isinstance(plan, str):
        assert 'devices' in plan and name in ('two_rings', 'hierarchical')
        assert re.search(r'to \d', plan)
    else:
        assert plan.check().num_devices == n
        assert len(plan.nodes) * len(plan.weights) <= 144


def test_a_plan_is_stepped_through(shown):
    pictures.explore_plans()
    menu = controls(shown)
    assert titles(shown) == ['ring, 4 devices: before round 1 of 6']
    assert menu['round'].max == menu['Play'].max == 6
    menu['forward'].click()
    assert titles(shown)[-1] == (
        'ring, 4 devices: after round 1 of 6, 4 messages added')
    menu['round'].value = 4
    assert titles(shown)[-1].endswith('4 messages replacing')
    menu['devices'].value = 8
    assert menu['round'].max == menu['Play'].max == 14
    assert menu['round'].value == 4
    menu['plan'].value = 'sharded'  # only two rounds: one picture, no more
    assert menu['round'].value == menu['Play'].value == 2
    assert len(shown) == 1 + 5
    assert titles(shown)[-1] == (
        'sharded, 8 devices: after round 2 of 2, 56 messages replacing')


def test_boxes_can_have_numbers(shown, texts):
    pictures.explore_plans('ring', 4, 3, sums=True)
    assert texts(shown[-1]).count('10') == 4 + 1  # and the sign for it
    controls(shown)['boxes'].value = False
    assert '10' not in texts(shown[-1])


def test_what_cannot_be_is_explained_in_the_picture(shown, texts):
    pictures.explore_plans('hierarchical', 3)
    assert 'take an even number' in texts(shown[-1])[0]
    assert 'to 2 or 4' in texts(shown[-1])[1]
    menu = controls(shown)
    menu['devices'].value = 4
    assert titles(shown)[-1].startswith('hierarchical, 2 machines, 4')
    menu['plan'].value = 'two_rings'
    assert 'Move the slider "devices" to 8' in texts(shown[-1])[1]
    menu['forward'].click()


def test_a_chapter_chooses_plans(shown):
    pictures.explore_plans('sharded', plans=['gather_broadcast', 'sharded'])
    menu = controls(shown)['plan']
    assert [name for _, name in menu.options] == [
        'gather_broadcast', 'sharded']
    pictures.explore_plans('tree', number=99, plans=['ring'])
    assert titles(shown)[-1] == (
        'tree, 4 devices: after round 4 of 4, 1 message replacing')


@pytest.mark.parametrize('name', explore_plans.PLANS)
def test_a_plan_can_be_read_and_is_as_high_as_the_others(name, faults):
    """However many devices there are; what is below stays in its place."""
    sizes = set()
    for n in explore_plans.STEPPED:
        for sums in False, True:
            picture = explore_plans.draw_plan(name, n, 1, sums)
            assert [one for one in faults(picture)
                    if not one.endswith('is crossed')] == []
            sizes.add((picture.width, picture.height))
    assert len(sizes) == 1
    few = explore_plans.draw_plan('ring', 2, 0, False, plans=('ring', 'sharded'))
    assert few.height == player.plot_holdings(
        strategies.ring(8), width=720, signs=True).height < sizes.pop()[1]


# Latency.
@pytest.mark.parametrize('name', explore_latency.PLANS)
@pytest.mark.parametrize('n', [*range(2, 18), 32, 48])
def test_the_formula_is_what_is_simulated(name, n):
    plan = explore_latency.PLANS[name][0](n)
    links = topology.pcie_switch(n, 16e9, 5e-6)
    rounds, times = explore_latency._costs(plan)
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
        assert explore_latency._costs(explore_latency.PLANS[name][0](n)) == (
            rounds, pytest.approx(times)), name


def test_lines_cross_where_they_are_equal(shown, texts):
    pictures.explore_latency(8, 0.1, 10, 16)
    assert titles(shown) == [
        '100 kB on 8 devices: best: recursive doubling, 48.8 µs']
    told = texts(shown[-1])
    assert '384 kB' in told  # where the best one changes
    at = told.index('Lines cross (circles) at') + 1
    assert told[at:at + 3] == [
        '155 kB: ring – tree',
        '384 kB: recursive doubling – halving and doubling',
        '1.41 MB: ring – recursive doubling']
    assert 'ring: 14 × latency + 1.75 × size / bandwidth' in told
    assert sum('size / bandwidth' in line for line in told) == 4
    marks = shown[-1].svg().count('class="marks"')
    assert marks == 4  # a dot for each plan


def test_the_best_one_depends_on_everything(shown):
    pictures.explore_latency()
    menu, best = controls(shown), []
    for name, value in (('MB', 1), ('devices', 6), ('latency µs', 1000),
                        ('GB/s', 1), ('also sharded', True)):
        menu[name].value = value
        best.append(re.search('best: (.*),', titles(shown)[-1])[1])
    assert best == ['halving and doubling', 'ring',
                    'recursive doubling', 'recursive doubling', 'sharded']


@pytest.mark.parametrize('arguments', [
    {}, dict(num_devices=6, sharded=True), dict(latency=0),
    dict(num_devices=2),
    dict(num_devices=64, megabytes=1000, latency=1000, bandwidth=.1,
         sharded=True), dict(num_devices=9, sharded=True, latency=123.4),
    dict(megabytes=.0001, latency=1e-9, bandwidth=1e4),
    dict(num_devices=64, megabytes=1000, latency=1e6, bandwidth=.001)])
def test_every_setting_of_latency_can_be_drawn(shown, arguments):
    pictures.explore_latency(**arguments)
    readable(shown[-1])


def readable(picture):
    """No word is small, beyond the edge, or upon another one."""
    assert chart_faults(picture) == []


# The store.
def after(*moves, num_workers=2, consistency='sync'):
    play = explore_store._Play(num_workers, consistency)
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
def test_weights_and_biases_of_lenet_lie_apart(shown):
    pictures.explore_keys()
    assert '0 of 8 keys cut into parts' in shown[-1].alt
    assert 'has 99.8% of them, 2.00 times its share' in shown[-1].alt
    assert 'Server 1 has 208 elements: 1, 3, 5, 7.' in shown[-1].alt
    menu = controls(shown)
    menu['split from'].value = 100
    assert '5 of 8 keys' in shown[-1].alt
    assert 'its share: they are equal' in shown[-1].alt
    menu['servers'].value = 1
    assert '0 of 8 keys' in shown[-1].alt
    assert len(shown) == 2 + 2


@pytest.mark.parametrize('num_servers', range(1, 9))
@pytest.mark.parametrize('split_from', [1, 1000, 10 ** 9])
def test_what_the_words_say_of_keys_adds_up(num_servers, split_from):
    sizes = {'a': 5000, 'b': 10, 3: 777}
    words = explore_keys._in_words(sizes, num_servers, split_from)
    assert words.startswith('5,787 elements')
    cut = sum(size >= split_from for size in sizes.values())
    assert f'{cut if num_servers > 1 else 0} of 3 keys' in words


def test_the_sizes_are_those_of_lenet():
    assert explore_keys.LENET == dict(enumerate(one.size for one in init_params()))


def test_keys_of_ones_own(shown):
    pictures.explore_keys({'w': 100}, 4, 50)
    assert '100 elements, 1 of 1 keys cut into parts' in shown[-1].alt
    assert 'LeNet' not in shown[-1].alt


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
    assert explore_sums._one_by_one(rows, precision)[0].tolist() == sums_
    four = explore_sums._in_pairs(rows[:, :4], precision)
    a, b, c, d = numbers[:4]
    assert four.tolist() == [kind(kind(a + b) + kind(c + d))]


def test_bfloat16_has_eight_digits_and_rounds_to_even():
    for x, rounded in ((1 + 2 ** -7, 1 + 2 ** -7), (1 + 2 ** -8, 1),
                       (1 + 3 * 2 ** -8, 1 + 2 ** -6), (257, 256),
                       (1 + 2 ** -8 + 2 ** -20, 1 + 2 ** -7), (0, 0)):
        assert explore_sums._rounded(np.float32([x]), 'bfloat16') == [rounded]


@pytest.mark.parametrize('precision', explore_sums.DIGITS)
def test_errors_stay_below_the_lines(precision):
    """That of pairs below the lower one, which only pairs are sure of."""
    exact, found = explore_sums._measure(precision, 0)
    unit, n = 2.0 ** -explore_sums.DIGITS[precision], np.array(explore_sums.SIZES)[:, None]
    errors = {name: abs(sums_ - exact) / exact
              for name, sums_ in found.items()}
    for error in errors.values():
        assert (error <= (n - 1) * unit).all()
    assert (errors['tree'] <= np.log2(n) * unit).all()
    assert errors['ring'][-1].mean() > 8 * errors['tree'][-1].mean()
    assert np.allclose(exact[0], found['tree'][0], rtol=unit)


def test_the_picture_of_a_sum(shown, texts):
    pictures.explore_sums()
    assert '4,096 numbers in bfloat16: 256 instead of 2033.29, error 87 %' in (
        texts(shown[-1]))
    menu = controls(shown)
    menu['format'].value = 'float32'
    menu['numbers'].value = 8
    menu['order'].value = 'tree'
    assert any(re.match(r'8 numbers in float32: .*, error (1 in [\d,]+|none)$',
                        words) for words in texts(shown[-1]))
    assert len(shown) == 1 + 4


def test_one_by_one_the_error_grows_and_in_pairs_it_does_not():
    exact, found = explore_sums._measure('float32', 0)
    ring, tree = (explore_sums._errors(found[name], exact)[-1]
                  for name in ('ring', 'tree'))
    assert ring > 8 * tree


@pytest.mark.parametrize('precision', explore_sums.DIGITS)
@pytest.mark.parametrize('seed', [0, 10 ** 9])
def test_every_sum_can_be_drawn(precision, seed):
    """The least numbers or the most; with another seed, the others."""
    for k, order in enumerate(explore_sums.ORDERS):
        n = explore_sums.SIZES[-((k + seed // 10 ** 9) % 2)]
        readable(explore_sums.draw_sum(order, precision, n, seed))


# This machine.
def figures(picture):
    """{way: (predicted, measured) in ms}, and what a copy takes."""
    copy = float(re.search(r'takes (\S+) ms', picture.alt)[1])
    return {way: (float(predicted), float(measured))
            for way, predicted, measured in re.findall(
                r' ([a-z_]\w+(?:\.kv local)?): predicted (\S+) ms, '
                r'measured (\S+) ms', picture.alt)}, copy


def test_each_way_is_measured(shown):
    pictures.explore_devices(2, 0.01)
    times, copy = figures(shown[-1])
    assert [*times] == [*explore_devices.COPIES]
    assert [predicted for predicted, _ in times.values()] == pytest.approx(
        [k * copy for k in (2, 2, 4, 1)], rel=0.02)
    assert all(measured > 0 for _, measured in times.values())
    menu = controls(shown)
    menu['devices'].value = 4
    menu['way'].value = 'sharded'
    times, copy = figures(shown[-1])
    assert [*times] == ['sharded']
    assert times['sharded'][0] == pytest.approx(1.5 * copy, rel=0.02)


@pytest.mark.parametrize('n', [2, 3, 4])
def test_each_way_sums(n):
    for name in explore_devices.COPIES:
        arrays = [explore_devices.mx.np.ones(5, ctx=device)
                  for device in explore_devices.devices(n)]
        job = explore_devices._jobs(arrays, name)[name]
        job()
        assert all(array.tolist() == [n] * 5 for array in arrays), name


@pytest.mark.parametrize('way', [explore_devices.ALL, 'sharded'])
def test_no_word_of_the_measurement_is_cut_off(shown, way):
    pictures.explore_devices(4, 0.04, way)
    readable(shown[-1])


# Rounding.
@pytest.mark.parametrize('levels', explore_rounding.LEVELS)
@pytest.mark.parametrize('num_workers', explore_rounding.WORKERS)
def test_every_rounding_can_be_drawn(levels, num_workers):
    readable(explore_rounding.draw_rounding(levels, num_workers))


def test_pictures_of_one_toy_are_of_one_size():
    """Or the page would jump below them."""
    def sizes(pictures):
        return {(one.width, one.height) for one in pictures}
    assert len(sizes(explore_latency.draw_latency(n, mb, 10, 16, sharded)
                     for n in (2, 64) for mb in (1e-4, 1000)
                     for sharded in (True, False))) == 1
    assert len(sizes(explore_sums.draw_sum(order, precision, n)
                     for order in explore_sums.ORDERS for precision in explore_sums.DIGITS
                     for n in (2, 4096))) == 1
    assert len(sizes(explore_keys.draw_shares(None, n, 100)
                     for n in range(1, 9))) == 1
    assert len(sizes(explore_devices.draw_devices(n, 0.01, way) for n in (2, 4)
                     for way in (explore_devices.ALL, 'sharded'))) == 1


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
