"""Ctrl-C while the program `d2lps` loads ends it, without a traceback.

Python's traceback would be of imports, which say nothing to a reader.
"""
import os
import signal
import sys


def is_program() -> bool:
    """Is this the program `d2lps`, or `python -m d2lps`, while it loads?"""
    name = os.path.basename(getattr(sys, 'argv', [''])[0])
    return name in ('d2lps', 'd2lps.exe') or (
        name == '-m' and 'd2lps' in sys.orig_argv)


def end_at_once() -> None:
    """From now on Ctrl-C ends the process, if that is the program."""
    if is_program() and (
            signal.getsignal(signal.SIGINT) is signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, as usual in Python."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


end_at_once()  # this module is imported before all that takes longer
