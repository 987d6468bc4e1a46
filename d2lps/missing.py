"""Messages for what is not installed, or does not exist for a system.

`make lab` installs all packages, and MXNet on systems where it runs. On other
systems an import of MXNet says what to do, also if a notebook imports it below
`import d2lps`. Clusters without servers need no MXNet, but processes that
fork. After a plain `pip install` some packages of `EXTRAS` are missing: an
import in d2lps then says which extra brings them.
"""
import importlib.util
import os
import platform
import sys

# The chapters that run without MXNet. tests/test_chapter_lists.py compares all
# such lists, here and on the pages, with what the chapters import and call.
NEED_NO_MXNET = 'chapters 3, 5, 6, 7, 11, 12, 14, 16 and 18 to 25'
# For each package the smallest extra of pyproject.toml that brings it.
EXTRAS = {'IPython': 'notebooks', 'ipywidgets': 'notebooks',
          'matplotlib': 'notebooks', 'pandas': 'tables',
          'cloudpickle': 'cluster', 'psutil': 'cluster',
          'pyroute2': 'cluster', 'pooch': 'mxnet', 'tqdm': 'mxnet'}
# The module whose frames lie between an import and its finders: Python changes
# its name while it starts.
IMPORTLIB = '_frozen_importlib', 'importlib._bootstrap'
IN_A_TAB = sys.platform == 'emscripten'  # a browser tab
NO_TORCH = ('PyTorch does not run in a browser tab: run the notebook on a '
            'computer, where "make lab TORCH=yes" installs it.' if IN_A_TAB
            else 'PyTorch is not installed here: make lab TORCH=yes')
ON_WINDOWS = ('open a Linux terminal with WSL 2 (wsl --install) and run "make '
              'lab" there, or start Docker and run "docker compose up".')


class NotInstalled(ImportError):
    """Something is not installed here; the message says what to do."""

    def _render_traceback_(self):
        """The text that a notebook shows: its code is not wrong."""
        return [f'ImportError: {self}']


class NoExtra(NotInstalled, ModuleNotFoundError):
    """A package of an extra is not installed here."""

    def __init__(self, name: str) -> None:
        how = ('a browser tab does not have it. On a computer, "make lab" '
               'installs it.' if IN_A_TAB else
               f"pip install 'd2lps[{EXTRAS[name]}]'")
        super().__init__(f'd2lps needs {name} for this: {how}', name=name)


class NoMXNet(NotInstalled):
    """MXNet, or a library that it needs, is not on this machine.

    why: the missing library. besides: a sentence on what works without it.
    """

    def __init__(self, why: object, besides: str = '') -> None:
        self.why = why
        super().__init__(' '.join(filter(None, (
            f'd2lps needs mxnet 1.9.1 ({why}) for all but {NEED_NO_MXNET}.',
            besides, where_it_runs()))))


class NoFork(OSError):
    """The processes of a cluster are forked, and this system cannot."""

    def __init__(self) -> None:
        how = ('run the notebook on a Linux machine, where "make lab" '
               'installs it.' if IN_A_TAB else ON_WINDOWS)
        super().__init__(f'A cluster forks its processes, which {system()} '
                         f'cannot: {how}')

    def _render_traceback_(self):
        return [f'OSError: {self}']


def system() -> str:
    return 'a browser tab' if IN_A_TAB else platform.system()


def can_fork() -> bool:
    """Not on Windows; in a browser tab `os.fork` is there, but fails."""
    return hasattr(os, 'fork') and not IN_A_TAB


def check_fork() -> None:
    """Raise NoFork where processes cannot be forked."""
    if not can_fork():
        raise NoFork


def where_it_runs() -> str:
    """A sentence on what to do on a system without MXNet."""
    if IN_A_TAB:
        return ('MXNet does not run in a browser tab: run the notebook on a '
                'computer, where "make lab" installs it.')
    if sys.platform == 'win32':
        return ('MXNet does not exist for Windows, and clusters do not '
                f'run there: {ON_WINDOWS}')
    if sys.platform == 'darwin' and platform.machine() == 'arm64':
        return ('MXNet does not exist for Apple silicon: start Docker and run '
                '"docker compose up".')
    if sys.version_info >= (3, 12):
        return ('MXNet does not exist for a Python later than 3.11: remove '
                'the folder .venv, and "make lab" looks for a Python 3.11 or '
                'gets one.')
    return ('"make lab" installs it, and names what else it lacks. Without '
            "make: pip install 'd2lps[mxnet]'")


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
        if name in EXTRAS and _imports_from_d2lps():
            raise NoExtra(name)


def _imports_from_d2lps():
    """Is it d2lps that imports? Other packages may do without."""
    frame = sys._getframe(2)
    while frame.f_globals.get('__name__') in IMPORTLIB:
        frame = frame.f_back
    package = frame.f_globals.get('__package__') or ''
    return package.split('.')[0] == 'd2lps'


sys.meta_path.append(Finder)
