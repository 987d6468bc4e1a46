"""Axes, curves, bars and grids lie where the data says."""
import math
import re

import numpy as np
import pandas as pd
import pytest
from d2lps.pictures import (BLUE, GREEN, ORANGE, Chart, Drawing, Row,
                            plot_bars, plot_curves, plot_grid, row_chart)
from d2lps.pictures.chart import (decades, steps, tick_words, words_of,
                                  wrapped)
from shapes import Shapes, chart_faults, read

CURVES = pd.DataFrame({'ring': [1.0, 4, 9], 'tree': [2.0, 3, 5]}, [1, 2, 4])


@pytest.mark.parametrize('low, high', [
    (0, 1), (0, 0.07), (-3, 12), (0, 1234), (1e6, 2e6), (0.31, 0.33),
    (0, 1e-9)])
def test_ticks_are_round_and_neither_few_nor_many(low, high):
    ticks = steps(low, high)
    assert 3 <= len(ticks) <= 7
    assert low - 1e-9 * abs(low) <= ticks[0]
    assert ticks[-1] <= high * (1 + 1e-9)
    step = ticks[1] - ticks[0]
    assert np.allclose(np.diff(ticks), step)
    first = f'{step:e}'[0:4]
    assert first in ('1.00', '2.00', '5.00')


@pytest.mark.parametrize('low, high, ticks', [
    (1, 1000, [1, 10, 100, 1000]), (1, 8, [1, 2, 5]),
    (0.5, 30, [0.5, 1, 2, 5, 10, 20]),
    (1, 1e12, [1, 1e3, 1e6, 1e9, 1e12])])
def test_ticks_of_a_logarithmic_axis(low, high, ticks):
    assert decades(low, high, 5) == pytest.approx(ticks)


@pytest.mark.parametrize('value, words', [
    (0, '0'), (0.5, '0.5'), (1000, '1,000'), (1e6, '10⁶'), (2e7, '2·10⁷'),
    (1e-5, '10⁻⁵'), (-3, '-3')])
def test_words_of_ticks(value, words):
    assert tick_words(value) == words


@pytest.mark.parametrize('value, words', [
    (0, '0'), (0.01234, '0.0123'), (99.96, '100'), (99.94, '99.9'),
    (4321.4, '4,321'), (1e-7, '1e-07'), (15, '15'), (5999.9, '6,000')])
def test_words_of_numbers(value, words):
    assert words_of(value) == words


def test_long_words_are_broken_between_words():
    assert wrapped('one two three', 13, 60) == ['one two', 'three']
    assert wrapped('unbreakable', 13, 10) == ['unbreakable']


def values(frame, points):
    return [frame.value(x, y) for x, y in points]


@pytest.mark.parametrize('xscale', ['linear', 'log'])
@pytest.mark.parametrize('yscale', ['linear', 'log'])
def test_curves_pass_through_their_points(xscale, yscale):
    shapes, frame = read(plot_curves(CURVES, 'devices', 'time / ms',
                                     xscale=xscale, yscale=yscale,
                                     styles=['o-', 's--']), xscale, yscale)
    for marks, (name, column) in zip(shapes.marks, CURVES.items()):
        assert np.allclose(values(frame, marks.points),
                           [*zip(CURVES.index, column)], rtol=0.02)
    ring, tree = [line for line in shapes.lines if len(line.points) == 3]
    assert ring.points == shapes.marks[0].points
    assert (ring.dash, ring.color) == ('', BLUE)
    assert tree.dash and tree.color == ORANGE
    assert shapes.marks[0].shape != shapes.marks[1].shape
    assert {'devices', 'time / ms', 'ring', 'tree'} <= {*shapes.words}


def test_a_single_curve_needs_no_legend():
    shapes, _ = read(plot_curves({'ring': ([1, 2], [3, 4])}))
    assert 'ring' not in shapes.words
    shapes, _ = read(plot_curves({'ring': ([1, 2], [3, 4])},
                                 lines={'the best': 2}))
    assert {'ring', 'the best'} <= {*shapes.words}


