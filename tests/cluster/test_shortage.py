"""What a machine has run out of: it is said, and nothing is left behind."""
import errno
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest
from clusters import empty_in_the_end, wait_for
from d2lps.cluster import Cluster, ClusterError
from d2lps.cluster.processes import process


def shape():
    """What a cluster that could not start may have left in this process."""
    return (psutil.Process().children(recursive=True),
            threading.active_count(), len(os.listdir('/dev/fd')))


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """No file, no process, no thread, no open file."""
    threading.Thread(target=int).start()  # what the first one leaves open
    before = shape()
    with empty_in_the_end(monkeypatch):
        yield
    assert wait_for(lambda: shape() == before), (before, shape())


def error(number, name=None):
    return OSError(number, os.strerror(number), name)


@pytest.mark.parametrize('owner, name, problem, words', [
    (threading.Thread, 'start', RuntimeError("can't start new thread"),
     "a cluster cannot start: can't start new thread.*ulimit -u"),
    (os, 'pipe', error(errno.EMFILE),
     'a cluster cannot start: Too many open files.*ulimit -n'),
    (tempfile, 'mkdtemp', error(errno.ENOSPC, '/tmp/x'),
     'a cluster cannot start: No space left on device: /tmp/x.*TMPDIR'),
    (subprocess, 'Popen', MemoryError(),
     'a cluster cannot start: MemoryError.*fewer workers')])
def test_what_the_reader_has_not(monkeypatch, owner, name, problem, words):
    real = getattr(owner, name)

    def fail(*args, **more):
        if owner is threading.Thread and args[0].name != 'd2lps cluster':
            return real(*args)
        raise problem
    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(OSError, match=words) as raised:
        Cluster(2, 0)
    assert '\n' not in str(raised.value)


# Faults of a keeper, or of what it has forked, at the point of the call.
SECOND_FORK_FAILS = '''
pids, fork = [], os.fork
def fail():
    if pids:
        raise BlockingIOError(11, os.strerror(11))
    pids.append(fork())
    return pids[0]
os.fork = fail
'''
NO_THREADS = '''
def fail(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = fail
'''
ABORTS_AT_ONCE = '''
fork = os.fork
def abort():
    if not (pid := fork()):
        os.write(2, b"Resource temporarily unavailable\\n")
        os.abort()
    return pid
os.fork = abort
'''


@pytest.mark.parametrize('fault, who, words', [
    (SECOND_FORK_FAILS, 'keeper', 'worker 1 could not be started: Resource '
     'temporarily unavailable\nMost often, .*ulimit -u'),
    (NO_THREADS, r'worker \d', r"worker \d could not be started: can't start "
     'new thread\nMost often, .*ulimit -u'),
    # The second may have ended, too, before the first is seen.
    (ABORTS_AT_ONCE, 'worker .', '(the last lines that worker . wrote:\n'
     ' +.none.\n)+the last lines that keeper wrote:\n'
     '(    .*unavailable\n)+Most often, ')])
def test_what_a_keeper_has_not(monkeypatch, fault, who, words):
    code = (f'import os, sys, threading\n'
            f'sys.path[0] = {str(Path(__file__).parents[2])!r}\n{fault}\n'
            'from d2lps.cluster.processes.keeper import main\nmain()')
    monkeypatch.setattr(process, 'keeper_command', lambda: [
        sys.executable, '-u', '-c', code])
    with pytest.raises(ClusterError, match=words) as raised:
        Cluster(2, 0)
    text = str(raised.value)
    assert 'Traceback' not in text and text.count('Most often') == 1
    assert re.match(rf'{who} \(process \d+\) (ended with exit code 1|was '
                    'ended by SIGABRT)', text), text
