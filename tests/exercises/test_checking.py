"""What all checks do: they run cases, judge notes, and tell one fact."""
import json
import re
import runpy
import sys
import textwrap
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from d2lps import missing
from d2lps.collectives import strategies
from d2lps.exercises import checking, numpygroup
from d2lps.exercises.checking import (Check, Differs, Wrong, compare, in_time,
                                      judge_notes, numbers, returned,
                                      take_notes, unchanged, whole_numbers,
                                      without)
from d2lps.exercises.hung_ring import senders
from d2lps.exercises.unknown_rings import rings_left
from d2lps.missing import NoMXNet

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / 'docs' / 'book' / 'tab.toml'
LIST = ROOT / 'notebooks' / 'exercises' / 'README.md'
CASES = [{'n': n, 'gpus': gpus} for n, gpus in ((3, 2), (4, 8), (7, 1))]
TWICE = Check(CASES, lambda answer, n, gpus: returned(answer, n, gpus),
              compare(lambda n, gpus: 2 * n), 'twice as many.', case='n = {n}')


def said(answer, check=TWICE):
    """What a student reads."""
    try:
        judge_notes(check, take_notes(check, answer, check.cases), check.cases)
    except Wrong as error:
        return str(error)
    return check.right


@pytest.mark.parametrize('answer, facts', [
    (lambda n, gpus: 2 * n, [TWICE.right]),
    (lambda n, gpus: 2 * n * gpus, ['n = 3:', '12', '6', '`gpus` is 2']),
    (lambda n, gpus: 2 * n if n < 7 else 7, ['n = 7:', '7', '14']),
    (lambda n, gpus: 2 * n + gpus % 2, ['n = 7:', '15', '14']),
    (lambda n, gpus: 1 / (n - 3), ['n = 3:', 'division by zero']),
    (lambda n, gpus: 6 if n == 3 else 1 / (n - 4),
     ['n = 4:', 'division by zero']),
    (lambda n, gpus: None, ['returned None'])])
def test_one_case_is_told_with_a_fact_that_fits_all(answer, facts):
    assert all(fact in said(answer) for fact in facts)


def test_a_list_that_grows_is_told_if_the_first_case_is_right():
    def grows(n, gpus, kept=[]):  # noqa: B006
        kept.append(n)
        return 2 * n * len(kept)

    assert '`kept` keeps' in said(grows)


def test_a_place_is_told_where_no_fact_fits():
    def judge(notes, n, gpus):
        if notes != 2 * n:
            raise Differs('wrong', notes, 2 * n, place=f'In round {n}.',
                          known={('more',): 'More.'} if notes > 2 * n else {})

    check = TWICE._replace(judge=judge)
    assert said(lambda n, gpus: 2 * n - 1 - n % 3, check).endswith(
        'wrong. In round 3.')
    assert said(lambda n, gpus: 2 * n + 1 + n % 3, check).endswith('. More.')


@pytest.mark.parametrize('value', [
    '12', b'12', {1: 2, 3: 4}, 5, (1, 2, 3), (1, None), ([1], 2),
    (10 ** 400, 1), (1, float('inf')), (float('nan'), 1), np.ones((2, 2))],
    ids=str)
def test_two_numbers_are_told_from_all_else(value):
    for pair in (1, 2.5), [1, 2.5], np.array([1, 2.5]), (np.float32(1), 2.5):
        assert numbers(pair, 2, '') == [1, 2.5]
    with pytest.raises(Wrong, match='two are right'):
        numbers(value, 2, 'two are right')


@pytest.mark.parametrize('value', [5, '12', b'12', {1: 2}, [1.5], [[1], 2],
                                   [1, None], np.ones(2)], ids=str)
def test_whole_numbers_are_told_from_all_else(value):
    assert whole_numbers((1, np.int64(2)), 1, '') == [1, 2]
    assert whole_numbers(iter([[1], (2, 3)]), 2, '') == [[1], [2, 3]]
    for depth in 1, 2:
        with pytest.raises(Wrong, match='lists are right'):
            whole_numbers(value, depth, 'lists are right')


@pytest.mark.parametrize('notes', [
    '', '[]', '{}', '{"cases": [], "source": {}}', '{"cases": 3, "source": 0}',
    '{"cases": [{"notes": 6}], "source": {}}', '{"cases": [{}], "source": {}}',
    '{"cases": [{"wrong": 1}], "source": {}}',
    '{"cases": [{"notes": 6}, {"notes": 8}, {"notes": null}], "source": {}}',
    json.dumps({'cases': [{'notes': [[[1] * 9]] * 9}], 'source': {
        'loop': [], 'kept': 'no name'}})])
def test_notes_that_no_answer_makes_are_wrong(notes):
    with pytest.raises(Wrong):
        judge_notes(TWICE, notes, CASES)


