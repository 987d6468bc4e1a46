"""Toys render at the ends of their controls, and say what is so."""
import re

import ipywidgets
import numpy as np
import pytest
from layerwise import layer_partition, network_partition, split_by_layer

from d2lps import (Traffic, devices, figures, get_params, init_params, nbytes,
                   pictures)
from d2lps.asynchrony.clock import Point, virtual_clock
from d2lps.collectives import simulate, topology
from d2lps.collectives.hanging import carry_out
from d2lps.kvstore import KVStore, Server
from d2lps.pictures import (asynchrony, message_plots, meter, recovery, rows,
                            widgets)
from d2lps.pictures.controls import values_of
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.parameter_servers import predicted_seconds, simulated
from d2lps.pictures.toys import (explore_devices, explore_keys,
                                 explore_latency, explore_pipeline,
                                 explore_plans, explore_rounding,
                                 explore_splits, explore_store, explore_sums)
from d2lps.pictures.toys.explore_plans import PLANS, STEPPED
from d2lps.recovery import position
from d2lps.training import data_parallel, partition

TOYS = sorted(name for name in dir(pictures) if name.startswith('explore_'))
TOYS.remove('explore_store')  # its buttons act on a store: see below


@pytest.mark.parametrize('name', TOYS)
def test_a_toy_renders_and_follows_each_control(name, readable):
    with widgets.collected_toys() as toys:
        getattr(pictures, name)()
    [toy] = toys
    values, seen, heights, drawn = values_of(toy.controls), {}, set(), {}
    for key, control in toy.controls.items():
        assert control.label
        for _, value in control.options[0], control.options[-1]:
            chosen = {**values, key: value}
            if repr(chosen) not in drawn:  # the first picture comes often
                picture = toy.draw(**chosen)
                drawn[repr(chosen)] = picture, readable(picture)
            picture, svg = drawn[repr(chosen)]
            seen.setdefault(key, set()).add(svg)
            if (name, key) in [('explore_plans', 'num_devices'),
                               ('explore_plans', 'plan')]:
                continue  # it has a row for each node
            heights.add(tuple(
                one.height if isinstance(one, Drawing) else one.get_figheight()
                for one in getattr(picture, 'pictures', [picture])))
    assert all(len(found) == 2 for found in seen.values()), seen.keys()
    assert len(heights) == 1, heights  # what is below stays where it is


def controls(shown):
    """All widgets by their description, or their tooltip."""
    found, left = {}, [one for one in shown
                       if isinstance(one, ipywidgets.Widget)]
    for widget in left:  # which grows
        left += getattr(widget, 'children', ())
        found[getattr(widget, 'description', '') or
              getattr(widget, 'tooltip', '')] = widget
    return found


@pytest.mark.parametrize('show, words', [
    (lambda: pictures.explore_plans('star'), 'plan must be'),
    (lambda: pictures.explore_plans(num_devices=9), 'from 2 to 8'),
    (lambda: pictures.explore_sums('float8'), 'precision must be'),
    (lambda: pictures.explore_splits('both'), 'way must be'),
    (lambda: pictures.explore_steps(8), 'step must be'),
    (lambda: pictures.explore_synchronisation(num_devices=3), 'an even num')])
def test_a_wrong_argument_is_named_and_nothing_is_shown(shown, show, words):
    with pytest.raises(ValueError, match=words):
        show()
    assert not shown


# Plans, round by round.
@pytest.mark.parametrize('name', PLANS)
def test_every_plan_sums_or_says_why_there_is_none(name):
    for n in STEPPED:
        plan = PLANS[name][1](n)
        if isinstance(plan, str):
            assert re.search(r'Move the slider "devices" to \d', plan)
        else:
            assert plan.check().num_devices == n


def test_a_plan_is_stepped_through(shown):
    pictures.explore_plans()
    menu = controls(shown)
    menu['forward'].click()
    assert shown[-1].alt.startswith(
        'ring, 4 devices: after round 1 of 6, 4 messages added')
    menu['round'].value = 4
    assert '4 messages replacing' in shown[-1].alt
    menu['plan'].value = 'sharded'  # only two rounds: one picture, no more
    assert menu['round'].value == 2 and len(shown) == 1 + 4
    menu['plan'].value = 'hierarchical'
    menu['devices'].value = 3
    assert 'take an even number' in shown[-1].alt