def test_ends_and_ticks_may_be_given():
    _, frame = read(plot_curves(CURVES, xlim=(0, 10), ylim=(0, None),
                                xticks=[1, 2, 4], yticks={0: 'no', 9: 'yes'}))
    assert [*frame.xticks] == ['1', '2', '4']
    assert frame.yticks['no'] == pytest.approx(frame.bottom, abs=0.1)
    assert frame.yticks['yes'] > frame.top
    assert frame.x(frame.left) == pytest.approx(0, abs=0.02)
    assert frame.x(frame.right) == pytest.approx(10, abs=0.05)


def test_ticks_that_would_meet_are_left_out():
    drawing = plot_curves({'': (range(1, 2000), range(1, 2000))},
                          xticks=range(1, 2000, 20))
    shapes, frame = read(drawing)  # which looks for words that meet
    assert 5 < len(frame.xticks) < 20


def test_lines_right_across_and_points_with_words():
    shapes, frame = read(plot_curves(
        CURVES, lines={'limit': 7}, verticals={'here': 3},
        points={'both': (2.5, 4)}))
    level, = [line for line in shapes.lines if len({
        y for _, y in line.points}) == 1 and len(line.points) == 2
        and line.points[1][0] - line.points[0][0] > 100]
    assert frame.y(level.points[0][1]) == pytest.approx(7, abs=0.05)
    assert level.points[0][0] == pytest.approx(frame.left, abs=0.1)
    upright, = [line for line in shapes.lines if len({
        x for x, _ in line.points}) == 1]
    assert frame.x(upright.points[0][0]) == pytest.approx(3, abs=0.02)
    assert upright.dash != level.dash
    dot = shapes.marks[-1].points[0]
    assert frame.value(*dot) == pytest.approx((2.5, 4), abs=0.05)
    words, = [text for text in shapes.texts if text.words == 'both']
    assert math.dist(dot, (words.x, words.y)) < 25


def test_steps_hold_until_the_next_point():
    shapes, frame = read(plot_curves({'': ([0, 1, 3], [2, 5, 4])},
                                     steps=True))
    way = values(frame, shapes.lines[-1].points)
    assert np.allclose(way, [(0, 2), (1, 2), (1, 5), (3, 5), (3, 4)],
                       atol=0.05)


def test_what_is_no_number_makes_a_gap():
    holed = {'': ([1, 2, 3, 4, 5, 6], [1, 2, float('nan'), 3, 4, 5])}
    path = plot_curves(holed).svg()
    assert len(re.findall(r'<path d="(M[^"]*M[^"]*)"', path)) == 1
    shapes, _ = read(plot_curves(holed, styles='o'))
    assert [len(marks.points) for marks in shapes.marks] == [5]
    none = plot_curves({'': ([1, 2], [float('nan')] * 2)}, yscale='log')
    assert not Shapes(none).marks


