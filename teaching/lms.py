"""Grades for Moodle and Canvas: a table that they exported, filled in.

Rows and columns stay as they were, and so does what stands in them, but for
grades. Columns for exercises that the table lacks are added.
"""
import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from d2lps.annotations import PathLike
from teaching import spreadsheets
from teaching.results import Called, Result

FILLED_IN = 'for-import.csv'
WORKSHEET = 'Identifier', 'Grade', 'Last modified (grade)'
# Of Moodle's report of all grades: columns that say who somebody is.
WHO = 'ID number', 'Email address', 'Username'
FIRST, LAST = ('First name',), ('Last name', 'Surname')
CANVAS_WHO = 'SIS User ID', 'SIS Login ID', 'Integration ID'
UNKNOWN = '''\
{} is no table that Moodle or Canvas exported: it has neither the columns \
Student, ID and Section (Canvas), nor Identifier, Grade and Last modified \
(grade) (a grading worksheet of Moodle), nor Email address, ID number or \
Username (Moodle's report of grades). Set the language of Moodle to English \
before you export'''


class Person(NamedTuple):
    """Who a row is about: texts that only they have, and names."""
    row: list[str]
    number: str
    ids: set[str]
    names: set[str]


class Column(NamedTuple):
    """A column for grades. maximum: of its points; None where rows have it."""
    place: int
    maximum: float | None


class Export:
    """A table of Moodle's or Canvas's, in which grades can be entered."""

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path).expanduser()
        rows, self._separator, self._bom = spreadsheets.rows_of(self.path)
        self._rows = [row for row in rows if row]  # but for empty lines
        self._header = self._rows[0] if self._rows else []
        self.kind = self._kind()
        width = max(map(len, self._rows))
        for row in self._rows:  # trailing cells may be left out
            row += [''] * (width - len(row))
        self._most: list[str] | None = None  # Canvas's row of points
        self.people = [*self._people()]
        self.said: list[str] = []  # what was not entered, and why

    def _kind(self) -> str:
        header = self._header
        if len(header) > 3 and 'Student' in header[0] and 'ID' in header[1] \
                and any('Section' in one for one in header):
            return 'canvas'
        if {*WORKSHEET} <= {*header}:
            return 'worksheet'
        if {*WHO} & {*header}:
            return 'report'
        raise ValueError(UNKNOWN.format(self.path))

    def _people(self) -> Iterator[Person]:
        for row in self._rows[1:]:
            cells = functools.partial(self._cells, row)
            if self.kind == 'canvas':
                if 'Points Possible' in row[0]:
                    self._most = row
                elif row[1].strip():
                    surname, _, given = row[0].partition(',')
                    yield Person(row, row[1].strip(), _plain(
                        [row[1], *cells(*CANVAS_WHO)]), _plain(
                        [row[0], f'{given} {surname}']))
            elif self.kind == 'worksheet':
                number = re.search(r'\d+', cells('Identifier')[0])
                if number:
                    yield Person(row, number[0], _plain(cells(*WHO)),
                                 _plain(cells('Full name')))
            elif any(cell.strip() for cell in row):
                first, last = cells(*FIRST), cells(*LAST)
                names = [first + last, last + first] if first and last else []
                yield Person(row, '', _plain(cells(*WHO)),
                             _plain(map(' '.join, names)))

    def _cells(self, row: Sequence[str], *names: str) -> list[str]:
        """What stands in those of these columns that there are."""
        return [row[self._header.index(name)] for name in names
                if name in self._header]

    def of(self, folder: str, number: str) -> list[Person]:
        """The rows that a student's folder may mean: none, one, or more."""
        if number and self.kind != 'report':
            return [one for one in self.people if one.number == number]
        name = re.sub(r'_\d+(_assignsubmission_file_?)?$', '', folder) if (
            number) else folder
        [wanted] = _plain([name]) or ['']
        return ([one for one in self.people if wanted in one.ids] or
                [one for one in self.people if wanted in one.names])

    def column(self, exercise: str, of: float) -> Column:
        """The column for an exercise, made if need be.

        of: the maximum of a new one.
        """
        for k, name in enumerate(self._header):
            if self.kind == 'worksheet':
                if name == 'Grade':
                    return Column(k, None)  # a maximum in each row
            elif self._title(name) == exercise:
                cell = self._most[k] if self._most else ''
                if 'read only' in cell:
                    raise ValueError(f'{name} cannot be changed, says '
                                     f'{self.path}')
                return Column(k, _number(cell))
        for row in self._rows:
            row.append('')
        self._header[-1] = exercise
        if self._most:
            self._most[-1] = spreadsheets.number(of)
        return Column(len(self._header) - 1, of)

    def _title(self, name: str) -> str:
        if self.kind == 'canvas':
            return re.sub(r' \(\d+\)$', '', name)
        return re.sub(r' \(Real\)$', '', re.sub(r'^\w+: ?', '', name))

    def enter(self, person: Person, column: Column, points: float, of: float,
              scale: bool, what: str) -> None:
        """Write points into a person's row, or say why not.

        of: the most points. scale: to the maximum of the table? what: whose
        points these are, in words.
        """
        row, most, comma = person.row, column.maximum, False
        if self.kind == 'worksheet':
            for text in self._cells(row, 'Maximum Grade'):
                most, comma = _number(text), ',' in text
            if 'no' in _plain(self._cells(row, 'Grade can be changed')):
                self.said.append(f'{what}: Moodle says that this grade '
                                 'cannot be changed')
                return
        if row[column.place].strip().upper() == 'EX':
            self.said.append(f'{what}: is excused in Canvas, and stays so')
            return
        points = max(0., points)
        if scale and most:
            points *= most / of
        if most and points > most and self.kind != 'canvas':
            self.said.append(f'{what}: {spreadsheets.number(points)} points '
                             f'are more than Moodle takes, so {most:g}')
            points = most
        text = spreadsheets.number(points)
        row[column.place] = text.replace('.', ',') if comma else text

    def maxima(self, column: Column) -> set[float]:
        """The maxima of a column that the table tells."""
        texts = [text for one in self.people
                 for text in self._cells(one.row, 'Maximum Grade')]
        found = (map(_number, texts) if self.kind == 'worksheet'
                 else [column.maximum])
        return {one for one in found if one is not None}

    def text(self) -> str:
        """The filled-in table, as the text of a file."""
        return self._bom * '\ufeff' + spreadsheets.written(self._rows,
                                                     self._separator)