# Latency, sums, rounding.
@pytest.mark.parametrize('name', explore_latency.PLANS)
def test_the_formula_is_what_is_simulated(name):
    for n in 2, 5, 8, 16:
        plan = explore_latency.PLANS[name][0](n)
        links = topology.pcie_switch(n, 16e9, 5e-6)
        rounds, times = explore_latency._costs(plan)
        for size in 0, 1e6:
            assert rounds * 1e-5 + times * size / 16e9 == pytest.approx(
                simulate.timing(plan, links, size).seconds)


def test_lines_cross_where_they_are_equal(shown):
    pictures.explore_latency()
    told = [text.get_text() for text in shown[-1].texts]
    at = told.index('Lines cross (circles) at') + 1
    assert told[at:at + 3] == [
        '155 kB: ring – tree',
        '384 kB: recursive doubling – halving and doubling',
        '1.41 MB: ring – recursive doubling']


def test_dots_lie_on_the_lines():
    [ax] = explore_latency.draw_latency(8, 0.1, 10, 16, True).axes
    begin, lines = ax.lines[0].get_xdata()[0], ax.lines[1:6]
    where = explore_latency.BYTES.tolist().index(begin)
    assert begin == 1e5 and [line.get_ydata()[where] for line in lines] == (
        pytest.approx([dot.get_ydata()[0] for dot in ax.lines[6:11]]))


@pytest.mark.parametrize('precision, kind', [
    ('float16', np.float16), ('float32', np.float32)])
def test_sums_are_those_of_numpy(precision, kind):
    numbers = np.random.default_rng(3).random(300).astype(kind)
    total, found = kind(0), []
    for number in numbers:
        total = kind(total + number)
        found.append(total)
    rows = numbers.astype(np.float32)[None]
    assert explore_sums._one_by_one(rows, precision)[0].tolist() == found
    a, b, c, d = numbers[:4]
    assert explore_sums._in_pairs(rows[:, :4], precision).tolist() == [
        kind(kind(a + b) + kind(c + d))]


def test_bfloat16_has_eight_digits_and_rounds_to_even():
    for x, rounded in ((1 + 2 ** -7, 1 + 2 ** -7), (1 + 2 ** -8, 1),
                       (1 + 3 * 2 ** -8, 1 + 2 ** -6), (257, 256),
                       (1 + 2 ** -8 + 2 ** -20, 1 + 2 ** -7), (0, 0)):
        assert explore_sums._rounded(np.float32([x]), 'bfloat16') == [rounded]


@pytest.mark.parametrize('precision', explore_sums.DIGITS)
def test_errors_stay_below_the_lines(precision):
    exact, found = explore_sums._measure(precision)
    unit = 2.0 ** -explore_sums.DIGITS[precision]
    n = np.array(explore_sums.SIZES)[:, None]
    errors = {name: abs(sums - exact) / exact for name, sums in found.items()}
    assert all((error <= (n - 1) * unit).all() for error in errors.values())
    assert (errors['tree'] <= np.log2(n) * unit).all()
    assert errors['ring'][-1].mean() > 8 * errors['tree'][-1].mean()


def test_the_chosen_order_is_thick_and_has_a_dot():
    [ax] = explore_sums.draw_sum('tree', 'bfloat16', 64).axes
    [thick] = [line for line in ax.lines if line.get_linewidth() == 4]
    [dot] = [line for line in ax.lines if line.get_markersize() == 12]
    assert thick.get_label() == explore_sums.ORDERS['tree'][0]
    assert (64, dot.get_ydata()[0]) in zip(*thick.get_data())


def test_coarser_steps_lose_more():
    errors = []
    for levels in explore_rounding.LEVELS:
        right, ring, once = explore_rounding._sums(levels, 8)
        assert len(np.unique(np.round(abs(once), 9))) <= levels + 1
        errors.append([explore_rounding._error(one, right)
                       for one in (ring, once)])
    assert np.all(np.diff(errors, axis=0) < 0)


def test_each_way_of_this_machine_sums():
    for name in explore_devices.COPIES:
        arrays = [explore_devices.mx.np.ones(5, ctx=device)
                  for device in devices(3)]
        explore_devices._jobs(arrays, name)[name]()
        assert all(array.tolist() == [3] * 5 for array in arrays), name


