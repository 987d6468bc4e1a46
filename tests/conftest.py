"""What the tests share: d2lps before mxnet, and Python run elsewhere."""
import fcntl
import gzip
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as onp
import pytest
from d2lps.settings import SETTINGS  # first: MXNet reads them
from hypothesis import settings

KERNELS = 'OPENBLAS_CORETYPE', 'DNNL_MAX_CPU_ISA'

ROOT = Path(__file__).resolve().parents[1]
# More examples: --hypothesis-profile=thorough
settings.register_profile('quick', max_examples=25, deadline=None,
                          derandomize=True)
settings.register_profile('thorough', max_examples=500, deadline=None)
settings.load_profile('quick')
CHROMIUM = os.environ.get('D2LPS_CHROMIUM') or next(filter(None, map(
    shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), '')
os.environ['D2LPS_CHROMIUM'] = CHROMIUM  # for tests/browser
PYODIDE = os.environ.get('D2LPS_PYODIDE', '')
NO_PYODIDE = ('d2lps: the tests in a browser tab are left out; they need the '
              'files of Pyodide 0.27.7 (D2LPS_PYODIDE=folder)')
NO_CHROMIUM = ('d2lps: the tests in a browser are left out; they need '
               'Chromium (Debian, Ubuntu: sudo apt install chromium; or '
               'D2LPS_CHROMIUM=/path/to/chrome)')


def pytest_configure():
    if CHROMIUM and not shutil.which(CHROMIUM):
        raise pytest.UsageError(f'D2LPS_CHROMIUM={CHROMIUM}: no such program')


def is_quick(config):
    """Is this `make test`, without what is marked full?"""
    return config.option.markexpr == 'not full'


def pytest_ignore_collect(collection_path, config):
    """To load what all tests in there need takes a while."""
    if is_quick(config) and collection_path.name[:4] == 'test' and (
            collection_path.parent.name in ('browser', 'book')
            or collection_path.name == 'test_torchgroup.py'):
        return True


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if item.path.parent.name == 'browser'
                and not CHROMIUM]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter, config):
    if not PYODIDE:
        terminalreporter.write_line(NO_PYODIDE)
    if not CHROMIUM and not is_quick(config):
        terminalreporter.write_line(NO_CHROMIUM)
    minutes = sum(used.ru_utime + used.ru_stime for used in map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        ) / 60
    terminalreporter.write_line(
        f'd2lps: {minutes:.1f} processor minutes, user and system')


@pytest.fixture
def python(tmp_path):
    """Run Python elsewhere, with no setting of ours in its environment."""
    def run(*args, timeout=120, **settings):
        env = {name: value for name, value in os.environ.items()
               if name not in {*SETTINGS, *KERNELS}}
        return subprocess.run([sys.executable, *args], cwd=tmp_path,
                              env={**env, **settings}, text=True,
                              capture_output=True, timeout=timeout)
    return run


@pytest.fixture
def write_idx():
    """Write an array of bytes as an IDX file, gz or plain by its name."""
    def write(path, array):
        array = onp.asarray(array, 'uint8')
        sizes = onp.array(array.shape, '>i4').tobytes()
        content = bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()
        if path.suffix == '.gz':
            content = gzip.compress(content)
        path.write_bytes(content)
    return write


@pytest.fixture
def idx_folder(tmp_path, write_idx):
    """Make a folder with the four files of a small data set."""
    def make(train=60, test=20, suffix='.gz'):
        folder = tmp_path / 'idx'
        folder.mkdir()
        random = onp.random.default_rng(1)
        for prefix, n in ('train', train), ('t10k', test):
            write_idx(folder / f'{prefix}-images-idx3-ubyte{suffix}',
                      random.integers(0, 256, (n, 28, 28)))
            write_idx(folder / f'{prefix}-labels-idx1-ubyte{suffix}',
                      onp.arange(n) % 10)
        return folder
    return make


@pytest.fixture
def shown(monkeypatch):
    """All that is displayed, in order; an update is one more."""
    from d2lps.pictures import board
    things = []

    class Handle:
        update = staticmethod(things.append)

    def display(thing, **_):
        things.append(thing)
        return Handle
    monkeypatch.setattr(board, 'display', display)
    return things


@pytest.fixture
def small_set(monkeypatch):
    """Let `train` see 96 of the digits only, and test on 40 others."""
    from d2lps.training import data_parallel
    from d2lps.training.data import Batches, load_data

    def load(batch_size, data, root, seed):
        train_iter, test_iter = load_data(batch_size, data, root, seed)
        return (Batches(train_iter.images[:96], train_iter.labels[:96],
                        batch_size, shuffle=True, seed=seed),
                Batches(test_iter.images[:40], test_iter.labels[:40],
                        batch_size))
    monkeypatch.setattr(data_parallel, 'load_data', load)
    return load


@pytest.fixture(scope='session')
def make_book():
    """Run `make book` with the Python of these tests; nothing is installed."""
    def run(*settings):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(('MAKE', 'MFLAGS', 'PYTHON'))}
        return subprocess.run(
            ['make', '-o', f'{sys.prefix}/installed-tests', 'book',
             f'VENV={sys.prefix}', *settings], cwd=ROOT, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    return run


@pytest.fixture(scope='session')
def book(tmp_path_factory, make_book):
    """The folder of the book's pages, built anew, once for all workers.

    What `make book` said is beside it, in said.txt.
    """
    shared = tmp_path_factory.getbasetemp()
    if 'PYTEST_XDIST_WORKER' in os.environ:
        shared = shared.parent
    said, pages = shared / 'book' / 'said.txt', shared / 'book' / 'html'
    said.parent.mkdir(exist_ok=True)
    with open(shared / 'book' / 'lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # others wait for who builds it
        if not said.exists():
            done = make_book(f'PAGES={pages}', f'KEPT={pages}.kept',
                             f'PYODIDE={PYODIDE}')
            said.write_text(f'{done.returncode}\n{done.stdout}')
    code, words = said.read_text().split('\n', 1)
    assert code == '0', words
    return pages
