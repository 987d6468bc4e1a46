"""Late days: against due dates, by timestamp.txt or by a teacher's list."""
import os

import nbformat
import pytest
from handins import answered

from teaching import late
from teaching.judging import Verdict
from teaching.results import Result, Results, rules_of
from teaching.submissions import Submission, read_all

DUE = {'tree': '2026-11-20T18:00:00+00:00'}


def result(time=None, points=8., student='ada'):
    return Result(student, 'tree', points, 10., [], [
        Verdict('sum', False, None, points)], time)


@pytest.mark.parametrize('time, days', [
    ('2026-11-20 18:00 UTC', 0), ('2026-11-20 18:00:00.000001 UTC', 1),
    ('2026-11-21 18:01 UTC', 2), ('2026-11-20T17:00-03:00', 1)])
def test_days_that_have_begun_count(time, days):
    assert late.Rules(DUE).days(result(time)) == days


def test_what_late_days_cost():
    shown = late.Rules(DUE).applied(result('2026-11-22 10:00Z'))
    assert (shown.days, shown.points, shown.remarks) == (2, 8, ['2 days late'])
    cut = late.Rules(DUE, {}, 10).applied(result('2026-11-22 10:00Z'))
    assert round(cut.points, 9) == 6.4
    assert cut.remarks == ['2 days late: 6.4 points, not 8']
    gone = late.Rules(DUE, {}, 30).applied(result('2026-12-22 10:00Z'))
    assert gone.points == 0
    for one in result(), result('2026-11-20 10:00Z'), Result(
            'ada', 'tree', 0., 10., ['missing'], [], '2026-12-22 10:00Z'):
        assert late.Rules(DUE, {}, 10).applied(one) == one
    marked = late.Rules(DUE, {}, 10).applied(result(late.MARKED))
    assert marked.days == 1 and 'or more, as Canvas says' in marked.remarks[0]


def test_the_time_of_the_notebook_that_is_graded(tmp_path):
    for k, (place, age) in enumerate((('first', 100), ('second', 0))):
        folder = tmp_path / 'ada' / place
        folder.mkdir(parents=True)
        nbformat.write(answered(), folder / 'tree.ipynb')
        os.utime(folder / 'tree.ipynb', (10_000 - age,) * 2)
        (folder / 'timestamp.txt').write_text(
            f'2026-11-2{k} 13:45:12.123456 UTC\n')
    [ada] = read_all(tmp_path)
    assert ada.times == {'tree': '2026-11-21T13:45:12.123456+00:00'}
    (folder / 'timestamp.txt').write_text('x' * 10 ** 6)
    [ada] = read_all(tmp_path)
    assert not ada.times and 'its timestamp.txt tells no time' in (
        ada.remarks['tree'])
    (folder / 'timestamp.txt').unlink()
    (folder / 'timestamp.txt').symlink_to('/etc/hostname')
    [ada] = read_all(tmp_path)
    assert not ada.times


def test_rules_stay_and_reach_tables_and_pages(tmp_path):
    ada = Submission('ada', {}, {}, 'Ada')
    rules = late.Rules(DUE, {}, 10)
    Results(tmp_path, [ada], rules).add(result('2026-11-22 10:00Z'))
    again = Results(tmp_path, [ada])
    assert rules_of(tmp_path) == rules
    again.write('ada')
    assert 'ada,Ada,tree,6.4,10,2,' in (tmp_path / 'grades.csv').read_text()
    assert 'ada,Ada,6.4,6.4,10,2,' in (tmp_path / 'students.csv').read_text()
    page = (tmp_path / 'feedback' / 'ada.html').read_text()
    assert '6.4 of 10' in page and '2 days late' in page
    Results(tmp_path, [ada], rules._replace(percent=0)).write('ada')
    assert 'ada,Ada,tree,8,10,2,' in (tmp_path / 'grades.csv').read_text()
