"""Pictures of workers on a virtual clock show what was played."""
import pytest
from d2lps.asynchrony.clock import virtual_clock
from d2lps.asynchrony.training import Point
from d2lps_pictures import asynchrony
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

STRAGGLER = [[1], [5]]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close('all')


def bars(ax):
    """{(colour, worker): [(start, end), ...]}"""
    found = {}
    for collection in ax.collections:
        for path in collection.get_paths():
            x, y = path.vertices[:4].T
            key = to_hex(collection.get_facecolor()[0]).upper(), round(
                y.mean())
            found.setdefault(key, []).append((x.min(), x.max()))
    return found


def test_a_plan_is_drawn_to_scale():
    plan = virtual_clock(STRAGGLER, 'sync', 4)
    found = bars(asynchrony.plot_plan(plan))
    assert found == {(asynchrony.SKY, 0): [(0, 1), (5, 6)],
                     (asynchrony.SKY, 1): [(0, 5), (5, 10)],
                     (asynchrony.GRAY, 0): [(1, 5), (6, 10)]}


def test_what_lies_beyond_the_axis_is_cut_and_the_dropped_are_marked():
    plan = virtual_clock([[1], [1], [5]], 'sync', 16, backups=1)
    ax = asynchrony.plot_plan(plan, until=7, title='backup')
    found = bars(ax)
    assert found[asynchrony.RED, 2] == [(0, 5)]
    assert found[asynchrony.SKY, 2] == [(5, 7)]
    assert found[asynchrony.SKY, 0][-1] == (6, 7) and ax.get_xlim() == (0, 7)
    assert ax.get_title(loc='left') == 'backup'


def test_progress_and_staleness_are_those_of_the_plans():
    plans = {'sync': virtual_clock(STRAGGLER, 'sync', 20),
             'async': virtual_clock(STRAGGLER, 'async', 20)}
    ax = asynchrony.plot_progress(plans, until=10)
    for line, plan in zip(ax.lines, plans.values()):
        x, y = line.get_data()
        assert (x[-1], y[-1]) == (plan.seconds, 20)
    assert [line.get_color() for line in ax.lines] == [
        asynchrony.BLUE, asynchrony.ORANGE]
    axes = asynchrony.plot_staleness(plans)
    for ax, plan in zip(axes.flat, plans.values()):
        heights = {round(bar.get_x() + 0.4): bar.get_height()
                   for bar in ax.patches}
        assert heights == plan.staleness


def test_accuracy_has_a_thin_line_for_a_seed_and_a_thick_mean():
    runs = [[Point(10, 1.0, 0.2), Point(20, 2.0, 0.6)],
            [Point(10, 1.5, 0.4), Point(20, 2.5, 0.8)]]
    left, right = asynchrony.plot_accuracy({'async, divided': runs})
    for ax, x in (left, [1.25, 2.25]), (right, [10, 20]):
        assert len(ax.lines) == 3
        mean = ax.lines[-1]
        assert mean.get_xdata().tolist() == pytest.approx(x)
        assert mean.get_ydata().tolist() == pytest.approx([0.3, 0.7])
        assert mean.get_linestyle() == '--'


def test_the_toy_follows_its_sliders(shown):
    asynchrony.explore_clock()
    box, first = shown
    kind, ahead, slowdown = box.children
    for control, value in ((ahead, 'async'), (slowdown, 10),
                           (kind, 'heavy tail')):
        before = shown[-1].data
        control.value = value
        assert shown[-1].data != before
    assert len(shown) == 5


def test_what_would_take_long_to_draw_is_refused():
    with pytest.raises(ValueError, match='^plan has 20,002 pulls and pushes'):
        asynchrony.plot_plan(virtual_clock([[1]], 'async', 10_001))
