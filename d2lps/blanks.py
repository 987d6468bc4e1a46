"""A line that the reader writes in a chapter, and its check.

A chapter leaves out a line, as `...`, and does not need it later. The folded
check below says whether the reader's line is right, and why.
"""
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from d2lps.checks import checked, instance_of, shown, text

NEAR = 0.01  # a float may be off by one part in a hundred


@checked(hint=text, why=text)
def your_turn(answer: Any, wanted: Any, hint: str, why: str) -> None:
    """Say in a line whether the reader's answer is right; never raise.

    Args:
        answer: a value or a function; `...` while nothing is written.
        wanted: the right value. For a function: `{arguments: value}`, where
            several arguments are a tuple. Floats, and arrays of floats, may
            be off by 1%, because readers round; all else must be equal.
        hint: help for a wrong answer, without the right answer.
        why: the explanation for a right answer.

    Raises:
        ValueError: `wanted` is no dictionary although `answer` is a function.
    """
    fault: Any
    if answer is ...:
        fault = ...
    elif callable(answer):
        fault = _first_fault(answer, _cases('wanted', wanted))
    elif _same(answer, wanted):
        fault = None
    else:
        fault = f'{shown(answer)} is {_direction(answer, wanted)}'
    if fault is ...:
        print('Your turn: replace the dots in the cell above, then run it '
              'and this check.')
    elif fault is None:
        print(f'Right. {why}')
    else:
        print(f'Not yet: {fault}. {hint}')


_cases = instance_of(
    dict, 'a dictionary with a case, such as {4: 6}, for a function')


def _first_fault(answer: Callable[..., Any], wanted: dict[Any, Any]) -> Any:
    """The first case that fails, in words; `...` if none is written."""
    for given, right in wanted.items():
        arguments = given if isinstance(given, tuple) else (given,)
        case = f'{answer.__name__}({", ".join(map(shown, arguments))})'
        try:
            came = answer(*arguments)
        except Exception as error:
            return f'{case} raised {type(error).__name__}: {error}'
        if came is ...:
            return ...
        if not _same(came, right):
            return f'{case} gave {shown(came)}, and {shown(right)} is right'
    return None


def _same(came: Any, right: Any) -> bool:
    """Equal, but for the rounding of floats."""
    try:
        came, right = (one.asnumpy() if hasattr(one, 'asnumpy') else
                       np.asarray(one) for one in (came, right))
        if came.shape != right.shape:
            return False
        if right.dtype.kind == 'f' and came.dtype.kind in 'iuf':
            return bool(np.allclose(came, right, rtol=NEAR, atol=0))
        return bool((came == right).all())
    except (TypeError, ValueError):
        return False


def _direction(answer: Any, wanted: Any) -> str:
    """How a wrong value differs, without telling the right one."""
    if all(isinstance(one, numbers.Real) and not isinstance(one, bool)
           for one in (answer, wanted)):
        return 'too small' if answer < wanted else 'too large'
    return 'not right'
