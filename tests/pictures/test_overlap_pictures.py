"""The Gantt chart shows the tasks; the toy follows its controls."""
import pytest
from d2lps.asynchrony.overlap import ORDERS, best_possible, simulate_step
from d2lps.pictures import overlap_plots
from shapes import Shapes, chart_faults, read


def title(shapes):
    return ' '.join(text.words for text in shapes.texts if text.bold)


@pytest.mark.parametrize('pull', [False, True])
def test_each_task_is_a_bar_in_its_row(pull):
    tasks = simulate_step([1, 2], [3, 4], 1, pull=pull, forward=[1, 1])
    shapes, frame = read(overlap_plots.plot_step(tasks, 'a step'))
    row = {'backward': 'compute', 'forward': 'compute', 'push': 'push',
           'pull': 'pull'}
    assert [bar[:3] for bar in frame.bars()] == [
        (name, pytest.approx(start, abs=30), pytest.approx(end, abs=30))
        for name, start, end in sorted(
            (row[task.what], 1e3 * task.start, 1e3 * task.end)
            for task in tasks)]
    assert [*frame.yticks] == ['compute', 'push', 'pull'][:2 + pull]
    total = tasks[-1].end * 1e3
    assert title(shapes) == f'a step: {total:.0f} ms'
    inside = [text.words for text in shapes.texts
              if frame.inside(text.x, text.y)]
    assert inside[:2] == ['2', '1']


def test_the_forward_pass_is_hatched():
    tasks = simulate_step([1, 2], [3, 4], 1, forward=[1, 1])
    svg = overlap_plots.plot_step(tasks).svg()
    assert svg.count('url(#p1)') == 2  # of two layers
    assert 'url(' not in overlap_plots.plot_step(tasks[:2]).svg()


def test_a_bucket_says_whose_it_is_and_the_bound_is_a_line():
    tasks = simulate_step([1, 1, 1], [1, 1, 1], 1, bucket_size=2)
    drawing = overlap_plots.plot_step(tasks, best=3.5, until=10)
    shapes, frame = read(drawing)
    assert [text.words for text in shapes.texts if frame.inside(
        text.x, text.y)] == ['3', '2', '1', '2-3', '1']
    line, = [line for line in shapes.lines if line.dash]
    assert frame.x(line.points[0][0]) == pytest.approx(3500, abs=15)
    assert frame.x(frame.left) == pytest.approx(0, abs=15)
    assert frame.x(frame.right) == pytest.approx(10_000, abs=15)
    assert title(shapes) == '5000 ms, dashed: no less than 3500 ms'
    assert drawing.alt == (
        '5000 ms, dashed: no less than 3500 ms. compute, from 0 to 3,000 ms: '
        'layers 3 at 0, 2 at 1,000, 1 at 2,000; push, from 2,000 to 5,000 '
        'ms: layers 2-3 at 2,000, 1 at 4,000.')


def test_rows_may_have_other_names():
    tasks = simulate_step([1, 2], [3, 4], 1)
    _, frame = read(overlap_plots.plot_step(tasks, rows=['a'] * 2 + ['b'] * 2))
    assert [*frame.yticks] == ['a', 'b']
    with pytest.raises(ValueError, match='rows must name one for each of .*4'):
        overlap_plots.plot_step(tasks, rows=['a'])


def test_pictures_to_compare_have_the_same_axis():
    step = simulate_step([1, 2], [3, 4], 1)
    one, other = (Shapes(overlap_plots.plot_step(step, rows=[name] * 4, until=20)
                         ).frame() for name in ('compute', 'all-reduce'))
    assert (one.left, one.right) == (other.left, other.right)


@pytest.fixture
def drawn(monkeypatch):
    """The tasks and the bound of each picture."""
    found = []
    plot = overlap_plots.plot_step

    def note(tasks, *args, **kwargs):
        found.append((tasks, kwargs['best']))
        return plot(tasks, *args, **kwargs)
    monkeypatch.setattr(overlap_plots, 'plot_step', note)
    return found


def test_the_toy_follows_its_controls(shown, drawn):
    overlap_plots.explore_overlap()
    bandwidth, latency, bucket, slices, order = shown[0].children
    assert drawn[0][0][-1].end == pytest.approx(0.092)
    for control, value, seconds in (
            (bandwidth, 500, .152), (order, 'priority', .124),
            (slices, 1, .123), (slices, 0, .124), (bucket, 60, .21),
            (latency, 10, .22), (order, 'sequential', .22)):
        control.value = value
        assert drawn[-1][0][-1].end == pytest.approx(seconds, abs=6e-4)
    assert len(shown) == 2 + 7
    assert len({drawing.height for drawing in shown[1:]}) == 1


def test_nothing_is_cut_off_whatever_is_chosen(shown, drawn):
    overlap_plots.explore_overlap(250, 10, 60, 'sequential')
    for order in ORDERS:
        shown[0].children[-1].value = order
        assert not chart_faults(shown[-1])
    assert all(best <= tasks[-1].end for tasks, best in drawn)


def test_the_bound_in_the_toy_is_that_of_the_model(shown, drawn):
    overlap_plots.explore_overlap(2000, 1, 4)
    [(_, best)] = drawn
    assert best == best_possible(*overlap_plots.TOY.values(), 2e9, 1e-3,
                                 forward=overlap_plots.FORWARD)
