"""What a machine has run out of when processes cannot start, in a sentence."""
import sys
from collections.abc import Iterator
from contextlib import contextmanager

NO_THREAD = "can't start new thread"  # all that Python says
# Words of an error, or of a process that dies, and the advice for them.
ADVICE = {
    (NO_THREAD, 'Resource temporarily unavailable'):
        'Most often, this user has too many processes and threads (ulimit '
        '-u; a container may have a limit, too): end other programs, or take '
        'fewer workers.',
    ('Too many open files',):
        'A process has too many files and pipes open (ulimit -n): close '
        'some, take fewer workers, or raise the limit.',
    ('Cannot allocate memory', 'MemoryError', 'std::bad_alloc'):
        'The memory is used up: end other programs, or take fewer workers '
        'and servers.',
    ('No space left on device', 'quota exceeded', 'Read-only file system',
     'No usable temporary directory'):
        'Most often, the disk with the temporary folder is full: make room '
        'there, or name another folder as TMPDIR in the environment.'}


def advice_for(text: str) -> str:
    """What helps if `text` says that something has run out, else ''."""
    for words, advice in ADVICE.items():
        if any(one in text for one in words):
            return advice
    return ''


def in_words(error: Exception) -> str:
    """What went wrong, in a line."""
    words = getattr(error, 'strerror', None) or str(error)
    file = getattr(error, 'filename', None)
    return (f'{words}: {file}' if file else words) or type(error).__name__


@contextmanager
def needs(what: str) -> Iterator[None]:
    """Say what could not be had, why, and what helps.

    Raises:
        OSError: in place of another OSError, of a MemoryError, and of the
            error that no thread can be started.
    """
    try:
        yield
    except (OSError, RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and NO_THREAD not in str(error):
            raise
        words = f'{what}: {in_words(error)}'
        advice = advice_for(words)
        raise OSError(f'{words}. {advice}' if advice else words) from None


@contextmanager
def or_end(what: str) -> Iterator[None]:
    """End this process with such a line; the reader's adds the advice."""
    try:
        yield
    except (OSError, RuntimeError, MemoryError) as error:
        sys.exit(f'{what}: {in_words(error)}')