LOG = dict(xscale='log', yscale='log')
MASKED = np.ma.masked_array([1., 2], [0, 1])
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize('call, words', [
    # What has no place in the picture.
    (lambda: plot_bars({'a': -1, 'b': 1}), '^values must be .* from 0 to'),
    (lambda: plot_bars([('a', [1, -1])], stacked=True), '^values must be'),
    (lambda: plot_bars({'a': 1}, marks={'m': [-1]}), '^marks must be'),
    (lambda: plot_bars({'a': 1}, verticals=[-1]), r'^verticals\[0\] must'),
    (lambda: plot_bars({'a': NAN, 'b': 1}), '^values must be'),
    (lambda: plot_bars({'a': INF, 'b': 1}), '^values must be'),
    (lambda: plot_grid([[NAN, NAN]]), '^values must be'),
    (lambda: plot_curves({'a': ([1, 2], [-1, 2])}, yscale='log'),
     r"^curves\['a'\] must be above 0 in y.*; it had -1"),
    (lambda: plot_curves({'a': ([0, 2], [1, 2])}, xscale='log'),
     r"^curves\['a'\] must be above 0 in x.*; it had 0"),
    (lambda: plot_curves({'a': ([1, 2], [1, 2])}, lines={'l': 0}, **LOG),
     '^lines must be above 0'),
    (lambda: plot_curves({'a': ([1, 2], [1, 2])}, verticals={'l': 0}, **LOG),
     '^verticals must be above 0'),
    (lambda: plot_curves({'a': ([1, 2], [1, 2])}, points={'p': (1, 0)}, **LOG),
     '^points must be above 0 in y'),
    (lambda: plot_curves({'a': ([1, 2], [3, 4])}, xlim=(2, 1)), '^xlim must'),
    (lambda: plot_curves({'a': ([1, 2], [3, 4])}, xlim=(1, 1)), '^xlim must'),
    (lambda: plot_curves({'a': ([1, 2], [3, 4])}, xlim=(5, None)), '^xlim mu'),
    (lambda: plot_curves({'a': ([1, 2], [3, 4])}, ylim=(1, 1 + 1e-15)),
     '^ylim must'),
    (lambda: plot_curves({'a': ([1, 2], [3, 4])}, xlim=(0, 5e-324)), '^xlim'),
    # What is too large, or has another kind.
    (lambda: plot_curves({'a': ([1, 2], [-1e308, 1e308])}), '^curves must be'),
    (lambda: plot_curves({'a': ([1, 2], [1, 10 ** 400])}), '^curves must be'),
    (lambda: plot_curves({'a': ([1, 2], MASKED)}), '^curves must be'),
    (lambda: plot_curves({'a': (MASKED, [1, 2])}), '^curves must be'),
    (lambda: plot_bars({'a': MASKED}), '^values must be'),
    (lambda: plot_bars({'a': 10 ** 400}), '^values must be'),
    (lambda: plot_bars({'a': 1}, until=1e308), '^until must be'),
    (lambda: plot_bars({'a': 1}, verticals=[1e308]), r'^verticals\[0\] must'),
    (lambda: plot_grid([[1, 10 ** 400]]), '^values must be'),
    (lambda: plot_grid([[1, 1e308]]), '^values must be'),
    (lambda: plot_grid(np.ma.masked_array([[1, 2]], [[0, 1]])), '^values mus'),
    (lambda: plot_curves({'a': ([1, 2], [3, 4])}, xticks=np.array(2)),
     '^xticks must be'),
    (lambda: plot_curves({'a': ([1, 2], [3, 4])}, xticks=[1e308]),
     r'^xticks\[0\] must be')])
def test_what_cannot_be_drawn_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize('ys', [
    (0, 5e-324), (1e-100, 1e100), (1, 1 + 2e-16), (-1e100, 1e100), (1e17,) * 2,
    (1e-200, 1e-190)])
def test_numbers_that_are_far_apart_or_very_near(ys):
    shapes, _ = read(plot_curves({'': ([1, 2], ys)}, styles='o'))
    assert [len(marks.points) for marks in shapes.marks] == [2]
    if min(ys) >= 1e-100:
        [marks] = Shapes(plot_curves({'': ([1, 2], ys)}, yscale='log',
                                     styles='o')).marks
        assert len(marks.points) == 2


def test_x_may_be_of_any_kind_of_array():
    from d2lps.engine import mx
    expected = plot_curves({'a': ([0, 1, 2], [1, 2, 3])}).svg()
    for x in (mx.np.arange(3), np.arange(3), range(3), pd.Index([0, 1, 2]),
              np.arange(3).astype(object)):
        assert plot_curves({'a': (x, [1, 2, 3])}).svg() == expected


