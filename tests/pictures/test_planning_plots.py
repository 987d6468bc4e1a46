"""Pictures of divisions, of their steps, and of published runs."""
from pathlib import Path

import pytest
from matplotlib import pyplot

from d2lps.figures import alt_text
from d2lps.pictures import plot_division, plot_parts, plot_published
from d2lps.planning import (H100, LLAMA3_70B, Division, best_divisions,
                            compare_runs, read_runs)

RUNS = (Path(__file__).resolve().parents[2]
        / 'notebooks/results/20-published-runs.csv')


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close('all')


def test_each_gpu_has_a_box_with_its_copy_and_part():
    ax = plot_division(Division(data=2, tensor=8, pipeline=4), H100)
    words = [text.get_text() for text in ax.texts]
    assert len(words) == 64 and words[:3] == ['A0', 'A1', 'A2']
    assert {text.get_fontsize() for text in ax.texts} == {10}  # for phones
    assert words[-1] == 'B7' and len({*words}) == 16
    boxes = {box.get_facecolor() for box in ax.patches}
    assert len(ax.patches) == 64 and len(boxes) == 4
    assert '8 rows of 8 boxes' in alt_text(ax.figure)


@pytest.mark.parametrize('division', [
    Division(data=27), Division(tensor=8, pipeline=17), Division(context=2)])
def test_what_cannot_be_drawn_is_refused(division):
    with pytest.raises(ValueError, match='division must be one without'):
        plot_division(division, H100)


def test_the_parts_of_a_step_make_its_bar():
    table = best_divisions(LLAMA3_70B, 64, 128, H100).iloc[[1, 7, -5]]
    ax = plot_parts(table)
    ends = {}
    for bar in ax.patches:
        row = round(bar.get_y() + bar.get_height() / 2)
        ends[row] = max(ends.get(row, 0), bar.get_x() + bar.get_width())
    assert [*ends.values()] == pytest.approx([*table.seconds], rel=0.01)
    assert [float(text.get_text()) for text in ax.texts] == pytest.approx(
        [*table.seconds], abs=0.05)
    ax.figure.draw_without_rendering()
    for row, text in enumerate(ax.texts):  # a number does not touch its bar
        right, _ = ax.transData.transform((ends[row], row))
        assert text.get_window_extent().x0 > right + 2
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0] == 'data 16, tensor 4, pipeline 1'
    assert plot_parts(table, 'abc').get_yticklabels()[2].get_text() == 'c'


PLANNED = best_divisions(LLAMA3_70B, 64, 128, H100).iloc[:2]


@pytest.mark.parametrize('call, says', [
    (lambda: plot_parts(PLANNED[:0]), 'table must have a row'),
    (lambda: plot_parts(PLANNED, ['a']), 'names must be one for each of 2'),
    (lambda: plot_parts(PLANNED.drop(columns='data s')),
     "a table with a column 'data s'"),
    (lambda: plot_parts(PLANNED.assign(**{'data s': float('nan')})),
     r"table\['data s'\].* was nan"),
    (lambda: plot_published(PLANNED, PLANNED.data),
     "a table with a column 'published MFU'")])
def test_a_table_that_cannot_be_drawn_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_a_run_beyond_the_usual_mfu_is_in_the_picture():
    found = compare_runs(read_runs(RUNS))
    found.loc[3, 'predicted MFU'] = 0.9
    ax = plot_published(found, read_runs(RUNS).group)
    assert ax.get_xlim()[1] == ax.get_ylim()[1] > 0.9


def test_each_published_run_has_a_mark():
    runs = read_runs(RUNS)
    ax = plot_published(compare_runs(runs), runs.group)
    marks = ax.collections[1:]  # behind them is the band
    assert sum(len(one.get_offsets()) for one in marks) == len(runs)
    assert len(runs) > 9  # and more groups than markers
    marks = plot_published(compare_runs(runs), runs.run).collections[1:]
    assert sum(len(one.get_offsets()) for one in marks) == len(runs)