@pytest.mark.parametrize('name', PLANS)
def test_below_a_plan_nothing_moves_while_one_steps_through_it(name):
    """Rounds may have a longer title, which must not need another line."""
    for n in STEPPED:
        plan = PLANS[name][1](n)
        rounds = 1 if isinstance(plan, str) else len(plan.rounds) + 1
        assert len({explore_plans.draw_plan(name, n, number, False).height
                    for number in range(rounds)}) == 1


# The store, and its keys.
def after(*moves, num_workers=2, consistency='sync'):
    """The toy after some moves; at its beginning worker 0 waits."""
    play = explore_store._Play(num_workers, consistency)
    for move in moves:
        call, rank = move.split()
        play.do(call, int(rank))
    return play


def test_a_pull_waits_for_all_who_are_missing():
    play = after('push 2', num_workers=3)
    assert play.waiting == {0: [1]}
    play.do('push', 0)
    assert play.told == ['Worker 0 waits in its pull: it cannot push. Let '
                         'worker 1 push.']
    play.do('pull', 2)
    play.do('push', 1)
    assert play.pulled == ['111', None, '111'] and not play.waiting


@pytest.mark.parametrize('consistency', ['sync', 'async', 0, 1])
def test_it_is_the_server_of_the_package(consistency):
    theirs = KVStore(2, consistency=consistency).servers[0]
    play = after(consistency=consistency)
    assert type(play.server) is type(theirs) and isinstance(theirs, Server)
    waits = consistency in ('sync', 0)
    assert play.waiting == ({0: [1]} if waits else {})
    play.do('push', 1)
    assert ('adds one push of each worker' if waits else
            'adds it to its value') in play.told[0]


def test_buttons_move_the_real_server(shown, readable):
    pictures.explore_store()
    menu = controls(shown)
    assert 'waits for worker 1' in shown[-1].alt
    first = shown[-1].svg()
    menu['worker 1: push 10'].click()
    assert "Worker 0 pulls 11. The server's value is 11." in shown[-1].alt
    menu['start again'].click()
    assert shown[-1].svg() == first
    menu['server'].value = 'async'
    menu['worker 0: push 1'].click()
    assert shown[-1].alt.endswith('value is 2.')
    for picture in shown[1:]:
        readable(picture)


def test_weights_and_biases_of_lenet_lie_apart(shown):
    pictures.explore_keys()
    assert 'has 99.8% of them, 2.00 times its share' in shown[-1].alt
    assert 'Server 1 has 208 elements: 1, 3, 5, 7.' in shown[-1].alt
    controls(shown)['split from'].value = 100
    assert '5 of 8 keys' in shown[-1].alt and 'are equal' in shown[-1].alt
    assert explore_keys.LENET == dict(enumerate(
        one.size for one in init_params()))


# Three ways to split.
NETWORK, LAYER, DATA = explore_splits.WAYS
B = 10  # examples, which neither 3 nor 4 divides


def place(way, k):
    """The parameters of each device, and a step with them."""
    if way == NETWORK:
        return (split_by_layer(init_params(), devices(k)),
                network_partition)
    if way == LAYER:
        return (partition.split_by_channel(init_params(), devices(k)),
                layer_partition)
    return ([get_params(init_params(), device) for device in devices(k)],
            lambda *args: data_parallel.train_batch(*args, lr=0.1))


@pytest.mark.parametrize('way, k', [(NETWORK, 2), (LAYER, 3), (DATA, 4)])
def test_costs_are_those_of_a_real_step(way, k):
    placed, step = place(way, k)
    costs = explore_splits.split_costs(way, k, B)
    assert costs.parameters == [sum(map(nbytes, part)) for part in placed]
    with Traffic() as traffic:
        step(explore_devices.mx.np.zeros((B, 1, 28, 28)),
             explore_devices.mx.np.zeros(B, 'int32'), placed, devices(k))
    assert costs.sent == traffic.bytes


