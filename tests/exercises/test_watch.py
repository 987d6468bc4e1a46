"""`forbidding` sees a call of what it forbids, also by way of a trick."""
import ctypes
import sys
import types

import pytest

from d2lps.collectives import strategies
from d2lps.exercises.checking import Wrong, forbidding


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


def test_all_other_calls_are_allowed():
    with forbidding(strategies.ring), forbidding(strategies.tree):
        assert strategies.running_sum(4).num_devices == 4
