"""Notes of a plan may come from anybody: they are judged, or refused."""
import json

import pytest

from d2lps.collectives import Schedule, Send, strategies, topology
from d2lps.exercises import plan_checks, tree
from d2lps.exercises.checking import (Differs, Wrong, check, judge_notes,
                                      take_notes)

RIGHT = {'rounds': [[[1, 0, 0, True]], [[0, 1, 0, False]]], 'weights': [1],
         'is_schedule': True}


def judge(**changes):
    notes = json.dumps({'cases': [{'notes': {**RIGHT, **changes}}],
                        'source': {}})
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
    with pytest.raises(Wrong, match='could not be read'):
        judge(**changes)


def test_what_would_take_long_is_refused():
    for changes in ({'rounds': RIGHT['rounds'][:1] * 1001},
                    {'rounds': [RIGHT['rounds'][0] * 20_001]},
                    {'weights': [1] * 1001}):
        with pytest.raises(Wrong, match='are judged|1001 chunks'):
            judge(**changes)
        with pytest.raises(Wrong, match='are judged'):
            plan_checks.plan_of({**RIGHT, **changes}, 2)


def mistake(rounds):
    """What is found out about a plan for 3 devices."""
    with pytest.raises(Differs) as error:
        plan_checks.judge_total(Schedule([
            [Send(*send) for send in sends] for sends in rounds], 3))
    return error.value


def test_the_first_round_that_spoils_the_sum_is_found():
    up = [[(2, 1, 0, True)], [(1, 0, 0, True)]]
    for number, words, rounds in (
            (3, 'device 2 replaces', [[(1, 2, 0, False), (0, 1, 0, False)]]),
            (3, 'device 1 adds', [[(0, 1, 0, True), (0, 2, 0, False)]])):
        assert f'In round {number} {words}' in mistake([*up, *rounds]).place
    assert 'brings it to device 2' in mistake([
        *up, [(0, 1, 0, False), (0, 2, 1, True)]]).place
    assert 'no further than to device 2, in round 2' in mistake([
        up[0], [(0, 2, 0, True)], [(1, 0, 1, True)]]).place


def test_a_plan_that_a_change_makes_right():
    first, second, down = (2, 1, 0, True), (1, 0, 0, True), [
        [(0, 1, 0, False)], [(1, 2, 0, False)]]
    for rounds, words in (
            ([[second], [first], *down], 'first half in the opposite order'),
            ([[(1, 2, 0, True)], [(0, 1, 0, True)], *down],
             'interchanged in its first half'),
            ([[first], [second], [(0, 1, 0, True)], [(1, 2, 0, True)]],
             'False in its second half')):
        [said] = mistake(rounds).known.values()
        assert words in said


def test_each_message_is_an_arrow():
    plan = strategies.halving_doubling(4)
    ax, = plan_checks.draw_plan(plan, 'four devices').axes
    tips = [text.xy[1] for text in ax.texts if hasattr(text, 'arrow_patch')]
    assert sorted(tips) == sorted(4 * [*range(4)])
    words = [text.get_text() for text in ax.texts]
    assert words.count('the sum') == 4 and words.count('2') == 8


def test_an_arrow_points_to_who_receives():
    plan = Schedule([[Send(0, 2, 0, True)]], 3)
    ax, = plan_checks.draw_plan(plan, 'down').axes
    [arrow] = [text for text in ax.texts if hasattr(text, 'arrow_patch')]
    assert (arrow.xyann[1], arrow.xy[1]) == (0, 2)


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


def test_the_time_that_is_told_is_the_time_of_this_plan():
    """A plan in chunks passes `time`, and is faster than whole gradients."""
    time, notes = tree.CHECKS['time'], plan_checks.notes_of(
        strategies.ring(8), 8)
    time.judge(notes, **time.cases[0])
    assert time.says(notes, **time.cases[0]).endswith('takes 17.6 ms.')


def test_an_error_of_the_students_own_is_not_told_as_the_chapters():
    def answer(n):
        raise ValueError('round 1 of mine')

    notes = take_notes(tree.CHECKS['sum'], answer, [{'n': 2}])
    assert 'your function stopped with ValueError: round 1 of mine' in notes


@pytest.mark.parametrize('as_list', [False, True])
def test_a_message_that_cannot_be_is_told_in_the_words_of_the_chapter(as_list):
    def answer(n):
        rounds = [[Send(1, 0, 0, True), Send(n, 0, 0, True)]]
        return rounds if as_list else Schedule(rounds, n)

    with pytest.raises(Wrong, match='message 2 comes from device 2'):
        check('tree', 'sum', answer)