def test_words_with_half_a_character_are_shown():
    """The half is a question mark: nobody can write it."""
    with pytest.raises(ValueError, match='^title must be a text without ha'):
        plot_curves(CURVES, title='\ud800')
    for drawing in (plot_curves({'a\ud800': ([1, 2], [3, 4]), 'b': (
            [1, 2], [4, 5])}), plot_bars({'c\ud800': 1}),
            Drawing(9, 9, 'e\ud800')):
        assert '?' in drawing.alt and '?' in drawing.svg()
        assert drawing._repr_html_().encode() and repr(drawing).encode()


def test_words_may_stand_along_the_axis():
    table = pd.DataFrame({'a': [1, 2, 3]}, ['1 kB', '1 MB', '1 GB'])
    shapes, frame = read(plot_curves(table, styles='o'))
    assert [*frame.xticks] == ['1 kB', '1 MB', '1 GB']
    assert [x for x, _ in shapes.marks[0].points] == pytest.approx(
        [*frame.xticks.values()], abs=0.1)


def test_what_lies_beyond_the_axes_is_cut():
    inside = plot_curves({'': ([0, 1], [0, 1])}).svg()
    beyond = plot_curves({'': ([0, 1, 9], [0, 1, 90])}, xlim=(0, 2),
                         ylim=(0, 2)).svg()
    assert inside.count('<svg') == 1 and beyond.count('<svg') == 2


def test_many_points_make_a_small_picture():
    x = np.linspace(0, 1, 20_000)
    drawing = plot_curves({'wave': (x, np.sin(300 * x)), 'flat': (x, 0 * x)})
    assert not chart_faults(drawing)
    assert len(drawing.svg()) < 150_000


def test_a_curve_is_said_in_words():
    drawing = plot_curves({'ring': ([2, 4, 8], [10, 30, 20])}, 'devices',
                          'time / ms', 'A ring')
    assert drawing.alt == ('A ring: time / ms against devices. ring: from 10 '
                           'at 2 to 20 at 8, at most 30.')
    assert repr(drawing) == drawing.alt


def test_a_legend_lies_beside_the_axes_or_below_them():
    for count, beside in (2, False), (5, True):
        shapes, frame = read(plot_curves(
            {f'plan {k}': ([1, 2], [k, k + 1]) for k in range(count)}))
        places = [text for text in shapes.texts
                  if text.words.startswith('plan')]
        assert len(places) == count
        assert all((text.x > frame.right) == beside and
                   (text.y > frame.bottom) != beside for text in places)


BARS = {'ring': 15, 'tree': 60.04, 'server': 0}


def test_bars_are_as_long_as_their_numbers():
    shapes, frame = read(plot_bars(BARS, 'time / ms', 'Three'))
    assert [(row, pytest.approx(start, abs=0.1), pytest.approx(end, abs=0.2))
            for row, start, end, _ in frame.bars()] == [
        ('ring', 0, 15), ('server', 0, 0), ('tree', 0, 60.04)]
    assert {'15', '60', '0', 'time / ms', 'Three'} <= {*shapes.words}
    assert [*frame.yticks] == [*BARS]
    places = [*frame.yticks.values()]
    assert places == sorted(places)  # the first is on top


def test_bars_have_colours_labels_marks_and_lines():
    shapes, frame = read(plot_bars(
        BARS, colors={'tree': GREEN}, labels=['15', '60 best', 'none'],
        marks={'predicted': [10, 59, 5]}, verticals=[40]))
    colors = {row: color for row, _, _, color in frame.bars()}
    assert colors == {'ring': BLUE, 'tree': GREEN, 'server': BLUE}
    assert {'60 best', 'none', 'predicted'} <= {*shapes.words}
    marks = [frame.x(x) for x, _ in shapes.marks[-1].points]
    assert marks == pytest.approx([10, 59, 5], abs=0.3)
    assert [frame.row(y) for _, y in shapes.marks[-1].points] == [*BARS]
    assert any(frame.x(line.points[0][0]) == pytest.approx(40, abs=0.3)
               for line in shapes.lines)
    for text in shapes.texts:  # no number lies under a mark
        for x, y in shapes.marks[-1].points:
            assert not (text.box[0] < x < text.box[2] and
                        text.box[1] < y < text.box[3])