def test_bars_are_as_long_as_the_costs():
    costs = explore_splits.split_costs(LAYER, 3, B)
    memory, sent = explore_splits.draw_costs(LAYER, 3, B).pictures[1].axes
    first, second = ([bar.get_width() for bar in bars]
                     for bars in memory.containers)
    assert [first, second] == [[2 * n for n in costs.parameters],
                               costs.activations]
    assert sent.patches[explore_splits.WAYS.index(LAYER)].get_width() == (
        costs.sent)


@pytest.mark.parametrize('way, k', [(NETWORK, 2), (LAYER, 3)])
def test_a_meter_measures_what_was_worked_out(way, k, monkeypatch):
    measured = meter.Meter(partition.LAYERS)
    monkeypatch.setattr(partition, 'LAYERS', measured.layers)
    for name in 'all_gather', 'reduce_scatter':
        monkeypatch.setattr(partition, name,
                            measured.noted(getattr(partition, name)))
    placed, step = place(way, k)
    batch = (explore_devices.mx.np.zeros((B, 1, 28, 28)),
             explore_devices.mx.np.zeros(B, 'int32'))
    costs = explore_splits.split_costs(way, k, B)
    for _ in range(2):  # nothing is left over from the first time
        assert measured.measure(step, placed, devices(k), *batch) == costs[:3]
        assert costs.barriers == sum(name in ('all_gather', 'reduce_scatter')
                                     for name in measured.calls)


# Workers on a virtual clock.
def test_a_plan_tells_who_computes_in_vain_and_who_waits():
    told = [figures.alt_text(pictures.plot_plan(virtual_clock(
        [[1], [1], [4]], 'sync', 40, backups), 8, 'Ours').figure)
        for backups in (0, 1)]
    assert told == [f'Ours. Of 8 virtual seconds: {words}.' for words in (
        'worker 0 computes 25%, waits 75%; worker 1 computes 25%, waits 75%; '
        'worker 2 computes 100%',
        'worker 0 computes 100%; worker 1 computes 100%; '
        'worker 2 computes, dropped 100%')]


def test_curves_of_plans_are_what_was_counted():
    plans = {way: virtual_clock([[1], [5]], way, 40)
             for way in ('sync', 'async')}
    lines = asynchrony.plot_progress(
        plans, 13, rows.new_axes(None)).lines
    assert [(*line.get_xydata()[-1], line.get_label()) for line in lines] == [
        (13, 4, 'sync'), (13, 15, 'async')]
    axes = pictures.plot_staleness(plans)
    assert [{round(bar.get_x() + bar.get_width() / 2): bar.get_height()
             for bar in ax.patches} for ax in axes] == [
        plan.staleness for plan in plans.values()]
    assert axes[0].get_ylim() == axes[1].get_ylim()


def test_the_mean_of_seeds_is_a_line_in_their_band():
    runs = [[Point(8, 2.0, 0.1), Point(16, 4.0, last)] for last in (0.4, 0.6)]
    axes = pictures.plot_accuracy({'async': runs})
    for ax, end in zip(axes, (4, 16)):
        [mean], [band] = ax.lines, ax.collections
        assert [*mean.get_xydata()[-1]] == [end, 0.5]
        corners = band.get_paths()[0].vertices
        assert {y for x, y in corners if x == end} == {0.4, 0.6}
    [legend] = axes[0].figure.legends
    assert [text.get_text() for text in legend.texts] == ['async']


# A pipeline.
def test_a_pass_stands_in_its_box_beside_what_is_kept():
    [ax] = explore_pipeline.draw_pipeline(2, 2, '1F1B').axes
    texts = [(text.get_text(), text.get_position()) for text in ax.texts]
    boxes = {place: text for text, place in texts if place[0] != 1.035}
    assert [boxes[x, 0] for x in (0.5, 1.5, 3.5, 5.5)] == ['0', '1', '0', '1']
    assert [text for text, (x, _) in texts if x == 1.035] == [
        '2', '1', 'kept']
    assert 'idle for 33%' in figures.alt_text(ax.figure)


# Workers and servers.
SIZE, LINK = 40e6, 125e6


@pytest.mark.parametrize('m, n, colocated, seconds', [
    (1, 1, False, 0.64), (4, 1, False, 2.56), (4, 2, False, 1.28),
    (1, 4, False, 0.64), (2, 2, True, 0.32), (4, 1, True, 1.92),
    (4, 4, True, 0.48), (1, 1, True, 0)])
