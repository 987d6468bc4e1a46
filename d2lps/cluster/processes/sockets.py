"""The Unix sockets of a cluster on one machine, and what is left of it."""
import os
import shutil
import stat
from pathlib import Path


def socket_of(port):
    """The Unix socket by which MXNet means `port`, if DMLC_LOCAL is 1."""
    return f'/tmp/{port}'  # whatever TMPDIR says


def remove_sockets(folder):
    """Remove those that the file `sockets` in a cluster's folder names.

    A process that ends well removes its own; one that is killed does not.
    """
    try:
        paths = Path(folder, 'sockets').read_text().split()
    except OSError:
        return
    for path in paths:
        try:
            found = os.lstat(path)
            if stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid():
                os.unlink(path)
        except OSError:
            pass


def tidy(folder):
    """Remove all that a cluster with this folder has left."""
    remove_sockets(folder)
    shutil.rmtree(folder, ignore_errors=True)
