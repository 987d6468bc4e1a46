"""What was graded so far: a table, pages, and a file for each result.

Each result is written as soon as it is there. So a grading that was ended
goes on where it stopped, and a notebook that is still the same, graded by the
same checks, is not graded again.
"""
import csv
import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import nbformat

from classroom import byhand, feedback
from classroom.judging import Verdict
from d2lps_exercises.checking import EXERCISES

COLUMNS = 'student', 'exercise', 'points', 'of', 'remarks'


class Result(NamedTuple):
    """What a student has for an exercise; `verdicts` as `judge` gives them.

    Without verdicts nothing was graded: the remarks say why. Then there are 0
    points, or None, where that is not the student's fault.
    """
    student: str
    exercise: str
    points: float | None
    of: float
    remarks: list
    verdicts: list
    comments: list = []  # of a teacher


def digest(*parts):
    """A text that is another one if anything is that a result depends on."""
    words = [nbformat.writes(part) if isinstance(part, nbformat.NotebookNode)
             else json.dumps(part, sort_keys=True) for part in parts]
    return hashlib.sha256('\0'.join(words).encode(
        errors='backslashreplace')).hexdigest()


class Results:
    """Those in a folder; the submissions tell the order of students."""

    def __init__(self, folder, submissions):
        self.folder, self._found, self._known = Path(folder), {}, {}
        self._submissions = {one.student: one for one in submissions}
        self._noted = self.folder / 'results' / 'by-hand.json'
        self._by_hand = {}
        if self._noted.exists():  # for when the gradebook cannot be read
            self._by_hand = {(student, exercise): byhand.ByHand(*one)
                             for student, exercise, one in json.loads(
                                 self._noted.read_text())}
        for path in sorted((self.folder / 'results').glob('*/*.json')):
            told = json.loads(path.read_text())
            told['verdicts'] = [Verdict(*one) for one in told['verdicts']]
            self._known[path.parent.name, path.stem] = told.pop('digest')
            self._found[path.parent.name, path.stem] = Result(**told)

    def known(self, student, exercise, digest):
        """The result of just this notebook, or None."""
        if self._known.get((student, exercise)) == digest:
            return self._found[student, exercise]
        return None

    def add(self, result, digest=None):
        """Write a result, the table with it, and the student's page.

        Without a digest it is graded anew the next time.
        """
        self._found[result.student, result.exercise] = result
        path = (self.folder / 'results' / result.student
                / f'{result.exercise}.json')
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, json.dumps(result._asdict() | {'digest': digest}))
        self.write(result.student)

    def note_by_hand(self, found):
        """What a teacher wrote, as `byhand.written` found it: it wins."""
        if found == self._by_hand:
            return
        self._by_hand = found
        self._noted.parent.mkdir(parents=True, exist_ok=True)
        _replace(self._noted, json.dumps([[*key, one] for key, one
                                          in found.items()]))
        for student in self._submissions:
            self.write(student)

    def all(self):
        """All results, by student and then by exercise."""
        order = [*self._submissions, *sorted(
            {student for student, _ in self._found} - {*self._submissions})]
        return [byhand.applied(self._found[student, exercise],
                               self._by_hand.get((student, exercise)))
                for student in order for exercise in EXERCISES
                if (student, exercise) in self._found]

    def write(self, student):
        """Write grades.csv, and the page of a student."""
        rows = [COLUMNS]
        for one in self.all():
            remarks = ''.join(letter if letter.isprintable() else ' '
                              for letter in '; '.join(one.remarks))
            if remarks.startswith(('=', '+', '-', '@')):
                remarks = f"'{remarks}"  # a spreadsheet would run it
            points = '' if one.points is None else f'{one.points:g}'
            rows.append([one.student, one.exercise, points, f'{one.of:g}',
                         remarks])
        table = self.folder / 'grades.csv.new'
        with open(table, 'w', newline='', encoding='utf-8',
                  errors='replace') as file:
            csv.writer(file).writerows(rows)
        table.replace(self.folder / 'grades.csv')
        if student in self._submissions:
            (self.folder / 'feedback').mkdir(exist_ok=True)
            _replace(self.folder / 'feedback' / f'{student}.html',
                     feedback.page(self._submissions[student], [
                         one for one in self.all()
                         if one.student == student]))


def _replace(path, text):
    """Write a file anew, so that it is whole at any moment."""
    new = path.with_name(f'{path.name}.new')
    new.write_text(text, encoding='utf-8', errors='replace')
    new.replace(path)
