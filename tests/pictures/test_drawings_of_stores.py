"""Drawings of a store from inside, of rounds with numbers, and of a map."""
import numpy as np
import pytest
from d2lps import pictures
from d2lps.collectives import strategies

TOWNS = ['Ash', 'Bree', 'Cove']


def words(n=4):
    return [np.array([str(i)] * n, object) for i in range(n)]


@pytest.mark.parametrize('drawing', [
    pictures.draw_store(),
    pictures.draw_store([['3', '2', '1'], [], ['7']], '0.5', 'weight'),
    pictures.draw_rounds(strategies.ring(4), words(), rounds=3),
    pictures.draw_rounds(strategies.recursive_doubling(4), np.eye(4)[:, :1]
                         .astype(int).tolist()),
    pictures.draw_rounds(strategies.tree(8), [[k] for k in range(8)]),
    pictures.draw_roads(TOWNS, [(0, 1, 7), (1, 2, 12)])],
    ids=lambda drawing: drawing.alt[:20])
def test_words_can_be_read(drawing, faults):
    assert not faults(drawing) and drawing.width <= 720
    assert len(drawing.alt) > 60


def test_a_store_shows_what_waits(texts):
    found = texts(pictures.draw_store([['2', '3'], ['20']], '11'))
    assert [found.count(word) for word in ('2', '3', '20', '11')] == [1] * 4
    assert found.count('push') == 2 and 'queue of worker 1' in found


def test_rounds_show_what_a_run_of_the_plan_leaves(texts):
    arrays, plan = words(), strategies.ring(4)
    found = texts(pictures.draw_rounds(plan, arrays))
    plan.run(arrays)
    assert len({tuple(array) for array in arrays}) == 1
    for word in arrays[0]:
        assert found.count(word) >= 4
    assert words()[0].tolist() == ['0'] * 4
    largest = pictures.draw_rounds(plan, [[3, 0, 0, 0]] * 3 + [[9, 0, 0, 0]],
                                   op=np.maximum, rounds=99)
    assert 'after round 6 9 0 0 0, 9 0 0 0' in largest.alt


def test_a_frame_is_dark_where_a_message_changed_something():
    svg = pictures.draw_rounds(strategies.recursive_doubling(2),
                               [[3], [9]], op=np.maximum).svg()
    assert svg.count('fill="white" stroke="#222"') == 1


@pytest.mark.parametrize('call, message', [
    (lambda: pictures.draw_rounds(strategies.ring(9), words(9)),
     'schedule must be one of 8 devices'),
    (lambda: pictures.draw_rounds(strategies.ring(4), words()[:3]),
     'arrays must be a list with an array for each'),
    (lambda: pictures.draw_rounds('ring', words()), 'schedule must be'),
    (lambda: pictures.draw_store([1, 2]), r'queues\[0\] must be'),
    (lambda: pictures.draw_roads(TOWNS, [(0, 3, 1)]), r'roads\[0\] must be'),
    (lambda: pictures.draw_roads(TOWNS, [(0, 1)]), r'roads\[0\] must be')])
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(ValueError, match=f'^{message}'):
        call()
