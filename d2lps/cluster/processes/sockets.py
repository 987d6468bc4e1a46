"""The Unix sockets of a cluster on one machine, and what is left of it."""
import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PREFIX = 'd2lps-cluster-'  # of folders


def socket_of(port: int) -> str:
    """The Unix socket by which MXNet means `port`, if DMLC_LOCAL is 1."""
    return f'/tmp/{port}'  # whatever TMPDIR says


def make_folder() -> str:
    """A folder for a cluster's files, which no other user can enter."""
    folder = tempfile.mkdtemp(prefix=PREFIX)
    if len(folder) > 80:  # too long for the name of a socket in it
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix=PREFIX, dir='/tmp')
    return folder


def remove_sockets(folder: str) -> None:
    """Remove those that the file `sockets` in a cluster's folder names.

    A process that ends well removes its own; one that is killed does not.
    """
    try:
        paths = Path(folder, 'sockets').read_text('utf-8').split()
    except OSError:
        return
    for path in paths:
        with suppress(OSError):
            state = os.lstat(path)
            if stat.S_ISSOCK(state.st_mode) and state.st_uid == os.geteuid():
                os.unlink(path)


def tidy(folder: str) -> None:
    """Remove all that a cluster with this folder has left."""
    remove_sockets(folder)
    shutil.rmtree(folder, ignore_errors=True)


def command_of(pid: int) -> str:
    """The command line of a process, '' if there is none (or no Linux)."""
    try:
        return Path(f'/proc/{pid}/cmdline').read_text('utf-8', 'replace')
    except OSError:
        return ''


def end_groups(pids: Iterable[int]) -> None:
    """End what a keeper has left that was stopped or killed."""
    for pid in pids:
        if 'd2lps' in (command_of(pid) or 'd2lps'):  # no number used anew
            with suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
