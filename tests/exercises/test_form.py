"""All exercises have one form, so that students learn it only once."""
import json
import re

import pytest
from answers import ROOT, SOLUTIONS, answers_of, solution

from d2lps.exercises.checking import EXERCISES, check_of, module_of

MOST_LINES = 12  # of code in a cell that is no answer
MOST_SOLVED = 25  # lines between two marks of a solution
FEWEST_HIDDEN = 2  # cases of a part that no student sees
FIRST = 3  # kept answers: those that students are most likely to give
LIST = (ROOT / 'notebooks' / 'exercises' / 'README.md').read_text()
PLAN = (ROOT / 'docs' / 'teaching.md').read_text().split('\n## ')[1]
each_exercise = pytest.mark.parametrize('exercise', EXERCISES)


def cells_of(exercise, kind):
    return [cell for cell in solution(exercise).cells
            if cell.cell_type == kind]


def prose_of(exercise):
    return '\n\n'.join(cell.source for cell in cells_of(exercise, 'markdown'))


def graded(exercise):
    """The cells that nbgrader knows, by their names in its metadata."""
    known = [cell for cell in cells_of(exercise, 'code')
             if 'nbgrader' in cell.metadata]
    cells = {cell.metadata.nbgrader.grade_id: cell for cell in known}
    assert len(cells) == len(known)
    return cells


def test_every_exercise_has_its_notebook_and_no_other_is_there():
    assert {path.stem for path in SOLUTIONS.glob('*.ipynb')} == {*EXERCISES}


@each_exercise
def test_there_is_one_answer_to_write(exercise):
    answer = graded(exercise)['answer']
    assert answer.metadata.nbgrader.solution
    assert not answer.metadata.nbgrader.locked
    marks = re.findall(r'^ +### (BEGIN|END) SOLUTION$', answer.source, re.M)
    assert marks and marks == ['BEGIN', 'END'] * (len(marks) // 2)
    stub = re.sub(r'### BEGIN SOLUTION.*?### END SOLUTION', '',
                  answer.source, flags=re.S)
    assert re.search(r'# About \d+ lines?\b', stub)
    for block in re.findall(r'### BEGIN SOLUTION\n(.*?)### END SOLUTION',
                            answer.source, flags=re.S):
        lines = [line for line in block.splitlines()[:-1] if line.strip()]
        assert len(lines) <= MOST_SOLVED, lines
    others = [cell for cell in solution(exercise).cells if cell != answer]
    assert not any('SOLUTION' in cell.source for cell in others)


@each_exercise
def test_each_part_is_checked_twice_and_all_give_ten_points(exercise):
    cells = graded(exercise)
    parts = [*module_of(exercise).CHECKS]
    assert [*cells] == ['answer', *(f'{kind}-{part}' for part in parts
                                    for kind in ('check', 'hidden'))]
    for part in parts:
        call = rf"\('{exercise}', '{part}', \w+\)"
        seen, unseen = cells[f'check-{part}'], cells[f'hidden-{part}']
        assert re.fullmatch(f'check{call}', seen.source)
        assert re.search(f'### BEGIN HIDDEN TESTS\nhidden{call}\n'
                         '### END HIDDEN TESTS', unseen.source)
        for cell in seen, unseen:
            assert cell.metadata.nbgrader.locked
            assert cell.metadata.nbgrader.grade
    for kind in 'check', 'hidden':
        assert sum(cell.metadata.nbgrader.points for name, cell in
                   cells.items() if name.startswith(f'{kind}-')) == 5


@each_exercise
def test_students_are_told_what_to_reach_and_helped(exercise):
    text, *_ = cells_of(exercise, 'markdown')
    assert re.match(r'# .+\n\n\*\*Chapter\*\*: \[\d+, .+\]\(../../\d\d-.+\) '
                    r'· about \d+ minutes · 10 points\n', text.source)
    text = prose_of(exercise)
    assert text.count('**Target:**') == 1
    assert '## Checks' in text
    hints = re.findall(r'<details><summary>Hint (\d)</summary>\n\n.+?\n'
                       '</details>', text, re.S)
    assert hints == ['1', '2', '3']


@each_exercise
def test_minutes_are_the_same_everywhere(exercise):
    """In the list of exercises, and in the plan for a course."""
    [minutes] = re.findall(r' · about (\d+) minutes · ', prose_of(exercise))
    row = next(line for line in LIST.splitlines()
               if f'](tasks/{exercise}.ipynb)' in line)
    assert row.split(' | ')[-2] == minutes
    planned = re.findall(rf'(?<![\w-]){exercise}\s\((\d+)\)', PLAN)
    assert planned and {*planned} == {minutes}


@each_exercise
def test_links_lead_somewhere(exercise):
    """Also to where they lead from a solution, which is as deep."""
    links = re.findall(r'\]\((?![a-z]+:|#)([^)]+?)(?:#[^)]*)?\)',
                       prose_of(exercise))
    assert f'../solutions/{exercise}.ipynb' in links
    assert len([link for link in links if link.startswith('../../')]) >= 2
    for link in links:
        assert (SOLUTIONS / link).resolve().exists(), link


@each_exercise
def test_the_solution_was_run_and_drew_a_picture(exercise):
    cells, drawn = cells_of(exercise, 'code'), 0
    for cell in cells:
        kinds = [*cell.get('outputs', [])]
        assert not any(one.output_type == 'error' for one in kinds)
        name = cell.metadata.get('nbgrader', {}).get('grade_id', '')
        if name.startswith('check-'):
            assert kinds[0].text.startswith('Right: ')
        if cell.source.startswith(f"picture('{exercise}', "):
            drawn += sum('data:image/svg+xml' in one.get('data', {}).get(
                'text/html', '') for one in kinds)
            assert len(cell.metadata.alt) > 80  # for who does not see it
        if name != 'answer':
            assert len(cell.source.splitlines()) <= MOST_LINES
    assert drawn


@each_exercise
def test_hidden_cases_are_others(exercise):
    hidden = json.loads((ROOT / 'teaching' / 'hidden' /
                         f'{exercise}.json').read_text())
    assert {*hidden} == {*module_of(exercise).CHECKS}
    for part, cases in hidden.items():
        seen = json.loads(json.dumps(check_of(exercise, part).cases))
        new = [case for case in cases if case not in seen]
        assert len(new) >= FEWEST_HIDDEN, part


@each_exercise
def test_the_likely_mistakes_are_kept_first(exercise):
    first = answers_of(exercise)[:FIRST]
    assert all(answer.says is not None for answer in first)
