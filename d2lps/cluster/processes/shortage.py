"""Messages for a machine that has run out of something: processes, files."""
import sys
from collections.abc import Iterator
from contextlib import contextmanager

NO_THREAD = "can't start new thread"  # all that Python says
# Phrases of an error, or of a process that dies, and the advice for them.
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
    """Say what helps if `text` says that something has run out, else ''."""
    for phrases, advice in ADVICE.items():
        if any(phrase in text for phrase in phrases):
            return advice
    return ''


def described(error: Exception) -> str:
    """Describe an error in a line."""
    text = getattr(error, 'strerror', None) or str(error)
    file = getattr(error, 'filename', None)
    return (f'{text}: {file}' if file else text) or type(error).__name__


@contextmanager
def explain_shortage(failure: str) -> Iterator[None]:
    """Say what could not be done, why, and what helps.

    failure: the beginning of the message, such as 'a cluster cannot start'.

    Raises:
        OSError: in place of another OSError, of a MemoryError, and of the
            error that no thread can be started.
    """
    try:
        yield
    except (OSError, RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and NO_THREAD not in str(error):
            raise
        text = f'{failure}: {described(error)}'
        advice = advice_for(text)
        raise OSError(f'{text}. {advice}' if advice else text) from None


@contextmanager
def or_end(failure: str) -> Iterator[None]:
    """End this process with such a line; the reader's adds the advice."""
    try:
        yield
    except (OSError, RuntimeError, MemoryError) as error:
        sys.exit(f'{failure}: {described(error)}')