def test_formula_and_simulator_say_the_same(m, n, colocated, seconds):
    arguments = m, n, SIZE, LINK, colocated
    assert predicted_seconds(*arguments) == pytest.approx(seconds)
    assert simulated(*arguments).seconds == pytest.approx(seconds)


@pytest.mark.parametrize('m, n', [(1, 1), (4, 1), (4, 4)])
def test_pieces_use_both_directions(m, n):
    """All but the first and the last piece travel both ways at once."""
    for pieces in 1, 4:
        together = simulated(m, n, SIZE, LINK, pieces=pieces).seconds
        assert together == pytest.approx(predicted_seconds(
            m, n, SIZE, LINK) * (pieces + 1) / (2 * pieces))


def test_the_toy_leaves_room_for_one_server_a_worker():
    with widgets.collected_toys() as toys:
        pictures.explore_parameter_servers(num_workers=2, num_servers=128)
    values = values_of(toys[0].controls)
    row = toys[0].draw(**{**values, 'colocated': True})
    [left], [right] = (figure.axes for figure in row.pictures)
    assert left.get_title('left') == '2 workers, 2 servers: 0.335 s'
    assert [*left.lines[0].get_xdata()] == [1, 2]
    predicted, [played] = (line.get_ydata() for line in left.lines)
    assert predicted[1] == pytest.approx(played)
    assert [text.get_text() for text in right.texts] == ['0.335'] * 2


def test_it_starts_with_the_server_of_the_notebook(shown):
    pictures.explore_synchronisation(plans=['sharded', 'cpu'])
    assert shown[-1].alt.startswith(
        "Best: sharded(4), 15 ms. Worst: gather_broadcast(4, 'cpu'), 80 ms.")
    shown[0].children[0].value = 'cables in a ring'
    assert shown[-1].alt.startswith('All take ')  # no CPU is on these cables


# A worker that stops, and a server that dies.
def by_hand(plan, late, stops):
    """Who waits for whom: rounds are gone through until nobody moves."""
    came, sent, waits = dict.fromkeys(range(8), 1), set(), {}
    moved = True
    while moved:
        moved = False
        for rank in range(8):
            number = came[rank]
            if number > len(plan.rounds) or (rank, number) == (late, stops):
                continue
            new = {(number, rank, send.dst) for send in
                   plan.rounds[number - 1] if send.src == rank} - sent
            sent, moved = sent | new, moved or bool(new)
            missing = [send.src for send in plan.rounds[number - 1]
                       if send.dst == rank
                       and (number, send.src, rank) not in sent]
            waits[rank] = (missing[0], number) if missing else None
            if not missing:
                came[rank], moved = number + 1, True
    return {rank: wait for rank, wait in waits.items()
            if wait and rank != late}


@pytest.mark.parametrize('name', message_plots.HUNG)
def test_who_waits_is_what_a_run_by_hand_finds(name):
    plan = message_plots.HUNG[name](8)
    for late in 0, 2, 5:
        for stops in range(1, len(plan.rounds) + 1):
            found = carry_out(plan, {late: stops})
            assert found == by_hand(plan, late, stops), (late, stops)


def next_servers(key, servers, replicas):
    """Whose points are the next ones clockwise, by subtraction."""
    here, left, found = position(f'key {key}'), [*servers], []
    while left and len(found) < replicas:
        found.append(min(left, key=lambda server: min(
            (position(f'server {server}, point {k}') - here) % 1
            for k in range(2))))
        left.remove(found[-1])
    return {*found}


@pytest.mark.parametrize('after, replicas', [
    ([0, 2, 3], 1), ([0, 3], 1), ([0, 3], 2), ([0, 1, 2, 3, 4], 2)])
def test_copies_and_losses_are_counted(after, replicas):
    before, copied, lost = [0, 1, 2, 3], 0, 0
    for key in range(40):
        had = next_servers(key, before, replicas)
        if had & {*after}:
            copied += len(next_servers(key, after, replicas) - had)
        else:
            lost += 1
    _, right = recovery.plot_circle(before, after, replicas, 2, 40).pictures
    assert right.alt.startswith(
        f'{len(after)} servers: {copied} keys copied, {lost} lost')
    assert right.svg().count('class="fresh"') == copied
    assert right.svg().count('class="lost"') == lost
