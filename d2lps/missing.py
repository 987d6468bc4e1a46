"""Messages for systems without MXNet. The chapters on collectives need none.

`make lab` installs MXNet on systems where it runs. On other systems an import
of MXNet says what to do, also if a notebook imports it below `import d2lps`.
Clusters without servers need no MXNet, but processes that fork.
"""
import importlib.util
import os
import platform
import sys

NO_TORCH = 'PyTorch is not installed here: make lab TORCH=yes'
ON_WINDOWS = ('open a Linux terminal with WSL 2 (wsl --install) and run "make '
              'lab" there, or start Docker and run "docker compose up".')


class NoMXNet(ImportError):
    """MXNet, or a library that it needs, is not on this machine.

    why: the missing library. besides: a sentence on what works without it.
    """

    def __init__(self, why: object, besides: str = '') -> None:
        self.why = why
        super().__init__(' '.join(filter(None, (
            f'd2lps needs mxnet 1.9.1 ({why}) for all but chapters 3, 5, 6, '
            '7, 11, 12, 14 and 18 to 23.', besides, where_it_runs()))))

    def _render_traceback_(self):
        """The text that a notebook shows: its code is not wrong."""
        return [f'ImportError: {self}']


class NoFork(OSError):
    """The processes of a cluster are forked, and this system cannot."""

    def __init__(self) -> None:
        super().__init__('A cluster forks its processes, which '
                         f'{platform.system()} cannot: {ON_WINDOWS}')

    def _render_traceback_(self):
        return [f'OSError: {self}']


def check_fork() -> None:
    """Raise NoFork on Windows."""
    if not hasattr(os, 'fork'):
        raise NoFork


def where_it_runs() -> str:
    """What the reader does on a system without MXNet."""
    if sys.platform == 'win32':
        return ('MXNet does not exist for Windows, and clusters (chapters 11 '
                f'and 12) do not run there: {ON_WINDOWS}')
    if sys.platform == 'darwin' and platform.machine() == 'arm64':
        return ('MXNet does not exist for Apple silicon: start Docker and run '
                '"docker compose up".')
    if sys.version_info >= (3, 12):
        return ('MXNet does not exist for a Python later than 3.11: remove '
                'the folder .venv, and "make lab" looks for a Python 3.11 or '
                'gets one.')
    return '"make lab" installs it, and names what else it lacks.'


def is_hidden(library: str) -> bool:
    """Does D2LPS_WITHOUT name it, so that it counts as not installed?"""
    return library in os.environ.get('D2LPS_WITHOUT', '').split()


def has_mxnet() -> bool:
    """Is MXNet installed here?"""
    try:
        return importlib.util.find_spec('mxnet') is not None
    except NoMXNet:
        return False


class Finder:
    """Is asked last: for modules that no other finder has found."""

    @staticmethod
    def find_spec(name: str, path: object = None,
                  target: object = None) -> None:
        if name in ('mxnet', 'd2l'):
            raise NoMXNet(f'No module named {name!r}')


sys.meta_path.append(Finder)
