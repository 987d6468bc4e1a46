"""The exercises as assignments of nbgrader, each with a notebook of its name.

A course is a folder as nbgrader wants it: `source` with the solutions,
`release` for the students, `submitted`, `autograded`, and `gradebook.db`. Its
commands and its formgrader work there.
"""
import logging
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import SubmittedNotebook
from nbgrader.apps import NbGraderAPI
from nbgrader.utils import determine_grade, is_grade
from nbformat import NotebookNode
from traitlets.config import Config

from d2lps.annotations import PathLike
from d2lps.exercises.checking import EXERCISES
from teaching import byhand, late, walls
from teaching.harmless import harmless
from teaching.records import Result
from teaching.results import write_whole

SOLUTIONS = walls.ROOT / 'notebooks' / 'exercises' / 'solutions'
STUB = ("# your lines here, in place of the next one\n"
        "raise NotImplementedError('write your answer here')")
CONFIG = Path(__file__).with_name('course_config.py')


def _source(exercise: str) -> NotebookNode:
    """The solved notebook, without the text that describes its picture."""
    notebook = nbformat.read(SOLUTIONS / f'{exercise}.ipynb', 4)
    for cell in notebook.cells:
        cell.metadata.pop('alt', None)
    return notebook


class Course:
    """An nbgrader course in a folder."""

    def __init__(self, folder: PathLike) -> None:
        self.folder = Path(folder)
        config = Config()
        config.CourseDirectory.root = str(self.folder)
        config.CourseDirectory.course_id = 'd2lps'
        config.ClearSolutions.code_stub = {'python': STUB}
        # A new gradebook is made with a program that is beside our Python.
        programs = str(Path(sys.executable).parent)
        if programs not in os.environ['PATH'].split(os.pathsep):
            os.environ['PATH'] += os.pathsep + programs
        self.api = NbGraderAPI(config=config)
        self.api.log.setLevel(logging.INFO)
        self._gradebook: Any = None  # nbgrader's, while it is open

    @classmethod
    def make(cls, folder: PathLike,
             exercises: Iterable[str] = EXERCISES) -> 'Course':
        """A new course with these exercises, released."""
        folder, exercises = Path(folder), list(exercises)
        for name in exercises:
            place = folder / 'source' / name
            place.mkdir(parents=True, exist_ok=True)
            nbformat.write(_source(name), place / f'{name}.ipynb')
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / 'nbgrader_config.py'
        if not config.exists():  # a teacher may have added settings
            config.write_text(
                f'{CONFIG.read_text()}'
                f'c.ClearSolutions.code_stub = {({"python": STUB})!r}\n')
        course = cls(folder)
        for name in exercises:
            course._release(name)
        return course

    @classmethod
    def open(cls, folder: PathLike, exercises: Iterable[str]) -> 'Course':
        """The course in a folder, with these exercises as they are now."""
        def is_there(name):
            files = [Path(folder, 'gradebook.db'), *(
                Path(folder, kind, name, f'{name}.ipynb')
                for kind in ('release', 'source'))]
            return all(file.exists() for file in files) and (
                files[-1].read_text() == nbformat.writes(_source(name)) + '\n')

        return cls.make(folder, [name for name in exercises
                                 if not is_there(name)])

    def _release(self, exercise: str) -> None:
        done = self.api.generate_assignment(exercise)
        if not done['success']:
            why = (done.get('log') or done.get('error') or '')[-2000:]
            if why.rstrip().endswith('Canceled'):  # it caught our Ctrl-C
                raise KeyboardInterrupt
            raise RuntimeError(f'nbgrader could not release {exercise}: {why}')

    def released(self, exercise: str) -> Path:
        """The students' version."""
        return self.folder / 'release' / exercise / f'{exercise}.ipynb'

    def template(self, exercise: str) -> NotebookNode:
        """The solved notebook, with the hidden checks.

        From here come all cells that a student may not change.
        """
        return nbformat.read(
            self.folder / 'source' / exercise / f'{exercise}.ipynb', 4)

    def grade(self, student: str, exercise: str,
              notebook: NotebookNode) -> None:
        """Enter an executed and judged notebook into the gradebook.

        `nbgrader autograde` does the same, but executes the notebook, and
        takes five times as long because it opens the gradebook each time. A
        teacher's comments and points by hand stay.
        """
        ours = {cell.source for cell in self.template(exercise).cells
                if cell.cell_type == 'markdown'}
        shown = nbformat.writes(harmless(notebook, ours)) + '\n'
        for kind in 'submitted', 'autograded':
            place = self.folder / kind / student / exercise
            place.mkdir(parents=True, exist_ok=True)
            write_whole(place / f'{exercise}.ipynb', shown)
        points = {cell.metadata.nbgrader.grade_id: determine_grade(cell)[0]
                  for cell in notebook.cells if is_grade(cell)}
        if self._gradebook is None:  # to open it takes longer than to write
            self._gradebook = self.api.gradebook
        try:
            _enter(self._gradebook, student, exercise, points)
        except BaseException:  # next time it may be free, or repaired
            self._gradebook.close()
            self._gradebook = None
            raise

    def by_hand(self) -> byhand.Entries:
        """A teacher's points and comments in the gradebook."""
        with self.api.gradebook as gradebook:
            return byhand.entries(gradebook)

    def due_dates(self) -> dict[str, str]:
        """Due dates in the gradebook, by exercise."""
        with self.api.gradebook as gradebook:
            return {assignment.name:
                    assignment.duedate.replace(tzinfo=UTC).isoformat()
                    for assignment in gradebook.assignments
                    if assignment.duedate}

    def enter_late_days(self, results: Iterable[Result]) -> None:
        """Enter times of submission, and the penalties for late days."""
        by_key = {(result.student, result.exercise): result
                  for result in results}
        with self.api.gradebook as gradebook:
            for notebook in gradebook.db.query(SubmittedNotebook):
                submission = notebook.assignment
                result = by_key.get((submission.student_id, notebook.name))
                if result is None:
                    continue
                notebook.late_submission_penalty = result.penalty
                submission.timestamp = (
                    datetime.fromisoformat(result.time).replace(tzinfo=None)
                    if result.time not in (None, late.MARKED) else None)
            gradebook.db.commit()


def _enter(gradebook, student, exercise, points):
    gradebook.update_or_create_student(student)
    gradebook.update_or_create_submission(exercise, student)
    for grade in gradebook.find_submission_notebook(
            exercise, exercise, student).grades:
        grade.auto_score = points[grade.name]
        # What a teacher changed is marked, to be looked at again.
        grade.needs_manual_grade = grade.manual_score is not None
    gradebook.db.commit()
