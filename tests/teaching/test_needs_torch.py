"""Without PyTorch its exercises get no points, and not zero points either."""
import pytest
from handins import graded, hand_in, solution

from teaching.grading import NEEDS_TORCH
from d2lps.exercises.checking import NO_TORCH, WITH_TORCH


@pytest.mark.full
def test_the_table_the_page_and_the_terminal_say_so(tmp_path, capsys,
                                                    monkeypatch):
    monkeypatch.setenv('D2LPS_WITHOUT', 'torch')
    first, second = WITH_TORCH
    hand_in(tmp_path, 'ada', solution(first), first)
    rows = {exercise: row for (_, exercise), row in graded(
        tmp_path, '--exercises', *WITH_TORCH).items()}
    assert rows[first]['points'] == '' and rows[second]['points'] == '0'
    assert rows[first]['remarks'] == NEEDS_TORCH
    assert rows[second]['remarks'] == 'missing'
    page = (tmp_path / 'out' / 'feedback' / 'ada.html').read_text()
    assert '0 of 10 points' in page and page.count('no points yet') == 1
    said = capsys.readouterr().out
    assert f'not graded: 1 notebook of {first}. {NO_TORCH}' in said
