"""What a machine has run out of when processes cannot start, in words.

Nothing here loads what another machine may lack.
"""
import os
import sys
from contextlib import contextmanager, suppress

NO_THREAD = "can't start new thread"  # all that Python says
MANY = 1 << 16  # open files are not looked for above this number
# What an error, or a process that dies, says; the limit, if there is one that
# a process can ask for; and what helps.
REMEDIES = (
    ((NO_THREAD, 'Resource temporarily unavailable'), 'RLIMIT_NPROC',
     'Most often, all processes and threads of this user together have '
     'reached the limit (ulimit -u{}; a container may have one, too): end '
     'other programs, take fewer workers, or raise it, and start Python '
     'again.'),
    (('Too many open files',), 'RLIMIT_NOFILE',
     'A process has as many files and pipes open as it may (ulimit -n{}): '
     'close some, take fewer workers, or raise it, and start Python again.'),
    (('Cannot allocate memory', 'MemoryError', 'std::bad_alloc'), '',
     'The memory is used up: end other programs, or take fewer workers and '
     'servers.'),
    (('No space left on device', 'quota exceeded', 'Read-only file system'),
     '', 'Most often, the disk with the temporary folder is full.'))
TEMPORARY = ('A cluster keeps small files in the temporary folder: make room '
             'there, or name another one, in which you may write, as TMPDIR '
             'in the environment, before Python starts.')


def remedy(text):
    """What helps if `text` says that something has run out, else ''."""
    for words, limit, helps in REMEDIES:
        if any(one in text for one in words):
            return helps.format(_value(limit))
    return ''


def _value(limit):
    """A limit of this process, which those that it starts have, too."""
    with suppress(Exception):  # not every system has each of them
        import resource
        soft, _ = resource.getrlimit(getattr(resource, limit))
        if soft != resource.RLIM_INFINITY:
            return f', which is {soft} here'
    return ''


def in_words(error):
    """What went wrong, in a line."""
    words = getattr(error, 'strerror', None) or str(error)
    if getattr(error, 'filename', None):
        words += f': {error.filename}'
    return words or type(error).__name__


@contextmanager
def needs(what, helps=''):
    """Say what could not be had, why, and what helps.

    Raises:
        OSError: in place of another one, of one that says that no thread can
            be started, and of a MemoryError.
    """
    try:
        yield
    except (OSError, RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and NO_THREAD not in str(error):
            raise
        words = in_words(error)
        raise OSError('. '.join(filter(None, (
            f'{what}: {words}', helps or remedy(words))))) from error


@contextmanager
def or_end(what):
    """End this process with such a line; the reader's adds what helps."""
    try:
        yield
    except (OSError, RuntimeError, MemoryError) as error:
        sys.exit(f'{what}: {in_words(error)}')


def open_files():
    """The numbers of this process's open files."""
    with suppress(OSError):  # it leads to /proc, which may not be there
        return [*map(int, os.listdir('/dev/fd'))]
    found = []
    for number in range(MANY):
        with suppress(OSError):
            os.fstat(number)
            found.append(number)
    return found
