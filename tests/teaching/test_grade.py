"""What a teacher types, and what is done and said then."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from handins import (
    BEHIND,
    LOOP,
    ROOT,
    answered,
    graded,
    hand_in,
    released,
    with_cell,
)

from teaching import walls
from teaching.course import Course
from teaching.grade import main
from teaching.grading import (LOCK, _judging_code, alone_in,
                              folder_for_results)


def test_submissions_are_never_emptied(tmp_path):
    hand_in(tmp_path, 'anna', answered())
    anna = tmp_path / 'in' / 'anna'
    for to in tmp_path, tmp_path / 'in', anna:
        with pytest.raises(ValueError, match='TO must be'):
            folder_for_results(to, tmp_path / 'in')
    other = tmp_path / 'other'
    (other / 'course').mkdir(parents=True)
    (other / 'course' / 'nbgrader_config.py').touch()
    (other / 'thesis.txt').write_text('important')
    with pytest.raises(ValueError, match='TO must be a new folder'):
        folder_for_results(other, tmp_path / 'in')
    assert (other / 'thesis.txt').exists() and (anna / 'tree.ipynb').exists()


def test_what_a_teacher_adds_to_the_settings_of_a_course_stays(tmp_path):
    course = Course.make(tmp_path, [])
    with open(course.folder / 'nbgrader_config.py', 'a') as config:
        config.write("c.Exchange.root = '/exchange'\n")
    Course.open(tmp_path, [])
    text = (course.folder / 'nbgrader_config.py').read_text()
    assert text.endswith("c.Exchange.root = '/exchange'\n")


def test_results_depend_on_the_lesson_that_judges_them():
    assert any('class Schedule' in code for code in _judging_code())


@pytest.mark.parametrize('options, message', [
    ((), 'FROM has no exercise in it'),
    (['--exercises', 'treee'], 'EXERCISES must be among .* treee'),
    (['--late', '200'], 'LATE must be a percentage')])
def test_what_is_typed_wrongly_is_said_before_anything(
        tmp_path, options, message):
    (tmp_path / 'ada').mkdir()
    with pytest.raises(SystemExit, match=message):
        main([str(tmp_path), '--walls', 'none', *options])


def test_without_walls_one_has_to_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(walls, 'problem', lambda: 'no bwrap')
    with pytest.raises(SystemExit, match='no bwrap.*WALLS=none'):
        main([str(tmp_path)])


def test_two_gradings_do_not_write_into_one_folder(tmp_path):
    hand_in(tmp_path, 'ada', answered())
    to = folder_for_results(tmp_path / 'out', tmp_path / 'in')
    with alone_in(to), pytest.raises(
            SystemExit, match='another grading writes into '
            f'.*out: process {os.getpid()} on .*, since'):
        main([str(tmp_path / 'in'), '--to', str(to), '--walls', 'none'])
    # The file of an earlier grading, or of a killed one, does not matter.
    with alone_in(folder_for_results(to, tmp_path / 'in')):
        assert [path.name for path in to.iterdir()] == [LOCK]


CLEANS = '''
import asyncio, sys
from teaching import interruption
interruption.listen()
async def main():
    interruption.now_cancels(asyncio.current_task())
    print('here', flush=True)
    try:
        await asyncio.sleep(600)
    finally:
        print('cleans', flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print('has cleaned', flush=True)
try:
    asyncio.run(main())
except asyncio.CancelledError:
    print('ended')
'''


@pytest.mark.parametrize('number', [
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_further_signals_do_not_end_the_cleaning(number):
    with subprocess.Popen(
            [sys.executable, '-c', CLEANS], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == 'here\n'
        process.send_signal(number)
        assert process.stdout.readline() == 'cleans\n'
        for again in number, signal.SIGINT, signal.SIGTERM:
            process.send_signal(again)
            time.sleep(0.1)
        process.stdin.close()
        assert process.stdout.read() == 'has cleaned\nended\n'
    assert process.returncode == 0


def test_ctrl_c_while_python_imports_is_one_line(monkeypatch):
    class Interrupted:
        @staticmethod
        def find_spec(name, *_):
            if name == 'teaching.grading':
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, 'teaching.grading')
    monkeypatch.setattr(sys, 'meta_path', [Interrupted, *sys.meta_path])
    with pytest.raises(SystemExit, match='ended before all were graded'):
        main(['in'])


@pytest.mark.full
def test_what_is_missing_stays_and_what_nobody_asked_for_does_not_count(
        tmp_path, capsys):
    hand_in(tmp_path, 'ada', answered())
    hand_in(tmp_path, 'bob', released())
    hand_in(tmp_path, 'bob', answered('minibatch'), 'minibatch')
    first = graded(tmp_path)
    assert first['ada', 'tree']['points'] == '10'
    assert first['bob', 'tree']['points'] == '0'
    assert ('ada', 'minibatch') not in first
    said = capsys.readouterr().out
    assert 'not handed in by all' in said and 'minibatch (1)' in said
    page = tmp_path / 'out' / 'feedback' / 'ada.html'
    assert 'minibatch' not in page.read_text()
    (tmp_path / 'in' / 'bob' / 'minibatch.ipynb').unlink()
    shutil.rmtree(tmp_path / 'out' / 'results' / 'ada')  # to grade her again
    second = graded(tmp_path, '--exercises', 'tree', 'minibatch')
    said = capsys.readouterr().out
    assert 'bob, minibatch: not handed in this time' in said
    assert '2 students, 1 notebook graded' in said
    assert second['bob', 'minibatch']['points'] == '10'
    assert second['ada', 'minibatch']['points'] == '0'
    assert ('ada', 'minibatch') not in graded(tmp_path)


@pytest.mark.full
@pytest.mark.skipif(BEHIND == 'none', reason='there are no walls')
def test_it_can_be_ended_and_what_was_graded_stays(tmp_path):
    """By SIGTERM, from which on all is as after Ctrl-C."""
    hand_in(tmp_path, 'anna', with_cell(answered(), LOOP))
    # Not in tmp_path: the name of a socket must be short.
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder)
        grading = subprocess.Popen(
            [sys.executable, '-m', 'teaching.grade', tmp_path / 'in', '--to',
             tmp_path / 'out'], cwd=ROOT, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**os.environ, 'TMPDIR': folder})
        try:
            until = time.time() + 300
            while not list(temporary.glob('d2lps-*/connection.json')):
                assert time.time() < until and grading.poll() is None
                time.sleep(0.1)
            time.sleep(2)  # the kernel starts, or runs
            for _ in range(3):  # as `timeout` and others do
                grading.send_signal(signal.SIGTERM)
                time.sleep(0.05)
            said, _ = grading.communicate(timeout=300)
        finally:
            grading.kill()
        assert grading.returncode == 1
        assert said.strip() == (
            'd2lps: ended before all were graded; the results so far stay, '
            'and the same command goes on from there')
        assert not list(temporary.glob('*'))
    hand_in(tmp_path, 'anna', answered())
    assert graded(tmp_path)['anna', 'tree']['points'] == '10'
