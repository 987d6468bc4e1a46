"""Students may be called what we call our own files and folders."""
import csv
import json

import pytest

from teaching.byhand import ByHand
from teaching.grade import Grading, folder_for_results
from teaching.judging import Verdict
from teaching.late import Rules
from teaching.results import Result, Results, known_people, rules_of
from teaching.submissions import Submission, read_all

pytestmark = pytest.mark.filterwarnings('ignore::sqlalchemy.exc.SAWarning')
DUE = Rules({'tree': '2026-11-20T17:00:00+00:00'}, {}, 10)


def graded(folder, to, rules=None):
    """What a grading says of a class that has handed in nothing; but zoe."""
    grading = Grading(read_all(folder, known_people(to)), ['tree'],
                      folder_for_results(to, folder), asked_for=['tree'],
                      rules=rules or rules_of(to))
    grading.run()
    grading.results.add(Result('zoe', 'tree', 10., 10., [], [
        Verdict('sum', False, None, 10.)]))
    grading.results.note_by_hand({('zoe', 'tree'): ByHand(
        {'check-sum': 9.}, [], False)})
    with open(to / 'grades.csv', newline='') as file:
        return {row['student']: row['points'] for row in csv.DictReader(file)}


@pytest.mark.full
def test_no_name_of_ours_stops_the_grading_of_others(tmp_path):
    made, to = tmp_path / 'in', tmp_path / 'out'
    (made / 'zoe').mkdir(parents=True)
    assert graded(made, to, DUE) == {'zoe': '9'}
    ours = {path.name for path in to.rglob('*')} - {'zoe'}
    assert {'results', 'people.json', 'late.json', 'by-hand.json', 'course',
            'tree.json', 'grades.csv', 'gradebook.db'} <= ours
    names = {name for one in ours for name in (one, f'{one}.new')
             if not one.startswith('.')}  # no student's folder
    for name in names:
        (made / name).mkdir()
    expected = dict.fromkeys(names, '0') | {'zoe': '9'}
    for _ in range(2):  # also when it reads what it has written
        assert graded(made, to) == expected
        assert rules_of(to) == DUE
        assert {*known_people(to).values()} == {*expected}


def test_what_an_older_version_has_left_is_found(tmp_path):
    results = Results(tmp_path, [Submission('zoe', {}, {})], DUE)
    results.add(Result('zoe', 'tree', 8., 10., [], [
        Verdict('sum', False, None, 8.)]))
    results.note_by_hand({('zoe', 'tree'): ByHand({'check-sum': 7.}, [],
                                                  False)})
    for name in 'late', 'people', 'by-hand':  # where they were before
        (tmp_path / 'kept' / f'{name}.json').rename(
            tmp_path / 'results' / f'{name}.json')
    (tmp_path / 'results' / 'late.json.new').write_text('[{}, [')
    (tmp_path / 'kept').rmdir()
    assert rules_of(tmp_path) == DUE
    assert known_people(tmp_path) == {'zoe': 'zoe'}
    others = 'late.json', 'late.json.new'
    for _ in range(2):
        results = Results(tmp_path, [Submission(one, {}, {})
                                     for one in ('zoe', *others)])
        for one in others:
            results.add(Result(one, 'tree', 0., 10., [], []))
        assert [one.points for one in results.all()] == [7., 0., 0.]
        assert rules_of(tmp_path) == DUE
    assert json.loads((tmp_path / 'results' / 'late.json' /
                       'tree.json').read_text())['points'] == 0
