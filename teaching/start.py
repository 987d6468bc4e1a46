"""Start a kernel with limits: python start.py USER CONNECTION_FILE.

USER: the number of the user that it runs as behind the walls; root becomes
that user here. Without walls it is 0.
"""
import os
import resource
import sys
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipykernel.kernelapp import IPKernelApp

MEMORY = 2 * 2 ** 30  # bytes
FILES = 50 * 2 ** 20  # bytes of a file
PROCESSES = 100  # and threads, of this user here; a cluster needs 86
TEXT = 1_000_000  # characters that are printed: what follows is dropped


def limit(kind: int, most: int) -> None:
    """Set a limit of `resource`, not above what we have been permitted."""
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def be_ended_first() -> None:
    """Let Linux end this process first, where memory is short."""
    with suppress(OSError), open('/proc/self/oom_score_adj', 'w') as file:
        file.write('1000')


def shorten_prints() -> None:
    """Or a loop that prints would fill the memory of the grading."""
    from ipykernel.iostream import OutStream
    write = OutStream.write
    printed: Counter[str] = Counter()  # characters of each stream

    def write_some(self, text):
        room = max(0, TEXT - printed[self.name])
        printed[self.name] += len(text)
        write(self, text[:room])
        return len(text)

    OutStream.write = write_some  # type: ignore[method-assign]


def go_on_after_exit(app: 'IPKernelApp') -> None:
    """`exit` and `quit` would end the kernel, but only some cells later.

    All requests for a shutdown set this trait of IPython's shell, and it tells
    the loop of the kernel to stop a moment later. Here the cells below are run
    all the same, as after `sys.exit()`.
    """
    assert app.shell is not None  # it has one since `initialize`
    app.shell.unobserve_all('exit_now')


def main(user: str, connection_file: str) -> None:
    limit(resource.RLIMIT_DATA, MEMORY)
    limit(resource.RLIMIT_AS, 2 * MEMORY)  # memory that is shared, too
    limit(resource.RLIMIT_FSIZE, FILES)
    limit(resource.RLIMIT_CORE, 0)
    be_ended_first()
    if int(user) and os.getuid() == 0:
        for path in os.path.dirname(connection_file), connection_file:
            os.chown(path, int(user), int(user))
        os.setgroups([])
        os.setgid(int(user))
        os.setuid(int(user))
    if int(user):  # without walls it would count all that we have running
        limit(resource.RLIMIT_NPROC, PROCESSES)
    os.environ.pop('JPY_PARENT_PID', None)  # not to be seen from in here
    from ipykernel.kernelapp import IPKernelApp
    shorten_prints()
    app = IPKernelApp.instance()
    app.initialize(
        ['-f', connection_file, '--HistoryManager.enabled=False'])
    go_on_after_exit(app)
    app.start()


if __name__ == '__main__':
    main(*sys.argv[1:])
