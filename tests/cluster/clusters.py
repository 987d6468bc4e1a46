"""What the tests of clusters share."""
import os
import time
from pathlib import Path

import psutil


def group_members(pids):
    """Living processes of the groups that `pids` lead, by id."""
    found = []
    for process in psutil.process_iter(['pid', 'status']):
        try:
            if (os.getpgid(process.pid) in pids
                    and process.status() != psutil.STATUS_ZOMBIE):
                found.append(process.pid)
        except (ProcessLookupError, psutil.NoSuchProcess):
            pass
    return found


def sockets_of(cluster):
    """The sockets of its scheduler, servers and workers."""
    folder = cluster._supervisor._group.folder
    return Path(folder, 'sockets').read_text().split()


def all_gone(pids, seconds=10):
    """Do these processes, and what they started, end within `seconds`?"""
    end = time.monotonic() + seconds
    while group_members(pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def wait_for(done, seconds=15):
    """Wait until `done()` and return whether it came to that."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
