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
    [section, *_] = [k for k, title in enumerate(header) if 'Section' in title]
    titles = {k: re.sub(r' \(\d+\)$', '', title)
              for k, title in enumerate(header)
              if k > section and not IGNORED.match(title)}
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
        if (row[where['Last modified (grade)']] == modified[number]
                and row[header.index('Grade can be changed')] != 'No'):
            taken[number] = float(text)
    return taken


def moodle_feedback(names, participants):
    """What Moodle takes of an archive: a participant's number to files.

    The first part of a path that has four pieces between its underscores, of
    which the second is the number of a participant, tells whose file it is.
    """
    files_of = {}
    for name in names:
        parts = name.split('/')
        for k, part in enumerate(parts):
            pieces = part.split('_', 4)
            if (len(pieces) > 3 and pieces[1] in participants
                    and pieces[2:4] == ['assignsubmission', 'file']):
                rest = '/'.join([*pieces[4:], *parts[k + 1:]])
                files_of.setdefault(pieces[1], []).append(rest.strip('/'))
                break
    return files_of


def canvas_feedback(names, submitted):
    """What Canvas takes of an archive: a user's number to the files.

    submitted: from a user to the numbers of the submitted files, of which a
    name must have one.
    """
    files_of = {}
    for name in names:
        pieces = [piece for piece in name.split('/')[-1].split('_')
                  if piece != 'LATE']
        if pieces[0] == 'anon':
            user, file = pieces[1:3]
        else:
            user, file = [piece for piece in pieces if piece.isdecimal()][:2]
        if not pieces[-1].startswith('link') and file in submitted.get(
                user, ()):
            files_of.setdefault(user, []).append(name)
    return files_of
