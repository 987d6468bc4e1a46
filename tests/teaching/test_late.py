"""Late days: against due dates, by the times in timestamp.txt."""
import pytest

from teaching import byhand, late
from teaching.records import Result, Verdict

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
    for text in ('x' * 10 ** 6, '', '1 \0', '2026-11-20 18 CET',
                 '9999-12-31 23:00-03:00'):
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
    applied = late.Rules(DUE, percent).applied(result(time))
    assert (applied.days, round(applied.points, 9), applied.remarks) == (
        days, points, [remark] if remark else [])
    assert round(applied.points + applied.penalty, 9) == 8


def test_points_by_hand_lose_nothing():
    """Canvas does not say how late, so a teacher gives the points by hand."""
    corrected = byhand.applied(result(late.MARKED), byhand.ByHand(
        {'check-sum': 7.}, [], False))
    applied = late.Rules(DUE, 10).applied(corrected)
    assert (applied.points, applied.penalty, applied.days) == (7, 0, 1)
    assert applied.remarks[-1].endswith(
        'costs nothing, because points are by hand')
