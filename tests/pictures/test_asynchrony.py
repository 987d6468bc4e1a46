"""Pictures of workers on a virtual clock show what was played."""
import numpy as np
import pytest
from d2lps.asynchrony.clock import virtual_clock
from d2lps.asynchrony.asynchronous_training import Point
from d2lps.pictures import asynchrony
from shapes import Shapes, chart_faults, read

STRAGGLER = [[1], [5]]


def bars(drawing):
    """{(colour, worker): [(start, end), ...]}"""
    found = {}
    _, frame = read(drawing)
    for row, start, end, color in frame.bars():
        found.setdefault((color, row), []).append(
            (round(start, 1), round(end, 1)))
    return found


def test_a_plan_is_drawn_to_scale():
    plan = virtual_clock(STRAGGLER, 'sync', 4)
    drawing = asynchrony.plot_plan(plan)
    assert bars(drawing) == {
        (asynchrony.SKY, 'worker 0'): [(0, 1), (5, 6)],
        (asynchrony.SKY, 'worker 1'): [(0, 5), (5, 10)],
        (asynchrony.GRAY, 'worker 0'): [(1, 5), (6, 10)]}
    assert Shapes(drawing).legend == {'computes': asynchrony.SKY,
                                      'waits': asynchrony.GRAY}
    assert 'worker 0 computes 20%, waits 80%' in drawing.alt


def test_what_lies_beyond_the_axis_is_cut_and_the_dropped_are_marked():
    plan = virtual_clock([[1], [1], [5]], 'sync', 16, backups=1)
    drawing = asynchrony.plot_plan(plan, until=7, title='backup')
    found = bars(drawing)
    assert found[asynchrony.RED, 'worker 2'] == [(0, 5)]
    assert found[asynchrony.SKY, 'worker 2'] == [(5, 7)]
    assert found[asynchrony.SKY, 'worker 0'][-1] == (6, 7)
    shapes, frame = read(drawing)
    assert frame.x(frame.right) == pytest.approx(7, abs=0.02)
    assert 'backup' in shapes.words


def test_progress_is_that_of_the_plans():
    plans = {'sync': virtual_clock(STRAGGLER, 'sync', 20),
             'async': virtual_clock(STRAGGLER, 'async', 20)}
    last = max(plan.seconds for plan in plans.values())
    shapes, frame = read(asynchrony.plot_progress(plans, until=last))
    for line, plan in zip(shapes.lines, plans.values()):
        x, y = frame.value(*line.points[-1])
        assert (x, y) == (pytest.approx(plan.seconds, abs=0.3),
                          pytest.approx(20, abs=0.2))
        # It goes up or to the right, never both: a gradient comes at once.
        for (x1, y1), (x2, y2) in zip(line.points, line.points[1:]):
            assert (x1 == x2) != (y1 == y2) and x2 >= x1 and y2 <= y1
    assert shapes.legend == {'sync': asynchrony.BLUE,
                             'async': asynchrony.ORANGE}
    assert len({line.dash for line in shapes.lines}) == 2
    # Until 10 s only the faster of them brings more than it does by then.
    drawing = asynchrony.plot_progress(plans, until=10)
    assert drawing.alt.startswith(
        'Gradients used after 10 virtual seconds: sync 4, ')
    _, frame = read(drawing)
    assert frame.x(frame.right) == pytest.approx(10, abs=0.1)


def test_staleness_is_that_of_the_plans():
    plans = {'sync': virtual_clock(STRAGGLER, 'sync', 20),
             'async': virtual_clock(STRAGGLER, 'async', 20)}
    row = asynchrony.plot_staleness(plans)
    ends = set()
    for drawing, (name, plan) in zip(row.drawings, plans.items()):
        shapes, frame = read(drawing)
        heights = {round(frame.x((box.x1 + box.x2) / 2)): round(
            frame.y(box.y1)) for box in shapes.boxes}
        assert heights == plan.staleness
        assert name in shapes.words
        ends.add((round(frame.x(frame.right), 1),
                  round(frame.y(frame.top), 1)))
    assert len(ends) == 1  # the same axes


def test_accuracy_has_a_thin_line_for_a_seed_and_a_thick_mean():
    runs = [[Point(10, 1.0, 0.2), Point(20, 2.0, 0.6)],
            [Point(10, 1.5, 0.4), Point(20, 2.5, 0.8)]]
    row = asynchrony.plot_accuracy({'async, divided': runs, 'sync': runs})
    for drawing, x in zip(row.drawings, ([1.25, 2.25], [10, 20])):
        shapes, frame = read(drawing)
        divided = shapes.lines[:3]
        assert len(shapes.lines) == 6
        assert [line.width for line in divided] == [0.8, 0.8, 2]
        points = [frame.value(*point) for point in divided[-1].points]
        assert np.allclose(points, [*zip(x, [0.3, 0.7])], atol=0.02 * max(x))
        assert all(line.dash for line in divided)
        assert not any(line.dash for line in shapes.lines[3:])
        assert shapes.marks[0].shape != shapes.marks[1].shape
        assert frame.y(frame.top) == pytest.approx(1, abs=0.01)
    assert 'async, divided ends at 0.70 after 20' in row.alt


def test_the_toy_follows_its_sliders(shown):
    asynchrony.explore_clock()
    box, first = shown
    kind, ahead, slowdown = box.children
    for control, value in ((ahead, 'async'), (slowdown, 10),
                           (kind, 'heavy tail')):
        before = shown[-1]._repr_html_()
        control.value = value
        assert shown[-1]._repr_html_() != before
        assert [drawing.height for drawing in shown[-1].drawings] == [
            drawing.height for drawing in first.drawings]
    assert len(shown) == 5


def test_what_would_take_long_to_draw_is_refused():
    with pytest.raises(ValueError, match='^plan has 20,002 pulls and pushes'):
        asynchrony.plot_plan(virtual_clock([[1]], 'async', 10_001))


def test_the_longest_plan_makes_a_small_picture():
    assert not chart_faults(asynchrony.plot_plan(virtual_clock(
        [[1], [1], [5]], 'async', 9_900)))
