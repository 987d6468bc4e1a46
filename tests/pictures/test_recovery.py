"""The circle shows what moves and what is lost."""
import matplotlib
import numpy as np
import pytest
from matplotlib import colors
from matplotlib import pyplot as plt

from d2lps_pictures import recovery
from d2lps.recovery import position

matplotlib.use('Agg')


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close('all')


def owner(key, servers, num_points):
    """Whose point is the next one clockwise, by subtraction."""
    here = position(f'key {key}')
    return min(servers, key=lambda server: min(
        (position(f'server {server}, point {k}') - here) % 1
        for k in range(num_points)))


def dots(ax, number):
    """Places and colours of a heap: 0 the servers, 1 the keys, ..."""
    heap = ax.collections[number]
    return heap.get_offsets(), heap.get_facecolors()


def test_a_dot_has_the_colour_of_its_server():
    left, right = recovery.plot_circle([0, 1, 2, 3], [0, 2, 3], 1, 20, 3)
    for ax, servers in (left, [0, 1, 2, 3]), (right, [0, 2, 3]):
        places, found = dots(ax, 1)
        kept = [key for key in range(20) if owner(
            key, [0, 1, 2, 3], 3) in servers]
        assert np.allclose(found, [colors.to_rgba(recovery.COLOR[owner(
            key, servers, 3)]) for key in kept])
        turn = np.arctan2(places[:, 0], places[:, 1]) / (2 * np.pi) % 1
        assert np.allclose(turn, [position(f'key {key}') for key in kept])


@pytest.mark.parametrize('after, replicas', [
    ([0, 2, 3], 1), ([0, 2, 3], 2), ([0, 3], 1), ([0, 3], 2), ([0, 3], 3),
    ([0, 1, 2, 3, 4], 2), ([0, 1, 2, 3], 1)])
def test_rings_and_crosses_are_counted_in_the_title(after, replicas):
    before, num_keys = [0, 1, 2, 3], 40
    _, right = recovery.plot_circle(before, after, replicas, num_keys, 2)
    *_, rings, crosses = right.collections
    moved = lost = 0
    for key in range(num_keys):
        left, had = [*before], []
        while len(had) < replicas:  # the next, without those before
            had.append(owner(key, left, 2))
            left.remove(had[-1])
        lost += not {*had} & {*after}
        moved += bool({*had} & {*after}) and owner(key, after, 2) != had[0]
    assert len(rings.get_offsets()) == moved
    assert len(crosses.get_offsets()) == lost
    assert right.get_title() == (f'{len(after)} servers: {moved} keys have '
                                 f'moved, {lost} are lost')


def test_the_circle_can_be_explored(shown):
    recovery.explore_circle()
    event, replicas, servers, points = shown[0].children
    pictures = [shown[1].data]
    for control, value in ((replicas, 2), (event, 'servers 1 and 2 die'),
                           (servers, 8), (points, 64),
                           (event, 'a server joins')):
        control.value = value
        assert shown[-1].data not in pictures
        pictures.append(shown[-1].data)
    assert len(pictures) == 6 and not plt.get_fignums()


@pytest.mark.parametrize('show, words', [
    (lambda: recovery.plot_circle([0, 'x'], [0]), r'before\[1\]'),
    (lambda: recovery.plot_circle([0], []), 'after is too short'),
    (lambda: recovery.plot_circle([0], [0], 0), 'replicas must be'),
    (lambda: recovery.plot_circle([0] * 101, [0]), 'before must be at most'),
    (lambda: recovery.plot_circle([0], [*range(20)], num_points=501),
     'after must be at most'),
    (lambda: recovery.explore_circle('all die'), 'event must be'),
    (lambda: recovery.explore_circle(num_servers=3), 'num_servers must be')])
def test_bad_arguments_are_named(shown, show, words):
    with pytest.raises(ValueError, match=words):
        show()
    assert not shown and not plt.get_fignums()
