"""The processes below a process: its children, and theirs in turn.

A child may leave the group and the session of its parent, and live on when
that has ended.  On Linux, a process can have all such orphans in the tree
below it become its own children (prctl(2), PR_SET_CHILD_SUBREAPER).  A child's
number is not given to another process before its parent has waited for it, so
nobody else's process can be meant.  Other systems have no such call, and one
without /proc does not name the children.
"""
import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
ROUNDS = 1000  # each ends a generation; one that forks for ever is given up


def adopt() -> None:
    """From now on, orphans below this process become its children.

    A process that ignores SIGCHLD cannot wait for its children, and a process
    that it starts inherits this. So it is undone here.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if sys.platform == 'linux':
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> list[int]:
    """The ids of this process's children, also of those that have ended."""
    pids = []
    for path in Path('/proc').glob('[0-9]*/stat'):
        with suppress(OSError):  # it has just ended
            _, parent = _state_and_parent(path)
            if int(parent) == os.getpid():
                pids.append(int(path.parent.name))
    return pids


def runs(pid: int) -> bool:
    """Whether a thread of a process runs, or waits for a core to do so."""
    states = []
    with suppress(OSError):  # it has just ended
        for path in Path(f'/proc/{pid}/task').glob('*/stat'):
            with suppress(OSError):  # the thread has
                states.append(_state_and_parent(path)[0])
    return b'R' in states


def _state_and_parent(path):
    # A name stands before, in brackets; it may have spaces and brackets.
    return path.read_bytes().rpartition(b')')[2].split()[:2]


def bury(others: Sequence[int]) -> None:
    """Wait for the children that have ended, but for those in `others`."""
    if not hasattr(os, 'waitid'):  # as on a Mac, where there are no orphans
        return
    with suppress(ChildProcessError):  # there is no child
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG
                                 | os.WNOWAIT):
            if ended.si_pid in others:  # somebody else waits for it
                break
            os.waitpid(ended.si_pid, 0)


def end_children() -> None:
    """End all children, and theirs, which then are ours."""
    for _ in range(ROUNDS):
        ended = [pid for pid in children() if _kill(pid)]
        if not ended:
            break
        for pid in ended:
            os.waitpid(pid, 0)


def _kill(pid):
    """Whether it may be killed: what runs as another user may not."""
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False
