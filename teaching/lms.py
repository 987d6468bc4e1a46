"""Grades for Moodle and Canvas: a table that they exported, filled in.

Only grades are changed. A column is added for each exercise that Canvas's
table lacks. Points are scaled to the maximum that the table names.
"""
import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from d2lps.annotations import PathLike
from teaching import spreadsheets
from teaching.records import FolderName, Result

FILLED_IN = 'for-import.csv'
# Columns that tell who a student is. Two students can share a name, but no ID.
IDS = ('ID', 'SIS User ID', 'SIS Login ID', 'Integration ID',  # of Canvas
       'ID number', 'Email address', 'Username')  # of Moodle
NAMES = 'Student', 'Full name'
# Columns by which a table is known.
CANVAS = {'Student', 'ID', 'Section'}
MOODLE = {'Identifier', 'Grade', 'Maximum Grade', 'Last modified (grade)'}


class Student(NamedTuple):
    """A student's row. number: of the platform, or ''."""
    row: list[str]
    name: str
    number: str
    ids: set[str]


class Export:
    """A gradebook of Canvas, or a grading worksheet of Moodle.

    notes: what was not entered, and why.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path).expanduser()
        self._read()
        self.header = self.rows[0]
        self.is_moodles = {*self.header} >= MOODLE
        if not self.is_moodles and not {*self.header} >= CANVAS:
            raise ValueError(
                f'{self.path} is no table that Moodle or Canvas exported. A '
                f'gradebook of Canvas has the columns {_list(CANVAS)}; a '
                f'grading worksheet of Moodle has {_list(MOODLE)}. Set the '
                'language of Moodle to English before you export')
        # Canvas has a row with the most points of each column.
        self._most = next((row for row in self.rows
                           if 'Points Possible' in row[0]), None)
        students = map(self._student, self.rows[1:])
        self.students = [student for student in students
                         if student.ids or student.number]
        self.notes: list[str] = []

    def _read(self) -> None:
        """Read the rows, without empty ones, all of one length."""
        try:
            text = self.path.read_bytes().decode()
        except OSError as error:
            raise ValueError(f'{self.path} cannot be read: '
                             f'{error.strerror}') from None
        except UnicodeDecodeError:
            raise ValueError(f'{self.path} is no text in UTF-8; export it as '
                             'CSV with that encoding') from None
        self._mark = '\ufeff' if text.startswith('\ufeff') else ''
        text = text.removeprefix(self._mark)
        self._separator = max(',;\t', key=text.partition('\n')[0].count)
        try:
            rows = [row for row in csv.reader(io.StringIO(text, newline=''),
                                              delimiter=self._separator)
                    if row]
        except csv.Error as error:
            raise ValueError(f'{self.path} is no table: {error}') from None
        if not rows:
            raise ValueError(f'{self.path} is empty')
        width = max(map(len, rows))
        self.rows = [row + [''] * (width - len(row)) for row in rows]

    def cell(self, row: list[str], name: str) -> str:
        """The text in this column, or '' if there is no such column."""
        return (row[self.header.index(name)].strip()
                if name in self.header else '')

    def _student(self, row: list[str]) -> Student:
        name = ' '.join(self.cell(row, column) for column in NAMES)
        number = self.cell(row, 'Identifier').removeprefix('Participant ')
        return Student(row, name.strip(), number or self.cell(row, 'ID'), {
            *(_plain(self.cell(row, column)) for column in IDS)} - {''})

    def fitting(self, folder_name: FolderName) -> list[Student]:
        """The students that a folder can mean: none, one, or more."""
        if folder_name.number:
            return [student for student in self.students
                    if student.number == folder_name.number]
        name = folder_name.folder
        return ([student for student in self.students
                 if _plain(name) in student.ids] or
                [student for student in self.students
                 if _parts(name) == _parts(student.name)])

    def column(self, title: str, max_points: float) -> int:
        """The index of the column for a title, which Canvas's table may lack.

        max_points: of a new column.
        """
        if self.is_moodles:
            return self.header.index('Grade')
        for k, name in enumerate(self.header):
            if re.sub(r' \(\d+\)$', '', name) == title:
                if self._most and 'read only' in self._most[k]:
                    raise ValueError(f'{name} cannot be changed, says '
                                     f'{self.path}')
                return k
        for row in self.rows:
            row.append('')
        self.header[-1] = title
        if self._most:
            self._most[-1] = spreadsheets.number(max_points)
        return len(self.header) - 1

    def maximum(self, row: list[str], column: int,
                max_points: float) -> float:
        """The most points of a cell; `max_points` if no number tells it."""
        text = (self.cell(row, 'Maximum Grade') if self.is_moodles else
                self._most[column] if self._most else '')
        try:
            return float(text.replace(',', '.')) or max_points
        except ValueError:
            return max_points

    def enter(self, row: list[str], column: int, points: float,
              max_points: float, whose: str) -> None:
        """Write points into a cell, or note why not.

        max_points: of the exercises that count for the student. whose:
        student and exercises.
        """
        if row[column].strip().upper() == 'EX':
            self.notes.append(f'{whose}: is excused in Canvas, and stays so')
            return
        most = self.maximum(row, column, max_points)
        points *= most / max_points
        if points > most and self.is_moodles:
            self.notes.append(f'{whose}: {spreadsheets.number(points)} points '
                              f'are more than Moodle takes, so {most:g}')
            points = most
        row[column] = spreadsheets.number(max(0, points))

    def text(self) -> str:
        """The filled-in table, as the text of a file."""
        return self._mark + spreadsheets.table_text(self.rows, self._separator)


def _list(names: Iterable[str]) -> str:
    return ', '.join(sorted(names))


def _plain(text: str) -> str:
    """A text as it is compared: without case, and with single spaces."""
    return ' '.join(unicodedata.normalize('NFC', text).casefold().split())


def _parts(name: str) -> list[str]:
    """A name as it is compared: a surname can be the first or the last."""
    return sorted(_plain(name.replace(',', ' ')).split())


def fill_in(export: Export, results: Iterable[Result],
            people: Mapping[str, FolderName],
            exercises: Iterable[str]) -> None:
    """Enter the points of these exercises, and note what was not entered.

    results: of all students. people: by student. In a worksheet of Moodle all
    exercises make one grade. Raises ValueError if Canvas's table does not let
    a column be changed.
    """
    chosen = {(result.student, result.exercise): result for result in results
              if result.exercise in exercises}
    most = {exercise: result.max_points
            for (_, exercise), result in chosen.items()}
    given = [exercise for exercise in exercises if exercise in most]
    rows = _rows(export, sorted({student for student, _ in chosen}), people)
    for parts in [given] if export.is_moodles else [[name] for name in given]:
        title = ', '.join(parts)
        column = export.column(title, sum(most[part] for part in parts))
        scales = set()  # points here, and what they are in the table
        for student, row in rows.items():
            mine = [chosen[student, part] for part in parts
                    if (student, part) in chosen]
            if any(result.points is None for result in mine):
                export.notes.append(f'{student}, {title}: not graded yet, so '
                                    'nothing is entered')
            elif mine:
                # What a student did not hand in does not count, as here.
                possible = sum(result.max_points for result in mine)
                scales.add((possible, export.maximum(row, column, possible)))
                export.enter(row, column,
                             sum(result.points or 0 for result in mine),
                             possible, f'{student}, {title}')
        export.notes += [
            f'{title}: {possible:g} points here are {maximum:g} in '
            f'{export.path.name}'
            for possible, maximum in sorted(scales) if maximum != possible]


def _rows(export: Export, students: Iterable[str],
          people: Mapping[str, FolderName]) -> dict[str, list[str]]:
    """Rows by student, without students whose row is uncertain."""
    table = export.path.name
    folders: dict[int, list[str]] = {}  # by id(row): those that mean it
    rows = {}
    for student in students:
        folder_name = people.get(student, FolderName(student))
        fitting = export.fitting(folder_name)
        if not fitting:
            export.notes.append(f'{folder_name.folder} is not in {table}')
        elif len(fitting) > 1:
            export.notes.append(
                f'{folder_name.folder} may be {len(fitting)} students of '
                f'{table}: rename the folder to what only one of them has, '
                'such as the ID')
        else:
            rows[student] = fitting[0].row
            folders.setdefault(id(fitting[0].row), []).append(
                folder_name.folder)
    for several in folders.values():
        if len(several) > 1:
            export.notes.append(f'{" and ".join(several)} are the same '
                                f'student of {table}: nothing is entered')
    without = [student.name for student in export.students
               if id(student.row) not in folders]
    if without:
        export.notes.append(f'{len(without)} in {table} without a result '
                            'here: ' + '; '.join(without))
    return {student: row for student, row in rows.items()
            if len(folders[id(row)]) == 1}
