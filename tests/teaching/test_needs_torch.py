"""Without PyTorch its exercises get no points, and not zero points either."""
import csv

import nbformat
import pytest
from handins import released, solution

from teaching import walls
from teaching.grade import NEEDS_TORCH, main
from d2lps.exercises.checking import NO_TORCH, WITH_TORCH


def grade(folder, capsys):
    """The table by student and exercise, and what the command printed."""
    main([str(folder / 'in'), '--to', str(folder / 'out'), '--walls',
          'none' if walls.problem() else 'bwrap', '--exercises', *WITH_TORCH])
    with open(folder / 'out' / 'grades.csv', newline='') as file:
        rows = {(row['student'], row['exercise']): row
                for row in csv.DictReader(file)}
    return rows, capsys.readouterr().out


def hand_in(folder, student, exercise, notebook):
    (folder / 'in' / student).mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / 'in' / student / f'{exercise}.ipynb')


@pytest.mark.full
def test_the_table_the_page_and_the_terminal_say_so(tmp_path, capsys,
                                                    monkeypatch):
    monkeypatch.setenv('D2LPS_WITHOUT', 'torch')
    for exercise in WITH_TORCH:
        hand_in(tmp_path, 'ada', exercise, solution(exercise))
    hand_in(tmp_path, 'bob', WITH_TORCH[0], released(WITH_TORCH[0]))
    rows, said = grade(tmp_path, capsys)
    for student, exercise in (('ada', WITH_TORCH[0]), ('ada', WITH_TORCH[1]),
                              ('bob', WITH_TORCH[0])):
        row = rows[student, exercise]
        assert (row['points'], row['of']) == ('', '10')
        assert row['remarks'] == NEEDS_TORCH
    assert rows['bob', WITH_TORCH[1]]['remarks'] == 'missing'
    page = (tmp_path / 'out' / 'feedback' / 'ada.html').read_text()
    assert page.count(NEEDS_TORCH) == 2 and '0 of 0 points' in page
    assert page.count('no points yet') == 2
    assert said.count(NO_TORCH) == 1
    assert f'3 notebooks are not graded, of {", ".join(WITH_TORCH)}.' in said
