"""Late days: when an answer was handed in, against when it was due."""
import functools
import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from d2lps.annotations import PathLike
from d2lps.exercises.checking import EXERCISES
from teaching import spreadsheets

if TYPE_CHECKING:
    from teaching.results import Result

# By student and exercise: a time that `moment` reads, or a number of days.
Told: TypeAlias = Mapping[tuple[str, str], str | int]

MARKED = 'late'  # in place of a time: Canvas says so, and not since when
DAY = timedelta(days=1)


class Rules(NamedTuple):
    """What counts as late, and what it costs.

    due: from an exercise to a time. told: from (student, exercise) to a time,
    or to a number of days, which a teacher gave: they win. percent: of the
    points, for each day; 0 only tells the days.
    """
    due: Mapping[str, str] = {}
    told: Told = {}
    percent: float = 0

    def days(self, result: 'Result') -> int:
        """Days that have begun since a result's notebook was due."""
        time = self.told.get((result.student, result.exercise), result.time)
        if isinstance(time, int):
            return time
        if time == MARKED:
            return 1  # at least
        due = self.due.get(result.exercise)
        if due is None or time is None:
            return 0
        return max(0, -((moment(due) - moment(time)) // DAY))

    def applied(self, result: 'Result') -> 'Result':
        """The result with its late days, and what they cost."""
        days = self.days(result) if result.verdicts else 0
        if not days:
            return result
        remark = f'{days} day{"s" if days > 1 else ""} late'
        told = (result.student, result.exercise) in self.told
        if result.time == MARKED and not told:
            remark += ' or more, as Canvas says'
        points = result.points
        if self.percent and points:
            points *= max(0, 1 - days * self.percent / 100)
            remark += (f': {spreadsheets.number(points)} points, not '
                       f'{spreadsheets.number(result.points)}')
        return result._replace(days=days, points=points,
                               remarks=[*result.remarks, remark])


@functools.cache
def moment(text: str, zone: tzinfo | None = None) -> datetime:
    """The time that a text tells, such as 2026-11-20 13:45:12.1 UTC.

    A day alone means its end. zone: of what names none; None for ours.
    """
    text = re.sub(r'\s*(UTC|GMT|Z)$', '+00:00', text.strip())
    text = re.sub(r'\s+(?=[+-]\d\d:?\d\d$)', '', text)
    try:
        found = datetime.fromisoformat(text)
        if ':' not in text:
            found += DAY
        if found.tzinfo is None:
            found = found.replace(tzinfo=zone) if zone else found.astimezone()
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f'{text!r} is no time; write it as in 2026-11-20 '
                         '18:00') from None


def handed_in(notebook: Path) -> str | None:
    """The time that nbgrader's exchange wrote beside a notebook, or None.

    A text that `moment` reads. Raises ValueError if it is none.
    """
    path = notebook.with_name('timestamp.txt')
    if path.is_symlink() or not path.is_file():
        return None
    with open(path, encoding='utf-8', errors='replace') as file:
        return moment(file.read(100), UTC).isoformat()


def read_due(path: PathLike) -> dict[str, str]:
    """From exercise to time, of a table with the columns exercise, due."""
    due: dict[str, str] = {}
    for row in spreadsheets.read(Path(path).expanduser(), 'exercise', 'due'):
        _known(path, row['exercise'], EXERCISES, 'exercise')
        due[row['exercise']] = moment(row['due']).isoformat()
    return due


def read_times(path: PathLike, students: Mapping[str, str]) -> Told:
    """From (student, exercise) to a time or days, of a teacher's table.

    students: from a name that may stand there to a student.
    """
    told: dict[tuple[str, str], str | int] = {}
    for row in spreadsheets.read(Path(path).expanduser(), 'student',
                                 'exercise'):
        _known(path, row['exercise'], EXERCISES, 'exercise')
        _known(path, row['student'], students, 'student')
        key = students[row['student']], row['exercise']
        if re.fullmatch(r'\d{1,4}', row.get('days', '')):
            told[key] = int(row['days'])
        elif row.get('time'):
            told[key] = moment(row['time']).isoformat()
        else:
            raise ValueError(f'{path} must have a time or a number of days '
                             f'for {row["student"]}, {row["exercise"]}')
    return told


def _known(path: PathLike, name: str, names: Collection[str],
           what: str) -> None:
    if name not in names:
        raise ValueError(f'{path} has {name!r}, which is no {what} here')


def saved(rules: Rules) -> str:
    """Rules as a text, for `loaded`."""
    return json.dumps([rules.due, [[*key, value] for key, value
                                   in rules.told.items()], rules.percent])


def loaded(text: str) -> Rules:
    """The rules that `saved` wrote."""
    due, told, percent = json.loads(text)
    return Rules(due, {(student, exercise): value
                       for student, exercise, value in told}, percent)
