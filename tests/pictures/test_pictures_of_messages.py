"""Messages on a time axis, who waits for whom, and rounded sums."""
import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt

from d2lps import pictures
from d2lps.collectives import Send, simulate, strategies, topology
from d2lps.collectives.simulate import Event
from d2lps_pictures import messages
from d2lps_pictures.toys import rounding

matplotlib.use('Agg')
RING = simulate.time(strategies.ring(4), topology.ethernet(4, 1e6), 4e6)


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close('all')


def test_a_bar_lies_where_its_message_was():
    later = [event._replace(start=event.start + 5, end=event.end + 5)
             for event in RING.events]
    axes = pictures.plot_messages({'one': RING.events, 'other': later})
    for ax in axes:
        bars = {(round(bar.get_x(), 3), round(bar.get_width(), 3),
                 round(bar.get_y() + bar.get_height() / 2))
                for bar in ax.patches}
        assert bars == {(round(1e3 * event.start, 3),
                         round(1e3 * (event.end - event.start), 3),
                         event.send.dst) for event in RING.events}
        assert [text.get_text() for text in ax.texts] == [
            str(event.round) for event in RING.events]
    assert [tick.get_text() for tick in axes[0].get_yticklabels()] == [
        f'to worker {worker}' for worker in range(4)]
    assert axes[0].get_xlim() == axes[1].get_xlim()


@pytest.mark.parametrize('panels, words', [
    ([], 'panels must be'), ({'none': []}, r"panels\['none'\] is too short"),
    ({}, 'panels must be'), ({'x': [1]}, r"panels\['x'\]\[0\] must be")])
def test_what_is_no_list_of_events_is_refused(panels, words):
    with pytest.raises(ValueError, match=words):
        pictures.plot_messages(panels)


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


@pytest.mark.parametrize('name', messages.HUNG)
def test_who_waits_is_what_a_run_by_hand_finds(name):
    plan = messages.HUNG[name](8)
    for late in range(8):
        for stops in range(1, len(plan.rounds) + 1):
            found = messages._waits(plan, late, stops)
            assert found == by_hand(plan, late, stops), (late, stops)
            # Rounds go down along the chain, to the one that has stopped.
            for rank, (other, number) in found.items():
                assert other == late or found[other][1] < number


def test_the_arrows_of_the_toy(shown):
    pictures.explore_hang('ring', 2, 3)
    plan, late, stops = shown[0].children
    seen = [shown[1].data]
    for control, value in ((late, 5), (stops, 9), (plan, 'tree'),
                           (stops, 2), (plan, 'sharded')):
        control.value = value
        assert shown[-1].data not in seen
        seen.append(shown[-1].data)
    ax = messages._draw('tree', 2, 14)
    assert ax.get_title() == 'tree: worker 2 stops at 14, after its 6 rounds'


@pytest.mark.parametrize('n, levels', [(2, 127), (8, 7), (32, 1)])
def test_rounded_sums_are_what_their_names_say(n, levels):
    right, ring, once = rounding._sums(levels, n)
    for rounded in (once, *np.split(ring, n)):  # a chunk has its own step
        steps = np.unique(np.round(abs(rounded), 9))
        assert len(steps) <= levels + 1
        assert np.allclose(steps / steps.max() * levels,
                           np.rint(steps / steps.max() * levels))
    assert abs(right - once).max() <= once.max() / levels * (n + 1)


def test_coarser_steps_lose_more(shown):
    errors = []
    for levels in rounding.LEVELS:
        right, ring, once = rounding._sums(levels, 8)
        errors.append([rounding._error(one, right) for one in (ring, once)])
    assert np.all(np.diff(errors, axis=0) < 0)
    pictures.explore_rounding(levels=7, num_workers=8)
    first = shown[1].data
    shown[0].children[0].value = 1
    assert shown[-1].data != first


def test_events_may_come_from_a_run():
    event = Event(10.0, 11.0, 1, Send(0, 1, 0, True))
    [ax] = pictures.plot_messages({'measured': [event]})
    assert ax.patches[0].get_x() == 0 and ax.patches[0].get_width() == 1e3
