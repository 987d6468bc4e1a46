"""Ctrl-C, SIGTERM and SIGHUP end a grading once; its cleaning goes on.

`timeout` and impatient people send signals in a row. SIGHUP comes when the
terminal is closed.
"""
import signal
import time
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio  # this module is imported first, and so imports little

SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
QUIET = 1  # second, in which a further signal means the same

_task: 'asyncio.Task | None' = None
_cancelled = False
_last = -float('inf')


def listen() -> None:
    """Raise KeyboardInterrupt, or cancel a task, at each of the signals.

    A shell makes programs in the background ignore Ctrl-C: ours do not. But
    a program that `nohup` started goes on when the terminal is closed.
    """
    for number in SIGNALS:
        if (number != signal.SIGHUP
                or signal.getsignal(number) != signal.SIG_IGN):
            signal.signal(number, _end)


def now_cancels(task: 'asyncio.Task | None') -> None:
    """Let a signal cancel this task, once, until it is done."""
    global _task
    _task = task


def ignore() -> None:
    """Ignore the signals that we listen to, also while Python ends."""
    for number in SIGNALS:
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
