"""What the tests share: d2lps before mxnet, and Python run elsewhere."""
import fcntl
import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as onp
import pytest
from d2lps.settings import SETTINGS  # first: MXNet reads them

KERNELS = 'OPENBLAS_CORETYPE', 'DNNL_MAX_CPU_ISA'

ROOT = Path(__file__).resolve().parents[1]


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
            done = make_book(f'PAGES={pages}', f'KEPT={pages}.kept')
            said.write_text(f'{done.returncode}\n{done.stdout}')
    code, words = said.read_text().split('\n', 1)
    assert code == '0', words
    return pages
