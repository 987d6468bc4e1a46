"""How Moodle and Canvas import grades, in so far as a table can go wrong.

Written after what their sources and documentation say, without a look at
`teaching.lms`.
"""
import csv
import io
import re

IGNORED = re.compile(
    r'^(Current|Final|Override|Unposted).*(Score|Points|Grade|Status)$')


def table(text, separators):
    assert '\r\r' not in text
    text = text.removeprefix('\ufeff')
    first = text.splitlines()[0]
    separator = max(separators, key=first.count)
    return [*csv.reader(io.StringIO(text, newline=''), delimiter=separator)]


def canvas(text, students):
    """What Canvas would enter: (id, title) to text, and points by title.

    students: ids that are in the course.
    """
    header, *rows = table(text, ',;')
    assert len(header) > 3 and 'Student' in header[0] and 'ID' in header[1]
    [section, *_] = [k for k, one in enumerate(header) if 'Section' in one]
    titles = {k: re.sub(r' \(\d+\)$', '', one) for k, one in enumerate(header)
              if k > section and not IGNORED.match(one)}
    assert len({*titles.values()}) == len(titles)
    entered, points = {}, {}
    for row in rows:
        if all(not cell.strip() or cell in ('Muted', 'Manual Posting')
               for cell in row):
            continue
        if 'Points Possible' in row[0]:
            points = {titles[k]: row[k].strip() for k in titles}
            continue
        assert row[1] in students, row
        for k, title in titles.items():
            if row[k].strip() not in ('', '-') and 'read only' not in (
                    points.get(title, '')):
                if row[k] != 'EX':
                    float(row[k])
                entered[row[1], title] = row[k]
    return entered, points


def worksheet(text, maximum, modified):
    """What Moodle's assignment takes: a participant's number to a grade.

    maximum: of the assignment. modified: number to its last modification.
    """
    header, *rows = table(text, ',;\t')
    where = {name: header.index(name) for name in (
        'Identifier', 'Grade', 'Last modified (grade)')}
    taken = {}
    for row in rows:
        number = re.fullmatch(r'Participant (\d+)',
                              row[where['Identifier']])[1]
        text = row[where['Grade']].strip().replace(',', '.')
        if text in ('', '-') or not 0 <= float(text) <= maximum:
            continue
        if row[where['Last modified (grade)']] == modified[number]:
            taken[number] = float(text)
    return taken


class Ended(Exception):
    """Moodle ends the whole import."""


def report(text, by, columns, users):
    """What Moodle's gradebook takes: (user, column) to a grade.

    by: the column that tells users. columns: from those that a teacher maps
    to the maximum of the item. users: what stands in the column `by`.
    """
    header, *rows = table(text, ',;\t:')
    taken = {}
    for row in rows:
        user = row[header.index(by)]
        if user not in users:
            raise Ended(user)
        for name, most in columns.items():
            text = row[header.index(name)]
            if text in ('', '-'):
                continue
            try:
                grade = float(text)
            except ValueError:
                raise Ended(text) from None
            if grade > most:
                raise Ended(text)
            taken[user, name] = grade
    return taken
