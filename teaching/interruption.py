"""Ctrl-C and SIGTERM end a grading once; nothing interrupts its cleaning.

`timeout` and impatient people send signals in a row.
"""
import signal
import time
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio  # this module is imported first, and so imports little

QUIET = 1  # second, in which a further signal means the same

_task: 'asyncio.Task | None' = None
_cancelled = False
_last = -float('inf')


def listen() -> None:
    """Raise KeyboardInterrupt, or cancel a task, at both signals.

    A shell makes programs in the background ignore Ctrl-C: ours do not.
    """
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, _end)


def now_cancels(task: 'asyncio.Task | None') -> None:
    """From now on a signal cancels this task, once, until it is done."""
    global _task
    _task = task


def ignore() -> None:
    """Ignore both signals if we listen to them, also while Python ends."""
    for number in signal.SIGINT, signal.SIGTERM:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_IGN)


def _end(number: int, frame: FrameType | None) -> None:
    global _cancelled, _last
    last, _last = _last, time.monotonic()
    if _cancelled or _last - last < QUIET:
        return
    if _task is None or _task.done():
        raise KeyboardInterrupt
    _cancelled = True
    _task.get_loop().call_soon_threadsafe(_task.cancel)
