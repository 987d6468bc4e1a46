"""What others do at the same time costs nobody points."""
import asyncio
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import nbformat
import psutil
import pytest
from handins import ROOT, answered, solution, with_cell

from teaching import own_time, executing, grade, walls
from teaching.own_time import LOOK, Clock
from teaching.executing import Disturbed, Problem, execute
from teaching.grade import Grading, folder_for_results
from teaching.judging import judge
from teaching.rebuilding import hidden_cases, rebuild
from teaching.submissions import read_all

CORES = 2
CPU = min(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else 0
needs_linux = pytest.mark.skipif(not all(
    os.path.exists(f'/proc/self/task/{os.getpid()}/{name}')
    for name in ('schedstat', 'children')),
    reason='this system does not note what a thread waits for')
WALLS = [False, pytest.param(True, marks=pytest.mark.skipif(
    bool(walls.problem()), reason='no walls'))]
# Twenty processes on one processor, each in a session of its own.
CROWD = f'''
import os, sys
os.sched_setaffinity(0, {{{CPU}}})
parent = os.getpid()
for _ in range(20):
    if not os.fork():
        os.setsid()
        while os.getppid() == parent:
            pass
        os._exit(0)
print('here', flush=True)
sys.stdin.read()
'''


@pytest.fixture
def crowd():
    """A processor on which twenty others compute."""
    with subprocess.Popen([sys.executable, '-c', CROWD], text=True,
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == 'here\n'
        try:
            yield
        finally:
            process.kill()


def own_seconds(monkeypatch, *looks, others=CORES):
    """What a clock of ours says after these looks, on two processors.

    Each look: the seconds that have passed, how long each thread ran, how long
    it had to wait, how long disks made wait. others: how many processors the
    rest of the machine uses.
    """
    at, stalled, ran, delays, told = 0., 0., Counter(), Counter(), []
    for passed, runs, waits, stall in [(0, {}, {}, 0), *looks]:
        at, stalled = at + passed, stalled + stall
        ran.update(runs)
        delays.update(waits)
        told.append(SimpleNamespace(
            at=at, used=ran.total(), ran=dict(ran), delays=dict(delays),
            busy=ran.total() + others * at, stalled=stalled))
    notes = iter(told)
    monkeypatch.setattr(own_time, '_counters', lambda pid: next(notes))
    monkeypatch.setattr(own_time, 'CORES', CORES)
    one = Clock(1)
    for _ in looks:
        one.look()
    return one.seconds


@pytest.mark.parametrize('look, seconds', [
    ((LOOK, {'a': LOOK}, {}, 0), 1),  # computes
    ((LOOK, {}, {}, 0), 1),  # sleeps
    ((LOOK, {'a': LOOK / 50}, {'a': LOOK * 49 / 50}, 0), 1 / 50),  # computes
    ((LOOK, {}, {'a': 0, 'b': LOOK}, 0), 0),  # waits for a thread that waits
    ((LOOK, {}, {}, LOOK), 0),  # waits for a disk that all write to
    ((LOOK, dict.fromkeys(range(70), 2 * LOOK / 70),  # seventy compute
      dict.fromkeys(range(70), LOOK), 0), 1),
    ((LOOK, {'a': LOOK}, {'b': LOOK, 'c': LOOK}, 0), 1),  # others only wait
    ((100 * LOOK, {}, {}, 0), 2)])  # we could not look in time
def test_only_own_time_counts(monkeypatch, look, seconds):
    found = own_seconds(monkeypatch, *[look] * 10)
    assert found == pytest.approx(10 * LOOK * seconds)


def run(code, alone=True, behind_walls=False):
    """The points of a right answer with a cell of code above it, and why a
    cell has no outputs."""
    made, _ = rebuild(solution('tree'), with_cell(answered(), code))
    cases = hidden_cases(ROOT / 'teaching' / 'hidden', 'tree')
    problems = asyncio.run(execute(made, cases, 0, behind_walls, alone))
    return sum(one.points for one in judge('tree', made, cases, problems)
               if not one.wrong), problems


@needs_linux
@pytest.mark.full
def test_who_waits_for_a_processor_is_not_late(crowd, monkeypatch):
    """Its thread needs 0.4 s of a processor, on which it is one of 21."""
    monkeypatch.setattr(executing, 'SECONDS', 2)
    assert run(f'''
import os, threading, time
def compute():
    os.sched_setaffinity(0, {{{CPU}}})
    start = time.thread_time()
    while time.thread_time() - start < 0.4:
        pass
thread = threading.Thread(target=compute)
thread.start()
thread.join()
''') == (10, {})


@pytest.mark.full
def test_who_sleeps_is_late(monkeypatch):
    monkeypatch.setattr(executing, 'SECONDS', 2)
    points, problems = run('import time\ntime.sleep(3600)')
    assert points == 10
    assert [*problems.values()] == [Problem('it did not end within 2 s')]


@pytest.mark.full
def test_what_others_may_have_ended_is_executed_alone(tmp_path, monkeypatch):
    """As where all memory is taken: somebody's kernel ends, or none starts."""
    with pytest.raises(Disturbed, match='the process ended'):
        run('import os\nos._exit(1)', alone=False)
    for student in 'ada', 'bob', 'eve':
        (tmp_path / 'in' / student).mkdir(parents=True)
        nbformat.write(with_cell(answered(), f'name = {student!r}'),
                       tmp_path / 'in' / student / 'tree.ipynb')
    started, at_work = [], []

    async def busy(notebook, cases, slot, behind_walls, alone):
        name = next(cell.source for cell in notebook.cells
                    if cell.source.startswith('name = '))
        started.append((name[8:11], alone))
        at_work.append(name)
        assert not alone or len(at_work) == 1
        try:
            if name[8:11] != 'eve' and not alone:
                raise Disturbed
            return await execute(notebook, cases, slot, behind_walls, alone)
        finally:
            at_work.remove(name)
    monkeypatch.setattr(grade, 'execute', busy)
    grading = Grading(read_all(tmp_path / 'in'), ['tree'], folder_for_results(
        tmp_path / 'out', tmp_path / 'in'), not walls.problem())
    grading.run()
    assert sorted(started) == [('ada', False), ('ada', True), ('bob', False),
                               ('bob', True), ('eve', False)]
    assert [(one.points, one.remarks) for one in grading.results.all()] == [
        (10, [])] * 3


@pytest.mark.full
@pytest.mark.parametrize('behind_walls', WALLS)
@pytest.mark.parametrize('ends', ['', 'os._exit(0)'])
def test_a_notebook_leaves_no_process_behind(behind_walls, ends):
    """A process of its own session, whose parent has ended, is ended, too."""
    seconds = 3600 + os.getpid() / 1e6 + 2 * behind_walls + bool(ends)
    run(f'''
import os, time
import subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        subprocess.Popen([sys.executable, '-c',
                          'import time; time.sleep({seconds})'])
        time.sleep(3600)
    os._exit(0)
os.wait()
time.sleep(1)
{ends}
''', behind_walls=behind_walls)
    left = [one for one in psutil.process_iter(['cmdline'])
            if f'time.sleep({seconds})' in str(one.info['cmdline'])]
    for one in left:
        one.kill()
    assert not left
