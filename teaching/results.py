"""What was graded so far: tables, pages, and a file for each result.

Each result is written as soon as it is there. So a grading that was ended
goes on where it stopped, and a notebook that is still the same, graded by the
same checks, is not graded again.
"""
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from d2lps.annotations import PathLike
from d2lps.exercises.checking import EXERCISES
from teaching import byhand, feedback, late, spreadsheets
from teaching.judging import Verdict
from teaching.submissions import Submission

# Beside the folder of results, where a student may be called the same.
KEPT = 'kept'
BY_HAND, LATE, PEOPLE = 'by-hand.json', 'late.json', 'people.json'


class Result(NamedTuple):
    """What a student has for an exercise; `verdicts` as `judge` gives them.

    Without verdicts nothing was graded: the remarks say why. Then there are 0
    points, or None, where that is not the student's fault. time: when it was
    handed in, see `Submission`. comments: of a teacher. days: how late it was.
    """
    student: str
    exercise: str
    points: float | None
    of: float
    remarks: list[str]
    verdicts: list[Verdict]
    time: str | None = None
    comments: list[str] = []
    days: int = 0


class Called(NamedTuple):
    """What a student's folder is called, and the number of a platform."""
    folder: str
    number: str


def digest(*parts: Any) -> str:
    """A text that changes whenever one of the parts changes."""
    words = [json.dumps(part, sort_keys=True) for part in parts]
    return hashlib.sha256('\0'.join(words).encode(
        errors='backslashreplace')).hexdigest()


class Results:
    """The results in a folder, with students in the order of submissions."""

    def __init__(self, folder: PathLike, submissions: Iterable[Submission],
                 rules: late.Rules | None = None) -> None:
        self.folder = Path(folder)
        # By student and exercise.
        self._results: dict[tuple[str, str], Result] = {}
        self._digests: dict[tuple[str, str], str | None] = {}
        self._submissions = {one.student: one for one in submissions}
        self._results_folder = self.folder / 'results'  # one a student
        self._results_folder.mkdir(parents=True, exist_ok=True)
        self._kept_folder = self.folder / KEPT
        self._kept_folder.mkdir(exist_ok=True)
        # For when the gradebook cannot be read.
        self._by_hand: byhand.Written = {
            (student, exercise): byhand.ByHand(*one)
            for student, exercise, one in json.loads(
                _read(folder, BY_HAND) or '[]')}
        self._rules = rules or rules_of(folder)
        _replace(self._kept_folder / LATE, late.saved(self._rules))
        people = json.loads(_read(folder, PEOPLE) or '{}')
        self.people = {student: Called(*one) for student, one
                       in people.items()} | {
            student: Called(one.folder or student, one.number)
            for student, one in self._submissions.items()}
        _replace(self._kept_folder / PEOPLE, json.dumps(self.people))
        for path in sorted(self._results_folder.glob('*/*.json')):
            told = json.loads(path.read_text())
            told['verdicts'] = [Verdict(*one) for one in told['verdicts']]
            self._digests[path.parent.name, path.stem] = told.pop('digest')
            told.pop('answer', None)  # which earlier versions wrote
            self._results[path.parent.name, path.stem] = Result(**told)

    def known(self, student: str, exercise: str,
              digest: str) -> Result | None:
        """The result of just this notebook, or None."""
        if self._digests.get((student, exercise)) == digest:
            return self._results[student, exercise]
        return None

    def was_graded(self, student: str, exercise: str) -> bool:
        one = self._results.get((student, exercise))
        return bool(one and one.verdicts)

    def add(self, result: Result, digest: str | None = None) -> None:
        """Write a result, the tables with it, and the student's page.

        Without a digest it is graded anew the next time.
        """
        self.keep(result, digest)
        self.write(result.student)

    def keep(self, result: Result, digest: str | None = None) -> None:
        """Write a result alone; `write` must follow."""
        self._results[result.student, result.exercise] = result
        self._digests[result.student, result.exercise] = digest
        folder = self._results_folder / result.student
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f'{result.exercise}.json'
        _replace(path, json.dumps(result._asdict() | {'digest': digest}))

    def note_by_hand(self, found: byhand.Written) -> None:
        """What a teacher wrote, as `byhand.written` found it: it wins."""
        if found == self._by_hand:
            return
        self._by_hand = found
        _replace(self._kept_folder / BY_HAND, json.dumps(
            [[*key, one] for key, one in found.items()]))
        self.write(*self._submissions)

    def all(self) -> list[Result]:
        """All results, by student and then by exercise."""
        order = [*self._submissions, *sorted(
            {student for student, _ in self._results} - {*self._submissions})]
        return [self._rules.applied(byhand.applied(
                    self._results[student, exercise],
                    self._by_hand.get((student, exercise))))
                for student in order for exercise in EXERCISES
                if (student, exercise) in self._results]

    def write(self, *students: str) -> None:
        """Write the tables, and the pages of these students."""
        results = self.all()
        folders = {student: called.folder for student, called
                   in self.people.items()}
        _replace(self.folder / 'grades.csv',
                 spreadsheets.long(results, folders))
        # Spreadsheets take this sign for UTF-8, and no sign for what is not.
        _replace(self.folder / 'students.csv', '\ufeff' + spreadsheets.wide(
            results, folders, {student: one.remarks.get('', [])
                               for student, one in self._submissions.items()}))
        (self.folder / 'feedback').mkdir(exist_ok=True)
        for student in students:
            if student in self._submissions:
                _replace(self.folder / 'feedback' / f'{student}.html',
                         feedback.page(self._submissions[student], [
                             one for one in results
                             if one.student == student]))


def known_people(folder: PathLike) -> dict[str, str]:
    """From what a student's folder was called to the student."""
    return {called: student for student, (called, _)
            in json.loads(_read(folder, PEOPLE) or '{}').items()}


def rules_of(folder: PathLike) -> late.Rules:
    """The rules for late days of an earlier grading, or none."""
    told = _read(folder, LATE)
    return late.loaded(told) if told else late.Rules()


def _read(folder: PathLike, name: str) -> str | None:
    """The text of a file in `kept`, or None if there is none."""
    path = Path(folder) / KEPT / name
    return path.read_text() if path.is_file() else None


def _replace(path: Path, text: str) -> None:
    """Write a file anew, so that it is whole at any moment."""
    new = path.with_name(f'{path.name}.new')
    with open(new, 'w', newline='', encoding='utf-8',
              errors='replace') as file:
        file.write(text)
    new.replace(path)
