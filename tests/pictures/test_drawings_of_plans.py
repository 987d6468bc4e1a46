"""Drawings of cables and of who sends sums to whom."""
import numpy as np
import pytest
from d2lps.collectives import Schedule, Send, strategies, topology
from d2lps.pictures.drawings.draw_plans import draw_cables, draw_sums

CABLES = topology.P3_CABLES


def test_each_cable_is_a_line_in_the_colour_of_its_ring():
    gray = draw_cables(CABLES).svg()
    assert gray.count('stroke="#BBBBBB"') == CABLES.sum() / 2
    rings = topology.rings_of(CABLES)
    drawing = draw_cables(CABLES, rings)
    for (order, links), color in zip(rings, ('#0072B2', '#E69F00')):
        assert drawing.svg().count(f'stroke="{color}"') == 8 * links
        assert ' - '.join(map(str, order)) in drawing.alt
    assert '3-0 (2 times)' in drawing.alt and '7-0' not in drawing.alt
    one = draw_cables(CABLES, rings[1:]).svg()
    assert one.count('stroke="#BBBBBB"') == 16


def test_each_of_many_rings_has_its_colour_and_its_line():
    n = 11
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    steps = np.minimum(apart, n - apart)  # along the circle
    rings = topology.rings_of(np.where(steps < 5, steps, 0))
    assert len(rings) == 4
    svg = draw_cables(np.where(steps < 5, steps, 0), rings).svg()
    for order, _ in rings:
        assert ' - '.join(map(str, [*order, order[0]])) + '</text>' in svg
    with pytest.raises(ValueError, match='rings in a picture must be'):
        draw_cables(np.where(steps < 5, steps, 0), 7 * rings[:1])


@pytest.mark.parametrize('plan, chunk, root', [
    (strategies.ring(5), 1, 0), (strategies.tree(8), 0, 0),
    (strategies.double_tree(8), 1, 7), (strategies.running_sum(3), 0, 2)])
def test_the_root_of_a_tree_stands_highest(plan, chunk, root):
    drawing = draw_sums([plan], [chunk])
    heights = {}
    for line in drawing.svg().split('<text ')[1:]:
        words = line.split('>')[1].split('<')[0]
        if words.isdigit():
            heights[int(words)] = float(line.split('y="')[1].split('"')[0])
    assert len(heights) == plan.num_devices
    assert min(heights, key=heights.get) == root
    assert drawing.alt.count(' sends to ') == plan.num_devices - 1


def test_trees_stand_side_by_side_and_are_as_high():
    plans = [strategies.ring(8), strategies.tree(8)]
    row = draw_sums(plans)
    ring, tree = row.drawings
    assert ring.height == tree.height and ring.width == tree.width == 320
    assert [ring.alt, tree.alt] == [row.alt[:len(ring.alt)],
                                    row.alt[len(ring.alt) + 1:]]
    assert len(draw_sums([strategies.double_tree(8)], [0, 1]).drawings) == 2


@pytest.mark.parametrize('drawing', [
    draw_cables(CABLES), draw_cables(CABLES, topology.rings_of(CABLES)),
    draw_sums([strategies.ring(8)]), draw_sums([strategies.tree(8)]),
    draw_sums([strategies.double_tree(8)], [1])],
    ids=lambda drawing: drawing.alt[:30])
def test_words_can_be_read(drawing, faults):
    assert not faults(drawing) and drawing.width <= 720


def test_what_is_no_tree_is_refused():
    with pytest.raises(ValueError, match='do not go along a tree'):
        draw_sums([strategies.recursive_doubling(4)])
    with pytest.raises(ValueError, match='^devices in a tree must be'):
        draw_sums([strategies.running_sum(1200)])
    with pytest.raises(ValueError, match='chunk 7 in ring'):
        draw_sums([strategies.ring(4)], [7])
    circle = Schedule([[Send(1, 2, 0, True), Send(2, 1, 0, True)]], 3)
    with pytest.raises(ValueError, match='do not go along a tree'):
        draw_sums([circle])
    many = np.ones((17, 17), int) - np.eye(17, dtype=int)
    with pytest.raises(ValueError, match='devices in cables'):
        draw_cables(many)
    with pytest.raises(ValueError, match='rings'):
        draw_cables(CABLES, [([0, 9], 1)])
