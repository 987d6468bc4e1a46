"""Expectations of a chapter about the machine that runs it.

An assertion holds on every machine, at any load. A claim that another
processor, other programs or luck can change is an expectation instead. A
folded check has it in words, and prints a line if it did not hold.
`make measure` counts how often each expectation holds.
"""
import os
from typing import Any

from d2lps.checks import BOOL, checked, refuse, text
from d2lps.processor import cores, limit
from d2lps.usage import CELLS

HELD, NOT_HELD = 'as expected: ', 'not here, not now: '
MUCH = 0.1  # cores
TELL_ALL = 'D2LPS_TELL_ALL'  # in the environment: print a line if it held, too


def hindrances() -> list[str]:
    """The known reasons why this machine did not run at full speed."""
    reasons = []
    if cores() == 1:
        reasons.append('there is only one core')
    allowed = limit()
    if allowed is not None and allowed < cores():
        reasons.append(f'a container has a limit of {allowed:g} cores')
    others, all_cores = CELLS.used_by_others(), os.cpu_count() or cores()
    if others >= MUCH and all_cores - others < cores():
        reasons.append(f'other programs used {others:.1f} of the '
                       f'{all_cores} cores')
    return reasons


def truth(name: str, value: Any) -> bool:
    """A check: True or False, as Python or an array has it."""
    if hasattr(value, 'item') and getattr(value, 'size', 1) == 1:
        value = value.item()
    if not isinstance(value, BOOL):
        refuse(name, value, 'True or False, such as speedup > 1.2')
    return bool(value)


@checked(claim=text, held=truth)
def expect(claim: str, held: Any) -> None:
    """Print a line if an expectation did not hold, and the known reasons.

    Args:
        claim: the expectation, such as 'two devices are faster than one'.
        held: whether it held.

    An expectation that did not hold is no error, because a machine can have
    other things to do. Known reasons are: a single core, a container's limit,
    or cores that other programs used during this cell or the previous one.
    If it held, nothing is printed, unless the environment variable
    D2LPS_TELL_ALL is set: `make measure` counts these lines.
    """
    if held:
        if os.environ.get(TELL_ALL):
            print(f'{HELD}{claim}')
    else:
        why = ' and '.join(hindrances()) or 'nothing is known that explains it'
        print(f'{NOT_HELD}{claim} ({why})')


def told_in(printed: str) -> list[tuple[str, bool]]:
    """The expectations in a cell's output: [(words, whether it held)]."""
    told = []
    for line in printed.splitlines():
        if line.startswith(HELD):
            told.append((line.removeprefix(HELD), True))
        elif line.startswith(NOT_HELD):
            claim = line.removeprefix(NOT_HELD).rsplit(' (', 1)[0]
            told.append((claim, False))
    return told
