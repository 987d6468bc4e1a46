"""One installation at a time: two would take away what the other has made."""
import time

from failing import refuse

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

PATIENCE = 1800  # seconds


def turn(path):
    """Wait until nobody holds this file, and hold it until it is closed."""
    file = open(path, 'a')  # for writing, as locks on networks' disks want it
    for second in range(PATIENCE if fcntl else 0):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if not second:
                print('d2lps: another make is installing here; waiting for '
                      'it', flush=True)
            time.sleep(1)
        except OSError:  # a disk without locks
            return file
    if fcntl:
        refuse('another make has been installing here for '
               f'{PATIENCE // 60} minutes')
    return file