TABLE = pd.DataFrame({'sent': [10, 20.0], 'received': [30, 5.0]},
                     ['worker', 'server'])


def test_a_group_has_a_bar_for_each_column():
    shapes, frame = read(plot_bars(TABLE, 'MB'))
    found = [(row, round(end), color) for row, _, end, color in frame.bars()]
    assert sorted(found) == sorted([
        ('worker', 10, BLUE), ('worker', 30, ORANGE), ('server', 20, BLUE),
        ('server', 5, ORANGE)])
    assert {'sent', 'received', '10', '30', '20', '5'} <= {*shapes.words}


def test_parts_of_a_bar_follow_each_other():
    shapes, frame = read(plot_bars(TABLE, 'MB', stacked=True,
                                   colors=[GREEN, BLUE]))
    found = [(row, round(start), round(end), color)
             for row, start, end, color in frame.bars()]
    assert found == [('server', 0, 20, GREEN), ('server', 20, 25, BLUE),
                     ('worker', 0, 10, GREEN), ('worker', 10, 40, BLUE)]
    bold = [text.words for text in shapes.texts if text.bold]
    assert bold == ['40', '25']
    assert plot_bars(TABLE, 'MB', stacked=True).alt == (
        'MB. worker: sent 10, received 30; server: sent 20, received 5.')


def test_a_name_may_be_there_twice():
    _, frame = read(plot_bars([('ring', 1), ('ring', 2)]))
    assert sorted(round(end) for _, _, end, _ in frame.bars()) == [1, 2]


def test_a_grid_is_the_darker_the_larger():
    drawing = plot_grid([[0, 8], [2, 4]], ['a', 'b'], ['c', 'd'], 'to',
                        'from', 'MB sent')
    shapes, light = Shapes(drawing), []
    for box in shapes.boxes:
        red, green, blue = [int(box.color[k:k + 2], 16) for k in (1, 3, 5)]
        light.append(red + green + blue)
    assert np.argsort(light).tolist() == [1, 3, 2, 0]
    for box, words in zip(shapes.boxes, ['0', '8', '2', '4']):
        assert any(text.words == words and box.x1 < text.x < box.x2
                   and box.y1 < text.y < box.y2 for text in shapes.texts)
    assert not chart_faults(drawing)
    assert drawing.alt == ('MB sent. rows: from, columns: to. row a: 0, 8; '
                           'row b: 2, 4.')
    assert Shapes(plot_grid([[4]], most=8)).boxes[0].color == (
        shapes.boxes[3].color)


@pytest.mark.parametrize('names, words', [
    ([0, 8], ['0', '8']), (range(2), ['0', '1']), (['a', 2.0], ['a', '2']),
    ([0.5, 1000], ['0.5', '1,000']), (None, ['0', '1'])])
def test_names_of_a_grid_may_be_numbers(names, words):
    told = Shapes(plot_grid([[30, 40], [50, 60]], names, names)).words
    assert [word for word in told if word in words] == words + words


def test_charts_share_a_drawing():
    drawing = Drawing(700, 300, 'Two.')
    for k in range(2):
        chart = Chart(drawing, 350 * k, 0, 350, 300, (0, 1), (0, 1),
                      xlabel='time')
        chart.curve([0, 1], [0, 1], style='o')
    for k in range(2):
        shapes, frame = read(drawing, number=k)
        assert values(frame, shapes.marks[k].points) == [
            pytest.approx((0, 0), abs=0.01), pytest.approx((1, 1), abs=0.01)]


def test_rows_begin_at_the_same_place():
    charts = [row_chart(names, 5, 'Rows.')
              for names in (['a'], ['compute', 'b'])]
    assert charts[0].left == charts[1].left
    assert charts[0].x(5) == charts[1].x(5)


