"""What a machine has run out of: it is said, and nothing is left behind."""
import errno
import os
import re
import selectors
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest
from clusters import empty_in_the_end, wait_for
from d2lps.cluster import Cluster, ClusterError
from d2lps.cluster.processes import addresses, shortage, sockets
from d2lps.cluster.processes.shortage import needs, remedy
from test_sockets import unused


def shape():
    """What a cluster that could not start may have left in this process."""
    return (psutil.Process().children(recursive=True),
            threading.active_count(), len(os.listdir('/dev/fd')))


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """No file, no process, no thread, no open file."""
    threading.Thread(target=int).start()  # what the first one leaves open
    before = shape()
    with empty_in_the_end(tmp_path, monkeypatch):
        yield
    assert wait_for(lambda: shape() == before), (before, shape())


def error(number, name=None):
    return OSError(number, os.strerror(number), name)


def failing(call, problem, when=lambda *args, **more: True):
    """Like `call`, but where `when` holds, there is a problem."""
    def instead(*args, **more):
        if when(*args, **more):
            raise problem
        return call(*args, **more)
    return instead


FULL = error(errno.ENOSPC, '/tmp/x')
NOWHERE = FileNotFoundError(2, "No usable temporary directory found in ['/']")


@pytest.mark.parametrize('owner, name, problem, when, words', [
    (threading.Thread, 'start', RuntimeError("can't start new thread"),
     lambda thread: thread.name == 'd2lps cluster',
     "a cluster cannot start: can't start new thread.*ulimit -u"),
    (selectors, 'DefaultSelector', error(errno.EMFILE), None,
     'a cluster cannot start: Too many open files.*ulimit -n'),
    (os, 'pipe', error(errno.EMFILE), None,
     'a cluster cannot start: Too many open files.*ulimit -n'),
    (tempfile, 'mkdtemp', FULL, None,
     'no folder .*No space left on device: /tmp/x.*TMPDIR'),
    (tempfile, 'mkdtemp', error(errno.EACCES, '/tmp/x'), None,
     'no folder .*Permission denied: /tmp/x.*TMPDIR'),
    (tempfile, 'mkdtemp', NOWHERE, None,
     r"no folder .*No usable temporary directory found in \['/'].*TMPDIR"),
    (subprocess, 'Popen', error(errno.EAGAIN), None,
     'keeper could not be started: Resource temporarily unav.*ulimit -u'),
    (subprocess, 'Popen', error(errno.ENOMEM), None,
     'keeper could not be started: Cannot allocate memory.*fewer workers'),
    (subprocess, 'Popen', MemoryError(), None,
     'keeper could not be started: MemoryError.*fewer workers')])
def test_what_the_reader_has_not(monkeypatch, owner, name, problem, when,
                                 words):
    monkeypatch.setattr(owner, name, failing(
        getattr(owner, name), problem, when or (lambda *_, **__: True)))
    with pytest.raises(OSError, match=words) as raised:
        Cluster(2, 0)
    assert '\n' not in str(raised.value)


def test_a_keeper_whom_nobody_could_hear(monkeypatch):
    """It is there already when its line cannot be watched."""
    register = selectors.DefaultSelector.register
    monkeypatch.setattr(selectors.DefaultSelector, 'register', failing(
        register, error(errno.ENOSPC), lambda self, pipe, *_: hasattr(
            pipe, 'fileno') and len(self.get_map()) == 2))
    with pytest.raises(OSError):
        Cluster(2, 0)


@pytest.mark.full
def test_a_full_disk_before_the_servers_start(monkeypatch):
    port = unused()
    monkeypatch.setattr(Path, 'write_text', failing(
        Path.write_text, error(errno.ENOSPC),
        lambda path, *_: path.name.startswith('sockets')))
    with pytest.raises(OSError, match='No space left on device.*TMPDIR'):
        Cluster(1, 1, port=port)
    assert not os.path.lexists(sockets.socket_of(port))


