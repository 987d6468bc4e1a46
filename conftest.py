"""How the tests are run: the notebooks too, and what needs which run.

`make check` leaves out what is marked `processes`. `make test` runs all: what
is marked `alone` by itself, for it measures, and then the rest, in parallel.
Notebooks run in JupyterLab where there is a Chromium to look at it with, and
otherwise, or when one is named, in nbval.
"""
import os
import shutil
import signal
import sys
from itertools import zip_longest
from pathlib import Path

import pytest

# NumPy's threads wait for each other busily, and take the cores from others.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')  # read when NumPy loads
NOTEBOOKS = Path(__file__).with_name('notebooks')
# Run by tests/exercises, which puts right and wrong answers into them.
collect_ignore = ['notebooks/exercises']
MEASURING = {'01-data-parallelism.ipynb', '02-three-ways-to-split.ipynb',
             '04-on-your-own-machine.ipynb', '10-many-machines.ipynb',
             '11-overlap.ipynb'}
PURE = {'test_agreement.py', 'test_storechecks.py'}  # in tests/cluster
# What takes long goes first, or it would be alone at the end.
LONG = {'test_lab.py', 'test_cluster.py', 'test_hosts.py', 'test_openssh.py',
        'test_restarts.py', 'test_bad_arguments.py', 'test_install.py',
        'test_interrupted.py', 'test_grade.py', 'test_light.py'}
STARTS = {'subprocess.Popen', 'os.fork', 'os.forkpty', 'os.posix_spawn'}
CHROMIUM = os.environ.get('D2LPS_CHROMIUM') or next(filter(None, map(
    shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), '')
os.environ['D2LPS_CHROMIUM'] = CHROMIUM  # for tests/browser
NO_CHROMIUM = ('d2lps: the tests in a browser are left out; they need '
               'Chromium (Debian, Ubuntu: sudo apt install chromium; or '
               'D2LPS_CHROMIUM=/path/to/chrome)')
running = None  # the test that runs


def pytest_configure(config):
    """Cells assert what matters; their outputs are not compared."""
    if CHROMIUM and not shutil.which(CHROMIUM):
        raise pytest.UsageError(f'D2LPS_CHROMIUM={CHROMIUM}: no such program')
    missing = [name for name in MEASURING if not (NOTEBOOKS / name).exists()]
    assert not missing, f'{missing}: see MEASURING in {__file__}'
    if config.pluginmanager.hasplugin('nbval'):
        config.option.nbval_lax = True
        config.option.nbval_current_env = True
        config.option.nbval_cell_timeout = 300
    # What a shell starts with & ignores Ctrl-C, and so would our tests of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.addaudithook(only_marked_tests_start_processes)


def pytest_terminal_summary(terminalreporter, config):
    if not CHROMIUM and config.option.markexpr not in ('alone',
                                                       'not processes'):
        terminalreporter.write_line(NO_CHROMIUM)


def pytest_collection_modifyitems(config, items):
    in_lab = {item: notebook_of(item) for item in items if notebook_of(item)}
    twice = {NOTEBOOKS / name for name in in_lab.values()} if CHROMIUM else ()
    left_out = [item for item in items if item.path in twice or
                not CHROMIUM and room_of(item) == 'browser']
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    for item in items:
        room, name = item.path.parts[-2:]
        name = in_lab.get(item, name)
        if (item.path.suffix == '.ipynb' or 'python' in item.fixturenames or
                room == 'browser' or room == 'cluster' and name not in PURE):
            item.add_marker('processes')
        if name in MEASURING:
            item.add_marker('alone')
    items[:] = taking_turns(items)


def room_of(item):
    return item.path.parts[-2]


def notebook_of(item):
    """The notebook that a test runs in JupyterLab."""
    if room_of(item) == 'browser' and hasattr(item, 'callspec'):
        return item.callspec.params.get('notebook')


def taking_turns(items):
    """File by file, one that waits for its processes and one that computes.

    Three at a time then keep two cores at work, from the start to the end.
    """
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    paths = sorted((path for path in files if path.name not in MEASURING),
                   key=lambda path: not (
                       path.name in LONG or path.suffix == '.ipynb'))
    rooms = [[path for path in paths if (path.parts[-2] == 'cluster') == waits]
             for waits in (True, False)]
    order = [path for path in files if path.name in MEASURING]
    order += [path for pair in zip_longest(*rooms) for path in pair if path]
    return [item for path in order for item in files[path]]


def only_marked_tests_start_processes(event, args):
    """So that `make check` stays what it is."""
    if event in STARTS and running and not running.get_closest_marker(
            'processes'):
        raise RuntimeError(f'{running.nodeid} starts a process: mark it, '
                           '@pytest.mark.processes')


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    global running
    running = item
    try:
        return (yield)
    finally:
        running = None
