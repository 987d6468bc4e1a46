"""Late days: when an answer was handed in, and when it was due.

Due dates are in nbgrader's gradebook, times in the file `timestamp.txt` that
its exchange writes. All times here are texts, in UTC.
"""
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from teaching.records import Result
from teaching.spreadsheets import number

MARKED = 'late'  # in place of a time: Canvas says so, but not how late
DAY = timedelta(days=1)


class Rules(NamedTuple):
    """Due dates, and the price of a late day.

    due: from an exercise to its due date. percent: of the points, for each
    day that has begun. If it is 0, late days are only shown. A result with
    points by hand loses none.
    """
    due: Mapping[str, str] = {}
    percent: float = 0

    def days(self, result: Result) -> int:
        """The days that have begun since a result's notebook was due."""
        due, time = self.due.get(result.exercise), result.time
        if time == MARKED:
            return 1
        if due is None or time is None:
            return 0
        late = datetime.fromisoformat(time) - datetime.fromisoformat(due)
        return max(0, math.ceil(late / DAY))

    def applied(self, result: Result) -> Result:
        """The result with its late days, and without the points they cost."""
        days = self.days(result)
        if not days or not result.verdicts:
            return result
        remark = f'{days} day{"s" if days > 1 else ""} late'
        if result.time == MARKED:
            remark += ' or more, as Canvas says'
        points = result.points or 0
        penalty = points * min(1, days * self.percent / 100)
        # The teacher who gave points has seen the answer, and how late it was.
        if penalty and any(verdict.by_hand is not None
                           for verdict in result.verdicts):
            penalty = 0
            remark += ': costs nothing, because points are by hand'
        if penalty:
            remark += (f': {number(points - penalty)} points, '
                       f'not {number(points)}')
        return result._replace(days=days, points=points - penalty,
                               penalty=penalty,
                               remarks=[*result.remarks, remark])


def handed_in(notebook: Path) -> str | None:
    """The time that nbgrader's exchange wrote beside a notebook, or None.

    Raises ValueError if the file tells no time.
    """
    path = notebook.with_name('timestamp.txt')
    if path.is_symlink() or not path.is_file():
        return None
    with open(path, encoding='utf-8', errors='replace') as file:
        text = file.read(100).strip()
    try:
        time = datetime.fromisoformat(text.replace(' UTC', 'Z'))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(
            UTC).isoformat()
    except (ValueError, OverflowError):
        raise ValueError(f'{path} has {text!r}, which is no time such as '
                         '2026-11-20 18:00') from None
