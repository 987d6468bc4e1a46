"""What others do at the same time costs nobody points."""
import os
import subprocess
import sys

import psutil
import pytest
from handins import answered, executed, graded, hand_in, with_cell

from teaching import executing, grading, walls
from teaching.executing import Disturbed, Problem, execute

CPU = min(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else 0
needs_affinity = pytest.mark.skipif(
    not hasattr(os, 'sched_setaffinity'),
    reason='this system binds no process to a processor')
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


def run(code, **options):
    """The points of a right answer with a cell of code above it, and why a
    cell has no outputs."""
    _, verdicts, problems = executed(with_cell(answered(), code), **options)
    return sum(verdict.points for verdict in verdicts
               if not verdict.wrong), problems


@needs_affinity
@pytest.mark.full
def test_who_waits_for_a_processor_is_not_late(crowd, monkeypatch):
    """Its thread needs 0.4 s of a processor, on which it is one of 21."""
    monkeypatch.setattr(executing, 'SECONDS', 2)
    monkeypatch.setattr(executing, 'WAIT', 30)
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
@pytest.mark.parametrize('code', ['time.sleep(3600)', 'while True: pass'])
def test_who_sleeps_or_computes_without_end_is_late(monkeypatch, code):
    monkeypatch.setattr(executing, 'SECONDS', 1)
    points, problems = run(f'import time\n{code}')
    assert points == 10
    assert [*problems.values()] == [Problem('it did not end within 1 s')]


@pytest.mark.full
def test_who_may_have_waited_for_others_is_executed_alone(monkeypatch):
    monkeypatch.setattr(executing, 'SECONDS', 1)
    with pytest.raises(Disturbed, match='a cell had taken 2 s'):
        run('import time\ntime.sleep(5)', alone=False)
    monkeypatch.setattr(executing, 'LONGEST', 1)
    with pytest.raises(Disturbed, match='all cells together had taken 1 s'):
        run('import time\ntime.sleep(5)', alone=False)


@pytest.mark.full
def test_what_others_may_have_ended_is_executed_alone(tmp_path, monkeypatch):
    """As where all memory is taken: somebody's kernel ends, or none starts."""
    with pytest.raises(Disturbed, match='the process ended'):
        run('import os\nos._exit(1)', alone=False)
    for student in 'ada', 'bob', 'eve':
        hand_in(tmp_path, student, with_cell(answered(),
                                             f'name = {student!r}'))
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
    monkeypatch.setattr(grading, 'execute', busy)
    rows = graded(tmp_path)
    assert sorted(started) == [('ada', False), ('ada', True), ('bob', False),
                               ('bob', True), ('eve', False)]
    assert [(row['points'], row['remarks']) for row in rows.values()] == [
        ('10', '')] * 3


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
    left = [process for process in psutil.process_iter(['cmdline'])
            if f'time.sleep({seconds})' in str(process.info['cmdline'])]
    for process in left:
        process.kill()
    assert not left
