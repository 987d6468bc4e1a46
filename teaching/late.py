"""Late days: when an answer was handed in, and when it was due.

Due dates are in nbgrader's gradebook, times in the file `timestamp.txt` that
its exchange writes. All times here are texts, in UTC.
"""
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from d2lps.annotations import PathLike
from d2lps.exercises.checking import EXERCISES
from teaching import spreadsheets

if TYPE_CHECKING:
    from teaching.results import Result

MARKED = 'late'  # in place of a time: Canvas says so, but not how late
DAY = timedelta(days=1)


class Rules(NamedTuple):
    """What counts as late, and what it costs.

    due: from an exercise to its due date. percent: of the points, for each
    day that has begun. If it is 0, late days are only shown.
    """
    due: Mapping[str, str] = {}
    percent: float = 0

    def days(self, result: 'Result') -> int:
        """The days that have begun since a result's notebook was due."""
        due, time = self.due.get(result.exercise), result.time
        if time == MARKED:
            return 1
        if due is None or time is None:
            return 0
        late = datetime.fromisoformat(time) - datetime.fromisoformat(due)
        return max(0, math.ceil(late / DAY))

    def applied(self, result: 'Result') -> 'Result':
        """The result with its late days, and without what they cost."""
        days = self.days(result)
        if not days or not result.verdicts:
            return result
        remark = f'{days} day{"s" if days > 1 else ""} late'
        if result.time == MARKED:
            remark += ' or more, as Canvas says'
        points = result.points or 0
        penalty = points * min(1, days * self.percent / 100)
        if penalty:
            remark += (f': {spreadsheets.number(points - penalty)} points, '
                       f'not {spreadsheets.number(points)}')
        return result._replace(days=days, points=points - penalty,
                               penalty=penalty,
                               remarks=[*result.remarks, remark])


def handed_in(notebook: Path) -> str | None:
    """The time that nbgrader's exchange wrote beside a notebook, or None.

    Raises ValueError if what is there is no time.
    """
    path = notebook.with_name('timestamp.txt')
    if path.is_symlink() or not path.is_file():
        return None
    with open(path, encoding='utf-8', errors='replace') as file:
        return _moment(file.read(100), UTC)


def read_due(path: PathLike) -> dict[str, str]:
    """From exercise to due date, of a table with the columns exercise, due."""
    due: dict[str, str] = {}
    for row in spreadsheets.read(Path(path).expanduser(), 'exercise', 'due'):
        exercise = row['exercise']
        if exercise not in EXERCISES:
            raise ValueError(f'{path} has {exercise!r}, which is no exercise')
        if exercise in due:
            raise ValueError(f'{path} has two due dates for {exercise}')
        due[exercise] = _moment(row['due'])
    return due


def _moment(text: str, zone: tzinfo | None = None) -> str:
    """The time that a text tells, in UTC. A date alone means its end.

    zone: of a text that names none; None for that of this machine.
    """
    text = text.strip().replace(' UTC', 'Z')
    try:
        found = datetime.fromisoformat(text)
        if len(text) <= len('2026-11-20'):
            found += DAY
        if zone and found.tzinfo is None:
            found = found.replace(tzinfo=zone)
        return found.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise ValueError(f'{text!r} is no time; write it as in 2026-11-20 '
                         '18:00') from None