def test_the_same_message_is_printed_once(monkeypatch):
    module = checking.module_of('tree')
    monkeypatch.setattr(module, 'CHECKS', {
        'one': TWICE, 'two': TWICE._replace(right='the same.')})

    def nothing(n, gpus):
        pass

    def twice(n, gpus):
        return 2 * n

    for _ in range(2):
        with pytest.raises(Wrong, match='returned None'):
            checking.check('tree', 'one', nothing)
        with pytest.raises(Wrong, match='^This is as in `one`.$'):
            checking.check('tree', 'two', nothing)
    checking.check('tree', 'one', twice)
    with pytest.raises(Wrong, match='returned None'):
        checking.check('tree', 'two', nothing)


def test_an_answer_that_changes_its_argument_does_not_change_the_case():
    def add(xs):
        xs.append(1)
        return len(xs)

    check = Check([{'xs': [5, 6]}], lambda answer, xs: returned(answer, xs),
                  compare(lambda xs: 1 + len(xs)), 'one more.')
    assert [said(add, check) for _ in range(2)] == ['one more.'] * 2
    assert check.cases == [{'xs': [5, 6]}]


@pytest.mark.parametrize('words, begin', [
    ('after w0 w1, worker 0 pulls w and gets None', 'Not yet. After w0 w1'),
    ('sizes = [1, 2]: you return 3', 'Not yet. sizes = [1, 2]'),
    ('`f` returned None.', 'Not yet. `f`')])
def test_a_message_has_a_capital_and_breaks_between_words(words, begin):
    lines = Wrong(f'{words}{" and more of it" * 9}')._render_traceback_()
    assert lines[0].startswith(begin)
    assert len(lines) > 1 and max(map(len, lines)) <= 88
    assert not any(line.endswith(('an', 'mor')) for line in lines)


def test_an_argument_that_is_changed_in_place_is_named():
    X, sizes = np.ones(3), [1, 2]
    with unchanged(X=X, sizes=sizes):
        X + 1
    with pytest.raises(Wrong, match='has changed `sizes`'):
        with unchanged(X=X, sizes=sizes):
            sizes.append(3)
    with pytest.raises(Wrong, match='has changed `X`'):
        with unchanged(X=X):
            X[0] = 7


def by_name(n):
    return strategies.tree(n)


def inside(n):
    from d2lps.collectives.strategies import tree
    return tree(n)


def through_another(n):
    return by_name(n)


class InAMethod:
    def make(self, n):
        return [strategies.tree(k) for k in range(n)]


def judging(n):
    return numpygroup.Group(n)


def tree(n):
    return strategies.ring(n)


def other(n):
    return tree(n)


def with_another_name(n):
    import d2lps.collectives.strategies as plans
    return [plans.tree(k) for k in range(n)]


def by_its_whole_name(n):
    import d2lps.collectives.strategies
    return d2lps.collectives.strategies.tree(n)


class Attributes:
    """Its own attributes have the name of a forbidden function."""
    def __init__(self, plan):
        self.tree, self.best = plan.tree, strategies.ring(3).tree


def without_a_name(cables):
    return rings_left(cables)


class InALoop:
    def search(self, tables):
        return [rings_left(table) for table in tables]


def given_to_students(plan):
    return senders(plan, 0, 1)


@pytest.mark.parametrize('answer', [by_name, inside, through_another,
                                    InAMethod, with_another_name,
                                    by_its_whole_name])
def test_a_function_that_gives_the_answer_is_seen_by_its_name(answer):
    with pytest.raises(Wrong, match='`tree` of d2lps is used'):
        without(answer, strategies.tree)


def test_what_judges_is_refused_and_all_else_allowed():
    with pytest.raises(Wrong, match='`numpygroup` of d2lps is used'):
        without(judging)
    for function in without_a_name, InALoop:
        with pytest.raises(Wrong, match='`rings_left` of d2lps is used'):
            without(function)
    assert '`rings_left` of d2lps is used' in said(rings_left)
    for right in Attributes, given_to_students:
        without(right, strategies.tree)
    without(other, strategies.tree)  # the student's own function `tree`
    without(print, strategies.tree)


def test_what_the_tasks_give_to_students_is_all_that_answers_may_use():
    given = {name for task in (LIST.parent / 'tasks').glob('*.ipynb')
             for names in re.findall(
                 r'"from d2lps\.exercises\.\w+ import ([\w, ]+)',
                 task.read_text('utf-8')) for name in names.split(', ')}
    constants = {name for name in given if name.isupper()}
    assert given - constants == {*checking.GIVEN}


def test_an_answer_that_catches_all_errors_is_stopped_nevertheless():
    def run(answer, n, gpus):
        with in_time(0.05, lambda: 'too late'):
            return answer(n)

    def errors(n):
        end = time.process_time() + 9
        while time.process_time() < end:
            try:
                grow()
            except Exception:
                pass

    def everything(n):
        try:
            grow()
        except:  # noqa: E722
            return 2 * n

    start = time.process_time()
    for answer in errors, everything:
        assert said(answer, TWICE._replace(run=run)) == 'n = 3: too late.'
    assert time.process_time() < start + 8


