"""All exercises have one form, so that students learn it only once."""
import json
import re

import nbformat
import pytest
from answers import (ROOT, SOLUTIONS, TASKS, answer_cell, each_that_runs,
                     solution)

from d2lps.exercises.checking import (EXERCISES, NO_ANSWER, check_of,
                                      module_of)

FEWEST_HIDDEN = 2  # cases of a part that no student sees
each_exercise = pytest.mark.parametrize('exercise', EXERCISES)


def graded(exercise):
    """The cells that nbgrader knows, by their names in its metadata."""
    cells = [cell for cell in solution(exercise).cells
             if 'nbgrader' in cell.metadata]
    return {cell.metadata.nbgrader.grade_id: cell for cell in cells}


def test_every_exercise_has_its_notebook_and_no_other_is_there():
    assert {path.stem for path in SOLUTIONS.glob('*.ipynb')} == {*EXERCISES}


@each_exercise
def test_each_part_is_checked_twice_and_all_give_ten_points(exercise):
    cells = graded(exercise)
    parts = [*module_of(exercise).CHECKS]
    assert [*cells] == ['answer', *(f'{kind}-{part}' for part in parts
                                    for kind in ('check', 'hidden'))]
    assert cells['answer'].metadata.nbgrader.solution
    assert re.search('### BEGIN SOLUTION\n.*### END SOLUTION',
                     cells['answer'].source, re.S)
    for part in parts:
        call = rf"\('{exercise}', '{part}', \w+\)"
        seen, unseen = cells[f'check-{part}'], cells[f'hidden-{part}']
        assert re.fullmatch(f'check{call}', seen.source)
        assert re.search(f'### BEGIN HIDDEN TESTS\nhidden{call}\n'
                         '### END HIDDEN TESTS', unseen.source)
        for cell in seen, unseen:
            assert cell.metadata.nbgrader.locked
            assert cell.metadata.nbgrader.grade
        points = seen.metadata.nbgrader.points
        above = solution(exercise).cells[[
            cell.id for cell in solution(exercise).cells].index(seen.id) - 1]
        assert above.source.endswith(
            f'`{part}`: **{points} point{"s" * (points != 1)}**, and '
            f'{unseen.metadata.nbgrader.points} for hidden cases.')
    for kind in 'check', 'hidden':
        assert sum(cell.metadata.nbgrader.points for name, cell in
                   cells.items() if name.startswith(f'{kind}-')) == 5


@each_exercise
def test_the_solution_was_run_and_drew_a_picture(exercise):
    drawn = []
    for cell in solution(exercise).cells:
        outputs = cell.get('outputs', [])
        assert not any(one.output_type == 'error' for one in outputs)
        if cell.source.startswith('check('):
            assert outputs[0].text.startswith('Right: ')
        if cell.source.startswith('picture('):
            assert cell.metadata.alt
            drawn += ['data:image/svg+xml' in one.get('data', {}).get(
                'text/html', '') for one in outputs]
    assert any(drawn)


@each_exercise
def test_hidden_cases_are_others(exercise):
    hidden = json.loads((ROOT / 'teaching' / 'hidden' /
                         f'{exercise}.json').read_text())
    assert {*hidden} == {*module_of(exercise).CHECKS}
    for part, cases in hidden.items():
        seen = json.loads(json.dumps(check_of(exercise, part).cases))
        new = [case for case in cases if case not in seen]
        assert len(new) >= FEWEST_HIDDEN, part


def drawn(cells, names):
    """Run the cells of a notebook, and return the last one's result."""
    for cell in cells[:-1]:
        exec(cell.source, names)
    return eval(cells[-1].source, names)


@each_that_runs
def test_without_a_result_the_picture_is_a_line_and_the_checks_follow(
        exercise, capsys):
    """The student has written nothing yet, or has forgotten `return`."""
    notebook = nbformat.read(TASKS / f'{exercise}.ipynb', 4)
    cells = [cell for cell in notebook.cells if cell.cell_type == 'code']
    answer = cells.index(answer_cell(notebook))
    [first, *_] = [cell for cell in cells if 'picture(' in cell.source]
    names = {}
    assert drawn([*cells[:answer + 1], first], names) is None
    assert capsys.readouterr().out.splitlines()[-1] == (
        f'No picture yet: {NO_ANSWER}')
    cells[answer].source = re.sub('raise NotImplementedError.*', 'return None',
                                  cells[answer].source)
    if drawn([cells[answer], first], names) is None:
        said = capsys.readouterr().out.splitlines()[-1]
        assert said.startswith('No picture yet: ')
        assert 'NoneType' not in said
