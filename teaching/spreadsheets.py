"""Tables of the results, which a spreadsheet or a program opens."""
import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from d2lps.exercises.checking import EXERCISES
from teaching.records import Result

# What begins a formula; also behind a sign at which another spreadsheet cuts
# a line into cells.
FORMULA = re.compile(r'(^|[,;\t|"])(\s*)(?=[=+@-])')


def plain(text: str) -> str:
    """The text without what a terminal or a file of text cannot have."""
    return ''.join(letter if letter.isprintable() else ' ' for letter in text)


def safe(text: str) -> str:
    """The text of a cell, which no spreadsheet runs as a formula."""
    return FORMULA.sub(r"\1\2'", plain(text))


def number(value: float | None) -> str:
    """The number as a cell has it: nothing for None."""
    return '' if value is None else f'{round(value, 2):g}'


def table_text(rows: Iterable[Sequence[object]], separator: str = ',') -> str:
    """Rows as the text of a table."""
    file = io.StringIO(newline='')
    csv.writer(file, delimiter=separator).writerows(rows)
    return file.getvalue()


def long(results: Iterable[Result], folders: Mapping[str, str]) -> str:
    """The text of grades.csv: a row for each student and exercise.

    folders: from a student to the name of the folder.
    """
    header = ('student', 'folder', 'exercise', 'points', 'of', 'late days',
              'remarks')
    return table_text([header, *([
        result.student, safe(folders.get(result.student, result.student)),
        result.exercise, number(result.points), number(result.max_points),
        result.days or '', safe('; '.join(result.remarks))]
        for result in results)])


def wide(results: Sequence[Result], folders: Mapping[str, str],
         remarks: Mapping[str, Sequence[str]]) -> str:
    """The text of students.csv: a row for each student.

    It has a column for each exercise. An empty cell is an exercise that gave
    no points, and not 0 of them either: it was not handed in, or not graded.
    remarks: by student; a student without results has a row there, too.
    """
    students: dict[str, dict[str, Result]] = defaultdict(
        dict, {student: {} for student in remarks})
    for result in results:
        students[result.student][result.exercise] = result
    exercises = [name for name in EXERCISES
                 if any(name in mine for mine in students.values())]
    rows: list[list[object]] = [['student', 'folder', *exercises, 'total',
                                 'of', 'late days', 'remarks']]
    for student, mine in students.items():
        graded = [result for result in mine.values()
                  if result.points is not None]
        all_remarks = [*remarks.get(student, ()), *(
            f'{exercise}: {", ".join(result.remarks)}'
            for exercise, result in mine.items() if result.remarks)]
        rows.append([
            student, safe(folders.get(student, student)),
            *(number(mine[name].points) if name in mine else ''
              for name in exercises),
            number(sum(result.points or 0 for result in graded)),
            number(sum(result.max_points for result in graded)),
            max((result.days for result in mine.values()), default=0) or '',
            safe('; '.join(all_remarks))])
    return table_text(rows)
