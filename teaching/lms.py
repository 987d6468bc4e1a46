"""Grades for Moodle and Canvas: a table that they exported, filled in.

Rows and columns stay as they were, and so does what stands in them, but for
grades. Columns for exercises that the table lacks are added.
"""
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from d2lps.annotations import PathLike
from teaching import spreadsheets
from teaching.results import Called, Result
from teaching.submissions import without_number

FILLED_IN = 'for-import.csv'
# Columns that tell who a student is. Only a name can be that of two.
IDS = ('ID', 'SIS User ID', 'SIS Login ID', 'Integration ID',  # of Canvas
       'ID number', 'Email address', 'Username')  # of Moodle
NAMES = 'Student', 'Full name', 'First name', 'Last name', 'Surname'
# By kind: the title of a column for grades, and what stands beside it.
TITLES = {'canvas': r'(.*?)( \(\d+\))?', 'worksheet': 'Grade',
          'report': r'(?:\w+: ?)?(.*?)( \(Real\))?'}
UNKNOWN = '''\
{} is no table that Moodle or Canvas exported. It lacks Student, ID, Section \
(Canvas); or Identifier, Grade, Last modified (grade) (Moodle's worksheet); \
or Email address, ID number or Username (Moodle's report of grades). Set the \
language of Moodle to English before you export'''


class Student(NamedTuple):
    """A student's row. number: the one that the platform gave, if any."""
    row: list[str]
    name: str
    number: str
    ids: set[str]


class Export:
    """A table of Moodle's or Canvas's. kind: one of `TITLES`."""

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path).expanduser()
        self.table = spreadsheets.table_in(self.path)
        self.header = self.table.rows[0]
        self.kind = self._kind()
        # Canvas has a row with the most points of each column.
        self.most = next((row for row in self.table.rows
                          if 'Points Possible' in row[0]), None)
        self.added: dict[int, float] = {}  # from a new column to its maximum
        students = map(self._student, self.table.rows[1:])
        self.students = [one for one in students if one.ids or one.number]
        self.said: list[str] = []  # what was not entered, and why

    def _kind(self) -> str:
        names = {*self.header}
        if {'Student', 'ID', 'Section'} <= names:
            return 'canvas'
        if {'Identifier', 'Grade', 'Last modified (grade)'} <= names:
            return 'worksheet'
        if names & {'ID number', 'Email address', 'Username'}:
            return 'report'
        raise ValueError(UNKNOWN.format(self.path))

    def cell(self, row: list[str], name: str) -> str:
        """What is in this column, or nothing if there is no such column."""
        return (row[self.header.index(name)].strip()
                if name in self.header else '')

    def _student(self, row: list[str]) -> Student:
        name = ' '.join(self.cell(row, column) for column in NAMES)
        number = self.cell(row, 'Identifier').removeprefix('Participant ')
        return Student(row, name.strip(), number or self.cell(row, 'ID'), {
            *(_plain(self.cell(row, column)) for column in IDS)} - {''})

    def fitting(self, folder: str, number: str) -> list[Student]:
        """The students that a folder can mean: none, one, or more."""
        if number and self.kind != 'report':
            return [one for one in self.students if one.number == number]
        folder = without_number(folder, number)
        return ([one for one in self.students if _plain(folder) in one.ids] or
                [one for one in self.students
                 if _words(folder) == _words(one.name)])

    def place(self, title: str, of: float) -> int:
        """The index of the column for a title, which is added if missing.

        of: the most points in a new column.
        """
        for k, name in enumerate(self.header):
            found = re.fullmatch(TITLES[self.kind], name)
            if found and (self.kind == 'worksheet' or found[1] == title):
                if self.most and 'read only' in self.most[k]:
                    raise ValueError(f'{name} cannot be changed, says '
                                     f'{self.path}')
                return k
        for row in self.table.rows:
            row.append('')
        self.header[-1] = title
        if self.most:
            self.most[-1] = spreadsheets.number(of)
        self.added[len(self.header) - 1] = of
        return len(self.header) - 1

    def maximum(self, row: list[str], place: int) -> float | None:
        """The most points that a cell can have, if the table tells it."""
        if self.kind == 'worksheet':
            return _value(self.cell(row, 'Maximum Grade'))
        return self.added.get(place) or (
            _value(self.most[place]) if self.most else None)

    def enter(self, row: list[str], place: int, points: float,
              what: str) -> None:
        """Write points into a cell, or say why not. what: whose they are."""
        if self.cell(row, 'Grade can be changed').lower() == 'no':
            self.said.append(f'{what}: Moodle says that this grade cannot be '
                             'changed')
            return
        if row[place].strip().upper() == 'EX':
            self.said.append(f'{what}: is excused in Canvas, and stays so')
            return
        most = self.maximum(row, place)
        if most and points > most and self.kind != 'canvas':
            self.said.append(f'{what}: {spreadsheets.number(points)} points '
                             f'are more than Moodle takes, so {most:g}')
            points = most
        row[place] = spreadsheets.number(max(0, points))

    def text(self) -> str:
        """The filled-in table, as the text of a file."""
        return self.table.bom * '\ufeff' + spreadsheets.written(
            self.table.rows, self.table.separator)


