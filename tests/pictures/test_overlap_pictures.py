"""The Gantt chart shows the tasks; the toy follows its controls."""
import io

import matplotlib
import pytest
from d2lps.asynchrony.overlap import ORDERS, best_possible, simulate_step
from d2lps_pictures import overlap
from matplotlib import pyplot as plt

matplotlib.use('Agg')


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close('all')


def bars(ax):
    """(row, start, length) of all bars, in s, in order of their making."""
    return [(round(bar.get_y() + 0.4), bar.get_x() / 1e3,
             bar.get_width() / 1e3) for bar in ax.patches]


@pytest.mark.parametrize('pull', [False, True])
def test_each_task_is_a_bar_in_its_row(pull):
    tasks = simulate_step([1, 2], [3, 4], 1, pull=pull, forward=[1, 1])
    ax = overlap.plot_step(tasks, 'a step')
    row = {'backward': 0, 'forward': 0, 'push': 1, 'pull': 2}
    assert bars(ax) == [(row[task.what], pytest.approx(task.start),
                         pytest.approx(task.end - task.start))
                        for task in tasks]
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        'compute', 'push', 'pull'][:2 + pull]
    total = tasks[-1].end * 1e3
    assert ax.get_title('left') == f'a step: {total:.0f} ms'
    assert [text.get_text() for text in ax.texts][:2] == ['2', '1']


def test_a_bucket_says_whose_it_is_and_the_bound_is_a_line():
    tasks = simulate_step([1, 1, 1], [1, 1, 1], 1, bucket_size=2)
    ax = overlap.plot_step(tasks, best=3.5, until=10)
    assert [text.get_text() for text in ax.texts] == ['3', '2', '1', '2-3',
                                                      '1']
    assert [*ax.lines[0].get_xdata()] == [3500, 3500]
    assert ax.get_xlim() == (0, 10_000)
    assert ax.get_title('left') == '5 ms, dashed: no less than 4 ms'.replace(
        '5', '5000').replace('4', '3500')


@pytest.fixture
def drawn(monkeypatch):
    """The tasks and the bound of each picture."""
    found = []
    plot = overlap.plot_step

    def note(tasks, *args, **kwargs):
        found.append((tasks, kwargs['best']))
        return plot(tasks, *args, **kwargs)
    monkeypatch.setattr(overlap, 'plot_step', note)
    return found


def test_the_toy_follows_its_controls(shown, drawn):
    overlap.explore_overlap()
    bandwidth, latency, bucket, slices, order = shown[0].children
    assert drawn[0][0][-1].end == pytest.approx(0.092)
    for control, value, seconds in (
            (bandwidth, 500, .152), (order, 'priority', .124),
            (slices, 1, .123), (slices, 0, .124), (bucket, 60, .21),
            (latency, 10, .22), (order, 'sequential', .22)):
        control.value = value
        assert drawn[-1][0][-1].end == pytest.approx(seconds, abs=6e-4)
    assert len(shown) == 2 + 7 and plt.get_fignums() == []


def test_nothing_is_cut_off_whatever_is_chosen(shown, drawn):
    overlap.explore_overlap(250, 10, 60, 'sequential')
    for order in ORDERS:
        shown[0].children[-1].value = order
        image = plt.imread(io.BytesIO(shown[-1].data))[..., :3]
        for edge in image[:, 0], image[:, -1], image[0], image[-1]:
            assert (edge == 1).all()
    assert all(best <= tasks[-1].end for tasks, best in drawn)


def test_the_bound_in_the_toy_is_that_of_the_model(shown, drawn):
    overlap.explore_overlap(2000, 1, 4)
    [(_, best)] = drawn
    assert best == best_possible(*overlap.TOY.values(), 2e9, 1e-3,
                                 forward=overlap.FORWARD)