def _plain(texts: Iterable[str]) -> set[str]:
    """Texts as they are compared: without case, and with single spaces."""
    return {plain for text in texts if (plain := ' '.join(
        unicodedata.normalize('NFC', text).casefold().split()))}


def _number(text: str) -> float | None:
    """The number in a cell, also with a decimal comma; None if none."""
    found = re.fullmatch(r'\d+([.,]\d*)?', text.strip())
    return float(found[0].replace(',', '.')) if found else None


def fill_in(export: Export, results: Iterable[Result],
            people: Mapping[str, Called], exercises: Iterable[str],
            scale: bool = False) -> None:
    """Enter the points of these exercises, and note in `said` what was not.

    results: of all students. people: by student. In a worksheet all exercises
    make one grade. Raises ValueError if a maximum is too small.
    """
    results = [one for one in results if one.exercise in exercises]
    exercises = [one for one in exercises
                 if any(result.exercise == one for result in results)]
    most = {one.exercise: one.of for one in results}
    if export.kind == 'worksheet':
        columns = {', '.join(exercises): exercises}
    else:
        columns = {one: [one] for one in exercises}
    rows = _rows_of_students(export, {one.student for one in results}, people)
    found = {(one.student, one.exercise): one for one in results}
    for title, parts in columns.items():
        of = sum(most[part] for part in parts)
        column = export.column(title, of)
        _compare(export, title, of, export.maxima(column), scale)
        for student, person in rows.items():
            mine = [found[student, part] for part in parts
                    if (student, part) in found]
            if any(one.points is None for one in mine):
                export.said.append(f'{student}, {title}: not graded yet, so '
                                   'nothing is entered')
            elif mine:
                points = sum(one.points or 0 for one in mine)
                export.enter(person, column, points, of, scale,
                             f'{student}, {title}')


def _compare(export: Export, title: str, of: float, maxima: set[float],
             scale: bool) -> None:
    """Refuse a maximum in the table that is too small; say if it is larger."""
    if scale:
        return
    name = export.path.name
    if any(most < of for most in maxima):
        raise ValueError(
            f'the maximum of {title} is {min(maxima):g} in {name}, but there '
            f'are {of:g} points: change it there and export again, or let '
            'SCALE=yes scale the points to it')
    if any(most > of for most in maxima):
        export.said.append(
            f'{title}: of {of:g} points here, of {max(maxima):g} in {name}; '
            'SCALE=yes would scale them')


def _rows_of_students(export: Export, students: Iterable[str],
                      people: Mapping[str, Called]) -> dict[str, Person]:
    """From a student to the `Person` who it is, where that is certain."""
    name = export.path.name
    rows: dict[str, Person] = {}
    of_row: dict[int, list[str]] = {}  # by id(row): who it may be
    for student in sorted(students):
        folder, number = people.get(student, Called(student, ''))
        fitting = export.of(folder, number)
        if not fitting:
            export.said.append(f'{folder} was not found in {name}')
        elif len(fitting) > 1:
            export.said.append(
                f'{folder} may be {len(fitting)} students of {name}: call the '
                'folder by what only one of them has, such as the ID')
        else:
            rows[student] = fitting[0]
            of_row.setdefault(id(fitting[0].row), []).append(student)
    for several in of_row.values():
        if len(several) > 1:
            folders = [people.get(one, Called(one, '')).folder
                       for one in several]
            export.said.append(f'{" and ".join(folders)} are the same student '
                               f'of {name}: nothing is entered')
            for student in several:
                del rows[student]
    without = [one for one in export.people if id(one.row) not in of_row]
    if without:
        export.said.append(f'{len(without)} in {name} without a result here: '
                           + '; '.join(_called(one) for one in without))
    return rows


def _called(person: Person) -> str:
    return max((cell for cell in person.row[:3]
                if not re.fullmatch(r'[\d.]*', cell)), key=len, default='?')
