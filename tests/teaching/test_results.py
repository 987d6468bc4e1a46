"""Results of an earlier grading, in the tables and pages of the next one."""
import csv

import pytest

from teaching.late import Rules
from teaching.records import FolderName, Result, Submission, Verdict
from teaching.results import MISSING, Results

ADA = Submission('ada', {}, {'': ['a link']}, FolderName('Ada'))
BOB = Submission('bob', {}, {}, FolderName('Bob'))


def result(student, time=None):
    return Result(student, 'tree', 10., 10., [], [
        Verdict('sum', False, None, 10.)], time)


def rows(folder):
    with open(folder / 'students.csv', encoding='utf-8-sig') as file:
        return {row['student']: row for row in csv.DictReader(file)}


def test_an_exercise_counts_for_all_only_while_it_is_asked_for(tmp_path):
    Results(tmp_path, [ADA, BOB]).add(result('ada'))
    both = Results(tmp_path, [BOB], {'tree': 10., 'buckets': 10.})
    both.write()
    assert rows(tmp_path)['ada']['of'] == rows(tmp_path)['bob']['of'] == '20'
    Results(tmp_path, [BOB], {'tree': 10.}).write()
    ada, bob = rows(tmp_path)['ada'], rows(tmp_path)['bob']
    assert (ada['total'], ada['of']) == ('10', '10')
    assert (bob['total'], bob['of']) == ('0', '10')
    assert bob['remarks'] == f'tree: {MISSING}'
    Results(tmp_path, [BOB]).write()
    assert rows(tmp_path)['bob']['of'] == '0'


def test_pages_of_absent_students_follow_the_tables(tmp_path):
    due = {'tree': '2026-11-20T18:00:00+00:00'}
    Results(tmp_path, [ADA, BOB]).add(result('ada', '2026-11-22T10:00Z'))
    Results(tmp_path, [BOB]).note_gradebook({}, Rules(due, 10))
    page = (tmp_path / 'feedback' / 'ada.html').read_text()
    assert rows(tmp_path)['ada']['total'] == '8'
    assert '8 of 10 points' in page and 'a link' in page


def test_a_damaged_result_is_named(tmp_path):
    Results(tmp_path, [ADA]).add(result('ada'))
    (tmp_path / 'results' / 'ada' / 'tree.json').write_text('')
    with pytest.raises(ValueError, match='ada/tree.json is damaged.*Delete'):
        Results(tmp_path, [ADA])
