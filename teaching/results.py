"""The results so far: tables, pages, and a file for each result.

Each result is written as soon as it is there. So a grading that was ended
goes on where it stopped, and a notebook that is still the same, graded by the
same checks, is not graded again.
"""
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from d2lps.annotations import PathLike
from d2lps.exercises.checking import EXERCISES
from teaching import byhand, feedback, late, spreadsheets
from teaching.records import Called, Result, Submission, Verdict

# Beside the folder of results, where a student may be called the same.
KEPT = 'kept'
BY_HAND, LATE, PEOPLE = 'by-hand.json', 'late-days.json', 'people.json'


def digest(*parts: Any) -> str:
    """A text that changes whenever one of the parts changes."""
    texts = [json.dumps(part, sort_keys=True) for part in parts]
    return hashlib.sha256('\0'.join(texts).encode(
        errors='backslashreplace')).hexdigest()


class Results:
    """The results in a folder, with students in the order of submissions."""

    def __init__(self, folder: PathLike,
                 submissions: Iterable[Submission]) -> None:
        self.folder = Path(folder)
        self._submissions = {submission.student: submission
                             for submission in submissions}
        for name in 'results', 'feedback', KEPT:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        # From an earlier grading, for when the gradebook cannot be read.
        self.by_hand: byhand.Written = {
            (student, exercise): byhand.ByHand(*notes)
            for student, exercise, notes in _load(folder, BY_HAND, [])}
        self.rules = late.Rules(*_load(folder, LATE, []))
        self.people = people(folder) | {
            student: submission.called
            for student, submission in self._submissions.items()}
        self._save(PEOPLE, self.people)
        # By student and exercise.
        self._results: dict[tuple[str, str], Result] = {}
        self._digests: dict[tuple[str, str], str | None] = {}
        for path in sorted(self.folder.glob('results/*/*.json')):
            key, fields = (path.parent.name, path.stem), _read(path)
            fields['verdicts'] = [Verdict(*verdict)
                                  for verdict in fields['verdicts']]
            self._digests[key] = fields.pop('digest')
            self._results[key] = Result(**fields)

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

    def note_gradebook(self, by_hand: byhand.Written,
                       rules: late.Rules) -> None:
        """Take over a teacher's notes from the gradebook: they have priority.
        """
        if (by_hand, rules) != (self.by_hand, self.rules):
            self.by_hand, self.rules = by_hand, rules
            self._save(BY_HAND, [[*key, notes]
                                 for key, notes in by_hand.items()])
            self._save(LATE, rules)
            self.write(*self._submissions)

    def _save(self, name: str, content: Any) -> None:
        write_whole(self.folder / KEPT / name, json.dumps(content))

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
        # A byte order mark, or Excel takes UTF-8 for another encoding.
        write_whole(self.folder / 'students.csv', '\ufeff' + spreadsheets.wide(
            results, folders, {
                student: submission.remarks.get('', [])
                for student, submission in self._submissions.items()}))
        for student in students:
            if student in self._submissions:
                write_whole(self.folder / 'feedback' / f'{student}.html',
                            feedback.page(self._submissions[student], [
                                result for result in results
                                if result.student == student]))


def known_people(folder: PathLike) -> dict[str, str]:
    """Students, by the names of their folders."""
    return {called.folder: student for student, called
            in people(folder).items()}


def people(folder: PathLike) -> dict[str, Called]:
    """Names of students, by student, in a folder of results."""
    return {student: Called(*called) for student, called
            in _load(folder, PEOPLE, {}).items()}


def _load(folder: PathLike, name: str, otherwise: Any) -> Any:
    """The content of a file in `kept`, if there is one."""
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
