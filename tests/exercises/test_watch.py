"""`forbidding` sees what it forbids, also by a trick; loops are ended."""
import ctypes
import runpy
import sys
import time
import tomllib
import types
from pathlib import Path

import pytest

from d2lps import missing
from d2lps.collectives import strategies
from d2lps.exercises import checking, numpygroup
from d2lps.exercises.checking import Wrong, forbidding, in_time
from d2lps.missing import NoMXNet

TABLE = Path(__file__).resolve().parents[2] / 'docs' / 'book' / 'tab.toml'


def plainly():
    strategies.tree(4)


def without_the_watch():
    sys.setprofile(None)
    strategies.tree(4)


def with_the_watch_put_back():
    watch = sys.getprofile()
    sys.setprofile(None)
    strategies.tree(4)
    sys.setprofile(watch)


def past_python():
    ctypes.pythonapi.PyEval_SetProfile(None, None)
    strategies.tree(4)


def past_python_and_put_back():
    watch = sys.getprofile()
    ctypes.pythonapi.PyEval_SetProfile(None, None)
    strategies.tree(4)
    sys.setprofile(watch)


def by_a_renamed_copy():
    function = strategies.tree.__wrapped__
    types.FunctionType(function.__code__.replace(co_name='mine'),
                       function.__globals__)(4)


def and_the_error_is_caught():
    try:
        strategies.tree(4)
    except Exception:
        pass


@pytest.mark.parametrize('cheat', [
    plainly, without_the_watch, with_the_watch_put_back, past_python,
    past_python_and_put_back, by_a_renamed_copy, and_the_error_is_caught],
    ids=lambda cheat: cheat.__name__)
def test_a_forbidden_call_is_seen(cheat):
    before = sys.getprofile()
    with pytest.raises(Wrong, match='was called. Write yours without it'):
        with forbidding(strategies.tree):
            cheat()
    assert sys.getprofile() is before


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
        with forbidding(strategies.ring):
            time.sleep(0.1)  # it ends late, and without a call in Python
    assert sys.getprofile() is None
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


def test_the_table_of_the_tab_says_how_each_exercise_runs():
    rows = tomllib.loads(TABLE.read_text())['exercises']
    assert {*rows} == {*checking.EXERCISES}
    for exercise, row in rows.items():
        assert row.keys() == {'all': {'runs'}, 'no': {'runs', 'why'},
                              'parts': {'runs', 'cells'}}[row['runs']]
        needs_threads = 'numpygroup' in vars(checking.module_of(exercise))
        assert (row['runs'] == 'no') == (
            needs_threads or exercise in checking.WITH_TORCH)


def test_all_other_calls_are_allowed():
    with forbidding(strategies.ring), forbidding(strategies.tree):
        assert strategies.running_sum(4).num_devices == 4
