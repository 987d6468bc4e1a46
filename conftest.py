"""How the tests are run: the notebooks too, and what is left for `test-all`.

`make test` leaves out what is marked `full`, and `make test-all` runs that as
well. Nothing is measured: what a notebook expects of the machine is counted
and said in a line. For the notebooks alone the extra `check` is enough: all
that the other tests need is in tests/conftest.py.
"""
import os
import signal
import socket
import tempfile

import pytest

# NumPy's threads wait for each other busily, and take the cores from others.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')  # read when NumPy loads
os.environ['D2LPS_TELL_ALL'] = 'yes'  # expectations that held are counted
QUICK = 'not full'  # the marker expression of `make test`
LIMIT = 600  # seconds, which only what hangs takes, also on a busy machine
# Run by tests/exercises, which puts right and wrong answers into them.
collect_ignore = ['notebooks/exercises']


def listen_on_unix_sockets():
    """Between a kernel's choice of a port and its use, others can take it."""
    from nbval import kernel

    class Manager(kernel.KernelManager):
        def __init__(self, **settings):
            self.folder = tempfile.TemporaryDirectory()
            super().__init__(
                transport='ipc', ip=os.path.join(self.folder.name, 'kernel'),
                **settings)
    kernel.KernelManager = Manager


def pytest_configure(config):
    """Cells assert what matters; their outputs are not compared."""
    if config.option.markexpr == QUICK:
        # Without it, installed or not; tests/test_torch.py runs it.
        os.environ['D2LPS_WITHOUT'] = 'torch'
    if config.pluginmanager.hasplugin('nbval'):
        config.option.nbval_lax = True
        config.option.nbval_current_env = True
        config.option.nbval_cell_timeout = LIMIT
        config.option.nbval_kernel_startup_timeout = LIMIT
        if hasattr(socket, 'AF_UNIX'):  # not on Windows
            listen_on_unix_sockets()
    # What a shell starts with & ignores Ctrl-C, and so would our tests of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    for item in items:
        if hasattr(item, 'output_timeout'):  # nbval's, of 5 seconds
            item.output_timeout = LIMIT


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Note what a notebook's cell says of its expectations."""
    from d2lps.expectations import told_in
    result = yield
    for output in getattr(item, 'test_outputs', None) or ():
        for words, held in told_in(output.get('text', '')):
            item.user_properties.append(
                ('expectation', [item.path.stem, words, held]))
    return result


def pytest_terminal_summary(terminalreporter):
    told = [value for reports in terminalreporter.stats.values()
            for report in reports if getattr(report, 'when', '') == 'call'
            for name, value in report.user_properties
            if name == 'expectation']
    if told:
        terminalreporter.write_line(
            f'{sum(held for *_, held in told)} of {len(told)} expectations '
            'held; make measure says how often they do on a quiet machine')
