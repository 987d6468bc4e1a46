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
BY_HAND, LATE, PEOPLE = 'by-hand.json', 'late-days.json', 'people.json'


class Result(NamedTuple):
    """What a student has for an exercise; `verdicts` as `judge` gives them.

    Without verdicts nothing was graded: the remarks say why. Then there are 0
    points, or None, where that is not the student's fault. time: when it was
    handed in, see `Submission`. comments: of a teacher. days: how late it was.
    penalty: the points that it lost for that.
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
    penalty: float = 0


class Called(NamedTuple):
    """What a student's folder is called; a platform's number and prefix."""
    folder: str
    number: str
    prefix: str = ''


def digest(*parts: Any) -> str:
    """A text that changes whenever one of the parts changes."""
    words = [json.dumps(part, sort_keys=True) for part in parts]
    return hashlib.sha256('\0'.join(words).encode(
        errors='backslashreplace')).hexdigest()


class Results:
    """The results in a folder, with students in the order of submissions."""

    def __init__(self, folder: PathLike,
                 submissions: Iterable[Submission]) -> None:
        self.folder = Path(folder)
        self._submissions = {one.student: one for one in submissions}
        for name in 'results', 'feedback', KEPT:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        # What is known if the gradebook cannot be read.
        self.by_hand: byhand.Written = {}
        for student, exercise, one in _load(folder, BY_HAND, []):
            self.by_hand[student, exercise] = byhand.ByHand(*one)
        self.rules = late.Rules(*_load(folder, LATE, []))
        self.people = people(folder)
        for student, submission in self._submissions.items():
            self.people[student] = Called(
                submission.folder, submission.number, submission.prefix)
        self._save(PEOPLE, self.people)
        # By student and exercise.
        self._results: dict[tuple[str, str], Result] = {}
        self._digests: dict[tuple[str, str], str | None] = {}
        for path in sorted(self.folder.glob('results/*/*.json')):
            key, found = (path.parent.name, path.stem), _read(path)
            found['verdicts'] = [Verdict(*one) for one in found['verdicts']]
            self._digests[key] = found.pop('digest')
            self._results[key] = Result(**found)

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
        self.note(result, digest)
        self.write(result.student)

    def note(self, result: Result, digest: str | None = None) -> None:
        """Write a result alone; `write` must follow."""
        self._results[result.student, result.exercise] = result
        self._digests[result.student, result.exercise] = digest
        folder = self.folder / 'results' / result.student
        folder.mkdir(exist_ok=True)
        path = folder / f'{result.exercise}.json'
        write_whole(path, json.dumps(result._asdict() | {'digest': digest}))

    def note_gradebook(self, by_hand: byhand.Written,
                       rules: late.Rules) -> None:
        """What a teacher wrote into nbgrader's gradebook, which wins."""
        if (by_hand, rules) != (self.by_hand, self.rules):
            self.by_hand, self.rules = by_hand, rules
            self._save(BY_HAND, [[*key, one] for key, one in by_hand.items()])
            self._save(LATE, rules)
            self.write(*self._submissions)

    def _save(self, name: str, what: Any) -> None:
        write_whole(self.folder / KEPT / name, json.dumps(what))

    def all(self) -> list[Result]:
        """All results, by student and then by exercise."""
        order = [*self._submissions, *sorted(
            {student for student, _ in self._results} - {*self._submissions})]
        return [self.rules.applied(byhand.applied(
                    self._results[student, exercise],
                    self.by_hand.get((student, exercise))))
                for student in order for exercise in EXERCISES
                if (student, exercise) in self._results]

    def write(self, *students: str) -> None:
        """Write the tables, and the pages of these students."""
        results = self.all()
        folders = {student: called.folder for student, called
                   in self.people.items()}
        write_whole(self.folder / 'grades.csv',
                 spreadsheets.long(results, folders))
        # Spreadsheets take this sign for UTF-8, and no sign for what is not.
        write_whole(self.folder / 'students.csv', '\ufeff' + spreadsheets.wide(
            results, folders, {student: one.remarks.get('', [])
                               for student, one in self._submissions.items()}))
        for student in students:
            if student in self._submissions:
                write_whole(self.folder / 'feedback' / f'{student}.html',
                         feedback.page(self._submissions[student], [
                             one for one in results
                             if one.student == student]))


def known_people(folder: PathLike) -> dict[str, str]:
    """From what a student's folder was called to the student."""
    return {called.folder: student for student, called
            in people(folder).items()}


def people(folder: PathLike) -> dict[str, Called]:
    """What students are called, by student, in a folder of results."""
    return {student: Called(*one) for student, one
            in _load(folder, PEOPLE, {}).items()}


def _load(folder: PathLike, name: str, otherwise: Any) -> Any:
    """What is in a file in `kept`, if there is one."""
    path = Path(folder) / KEPT / name
    return _read(path) if path.is_file() else otherwise


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


def write_whole(path: Path, text: str) -> None:
    """Write a file anew, so that it is whole at any moment."""
    new = path.with_name(f'{path.name}.new')
    with open(new, 'w', newline='', encoding='utf-8',
              errors='replace') as file:
        file.write(text)
    new.replace(path)
