"""A line that the reader writes in a chapter, and its check.

A chapter leaves out a line, as `...`, and does not need it later. The folded
check below says whether the reader's line is right, and why.
"""
import inspect
import numbers
from collections.abc import Callable
from typing import Any

from d2lps.checks import checked, instance_of, shown, text
from d2lps.explaining import explain, nothing_returned, same, source_facts

NEAR = 0.01  # a float may be off by one part in a hundred


@checked(hint=text, why=text)
def your_turn(answer: Any, wanted: Any, hint: str, why: str,
              unit: str = '') -> None:
    """Say in a line whether the reader's answer is right; never raise.

    Args:
        answer: a value or a function; `...` while nothing is written.
        wanted: the right value. For a function: `{arguments: value}`, where
            several arguments are a tuple. Floats, and arrays of floats, may
            be off by 1%, because readers round; all else must be equal.
        hint: help for a wrong answer, without the right answer. A fact that
            `explain` finds about the answer takes its place.
        why: the explanation for a right answer.
        unit: of the right value, such as 'milliseconds', see `explain`.

    Raises:
        ValueError: `wanted` is no dictionary although `answer` is a function.
    """
    if callable(answer):
        fault, fact = _faults(answer, _cases('wanted', wanted), unit)
    elif answer is ... or same(answer, wanted, NEAR):
        fault, fact = (... if answer is ... else None), ''
    else:
        fault = f'{shown(answer)} is {_direction(answer, wanted)}'
        fact = '' if _is_whole(wanted) else explain(
            [answer], [wanted], [{}], _is_right([wanted]), unit=unit)
    if fault is ...:
        print('Your turn: replace the dots in the cell above, then run it '
              'and this check.')
    elif fault is None:
        print(f'Right. {why}')
    else:
        print(f'Not yet: {fault}. {fact or hint}')


_cases = instance_of(
    dict, 'a dictionary with a case, such as {4: 6}, for a function')


def _faults(answer: Callable[..., Any], wanted: dict[Any, Any],
            unit: str) -> tuple[Any, str]:
    """The first case that fails, in words, and a fact about all that do.

    `...` if nothing is written, and None if no case fails.
    """
    first, got, right, cases = None, [], [], []
    for given, truth in wanted.items():
        arguments = given if isinstance(given, tuple) else (given,)
        case = f'{answer.__name__}({", ".join(map(shown, arguments))})'
        try:
            came = answer(*arguments)
        except Exception as error:
            first = first or f'{case} raised {type(error).__name__}: {error}'
            break
        if came is ...:
            return ..., ''
        if came is None and truth is not None:
            return first or f'{case} gave None, and {shown(truth)} is right', (
                nothing_returned(answer).partition('None. ')[2])
        if not same(came, truth, NEAR):
            first = first or (f'{case} gave {shown(came)}, and '
                              f'{shown(truth)} is right')
            got.append(came)
            right.append(truth)
            cases.append(_named(answer, arguments))
    return first, explain(got, right, cases, _is_right(right), unit=unit,
                          others=len(wanted) - len(got),
                          source=source_facts(answer))


def _is_right(wanted):
    return lambda changed, k: same(changed, wanted[k], NEAR)


def _is_whole(value):
    """A small number is not to be told by how much the answer differs."""
    return isinstance(value, numbers.Integral)


def _named(answer, arguments):
    """The arguments by the names that the reader's function gives them."""
    try:
        return inspect.signature(answer).bind(*arguments).arguments
    except (TypeError, ValueError):  # of a function in C, say
        return {}


def _direction(answer: Any, wanted: Any) -> str:
    """A word on how a wrong value differs, without the right one."""
    if all(isinstance(number, numbers.Real) and not isinstance(number, bool)
           for number in (answer, wanted)):
        if answer != answer:
            return 'not a number'
        return 'too small' if answer < wanted else 'too large'
    return 'not right'
