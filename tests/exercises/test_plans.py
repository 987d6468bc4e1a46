"""Notes of a plan may come from anybody: they are judged, or refused."""
import json

import pytest
from matplotlib.markers import CARETDOWN

from d2lps.collectives import Schedule, Send, strategies, topology
from d2lps.exercises import plan_checks, tree
from d2lps.exercises.checking import Wrong, judge_notes

RIGHT = {'rounds': [[[1, 0, 0, True]], [[0, 1, 0, False]]], 'weights': [1],
         'is_schedule': True}


def judge(**changes):
    notes = json.dumps([{'notes': {**RIGHT, **changes}}])
    judge_notes(tree.CHECKS['sum'], notes, [{'n': 2}])


def test_a_right_plan_passes():
    judge()


@pytest.mark.parametrize('changes', [
    {'rounds': None}, {'rounds': [[[1, 0, 0]]]}, {'rounds': 'words'},
    {'rounds': [[[1, 0, 0, 1]]]}, {'rounds': [[['a', 0, 0, True]]]},
    {'rounds': [[[1, 2, 0, True]]]}, {'rounds': [[[1, 1, 0, True]]]},
    {'rounds': [[[1, 0, 10 ** 9, True]]]}, {'rounds': [[[1.5, 0, 0, True]]]},
    {'weights': []}, {'weights': [float('nan')]}, {'weights': [-1]},
    {'weights': 1}], ids=str)
def test_what_is_no_plan_is_refused(changes):
    with pytest.raises(Wrong, match='could not be judged'):
        judge(**changes)


def test_what_would_take_long_is_refused():
    for changes in ({'rounds': RIGHT['rounds'][:1] * 201},
                    {'rounds': [RIGHT['rounds'][0] * 20_001]},
                    {'weights': [1] * 1001}):
        with pytest.raises(Wrong, match='far too many|into 1001 chunks'):
            judge(**changes)
        with pytest.raises(Wrong, match='far too many'):
            plan_checks.plan_of({**RIGHT, **changes}, 2)


def test_each_message_is_an_arrow():
    plan = strategies.halving_doubling(4)
    ax, = plan_checks.draw_plan(plan, 'four devices').axes
    tips = [y for line in ax.lines for y in line.get_ydata()
            if line.get_marker() != 'None']
    assert sorted(tips) == sorted(4 * [*range(4)])
    words = [text.get_text() for text in ax.texts]
    assert words.count('the sum') == 4 and words.count('2') == 8


def test_an_arrow_points_to_who_receives():
    plan = Schedule([[Send(0, 2, 0, True)]], 3)
    ax, = plan_checks.draw_plan(plan, 'down').axes
    [[(_, begin), (_, end)]] = ax.collections[0].get_segments()
    [tip] = [line for line in ax.lines if line.get_marker() != 'None']
    assert (begin, end, *tip.get_ydata()) == (0, 2, 2)
    assert tip.get_marker() == CARETDOWN


def test_a_plan_without_the_sum_has_no_time():
    """However soon it ends, it is not the best."""
    whole = strategies.tree(4)
    for plan in (whole, Schedule([*whole.rounds][:-1], 4, name='your plan')):
        right = plan is whole
        alt = plan_checks.picture_of(
            plan, [strategies.running_sum(4)], topology.pcie_switch(4), 1e6,
            1e-4).alt
        assert ('tree(4)' in alt) == right
        assert ('your plan: no sum, no time' in alt) != right
        assert 'running_sum(4)' in alt
