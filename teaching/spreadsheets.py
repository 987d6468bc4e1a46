"""Tables: those that a teacher gives, and those that a spreadsheet opens."""
import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from d2lps.exercises.checking import EXERCISES

if TYPE_CHECKING:
    from teaching.results import Result

# What begins a formula; also behind what another spreadsheet, which cuts
# lines at other signs, would take for the end of a cell.
FORMULA = re.compile(r'(^|[,;\t|"])(\s*)(?=[=+@-])')


class Table(NamedTuple):
    """A table of text. bom: does the file begin with the sign for UTF-8?"""
    rows: list[list[str]]
    separator: str
    bom: bool


def plain(text: str) -> str:
    """Without what a terminal or a file of text cannot have."""
    return ''.join(letter if letter.isprintable() else ' ' for letter in text)


def safe(text: str) -> str:
    """The text of a cell, which no spreadsheet runs as a formula."""
    return FORMULA.sub(r"\1\2'", plain(text))


def number(value: float | None) -> str:
    """As a cell has it: nothing for None."""
    return '' if value is None else f'{round(value, 2):g}'


def written(rows: Iterable[Sequence[object]], separator: str = ',') -> str:
    """Rows as the text of a table."""
    file = io.StringIO(newline='')
    csv.writer(file, delimiter=separator).writerows(rows)
    return file.getvalue()


def table_in(path: Path) -> Table:
    """The table in a file, without empty lines, all rows of one length.

    Raises ValueError if it is none.
    """
    try:
        text = path.read_bytes().decode()
        bom, text = text.startswith('\ufeff'), text.removeprefix('\ufeff')
        separator = max(',;\t', key=text.partition('\n')[0].count)
        rows = [row for row in csv.reader(io.StringIO(text, newline=''),
                                          delimiter=separator) if row]
    except OSError as error:
        raise ValueError(f'{path} cannot be read: {error.strerror}') from None
    except UnicodeDecodeError:
        raise ValueError(f'{path} is no text in UTF-8; export it as CSV '
                         'with that encoding') from None
    except csv.Error as error:
        raise ValueError(f'{path} is no table: {error}') from None
    if not rows:
        raise ValueError(f'{path} is empty')
    width = max(map(len, rows))
    return Table([row + [''] * (width - len(row)) for row in rows],
                 separator, bom)


def read(path: Path, *columns: str) -> list[dict[str, str]]:
    """Dictionaries, a row each, of a table with at least these columns."""
    header, *rows = [[cell.strip() for cell in row]
                     for row in table_in(path).rows]
    header = [name.lower() for name in header]
    if not {*columns} <= {*header}:
        raise ValueError(f'{path} must be a table with the columns '
                         f'{", ".join(columns)}')
    return [dict(zip(header, row)) for row in rows if any(row)]


def long(results: 'Iterable[Result]', folders: Mapping[str, str]) -> str:
    """grades.csv: a row for each student and exercise.

    folders: from a student to what the folder is called.
    """
    header = ('student', 'folder', 'exercise', 'points', 'of', 'late days',
              'remarks')
    return written([header, *([
        one.student, safe(folders.get(one.student, one.student)),
        one.exercise, number(one.points), number(one.of),
        one.days or '', safe('; '.join(one.remarks))] for one in results)])


def wide(results: 'Sequence[Result]', folders: Mapping[str, str],
         remarks: Mapping[str, Sequence[str]]) -> str:
    """students.csv: a row for each student, and a column for each exercise.

    An empty cell is an exercise that gave no points, and not 0 of them
    either: it was not handed in, or not graded. remarks: of students, by
    student; a student without results has a row there, too.
    """
    students: dict[str, dict[str, Result]] = defaultdict(
        dict, {student: {} for student in remarks})
    for one in results:
        students[one.student][one.exercise] = one
    exercises = [name for name in EXERCISES
                 if any(name in mine for mine in students.values())]
    rows: list[list[object]] = [['student', 'folder', *exercises, 'total',
                                 'of', 'late days', 'remarks']]
    for student, mine in students.items():
        graded = [one for one in mine.values() if one.points is not None]
        told = [*remarks.get(student, ()), *(
            f'{one.exercise}: {", ".join(one.remarks)}'
            for one in mine.values() if one.remarks)]
        rows.append([
            student, safe(folders.get(student, student)),
            *(number(mine[name].points) if name in mine else ''
              for name in exercises),
            number(sum(one.points or 0 for one in graded)),
            number(sum(one.of for one in graded)),
            max((one.days for one in mine.values()), default=0) or '',
            safe('; '.join(told))])
    return written(rows)
