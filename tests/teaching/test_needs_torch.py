"""Without PyTorch its exercises get no points, and not zero points either."""
import csv

import nbformat
import pytest
from handins import solution

from teaching import walls
from teaching.grade import NEEDS_TORCH, main
from d2lps.exercises.checking import NO_TORCH, WITH_TORCH


@pytest.mark.full
def test_the_table_the_page_and_the_terminal_say_so(tmp_path, capsys,
                                                    monkeypatch):
    monkeypatch.setenv('D2LPS_WITHOUT', 'torch')
    first, second = WITH_TORCH
    (tmp_path / 'in' / 'ada').mkdir(parents=True)
    nbformat.write(solution(first), tmp_path / 'in' / 'ada' / f'{first}.ipynb')
    main([str(tmp_path / 'in'), '--to', str(tmp_path / 'out'), '--walls',
          'none' if walls.problem() else 'bwrap', '--exercises', *WITH_TORCH])
    with open(tmp_path / 'out' / 'grades.csv', newline='') as file:
        rows = {row['exercise']: row for row in csv.DictReader(file)}
    assert rows[first]['points'] == '' and rows[second]['points'] == '0'
    assert rows[first]['remarks'] == NEEDS_TORCH
    assert rows[second]['remarks'] == 'missing'
    page = (tmp_path / 'out' / 'feedback' / 'ada.html').read_text()
    assert '0 of 10 points' in page and page.count('no points yet') == 1
    said = capsys.readouterr().out
    assert f'1 notebooks are not graded, of {first}. {NO_TORCH}' in said