def test_slivers_on_one_spot_are_one_box():
    chart = row_chart(['a'], 1000, 'Many.')
    chart.bars([(k, k + 0.9, -0.4, 0.4) for k in range(1000)], BLUE)
    boxes = Shapes(chart.drawing).boxes
    assert len(boxes) < 20
    assert boxes[0].x1 == pytest.approx(chart.x(0), abs=0.1)
    assert max(box.x2 for box in boxes) == pytest.approx(chart.x(1000), abs=1)
    apart = row_chart(['a'], 10, 'Few.')
    apart.bars([(k, k + 1, -0.4, 0.4) for k in range(10)], BLUE)
    assert len(Shapes(apart.drawing).boxes) == 10


def test_bars_may_have_a_pattern():
    chart = row_chart(['a'], 10, 'One.', legend=[('kind', BLUE, 'box 3')])
    chart.bars([(1, 5, -0.4, 0.4)], BLUE, pattern=3)
    svg, shapes = chart.drawing.svg(), Shapes(chart.drawing)
    assert svg.count('url(#p3)') == 2 and 'id="p3"' in svg
    assert len(shapes.boxes) == 1 and shapes.legend == {'kind': BLUE}


def test_words_are_escaped():
    for drawing in (plot_curves({'<a&b>': ([1, 2], [1, 2])}, '<x>', '&',
                                '"<t>"', lines={'<l>': 1}),
                    plot_bars({'<a&b>': 1}, '<x>', '&')):
        assert '<x>' in Shapes(drawing).words and '&' in Shapes(drawing).words


def test_a_row_shows_its_drawings_and_their_words():
    one, other = Drawing(20, 10, 'One.'), Drawing(30, 10, 'Other.')
    row = Row(one, other)
    assert row.alt == repr(row) == 'One. Other.'
    assert row._repr_html_().count('<img') == 2
    assert row.drawings == [one, other]
    with pytest.raises(ValueError, match='drawings is too short'):
        Row()
    with pytest.raises(ValueError, match=r'drawings\[1\] must be a Drawing'):
        Row(one, 3)


def test_a_drawing_can_be_put_into_another():
    inner = Drawing(50, 50, 'In.').box(10, 10, 20, 20, 'in', fill=3)
    outer = Drawing(200, 100, 'Out.').put(inner, 100, 40)
    assert 'id="p3"' in outer.svg()
    text, = Shapes(outer).texts
    assert (text.x, text.y) == (pytest.approx(120), pytest.approx(60, abs=1))


@pytest.mark.parametrize('call, words', [
    (lambda: plot_curves({}), 'curves must be a table'),
    (lambda: plot_curves({'a': ([1], [1, 2])}), 'curves must be a table'),
    (lambda: plot_curves(CURVES, xscale='root'), 'xscale must be'),
    (lambda: plot_curves(CURVES, styles=['*~']), 'style must be a line'),
    (lambda: plot_curves(CURVES, xlim=3), 'xlim must be two numbers'),
    (lambda: plot_curves(CURVES, lines=[3]), 'lines must be a dict'),
    (lambda: plot_curves(CURVES, points={'a': 3}), r"points\['a'\] must be"),
    (lambda: plot_curves(CURVES, points={'a': (1, 'b')}),
     r"points\['a'\]\[1\] must be a number"),
    (lambda: plot_bars(BARS, marks={'a': 3}), r"marks\['a'\] must be a list"),
    (lambda: plot_curves(CURVES, width=3), 'width must be a number from'),
    (lambda: plot_bars({}), 'values must be a table'),
    (lambda: plot_bars({'a': 'b'}), 'values must be a table'),
    (lambda: plot_bars(BARS, labels=['one']), 'labels must be one for each'),
    (lambda: plot_grid([1, 2]), 'values must be a matrix'),
    (lambda: plot_grid([[1, 2]], rows=['a', 'b']), 'values has 1 rows and')])
def test_bad_arguments_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
