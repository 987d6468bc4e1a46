"""Tables: those that a teacher gives, and those that a spreadsheet opens."""
import csv
import io
import re

from d2lps.exercises.checking import EXERCISES

SEPARATORS = ',;\t'
# What begins a formula; also behind what another spreadsheet, which cuts
# lines at other signs, would take for the end of a cell.
FORMULA = re.compile(r'(^|[,;\t|"])(\s*)(?=[=+@-])')
GRADES = ('student', 'folder', 'exercise', 'points', 'of', 'late days',
          'remarks')


def plain(text):
    """Without what a terminal or a file of text cannot have."""
    return ''.join(letter if letter.isprintable() else ' ' for letter in text)


def safe(text):
    """The text of a cell, which no spreadsheet runs as a formula."""
    return FORMULA.sub(r"\1\2'", plain(text))


def number(value):
    """As a cell has it: nothing for None."""
    return '' if value is None else f'{round(value, 2):g}'


def written(rows, separator=','):
    """Rows as the text of a table."""
    file = io.StringIO(newline='')
    csv.writer(file, delimiter=separator).writerows(rows)
    return file.getvalue()


def rows_of(path):
    """The rows of a table, how it separates cells, and has it a BOM?

    Raises ValueError if it is none.
    """
    try:
        text = path.read_bytes().decode('utf-8')
    except OSError as error:
        raise ValueError(f'{path} cannot be read: {error.strerror}') from None
    except UnicodeDecodeError:
        raise ValueError(f'{path} is no text in UTF-8; export it as CSV '
                         'with that encoding') from None
    bom = text.startswith('\ufeff')
    text = text.removeprefix('\ufeff')

    def cut(separator):
        try:
            return [*csv.reader(io.StringIO(text, newline=''),
                                delimiter=separator)]
        except csv.Error as error:
            raise ValueError(f'{path} is no table: {error}') from None
    separator = max(SEPARATORS, key=lambda one: len(next(
        iter(cut(one)), ())))
    return cut(separator), separator, bom


def read(path, *columns):
    """Dictionaries, a row each, of a table with at least these columns."""
    header, *rows = rows_of(path)[0] or [[]]
    header = [name.strip().lower() for name in header]
    lacking = [name for name in columns if name not in header]
    if lacking:
        raise ValueError(f'{path} must be a table with the columns '
                         f'{", ".join(columns)}; it lacks '
                         f'{", ".join(lacking)}')
    return [dict(zip(header, (cell.strip() for cell in row)))
            for row in rows if any(cell.strip() for cell in row)]


def long(results, folders):
    """grades.csv: a row for each student and exercise."""
    return written([GRADES] + [[
        one.student, safe(folders.get(one.student, one.student)),
        one.exercise, number(one.points), number(one.of),
        one.days or '', safe('; '.join(one.remarks))] for one in results])


def wide(results, folders, remarks):
    """students.csv: a row for each student, and a column for each exercise.

    An empty cell is an exercise that gave no points, and not 0 of them
    either: it was not handed in, or not graded. remarks: of students, by
    student; a student without results has a row there, too.
    """
    there = {one.exercise for one in results}
    exercises = [name for name in EXERCISES if name in there]
    found = {(one.student, one.exercise): one for one in results}
    students = [*dict.fromkeys([*remarks, *(one.student for one in results)])]
    rows = [['student', 'folder', *exercises, 'total', 'of', 'late days',
             'remarks']]
    for student in students:
        mine = [found[student, exercise] for exercise in exercises
                if (student, exercise) in found]
        graded = [one for one in mine if one.points is not None]
        told = [*remarks.get(student, ()), *(
            f'{one.exercise}: {", ".join(one.remarks)}'
            for one in mine if one.remarks)]
        rows.append([
            student, safe(folders.get(student, student)),
            *(number(found[student, exercise].points)
              if (student, exercise) in found else ''
              for exercise in exercises),
            number(sum(one.points for one in graded)),
            number(sum(one.of for one in graded)),
            sum(one.days for one in mine) or '', safe('; '.join(told))])
    return written(rows)