def _plain(text: str) -> str:
    """A text as it is compared: without case, and with single spaces."""
    return ' '.join(unicodedata.normalize('NFC', text).casefold().split())


def _words(name: str) -> list[str]:
    """A name as it is compared: a surname can be the first or the last."""
    return sorted(_plain(name.replace(',', ' ')).split())


def _value(text: str) -> float | None:
    """The number in a cell, also with a decimal comma; None if none."""
    try:
        return float(text.replace(',', '.'))
    except ValueError:
        return None


def fill_in(export: Export, results: Iterable[Result],
            people: Mapping[str, Called], exercises: Iterable[str],
            scale: bool = False) -> None:
    """Enter the points of these exercises, and note in `said` what was not.

    results: of all students. people: by student. scale: points to the maximum
    of the table? In a worksheet all exercises make one grade. Raises
    ValueError if a maximum is too small.
    """
    found = {(one.student, one.exercise): one for one in results
             if one.exercise in exercises}
    most = {exercise: one.of for (_, exercise), one in found.items()}
    given = [one for one in exercises if one in most]
    rows = _rows(export, sorted({student for student, _ in found}), people)
    for parts in ([given] if export.kind == 'worksheet' else
                  [[one] for one in given]):
        title, of = ', '.join(parts), sum(most[part] for part in parts)
        place = export.place(title, of)
        if not scale:
            _compare(export, title, of, place)
        for student, row in rows.items():
            mine = [found[student, part] for part in parts
                    if (student, part) in found]
            if any(one.points is None for one in mine):
                export.said.append(f'{student}, {title}: not graded yet, so '
                                   'nothing is entered')
            elif mine:
                points = sum(one.points or 0 for one in mine)
                if scale:
                    points *= (export.maximum(row, place) or of) / of
                export.enter(row, place, points, f'{student}, {title}')


def _compare(export: Export, title: str, of: float, place: int) -> None:
    """Refuse a maximum in the table that is too small; say if it is larger."""
    name = export.path.name
    maxima = [most for one in export.students
              if (most := export.maximum(one.row, place)) is not None]
    if maxima and min(maxima) < of:
        raise ValueError(
            f'the maximum of {title} is {min(maxima):g} in {name}, but there '
            f'are {of:g} points: change it there and export again, or let '
            'SCALE=yes scale the points to it')
    if maxima and max(maxima) > of:
        export.said.append(
            f'{title}: of {of:g} points here, of {max(maxima):g} in {name}; '
            'SCALE=yes would scale them')


def _rows(export: Export, students: Iterable[str],
          people: Mapping[str, Called]) -> dict[str, list[str]]:
    """From a student to the row, where it is certain which one it is."""
    name = export.path.name
    folders: dict[int, list[str]] = {}  # by id(row): those that mean it
    rows = {}
    for student in students:
        folder, number, _ = people.get(student, Called(student, ''))
        fitting = export.fitting(folder, number)
        if not fitting:
            export.said.append(f'{folder} was not found in {name}')
        elif len(fitting) > 1:
            export.said.append(
                f'{folder} may be {len(fitting)} students of {name}: call the '
                'folder by what only one of them has, such as the ID')
        else:
            rows[student] = fitting[0].row
            folders.setdefault(id(fitting[0].row), []).append(folder)
    for several in folders.values():
        if len(several) > 1:
            export.said.append(f'{" and ".join(several)} are the same student '
                               f'of {name}: nothing is entered')
    without = [one.name for one in export.students
               if id(one.row) not in folders]
    if without:
        export.said.append(f'{len(without)} in {name} without a result here: '
                           + '; '.join(without))
    return {student: row for student, row in rows.items()
            if len(folders[id(row)]) == 1}
