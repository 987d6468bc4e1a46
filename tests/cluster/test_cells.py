"""Cells that do to their worker what no cell should, one after another."""
import signal
import time
from types import SimpleNamespace

import pytest
from clusters import HANGS
from d2lps.cluster import Cluster, WorkerError
from d2lps.cluster.processes import cells
from d2lps.cluster.processes.cells import execute
from d2lps.cluster.processes.supervisor import Supervisor

pytestmark = pytest.mark.full


@pytest.fixture(scope='module')
def one_worker():
    with Cluster(num_workers=1, num_servers=1) as c:
        yield c


@pytest.fixture(autouse=True)
def goes_on(request):
    """After each test, the cluster still answers."""
    yield
    if 'one_worker' in request.fixturenames:
        assert request.getfixturevalue('one_worker').run(abs, -5) == [5]


def test_an_error_that_ends_python_where_it_is_shown(one_worker):
    with pytest.raises(WorkerError, match='Bad, which cannot show itself'):
        one_worker.run(execute, 'import sys, threading, time\n'
                       'threading.Thread(target=time.sleep, args=[1000],\n'
                       '                 daemon=True).start()\n'
                       'class Bad(Exception):\n'
                       '    def __str__(self): sys.exit(4)\n'
                       'raise Bad')


def test_a_cell_that_forks(one_worker, capsys):
    """Its result is that of the process that was there before."""
    one_worker.run(execute, 'import os, time\n'
                   'if os.fork() == 0: print("child")\n'
                   'else: os.wait(); print("parent")')
    assert capsys.readouterr().out.splitlines() == [
        '[worker 0] child', '[worker 0] parent']


def test_a_syntax_error_shows_nothing_of_ours(one_worker):
    with pytest.raises(WorkerError) as caught:
        one_worker.run(execute, 'if True\n    pass')
    [note] = caught.value.__notes__
    assert 'if True' in note and 'ast.py' not in note


def test_ctrl_c_before_a_worker_has_begun(monkeypatch):
    """The call is on its way: a signal now would be lost."""
    tell = Supervisor.call_workers

    def pressed(self, *call):
        tell(self, *call)
        raise KeyboardInterrupt
    with Cluster(num_workers=2) as c:
        with monkeypatch.context() as patch:
            patch.setattr(Supervisor, 'call_workers', pressed)
            with pytest.raises(KeyboardInterrupt):
                c.run(time.sleep, 10 * HANGS)
        start = time.monotonic()
        assert c.run(abs, -5) == [5, 5]
        assert time.monotonic() - start < HANGS


def test_ctrl_c_just_as_a_call_fails(monkeypatch):
    """When one worker hears of it, the others' plans fail at that moment."""
    set_handler, before = signal.signal, signal.getsignal(signal.SIGINT)
    came = []

    def late(number, handler):
        if handler == signal.SIG_IGN and not came:
            came.append(number)
            raise KeyboardInterrupt  # as Python does in here
        return set_handler(number, handler)
    monkeypatch.setattr(signal, 'signal', late)
    try:
        result, done = cells.call_packed(
            0, cells.pack((int, ('x',), {})),
            SimpleNamespace(tell=lambda message: None))
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        set_handler(signal.SIGINT, before)
    assert came and result == ''
    assert done.error.startswith('KeyboardInterrupt')
    assert "invalid literal for int() with base 10: 'x'" in done.traceback
