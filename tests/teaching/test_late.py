"""Late days: against due dates, by the times in timestamp.txt."""
import pytest

from teaching import late
from teaching.judging import Verdict
from teaching.results import Result

DUE = {'tree': '2026-11-20T18:00:00+00:00'}


def result(time=None, points=8.):
    return Result('ada', 'tree', points, 10., [], [
        Verdict('sum', False, None, points)], time)


@pytest.mark.parametrize('text, days', [
    ('2026-11-20 18:00:00.000000 UTC', 0),
    ('2026-11-20 18:00:00.000001 UTC', 1), ('2026-11-21 18:01\n', 2),
    ('2026-11-20 17:00-03:00', 1)])
def test_days_that_have_begun_count(tmp_path, text, days):
    (tmp_path / 'timestamp.txt').write_text(text)
    time = late.handed_in(tmp_path / 'tree.ipynb')
    assert late.Rules(DUE).days(result(time)) == days


def test_what_is_no_time_and_links(tmp_path):
    file = tmp_path / 'timestamp.txt'
    for text in 'x' * 10 ** 6, '', '1 \0', '2026-11-20 18 CET', '9999-12-31':
        file.write_text(text)
        with pytest.raises(ValueError, match='is no time'):
            late.handed_in(tmp_path / 'tree.ipynb')
    file.unlink()
    file.symlink_to('/etc/hostname')
    assert late.handed_in(tmp_path / 'tree.ipynb') is None


@pytest.mark.parametrize('percent, time, days, points, remark', [
    (0, '2026-11-22T10:00Z', 2, 8, '2 days late'),
    (10, '2026-11-22T10:00Z', 2, 6.4, '2 days late: 6.4 points, not 8'),
    (30, '2026-12-22T10:00Z', 32, 0, '32 days late: 0 points, not 8'),
    (10, late.MARKED, 1, 7.2,
     '1 day late or more, as Canvas says: 7.2 points, not 8'),
    (10, '2026-11-20T10:00Z', 0, 8, None), (10, None, 0, 8, None)])
def test_what_late_days_cost(percent, time, days, points, remark):
    one = late.Rules(DUE, percent).applied(result(time))
    assert (one.days, round(one.points, 9), one.remarks) == (
        days, points, [remark] if remark else [])
    assert round(one.points + one.penalty, 9) == 8


@pytest.mark.parametrize('table', [
    'exercise,due\ntree,2026-11-20 17:00Z\n\n',
    '\ufeffExercise;Due;x\r\ntree; 2026-11-20 18:00+01:00 ;',
    'due\texercise\n2026-11-20 17:00 UTC\ttree\n'])
def test_tables_of_due_dates(tmp_path, table):
    (tmp_path / 'due.csv').write_text(table, encoding='utf-8')
    assert late.read_due(tmp_path / 'due.csv') == {
        'tree': '2026-11-20T17:00:00+00:00'}


@pytest.mark.parametrize('table, why', [
    ('exercise\ntree', 'with the columns exercise, due'),
    ('exercise,due\ntreee,2026-11-20', 'treee.*is no exercise'),
    ('exercise,due\ntree,20.11.2026', 'is no time'), ('', 'is empty'),
    ('exercise,due\ntree,2026-11-20\ntree,2026-11-21', 'two due dates')])
def test_tables_that_are_refused(tmp_path, table, why):
    (tmp_path / 'due.csv').write_text(table)
    with pytest.raises(ValueError, match=why):
        late.read_due(tmp_path / 'due.csv')


def test_a_day_alone_means_its_end():
    assert late._moment('2026-11-20') == late._moment('2026-11-21 00:00')
