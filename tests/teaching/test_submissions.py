"""Folders that are no submissions, and folders that must not be emptied."""
import asyncio
import json
import os
import resource

import nbformat
import pytest
from handins import (
    ROOT,
    answer_cell,
    answered,
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
from teaching.submissions import (
    BEGIN,
    END,
    hidden_cases,
    imports_of,
    read,
    read_all,
    rebuild,
    visible,
)


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


def test_a_cell_of_a_million_marks_stops_nobody():
    """A regular expression would take hours for it."""
    task = answered()
    [cell, *_] = [cell for cell in task.cells if is_check(cell)]
    cell.source = (BEGIN + '\n') * 500_000
    template = solution('tree')
    graded, remarks = rebuild(template, task)
    assert remarks == [f'the cell {cell.id} was changed: put back']
    assert visible(f'a\n{BEGIN}\nb\n{END}\nc') == 'a\nc'
    assert visible('a\nb') == 'a\nb'


def test_the_newer_of_two_is_graded_whatever_it_is_called(tmp_path):
    folder = tmp_path / 'ada'
    folder.mkdir()
    for k, name in enumerate(('tree.ipynb', 'tree-2.IPYNB', 'tree-1.ipynb')):
        notebook = with_cell(answered(), f'version = {k}')
        nbformat.write(notebook, path := folder / 'new.ipynb')
        os.rename(path, folder / name)
        os.utime(folder / name, (1000 + 10 * (k == 1),) * 2)
    found = read(folder, 'ada')
    assert 'version = 1' in str(found.notebooks['tree'])
    assert len(found.remarks['tree']) >= 2
    os.utime(folder / 'tree-2.IPYNB', (1000, 1000))  # out of one archive
    found = read(folder, 'ada')
    assert 'version = 0' in str(found.notebooks['tree'])


def test_no_spelling_gets_around_the_limit_of_cells(tmp_path):
    cell = '{"cell\\u005ftype": "raw", "metadata": {}, "source": ""}'
    (tmp_path / 'tree.ipynb').write_text(
        f'{{"cells": [{", ".join([cell] * 1001)}], "metadata": {{}}, '
        '"nbformat": 4, "nbformat_minor": 5}')
    assert 'more than 1000 cells' in str(read(tmp_path, 'ada').remarks)


def graded_here(notebook, exercise='tree'):
    """The verdicts on a notebook that is executed here, without walls."""
    made, _ = rebuild(solution(exercise), notebook)
    cases = hidden_cases(ROOT / 'teaching' / 'hidden', exercise)
    problems = asyncio.run(execute(made, cases, 0, behind_walls=False))
    return judge(exercise, made, cases, problems)


@pytest.mark.full
def test_what_a_student_calls_the_same_is_not_meant():
    for code in 'check = []', 'hidden = 3', 'def check(p):\n    return p':
        notebook = answered()
        notebook.cells.insert(2, new_code_cell(code))
        assert not any(one.wrong for one in graded_here(notebook)), code


@pytest.mark.full
def test_an_answer_above_the_line_for_it_is_one():
    for name in 'tree', 'bounded-delay':  # a function, a class
        notebook = with_cell(released(name), answer_cell(solution(
            name)).source)
        assert not any(one.wrong for one in graded_here(notebook, name))


def test_imports_are_run_whatever_became_of_them():
    template = solution('tree')
    imports = imports_of(template)
    for change in ('', 'import numpy', imports.replace('Schedule, ', '')):
        notebook = answered()
        [cell] = [cell for cell in notebook.cells if cell.source == imports]
        cell.source = change
        made, remarks = rebuild(solution('tree'), notebook)
        assert made.cells[0].source == imports
        assert remarks == ['lines of the first cell, which imports, were '
                           'changed, moved or deleted: they are run before '
                           'yours']
    for change in (f'import math\n{imports}', imports.replace('\n', '  \n')):
        cell.source = change
        made, remarks = rebuild(solution('tree'), notebook)
        assert not remarks and made.cells[0].cell_type == 'markdown'


@pytest.mark.full
def test_an_answer_below_its_checks_is_one():
    notebook = released('tree')
    notebook.cells.append(new_code_cell(answer_cell(solution('tree')).source))
    assert not any(one.wrong for one in graded_here(notebook))
    _, remarks = rebuild(solution('tree'), notebook)
    assert any('below its check' in one for one in remarks)
    backwards = answered()
    backwards.cells.reverse()
    made, _ = rebuild(solution('tree'), backwards)
    names = [cell.id for cell in made.cells]
    assert names.index('answer') < names.index('check-sum')
    # What is tried out below a right answer changes nothing.
    notebook = answered()
    notebook.cells.append(new_code_cell('def up_and_down(n): return 1'))
    _, remarks = rebuild(solution('tree'), notebook)
    assert remarks == [ONCE_MORE]


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


def copied(cell, source=None):
    """As Jupyter copies a cell: with all that it knows of it."""
    copy = nbformat.from_dict(json.loads(json.dumps(cell)))
    if source is not None:
        copy.source = source
    return copy


def check_cells(notebook):
    return [cell for cell in notebook.cells if is_check(cell)]


STUB = answer_cell(released('tree')).source
HELPER = 'def span(step):\n    return 2 * step'


def with_helper(notebook):
    """The answer to tree, which now calls a helper."""
    answer = answer_cell(notebook)
    assert '2 * step' in answer.source
    answer.source = answer.source.replace('2 * step', 'span(step)')
    return answer


def order_of(made):
    """What is executed: our names of cells, and the first words of others."""
    return [cell.metadata.get('nbgrader', {}).get('grade_id')
            or cell.source.split('(')[0].split('\n')[0]
            for cell in made.cells if cell.cell_type == 'code']


@pytest.mark.full
def test_an_answer_that_became_text_is_code_again():
    notebook = answered()
    cell = answer_cell(notebook)
    cell.cell_type = 'markdown'
    del cell['outputs'], cell['execution_count']
    _, remarks = rebuild(solution('tree'), notebook)
    assert remarks == ['the cell for the answer was made text: it was run as '
                       'code']
    assert not any(one.wrong for one in graded_here(notebook))


@pytest.mark.full
@pytest.mark.parametrize('below', [False, True])
def test_a_copied_check_cell_is_a_cell_like_others(below):
    notebook = answered()
    answer = with_helper(notebook)
    place = len(notebook.cells) if below else notebook.cells.index(answer)
    notebook.cells.insert(place, copied(check_cells(notebook)[0], HELPER))
    made, remarks = rebuild(solution('tree'), notebook)
    names = order_of(made)
    assert names.index('def span') < names.index('check-sum')
    assert remarks == ([
        'the answer, or what it needs, stands below its check: it was checked '
        'there'] if below else [])
    assert not any(one.wrong for one in graded_here(notebook))


def test_what_stands_in_our_check_cells_is_not_run_twice():
    """Copied, cut in two, without a line, with a comment, made text."""
    notebook = answered()
    checks = check_cells(notebook)
    for cell in checks:
        notebook.cells.append(copied(cell))
    notebook.cells.insert(0, copied(checks[-1], '# nothing'))
    checks[0].cell_type = 'markdown'
    made, remarks = rebuild(solution('tree'), notebook)
    names = order_of(made)
    assert len(names) == len(set(names))
    assert names[-1] == 'hidden-time' and names.index('answer') == 1
    assert not remarks
    for cell in checks:
        notebook.cells.remove(cell)
    notebook.cells = [cell for cell in notebook.cells if not (
        is_check(cell) and cell.source.startswith('check'))]
    _, remarks = rebuild(solution('tree'), notebook)
    assert remarks == [f'the cell check-{part} was deleted: put back'
                       for part in ('sum', 'rounds', 'time')]


WRONG = 'def up_and_down(n):\n    return None'
ONCE_MORE = ('below the last check the answer is written once more: the one '
             'above was checked')
def checked(notebook):
    """What its cells define as up_and_down when its checks come: a text."""
    made, remarks = rebuild(solution('tree'), notebook)
    names = {}
    for cell in made.cells:
        if is_check(cell):
            break
        if 'def up_and_down' in cell.source and cell.cell_type == 'code':
            exec(cell.source, {'check': lambda *_: None}, names)
    return names['up_and_down'].__code__.co_names, remarks


def test_the_lower_answer_counts_without_the_cell_for_it():
    """Written below in cells of one's own, first wrong and then right."""
    notebook = answered()
    cell, check = answer_cell(notebook), check_cells(notebook)[0]
    right = cell.source
    notebook.cells = [one for one in notebook.cells
                      if one is not cell and not is_check(one)]
    notebook.cells += [new_code_cell(WRONG), copied(check),
                       new_code_cell(right), copied(check)]
    names, remarks = checked(notebook)
    assert names and ONCE_MORE not in remarks


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
    check = check_cells(notebook)[0]
    if with_check == 'within':
        lower += f'\n{check.source}'
    notebook.cells.append(copied(cell, lower) if as_copy
                          else new_code_cell(lower))
    if with_check == 'below':
        notebook.cells.append(copied(check))
    names, remarks = checked(notebook)
    assert ('Schedule' in names) == (right_first != bool(with_check))
    assert remarks == ([] if with_check else [ONCE_MORE])