# Faults of a keeper, or of what it has forked, at the point of the call.
SECOND = '''
import itertools, os, threading
from d2lps.cluster.processes import member
def fail_later(call, times, problem):
    numbers = itertools.count()
    def instead(*args):
        if next(numbers) >= times:
            raise problem
        return call(*args)
    return instead
'''
FAULTS = {
    'fork': 'os.fork = fail_later(os.fork, {}, '
            'BlockingIOError(11, os.strerror(11)))',
    'pipe': 'os.pipe = fail_later(os.pipe, {}, OSError(24, os.strerror(24)))',
    'thread': 'threading.Thread.start = fail_later(threading.Thread.start, '
              '{}, RuntimeError("can\'t start new thread"))',
    'abort': 'def load(store):\n'
             '    os.write(2, b" what(): Resource temporarily unavailable")\n'
             '    os.abort()\n'
             'member.load = load',
    'early': 'fork = os.fork\n'
             'def abort():\n'
             '    if not (pid := fork()):\n'
             '        os.write(2, b"Resource temporarily unavailable\\n")\n'
             '        os.abort()\n'
             '    return pid\n'
             'os.fork = abort'}


def with_fault(monkeypatch, fault):
    """Have keepers start with a fault."""
    code = f'''import sys
sys.path[0] = {str(Path(__file__).parents[2])!r}
{SECOND}
{fault}
from d2lps.cluster.processes.keeper import main
main()
'''
    monkeypatch.setattr(addresses, 'start_here', lambda: [
        sys.executable, '-u', '-c', code])


@pytest.mark.parametrize('fault, times, who, words', [
    ('fork', 0, 'keeper', 'worker 0 could not be started: Resource '
     'temporarily unavailable\nMost often, .*ulimit -u'),
    ('fork', 1, 'keeper', 'worker 1 could not be started: Resource'),
    ('pipe', 6, 'keeper', 'worker 1 could not be started: Too many open '
     'files\nA process has .*ulimit -n'),
    ('thread', 0, r'worker \d', r"worker \d could not be started: can't start "
     'new thread\nMost often, .*ulimit -u'),
    ('thread', 1, r'worker \d', r"worker \d could not be started: can't"),
    ('abort', 0, '(keeper|worker .)', 'what.*unavailable\nMost often, '),
    # The second may have ended, too, before the first is seen.
    ('early', 0, 'worker .', '(the last lines that worker . wrote:\n'
     ' +.none.\n)+the last lines that keeper wrote:\n'
     '(    .*unavailable\n)+Most often, ')])
def test_what_a_keeper_has_not(monkeypatch, fault, times, who, words):
    with_fault(monkeypatch, FAULTS[fault].format(times))
    with pytest.raises(ClusterError, match=words) as raised:
        Cluster(2, 0)
    text = str(raised.value)
    assert 'Traceback' not in text and 'has not been used' not in text
    assert text.count('Most often') <= 1
    assert re.match(rf'{who} \(process \d+\) (ended with exit code 1|was '
                    'ended by SIGABRT)', text), text


def files():
    """Open files of a worker, by what each of them is."""
    found = []
    for number in range(1000):
        try:
            found.append(stat.S_IFMT(os.fstat(number).st_mode))
        except OSError:
            pass
    return found


def test_without_proc(monkeypatch):
    """/dev/fd leads there; workers have closed what is their keeper's."""
    with Cluster(2, 0) as c:
        usual = c.run(files)
    listed = os.listdir('/dev/fd')  # and the list itself, which is closed
    with monkeypatch.context() as patch:
        patch.setattr(os, 'listdir', failing(
            os.listdir, error(errno.ENOENT, '/dev/fd'),
            lambda path='.': str(path) == '/dev/fd'))
        found = shortage.open_files()
    assert len({*map(int, listed)} ^ {*found}) == 1
    with_fault(monkeypatch, '''
listdir = os.listdir
def no_proc(path='.'):
    if path == '/dev/fd':
        raise FileNotFoundError(2, 'No such file or directory', path)
    return listdir(path)
os.listdir = no_proc''')
    with Cluster(2, 0) as c:
        assert c.run(files) == usual


def test_other_errors_stay_as_they_are():
    with pytest.raises(RuntimeError, match='^this cluster is closed$'):
        with needs('it'):
            raise RuntimeError('this cluster is closed')
    with pytest.raises(OSError, match='^it: Input/output error: /x$'):
        with needs('it'):
            raise error(errno.EIO, '/x')
    assert remedy('ValueError: 3') == ''
