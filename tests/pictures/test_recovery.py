"""The circle shows what moves and what is lost."""
import numpy as np
import pytest
from shapes import Shapes, chart_faults

from d2lps.recovery import position
from d2lps.pictures import recovery
from d2lps.pictures.drawing import color


def owner(key, servers, num_points):
    """Whose point is the next one clockwise, by subtraction."""
    here = position(f'key {key}')
    return min(servers, key=lambda server: min(
        (position(f'server {server}, point {k}') - here) % 1
        for k in range(num_points)))


def dots(drawing, kind):
    """(turn from 0 to 1, distance, colour) of each circle of a kind."""
    middle = recovery.SIDE / 2, recovery.SIDE / 2 + 20
    for shape, *_ in Shapes(drawing).all:
        if shape.get('class') == kind:
            x = float(shape.get('cx')) - middle[0]
            y = middle[1] - float(shape.get('cy'))
            yield (np.arctan2(x, y) / (2 * np.pi) % 1, np.hypot(x, y),
                   shape.get('fill'))


def count(drawing, kind):
    return drawing.svg().count(f'class="{kind}"')


def test_a_dot_has_the_colour_of_its_server():
    row = recovery.plot_circle([0, 1, 2, 3], [0, 2, 3], 1, 20, 3)
    for drawing, servers in zip(row.drawings, ([0, 1, 2, 3], [0, 2, 3])):
        kept = [key for key in range(20) if owner(
            key, [0, 1, 2, 3], 3) in servers]
        for key, (turn, _, fill) in zip(kept, dots(drawing, 'key'),
                                        strict=True):
            assert turn == pytest.approx(position(f'key {key}'), abs=2e-3)
            assert fill == color(owner(key, servers, 3))
        assert count(drawing, 'point') == 3 * len(servers)
        assert not chart_faults(drawing)


def test_replicas_lie_further_out():
    left, _ = recovery.plot_circle([0, 1, 2], [0, 1], 2, 10, 2).drawings
    found = [distance for _, distance, _ in dots(left, 'key')]
    assert len(found) == 20
    assert min(found[1::2]) > max(found[::2]) + 5


@pytest.mark.parametrize('after, replicas', [
    ([0, 2, 3], 1), ([0, 2, 3], 2), ([0, 3], 1), ([0, 3], 2), ([0, 3], 3),
    ([0, 1, 2, 3, 4], 2), ([0, 1, 2, 3], 1)])
def test_rings_and_crosses_are_counted_in_the_title(after, replicas):
    before, num_keys = [0, 1, 2, 3], 40
    _, right = recovery.plot_circle(before, after, replicas, num_keys,
                                    2).drawings
    copied = lost = 0

    def chain(key, servers):
        left, found = [*servers], set()
        while left and len(found) < replicas:  # the next, without those before
            one = owner(key, left, 2)
            found.add(one)
            left.remove(one)
        return found

    for key in range(num_keys):
        had = chain(key, before)
        lost += not had & {*after}
        copied += len(chain(key, after) - had) if had & {*after} else 0
    assert (count(right, 'fresh'), count(right, 'lost')) == (copied, lost)
    title = f'{len(after)} servers: {copied} keys copied, {lost} lost'
    assert title in Shapes(right).words and right.alt.startswith(title)
    [counts] = [words for words in Shapes(right).words
                if words.startswith('keys of server')]
    assert sum(int(one.split(':')[1]) for one in counts.split(',')) == (
        num_keys - lost)
    # A key is counted at its first server, and not at those of its copies.
    owners = [owner(key, after, 2) for key in range(num_keys)
              if chain(key, before) & {*after}]
    assert counts == 'keys of server ' + ', '.join(
        f'{server}: {owners.count(server)}' for server in after)
    for server in {*owners}:
        assert f'server {server} has {owners.count(server)} keys' in right.alt
    assert not chart_faults(right)


def test_the_circle_can_be_explored(shown):
    recovery.explore_circle()
    event, replicas, servers, points = shown[0].children
    pictures = [shown[1]._repr_html_()]
    for control, value in ((replicas, 2), (event, 'servers 1 and 2 die'),
                           (servers, 8), (points, 64),
                           (event, 'a server joins')):
        control.value = value
        assert shown[-1]._repr_html_() not in pictures
        pictures.append(shown[-1]._repr_html_())
        assert [one.height for one in shown[-1].drawings] == [
            one.height for one in shown[1].drawings]
    assert len(pictures) == 6


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
    assert not shown
