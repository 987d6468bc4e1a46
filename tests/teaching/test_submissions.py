"""Folders that are no submissions, and folders that must not be emptied."""
import asyncio
import os
import resource

import nbformat
import pytest
from handins import (
    ROOT,
    answer_cell,
    answered,
    copied,
    is_check,
    released,
    solution,
    with_cell,
)
from nbformat.v4 import new_code_cell

from teaching import walls
from teaching.executing import execute
from teaching.grade import _judging_code, chosen, folder_for_results
from teaching.grade import main as grade
from teaching.judging import judge
from teaching.rebuilding import hidden_cases, rebuild
from teaching.submissions import read_all


def test_submissions_are_never_emptied(tmp_path):
    anna = tmp_path / 'in' / 'anna'
    anna.mkdir(parents=True)
    (anna / 'tree.ipynb').write_text('{}')
    for to in tmp_path, tmp_path / 'in', anna:
        with pytest.raises(ValueError, match='TO must be'):
            folder_for_results(to, tmp_path / 'in')
    other = tmp_path / 'other'
    other.mkdir()
    (other / 'thesis.txt').write_text('important')
    for name in 'a', 'course':
        (other / name).mkdir(exist_ok=True)
    (other / 'course' / 'nbgrader_config.py').touch()
    with pytest.raises(ValueError, match='TO must be a new folder'):
        folder_for_results(other, tmp_path / 'in')
    assert (other / 'thesis.txt').exists() and (anna / 'tree.ipynb').exists()


def test_results_depend_on_the_lesson_that_judges_them():
    assert any('class Schedule' in code for code in _judging_code())


def test_exercises_are_those_handed_in_or_named(tmp_path):
    (tmp_path / 'anna').mkdir()
    submissions = read_all(tmp_path)
    with pytest.raises(ValueError, match='FROM has no exercise in it'):
        chosen(submissions, [])
    assert chosen(submissions, ['tree', 'minibatch']) == ['minibatch', 'tree']
    with pytest.raises(ValueError, match='EXERCISES must be among .* treee'):
        chosen(submissions, ['treee'])


def test_without_walls_one_has_to_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(walls, 'problem', lambda: 'no bwrap')
    with pytest.raises(SystemExit, match='no bwrap.*WALLS=none'):
        grade([str(tmp_path)])


def put(folder, name, version, seconds, notebook=answered):
    path = folder / 'ada' / name
    path.parent.mkdir(exist_ok=True)
    nbformat.write(with_cell(notebook(), f'version = {version}'), path)
    os.utime(path, (seconds, seconds))


def test_of_two_files_the_newer_is_graded_unless_it_is_a_stub(tmp_path):
    put(tmp_path, 'tree.ipynb', 0, 1000)
    put(tmp_path, 'tree-1.ipynb', 1, 1010)
    put(tmp_path, 'tree-2.ipynb', 2, 1020, lambda: released('tree'))
    [ada] = read_all(tmp_path)
    assert 'version = 1' in str(ada.notebooks['tree'])
    assert ada.remarks['tree'] == [
        'wrongly named: tree-2.ipynb was taken for it',
        'wrongly named: tree-1.ipynb was taken for it',
        'handed in more than once: tree-2.ipynb was left out',
        'handed in more than once: tree.ipynb was left out']
    put(tmp_path, 'tree-1.ipynb', 1, 1000)  # out of one archive
    [ada] = read_all(tmp_path)
    assert 'version = 0' in str(ada.notebooks['tree'])


def test_names_of_before_stay(tmp_path):
    for name in 'Ada_1', 'ada_1', 'Bo Li_2_assignsubmission_file_':
        (tmp_path / name).mkdir()
    assert [one.student for one in read_all(tmp_path)] == [
        'Ada_1', 'Bo_Li_2', 'ada_1_']
    known = {'ada_1': 'Ada_1', 'Bo Li_2_assignsubmission_file_': 'bo'}
    assert [one.student for one in read_all(tmp_path, known)] == [
        'Ada_1_', 'bo', 'Ada_1']


