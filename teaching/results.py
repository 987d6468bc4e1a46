"""The results so far: tables, pages, and a file for each result.

Each result is written as soon as it is there. So a grading that was ended
goes on where it stopped, and a notebook that is still the same, graded by the
same checks, is not graded again.
"""
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from d2lps.annotations import PathLike
from d2lps.exercises.checking import EXERCISES
from teaching import byhand, feedback, late, spreadsheets
from teaching.records import FolderName, Result, Submission, Verdict

# Beside the folder of results, where a student may be called the same.
KEPT = 'kept'
BY_HAND, LATE, PEOPLE = 'by-hand.json', 'late-days.json', 'people.json'
REMARKS = 'remarks.json'  # on a student's files, of no exercise
MISSING = 'missing'  # no file, and nothing that could be meant for it


def digest(*parts: Any) -> str:
    """A text that changes whenever one of the parts changes."""
    texts = [json.dumps(part, sort_keys=True) for part in parts]
    return hashlib.sha256('\0'.join(texts).encode(
        errors='backslashreplace')).hexdigest()


class Results:
    """The results in a folder, with students in the order of submissions.

    asked_for: from an exercise that counts for all students to its points.
    """

    def __init__(self, folder: PathLike, submissions: Iterable[Submission],
                 asked_for: Mapping[str, float] | None = None) -> None:
        self.folder = Path(folder)
        self._asked_for = asked_for or {}
        self._submissions = {submission.student: submission
                             for submission in submissions}
        for name in 'results', 'feedback', KEPT:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        # From an earlier grading, for when the gradebook cannot be read.
        self.by_hand: byhand.Entries = {
            (student, exercise): byhand.ByHand(*notes)
            for student, exercise, notes in _load(folder, BY_HAND, [])}
        self.rules = late.Rules(*_load(folder, LATE, []))
        self.people = people(folder) | {
            student: submission.folder_name
            for student, submission in self._submissions.items()}
        self._save(PEOPLE, self.people)
        self._remarks: dict[str, list[str]] = _load(folder, REMARKS, {}) | {
            student: submission.remarks.get('', [])
            for student, submission in self._submissions.items()}
        self._save(REMARKS, self._remarks)
        # By student and exercise.
        self._results: dict[tuple[str, str], Result] = {}
        self._digests: dict[tuple[str, str], str | None] = {}
        for path in sorted(self.folder.glob('results/*/*.json')):
            key = path.parent.name, path.stem
            self._results[key], self._digests[key] = _read_result(path)

    def known(self, student: str, exercise: str,
              digest: str) -> Result | None:
        """The result of just this notebook, or None."""
        if self._digests.get((student, exercise)) == digest:
            return self._results[student, exercise]
        return None

    def was_graded(self, student: str, exercise: str) -> bool:
        """Has an earlier grading given a verdict on this exercise?"""
        result = self._results.get((student, exercise))
        return bool(result and result.verdicts)

    def add(self, result: Result, digest: str | None = None) -> None:
        """Write a result, the tables with it, and the student's page.

        Without a digest it is graded again the next time.
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

    def note_gradebook(self, by_hand: byhand.Entries,
                       rules: late.Rules) -> None:
        """Take over a teacher's notes from the gradebook: they have priority.
        """
        if (by_hand, rules) != (self.by_hand, self.rules):
            self.by_hand, self.rules = by_hand, rules
            self._save(BY_HAND, [[*key, notes]
                                 for key, notes in by_hand.items()])
            self._save(LATE, rules)
            self.write(*self.people)

    def _save(self, name: str, content: Any) -> None:
        write_whole(self.folder / KEPT / name, json.dumps(content))

    def all(self) -> list[Result]:
        """All results, by student and then by exercise."""
        results = self._missing() | self._results
        return [self.rules.applied(byhand.applied(
                    results[student, exercise],
                    self.by_hand.get((student, exercise))))
                for student in self._students() for exercise in EXERCISES
                if (student, exercise) in results]

    def _students(self) -> list[str]:
        """All students, also of earlier gradings: these come last."""
        known = {*self.people, *(student for student, _ in self._results)}
        return [*self._submissions, *sorted(known - {*self._submissions})]

    def _missing(self) -> dict[tuple[str, str], Result]:
        """0 points for each exercise that counts for all, and was not read.

        They are not kept: the next grading can ask for other exercises.
        """
        return {(student, exercise): Result(student, exercise, 0., max_points,
                                            [MISSING], [])
                for student in self.people
                for exercise, max_points in self._asked_for.items()
                if student not in self._submissions or
                exercise not in self._submissions[student].notebooks}

    def write(self, *students: str) -> None:
        """Write the tables, and the pages of these students."""
        results = self.all()
        folders = {student: folder_name.folder for student, folder_name
                   in self.people.items()}
        write_whole(self.folder / 'grades.csv',
                    spreadsheets.long(results, folders))
        # A byte order mark, or Excel takes UTF-8 for another encoding.
        write_whole(self.folder / 'students.csv', '\ufeff' + spreadsheets.wide(
            results, folders, {
                student: self._remarks.get(student, [])
                for student in self._students()}))
        for student in students:
            write_whole(
                self.folder / 'feedback' / f'{student}.html',
                feedback.page(self.people[student].name,
                              self._remarks.get(student, []), [
                                  result for result in results
                                  if result.student == student]))


def known_people(folder: PathLike) -> dict[str, str]:
    """Students, by the names of their folders."""
    return {folder_name.folder: student for student, folder_name
            in people(folder).items()}


def people(folder: PathLike) -> dict[str, FolderName]:
    """Names of students, by student, in a folder of results."""
    return {student: FolderName(*folder_name) for student, folder_name
            in _load(folder, PEOPLE, {}).items()}


def _load(folder: PathLike, name: str, otherwise: Any) -> Any:
    """The content of a file in `kept`, if there is one."""
    path = Path(folder) / KEPT / name
    return _read(path) if path.is_file() else otherwise


def _read(path: Path) -> Any:
    """The content of a file; raises ValueError, with its name, if it has none.
    """
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f'{path} is damaged: {error}') from None


def _read_result(path: Path) -> tuple[Result, str | None]:
    """A result and its digest; raises ValueError if they are not in the file.
    """
    try:
        fields = json.loads(path.read_text())
        digest = fields.pop('digest')
        verdicts = [Verdict(*verdict) for verdict in fields.pop('verdicts')]
        return Result(**fields, verdicts=verdicts), digest
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(
            f'{path} is damaged, or of another version ({error}). Delete it, '
            'and the notebook is graded again') from None


def write_whole(path: Path, text: str) -> None:
    """Write a file anew, so that it is whole at any moment."""
    new = path.with_name(f'{path.name}.new')
    with open(new, 'w', newline='', encoding='utf-8',
              errors='replace') as file:
        file.write(text)
    new.replace(path)
