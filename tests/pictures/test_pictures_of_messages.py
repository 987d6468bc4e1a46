"""Messages on a time axis, who waits for whom, and rounded sums."""
import numpy as np
import pytest
from shapes import Shapes, chart_faults

from d2lps import pictures
from d2lps.collectives import Send, simulate, strategies, topology
from d2lps.collectives.simulate import Event
from d2lps.pictures import message_plots
from d2lps.pictures.toys import explore_rounding

RING = simulate.time(strategies.ring(4), topology.ethernet(4, 1e6), 4e6)


def bars(shapes, number):
    """(row, start, length) of the boxes in one of the panels."""
    frame = shapes.frame(number)
    return {(int(row.removeprefix('to worker ')), round(start / 20),
             round((end - start) / 20))
            for row, start, end, _ in frame.bars()}


def test_a_bar_lies_where_its_message_was():
    later = [event._replace(start=event.start + 5, end=event.end + 5)
             for event in RING.events]
    drawing = pictures.plot_messages({'one': RING.events, 'other': later})
    assert not chart_faults(drawing)
    shapes = Shapes(drawing)
    for number in range(2):
        assert bars(shapes, number) == {
            (event.send.dst, round(1e3 * event.start / 20),
             round(1e3 * (event.end - event.start) / 20))
            for event in RING.events}
        frame = shapes.frame(number)
        assert [*frame.yticks] == [f'to worker {k}' for k in range(4)]
        inside = [text.words for text in shapes.texts
                  if frame.inside(text.x, text.y)]
        assert inside == [str(event.round) for event in RING.events]
    one, other = shapes.axes  # the same axis, one below the other
    assert one[::2] == other[::2] and one[3] < other[1]
    assert {'one', 'other'} <= {*shapes.words}
    assert drawing.alt.startswith('one: 24 messages to 4 workers in 6 rounds')


@pytest.mark.parametrize('panels, words', [
    ([], 'panels must be'), ({'none': []}, r"panels\['none'\] is too short"),
    ({}, 'panels must be'), ({'x': [1]}, r"panels\['x'\]\[0\] must be"),
    ({'x': 3}, r"panels\['x'\] must be a list of Event"),
    ({'x': None}, r"panels\['x'\] must be a list of Event")])
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


@pytest.mark.parametrize('name', message_plots.HUNG)
def test_who_waits_is_what_a_run_by_hand_finds(name):
    plan = message_plots.HUNG[name](8)
    for late in range(8):
        for stops in range(1, len(plan.rounds) + 1):
            found = message_plots._waits(plan, late, stops)
            assert found == by_hand(plan, late, stops), (late, stops)
            # Rounds go down along the chain, to the one that has stopped.
            for rank, (other, number) in found.items():
                assert other == late or found[other][1] < number


def test_the_arrows_of_the_toy(shown):
    pictures.explore_hang('ring', 2, 3)
    plan, late, stops = shown[0].children
    seen = [shown[1].svg()]
    for control, value in ((late, 5), (stops, 9), (plan, 'tree'),
                           (stops, 2), (plan, 'sharded')):
        control.value = value
        assert shown[-1].svg() not in seen
        seen.append(shown[-1].svg())
        assert shown[-1].height == shown[1].height
        assert not chart_faults(shown[-1])
    drawing = message_plots._draw('tree', 2, 14)
    title = 'tree: worker 2 stops at 14, after its 6 rounds'
    assert drawing.alt == f'{title}. Nobody waits.'
    assert title in Shapes(drawing).words


@pytest.mark.parametrize('plan, late, stops', [
    ('ring', 2, 3), ('tree', 5, 1), ('sharded', 0, 2)])
def test_an_arrow_points_at_whom_a_worker_waits_for(plan, late, stops):
    drawing = message_plots._draw(plan, late, stops)
    at, color = [], []
    for shape, *_ in Shapes(drawing).all:
        if shape.get('class') == 'worker':
            at.append([float(shape.get('cx')), float(shape.get('cy'))])
            color.append(shape.get('fill'))
    found = message_plots._waits(message_plots.HUNG[plan](8), late, stops)
    assert color[late] == message_plots.RED
    assert [color[worker] == message_plots.GRAY for worker in range(8)] == [
        worker in found for worker in range(8)]
    shafts = [line.points for line in Shapes(drawing).lines]
    ends = {tuple(int(np.hypot(*np.subtract(at, end).T).argmin())
                  for end in (points[0], points[-1])) for points in shafts}
    assert ends == {(worker, other) for worker, (other, _) in found.items()}


@pytest.mark.parametrize('n, levels', [(2, 127), (8, 7), (32, 1)])
def test_rounded_sums_are_what_their_names_say(n, levels):
    right, ring, once = explore_rounding._sums(levels, n)
    for rounded in (once, *np.split(ring, n)):  # a chunk has its own step
        steps = np.unique(np.round(abs(rounded), 9))
        assert len(steps) <= levels + 1
        assert np.allclose(steps / steps.max() * levels,
                           np.rint(steps / steps.max() * levels))
    assert abs(right - once).max() <= once.max() / levels * (n + 1)


def test_coarser_steps_lose_more(shown):
    errors = []
    for levels in explore_rounding.LEVELS:
        right, ring, once = explore_rounding._sums(levels, 8)
        errors.append([explore_rounding._error(one, right) for one in (ring, once)])
    assert np.all(np.diff(errors, axis=0) < 0)
    pictures.explore_rounding(levels=7, num_workers=8)
    first = shown[1].svg()
    shown[0].children[0].value = 1
    assert shown[-1].svg() != first


def test_events_may_come_from_a_run():
    event = Event(10.0, 11.0, 1, Send(0, 1, 0, True))
    shapes = Shapes(pictures.plot_messages({'measured': [event]}))
    (row, start, end, _), = shapes.frame().bars()
    assert (row, start, end) == ('to worker 1', pytest.approx(0, abs=3),
                                 pytest.approx(1e3, abs=3))
