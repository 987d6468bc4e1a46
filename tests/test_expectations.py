"""What is said of an expectation, and why it did not come so."""
import os
import sys
from types import SimpleNamespace

import d2lps
import numpy as onp
import pytest
from d2lps import expectations, usage
from d2lps.expectations import told_in
from d2lps.usage import Usage


@pytest.fixture
def machine(monkeypatch):
    """A machine of which all is known: cores, limit, what others use."""
    def make(cores=2, limit=None, others=0.0, all_cores=2):
        monkeypatch.setattr(expectations, 'cores', lambda: cores)
        monkeypatch.setattr(expectations, 'limit', lambda: limit)
        monkeypatch.setattr(expectations.CELLS, 'used_by_others',
                            lambda: others)
        monkeypatch.setattr(os, 'cpu_count', lambda: all_cores)
    return make


@pytest.mark.parametrize('here, why', [
    ({}, 'nothing is known that explains it'),
    ({'cores': 1}, 'there is only one core'),
    ({'limit': 1.5}, 'a container has a limit of 1.5 cores'),
    ({'others': 0.7}, 'other programs used 0.7 of the 2 cores'),
    ({'others': 3.0, 'all_cores': 8}, 'nothing is known that explains it'),
    ({'cores': 1, 'others': 1.2}, 'there is only one core and other programs '
                                  'used 1.2 of the 2 cores')])
def test_what_did_not_come_so_is_said_with_what_is_known(
        machine, capsys, here, why):
    machine(**here)
    d2lps.expect('two devices are faster than one', False)
    assert capsys.readouterr().out == (
        f'not here, not now: two devices are faster than one ({why})\n')


@pytest.mark.parametrize('held', [True, onp.bool_(True), onp.array(True)])
def test_what_came_so_is_said_only_where_it_is_counted(
        capsys, monkeypatch, held):
    assert d2lps.expect('it is faster', held) is None
    assert capsys.readouterr().out == 'as expected: it is faster\n'
    monkeypatch.delenv('D2LPS_TELL_ALL')
    assert d2lps.expect('it is faster', held) is None
    assert capsys.readouterr().out == ''


@pytest.mark.parametrize('words, held, says', [
    ('', True, 'claim must be a text'),
    ('a', 1.5, 'held must be True or False'),
    ('a', onp.array([True, False]), 'held must be True or False')])
def test_what_is_no_expectation_is_refused(words, held, says):
    with pytest.raises(ValueError, match=says):
        d2lps.expect(words, held)


def test_what_was_said_is_read_again(machine, capsys):
    machine(others=1)
    d2lps.expect('a pull waits (for all)', False)
    d2lps.expect('one is less than two', True)
    printed = f'12 ms\n{capsys.readouterr().out}and so on'
    assert told_in(printed) == [('a pull waits (for all)', False),
                                ('one is less than two', True)]


def test_what_others_used_while_a_cell_ran_and_the_one_before(monkeypatch):
    """The worse of both, as a cell often looks at what the last measured."""
    moments = [Usage(0, 1, 1), Usage(2, 3, 4.0),  # 1 s of 2 was of others
               Usage(9, 3, 5), Usage(10, 4, 6.2)]  # 0.2 s of 1
    monkeypatch.setattr(usage, 'usage', lambda: moments.pop(0))
    cells = usage._Cells()
    cells.begin()
    cells.end()
    cells.begin()
    assert cells.used_by_others() == 0.5


def test_a_notebook_tells_when_its_cells_begin_and_end(monkeypatch):
    called = {}
    shell = SimpleNamespace(events=SimpleNamespace(
        register=lambda event, function: called.update({event: function})))
    monkeypatch.setitem(sys.modules, 'IPython', SimpleNamespace(
        get_ipython=lambda: shell))
    usage.watch_cells()
    assert called == {'pre_run_cell': usage.CELLS.begin,
                      'post_run_cell': usage.CELLS.end}


def test_what_our_processes_use_is_ours(python):
    """Also what children of children did, ended or not."""
    done = python('-c', """if True:
        import subprocess, sys, time
        from d2lps.usage import usage
        busy = ('import time\\n'
                'while time.process_time() < 0.5: pass\\n')
        start = usage()
        child = subprocess.Popen(
            [sys.executable, '-c', 'import subprocess, sys\\n'
             f'subprocess.run([sys.executable, "-c", {busy!r}])\\n'
             f'exec({busy!r})\\nprint(flush=True)\\ninput()'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdout.readline()
        alive = usage()
        child.communicate(b'\\n')
        ended = usage()
        print(alive.ours - start.ours, ended.ours - start.ours)""")
    alive, ended = map(float, done.stdout.split())
    assert alive >= 0.9 and ended >= alive - 0.05  # the clocks are coarse