def test_too_large_notes_are_told_as_that(monkeypatch):
    handed = []
    monkeypatch.setattr('IPython.display.display',
                        lambda data, raw: handed.append(data[checking.NOTES]))
    monkeypatch.setattr(checking, 'MOST_NOTES', 10)
    checking.hand_over(take_notes(TWICE, lambda n, gpus: 2 * n, CASES))
    with pytest.raises(Wrong, match='^your function returned far too many'):
        judge_notes(TWICE, *handed, CASES)


def test_a_fault_in_our_lines_is_not_told_as_the_students(capsys):
    def run(answer, n, gpus):
        return returned(answer, n)[0]

    def judge(notes, n, gpus):
        return {}[notes]

    assert said(lambda n: 5, TWICE._replace(run=run)).startswith(
        'n = 3: your function stopped with TypeError')  # in this file
    assert 'could not be read (KeyError: 6)' in said(
        lambda n, gpus: 2 * n, TWICE._replace(judge=judge))
    assert 'your function stopped with TypeError' in said(lambda: 5)
    checking.picture('where-keys-go', lambda sizes, n: [(0, 8, 0, 5)])
    assert capsys.readouterr().out.startswith(
        'No picture yet: your answer could not be read (IndexError')


needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12),
                                      reason='no sys.monitoring')


def loop():
    while True:
        pass


def grow(deep=0):
    """A recursion without a loop, of far too many calls."""
    return deep < 60 and (grow(deep + 1) or grow(deep + 1))


@needs_monitoring
@pytest.mark.parametrize('endless', [loop, grow])
def test_without_signals_a_loop_and_a_recursion_are_ended(
        monkeypatch, endless):
    monkeypatch.delattr('signal.setitimer', raising=False)
    with pytest.raises(Wrong, match='one inside another'):
        with in_time(60, lambda: 'outside'):
            with in_time(0.1, lambda: 'one inside another'):
                endless()
    assert not any(map(sys.monitoring.get_tool, (3, 4)))


@needs_monitoring
def test_what_tidies_up_after_a_late_answer_is_not_ended(monkeypatch):
    monkeypatch.delattr('signal.setitimer', raising=False)
    with in_time(0.05, lambda: 'late'):
        time.sleep(0.1)  # it ends late, and without a call in Python
    assert not any(map(sys.monitoring.get_tool, (3, 4)))


def test_nobody_can_interrupt_in_a_tab_so_a_check_has_a_limit(
        monkeypatch, capsys):
    def slow(n):
        while True:
            pass

    monkeypatch.setattr(checking, 'IN_A_TAB', True)
    monkeypatch.setattr(checking, 'TAB_SECONDS', 0.1)
    with pytest.raises(Wrong, match='computed for 0.1 s, so it was stopped'):
        checking.check('tree', 'sum', slow)
    assert checking.picture('tree', slow) is None
    assert 'computed for 0.1 s' in capsys.readouterr().out


def test_a_picture_that_needs_mxnet_does_not_blame_the_answer(
        monkeypatch, capsys):
    def picture(answer):
        raise NoMXNet('none')

    monkeypatch.setattr(checking.module_of('minibatch'), 'picture', picture)
    assert checking.picture('minibatch', None) is None
    assert capsys.readouterr().out.startswith('No picture here. d2lps needs')


def test_workers_that_are_threads_say_at_once_that_a_tab_has_none(
        monkeypatch):
    monkeypatch.setattr(missing, 'IN_A_TAB', True)
    with pytest.raises(checking.Missing, match='threads, which a browser tab'):
        runpy.run_path(numpygroup.__file__)


def test_the_exercise_on_the_page_for_teachers_is_all_that_is_needed():
    page = (ROOT / 'teaching' / 'README.md').read_text()
    [source] = re.findall(r'^   ```python\n(.*?)^   ```', page, re.M | re.S)
    module: dict = {}
    exec(textwrap.dedent(source), module)
    assert said(sum, module['CHECKS']['sum']) == 'all are added.'
    assert said(lambda xs: sum(xs) / len(xs), module['CHECKS']['sum']) == (
        'xs = [1, 2]: you return 1.5; 3 is right.')
    assert module['picture'](sum).axes


def test_each_exercise_has_its_rows():
    """In the list of exercises, and in the table of the tab."""
    listed = re.findall(r'^\| \[([^]]*)\]\(tasks/\1\.ipynb\)',
                        LIST.read_text(), re.M)
    assert sorted(listed) == sorted(checking.EXERCISES)
    rows = tomllib.loads(TABLE.read_text())['exercises']
    assert {*rows} == {*checking.EXERCISES}
    for exercise, row in rows.items():
        assert row.keys() == {'all': {'runs'}, 'no': {'runs', 'why'},
                              'parts': {'runs', 'cells'}}[row['runs']]
        needs_threads = 'numpygroup' in vars(checking.module_of(exercise))
        assert (row['runs'] == 'no') == (
            needs_threads or exercise in checking.WITH_TORCH)