def test_check_cells_are_run_once_and_hidden_ones_last():
    notebook = answered()
    notebook.cells += [copied(cell) for cell in notebook.cells
                       if is_check(cell)]
    made, remarks = rebuild(solution('tree'), notebook)
    assert not remarks
    assert [cell.id for cell in made.cells if is_check(cell)] == [
        f'{kind}-{part}' for kind in ('check', 'hidden')
        for part in ('sum', 'rounds', 'time')]


WRONG = 'def up_and_down(n):\n    return None'


@pytest.mark.parametrize('with_check', ['', 'below', 'within'])
@pytest.mark.parametrize('as_copy', [True, False])
@pytest.mark.parametrize('right_first', [True, False])
def test_the_lower_answer_counts_if_a_check_is_below_it(
        right_first, as_copy, with_check):
    notebook = answered()
    cell = answer_cell(notebook)
    upper, lower = ((cell.source, WRONG) if right_first
                    else (WRONG, cell.source))
    cell.source = upper
    [check, *_] = filter(is_check, notebook.cells)
    if with_check == 'within':
        lower += f'\n{check.source}'
    notebook.cells.append(copied(cell, lower) if as_copy
                          else new_code_cell(lower))
    if with_check == 'below':
        notebook.cells.append(copied(check))
    made, remarks = rebuild(solution('tree'), notebook)
    ids = [cell.id for cell in made.cells]
    answers = [cell.source for cell in made.cells[:ids.index('check-sum')]
               if 'def up_and_down' in cell.source]
    assert ('Schedule' in answers[-1]) == (right_first != bool(with_check))
    assert made.cells[ids.index('answer')].source == answers[-1]
    assert remarks == ([] if with_check else [
        'below the last check the answer is written once more: the one above '
        'was checked'])


def graded_here(notebook, exercise='tree'):
    """The verdicts on a notebook that is executed here, without walls."""
    made, _ = rebuild(solution(exercise), notebook)
    cases = hidden_cases(ROOT / 'teaching' / 'hidden', exercise)
    problems = asyncio.run(execute(made, cases, 0, behind_walls=False))
    return judge(exercise, made, cases, problems)


@pytest.mark.full
def test_visible_checks_cannot_tell_hidden_cases():
    notebook = with_cell(answered(), """
import os
import threading
import time
seen = []
def watch():
    while not seen:
        try:
            seen.append(open(os.environ['D2LPS_CASES']).read())
        except OSError:
            time.sleep(0.001)
threading.Thread(target=watch, daemon=True).start()
""")
    answer_cell(notebook).source += """
right = up_and_down
def up_and_down(n):
    if n == 5:
        time.sleep(2)
    if seen:
        raise Exception(seen)
    return right(n)
"""
    said = {(one.part, one.hidden): one.wrong
            for one in graded_here(notebook)}
    assert [*said] == [(part, hidden) for part in ('sum', 'rounds', 'time')
                       for hidden in (False, True)]
    for (_, is_hidden), wrong in said.items():
        assert is_hidden or not wrong, said
    assert said['time', True] and 'microseconds' not in said['time', True]


@pytest.mark.full
def test_hidden_cases_stay_hidden():
    for code in (
            'def up_and_down(n):\n    import os\n    raise Exception(open('
            'os.environ["D2LPS_CASES"]).read())',
            'def up_and_down(n):\n    import os\n    raise type(open('
            'os.environ["D2LPS_CASES"]).read(), (BaseException,), {})'):
        notebook = answered()
        answer_cell(notebook).source = code
        for one in graded_here(notebook):
            assert one.wrong and not (one.hidden and '{' in one.wrong), one


@pytest.mark.full
def test_what_a_notebook_shows_does_not_fill_our_memory():
    code = """
print('x' * 300_000_000)
for i in range(100):
    get_ipython().display_pub.publish({'text/plain': 'z' * 3_000_000})
"""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert not any(one.wrong for one in graded_here(with_cell(answered(),
                                                              code)))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 300_000  # KiB


