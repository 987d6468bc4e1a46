"""What is said where MXNet is missing; the chapters on collectives need none.

`make lab-light` installs all but MXNet. An import of MXNet then says what to
do, also one that a notebook makes itself, below its `import d2lps`.
"""
import importlib.util
import platform
import sys


class NoMXNet(ImportError):
    """MXNet, or a library that it needs, is not on this machine."""

    def __init__(self, why):
        super().__init__(
            f'd2lps needs mxnet 1.9.1 ({why}) for all but chapters 3, 5, 6, '
            f'7, 11 and 13. {where_it_runs()}')

    def _render_traceback_(self):
        """All that a notebook shows: nothing is wrong in its code."""
        return [f'ImportError: {self}']


def where_it_runs():
    """What to do where MXNet is missing."""
    if sys.platform == 'win32':
        return ('There is none for Windows: open a Linux terminal with WSL 2 '
                '(wsl --install) and run "make lab" there, or start Docker '
                'and run "docker compose up".')
    if sys.platform == 'darwin' and platform.machine() == 'arm64':
        return ('There is none for Apple silicon: start Docker and run '
                '"docker compose up", or install conda, and "make lab" takes '
                'an x86-64 Python from it.')
    return '"make lab" installs it, and names what else it lacks.'


def has_mxnet():
    """Is MXNet installed here?"""
    try:
        return importlib.util.find_spec('mxnet') is not None
    except NoMXNet:
        return False


class Finder:
    """Comes last, so it is asked for what nothing else has found."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ('mxnet', 'd2l'):
            raise NoMXNet(f'No module named {name!r}')


sys.meta_path.append(Finder)
