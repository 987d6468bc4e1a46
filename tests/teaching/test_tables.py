"""Tables that a spreadsheet opens."""
import csv
import io

import pytest

from teaching import spreadsheets
from teaching.records import FolderName, Result, Submission
from teaching.results import Results


def cells(text, separator=','):
    return [*csv.reader(io.StringIO(text, newline=''), delimiter=separator)]


@pytest.mark.parametrize('text', [
    '=cmd()', '+1', '-1', '@x', '\t=x', ' =x', 'a;=x', 'a"=x', '\r=x'])
@pytest.mark.parametrize('separator', [',', ';', '\t'])
def test_no_cell_is_a_formula_wherever_lines_are_cut(text, separator):
    table = spreadsheets.table_text([['ada', spreadsheets.safe(text), '1']])
    for row in cells(table, separator):
        assert not any(cell.strip(' "').startswith(('=', '+', '-', '@'))
                       for cell in row), row


def some(student, exercise, points, remarks=(), **more):
    return Result(student, exercise, points, 10., [*remarks], [], **more)


def test_a_row_for_each_student(tmp_path):
    people = [Submission('a_b', {}, {'': ['a link']}, FolderName('a∕b 🙂')),
              Submission('bob', {}, {}, FolderName('bob')),
              Submission('eve', {}, {}, FolderName('Eve =1'))]
    results = Results(tmp_path, people)
    results.add(some('a_b', 'tree', 7.5))
    results.add(some('a_b', 'buckets', None, ['not graded']))
    results.add(some('bob', 'tree', 0., ['missing']))
    text = (tmp_path / 'students.csv').read_bytes()
    assert text.startswith('\ufeff'.encode())  # or Excel spoils umlauts
    header, *rows = cells(text.decode('utf-8-sig'))
    assert header == ['student', 'folder', 'tree', 'buckets', 'total', 'of',
                      'late days', 'remarks']
    assert rows == [
        ['a_b', 'a∕b 🙂', '7.5', '', '7.5', '10', '',
         'a link; buckets: not graded'],
        ['bob', 'bob', '0', '', '0', '10', '', 'tree: missing'],
        ['eve', 'Eve =1', '', '', '0', '0', '', '']]
    with open(tmp_path / 'grades.csv', newline='') as file:
        assert next(csv.DictReader(file))['folder'] == 'a∕b 🙂'


def test_late_days_of_a_student_are_those_of_the_latest_exercise():
    late = [some('ada', 'tree', 5., days=2), some('ada', 'buckets', 5.,
                                                  days=1)]
    [_, row] = cells(spreadsheets.wide(late, {}, {}))
    assert row[-2] == '2'
