"""Helpers that the tests of clusters share."""
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from d2lps import network_problem

PROBLEM = network_problem()
needs_network = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM or 'works')
HANGS = 120  # seconds that only what hangs takes, however busy a machine is


def group_members(pids):
    """Living processes of the groups that `pids` lead, by id."""
    living = []
    for process in psutil.process_iter(['pid', 'status']):
        try:
            if (os.getpgid(process.pid) in pids
                    and process.status() != psutil.STATUS_ZOMBIE):
                living.append(process.pid)
        except (ProcessLookupError, psutil.NoSuchProcess):
            pass
    return living


def sockets_of(cluster):
    """The sockets of its scheduler, servers and workers, if it has any."""
    file = Path(cluster._supervisor._group.folder, 'sockets')
    return file.read_text().split() if file.exists() else []


def all_gone(pids, seconds=HANGS):
    """Do these processes, and what they started, end within `seconds`?"""
    end = time.monotonic() + seconds
    while group_members(pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def wait_for(done, seconds=HANGS):
    """Wait until `done()` and return whether it came to that."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def empty_in_the_end(monkeypatch):
    """A temporary folder for clusters, in which nothing may be left.

    Its name is short: with a long one, folders for sockets are elsewhere. A
    test takes `tmp_path` before, or pytest would make that one in here.
    """
    folder = Path(tempfile.mkdtemp(dir='/tmp'))
    monkeypatch.setenv('TMPDIR', str(folder))
    monkeypatch.setattr('tempfile.tempdir', str(folder))
    yield folder
    assert wait_for(lambda: not os.listdir(folder)), os.listdir(folder)
    folder.rmdir()
