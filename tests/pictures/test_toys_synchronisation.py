"""Which strategy is fastest over which links: the toy."""
import re

import pytest
from d2lps import pictures
from d2lps.collectives import simulate, strategies, topology
from d2lps.pictures.menus import CHOICES, LINKS, STRATEGIES
from d2lps.pictures.toys.explore_synchronisation import (draw_synchronisation,
                                                 explore_synchronisation)
from shapes import chart_faults


def seconds(row):
    """ms by name, as the alternative text says them."""
    bars = row.alt.split('time in ms. ')[1].split('.  ')[0]
    return {name: float(ms.replace(',', '')) for name, ms in re.findall(
        r"([a-z_]+\([^:;]*\)): ([\d.,]+\d|\d)", bars)}


def draw(links='one PCIe switch', n=4, megabytes=160, bandwidth=16, latency=0,
         which='best', **more):
    return draw_synchronisation(links, n, megabytes, bandwidth, latency,
                                which, **more)


def test_it_starts_with_the_server_of_the_notebook(shown):
    explore_synchronisation()
    row = shown[-1]
    assert row.alt.startswith(
        "Best: sharded(4), 15 ms. Worst: gather_broadcast(4, 'cpu'), 80 ms.")
    times = seconds(row)
    assert len(times) == len(STRATEGIES)
    assert {name: times[name] for name in (
        'gather_broadcast(4, 0)', "gather_broadcast(4, 'cpu')", 'sharded(4)')
        } == {'gather_broadcast(4, 0)': 60, 'sharded(4)': 15,
              "gather_broadcast(4, 'cpu')": 80}


def test_all_controls_have_a_label(shown):
    explore_synchronisation()
    assert [one.description for one in shown[0].children] == [
        'links', 'devices', 'MB', 'GB/s', 'µs per cable', 'links of the']


def test_some_strategies_are_shown_if_named(shown):
    explore_synchronisation(plans=['sharded', 'cpu'])
    assert [*seconds(shown[-1])] == ['sharded(4)',
                                     "gather_broadcast(4, 'cpu')"]
    shown[0].children[0].value = 'cables in a ring'
    assert [*seconds(shown[-1])] == ['sharded(4)']
    assert shown[-1].alt.startswith('All take ')


def test_each_control_changes_the_picture(shown):
    explore_synchronisation()
    links, n, megabytes, bandwidth, latency, which = shown[0].children
    for control, value in ((n, 8), (megabytes, 40), (bandwidth, 32),
                           (latency, 100), (which, 'worst'),
                           (links, 'cables in a ring')):
        before, count = shown[-1], len(shown)
        control.value = value
        assert len(shown) == count + 1
        assert before._repr_html_() != shown[-1]._repr_html_()


def test_times_are_those_of_the_values_chosen():
    times = seconds(draw(n=8, megabytes=10, bandwidth=10, latency=20))
    assert times['gather_broadcast(8, 0)'] == pytest.approx(
        2 * (7 + 0.04), abs=0.05)
    assert times['ring(8)'] == pytest.approx(14 * (1 / 8 + 0.04), abs=0.005)


def test_the_links_are_those_of_the_best_or_the_worst(texts):
    for which, find in ('best', min), ('worst', max):
        row = draw('cables in a ring', 8, which=which)
        times = seconds(row)
        name = find(times, key=times.get)
        title = ' '.join(texts(row.drawings[1])[:2])
        assert title.startswith(f'The {which}, {name}: busy links')
        assert row.alt.split('. ')[which == 'worst'].startswith(
            f'{which.title()}: {name}')
    assert min(times, key=times.get) == 'bidirectional_ring(8)'


@pytest.mark.full
@pytest.mark.parametrize('links', LINKS)
@pytest.mark.parametrize('plans', [STRATEGIES, ('ring', 'sharded', 'cpu')])
def test_all_choices_can_be_read_and_are_of_one_size(links, plans):
    sizes = set()
    for n in CHOICES['devices']:
        for which in 'best', 'worst':
            for drawing in draw(links, n, latency=5, which=which,
                                plans=plans).drawings:
                assert chart_faults(drawing) == []
                sizes.add((drawing.width, drawing.height))
    assert len(sizes) == 2


def test_a_value_of_ones_own_joins_those_to_choose_from(shown):
    explore_synchronisation(megabytes=123)
    megabytes = shown[0].children[2]
    assert megabytes.value == 123
    assert ('123', 123) in megabytes.options


@pytest.mark.parametrize('arguments, words', [
    (dict(links='a ring'), 'links must be'),
    (dict(num_devices=3), 'an even number'),
    (dict(plans=['cpu']), "more than 'cpu'"),
    (dict(plans=['ring', 'no']), r'plans\[1\] must be'),
    (dict(num_devices=18), 'from 2 to 16'),
    (dict(megabytes=0), 'megabytes must'),
    (dict(bandwidth=float('inf')), 'bandwidth must be a positive number'),
    (dict(latency=-1), 'latency must be')])
def test_bad_arguments_are_named(shown, arguments, words):
    with pytest.raises(ValueError, match=words):
        pictures.explore_synchronisation(**arguments)
    assert not shown


def test_bytes_that_are_too_few_for_a_float_take_no_time():
    timing = simulate.time(strategies.ring(2), topology.pcie_switch(2),
                           5e-324)
    assert timing.seconds == 0 and not any(timing.busy().values())
    with pytest.raises(ValueError, match='^megabytes must be .* 1e-100'):
        pictures.explore_synchronisation(megabytes=5e-324)
