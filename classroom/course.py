"""The exercises as assignments of nbgrader, each with a notebook of its name.

A course is a folder as nbgrader wants it: `source` with the solutions,
`release` for the students, `submitted`, `autograded`, and `gradebook.db`. Its
commands and its formgrader work there.
"""
import logging
import os
import sys
from pathlib import Path

import nbformat
from nbgrader.apps import NbGraderAPI
from nbgrader.preprocessors import (CheckCellMetadata, DeduplicateIds,
                                    LimitOutput, OverwriteCells,
                                    OverwriteKernelspec, SaveAutoGrades)
from traitlets.config import Config

from classroom import walls
from d2lps_exercises.checking import EXERCISES

SOLUTIONS = walls.ROOT / 'notebooks' / 'exercises' / 'solutions'
STUB = ("# your lines here, in place of the next one\n"
        "raise NotImplementedError('write your answer here')")
# For nbgrader's own commands in the course, typed in by a teacher.
CONFIG = '''\
c = get_config()
c.CourseDirectory.course_id = 'd2lps'
c.ClearSolutions.code_stub = {stub!r}
'''


def _source(exercise):
    notebook = nbformat.read(SOLUTIONS / f'{exercise}.ipynb', 4)
    for cell in notebook.cells:  # it tells what the solution drew
        cell.metadata.pop('alt', None)
    return notebook


class Course:
    """An nbgrader course in a folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        config = Config()
        config.CourseDirectory.root = str(self.folder)
        config.CourseDirectory.course_id = 'd2lps'
        config.ClearSolutions.code_stub = {'python': STUB}
        # What comes in has been executed and judged: see `grade`.
        config.Autograde.sanitize_preprocessors = [
            DeduplicateIds, OverwriteKernelspec, OverwriteCells,
            CheckCellMetadata]
        config.Autograde.autograde_preprocessors = [
            LimitOutput, SaveAutoGrades, CheckCellMetadata]
        # A new gradebook is made with a program that is beside our Python.
        programs = str(Path(sys.executable).parent)
        if programs not in os.environ['PATH'].split(os.pathsep):
            os.environ['PATH'] += os.pathsep + programs
        self.api = NbGraderAPI(config=config)
        self.api.log.setLevel(logging.INFO)

    @classmethod
    def make(cls, folder, exercises=EXERCISES):
        """A new course with these exercises, released."""
        folder = Path(folder)
        for name in exercises:
            place = folder / 'source' / name
            place.mkdir(parents=True, exist_ok=True)
            nbformat.write(_source(name), place / f'{name}.ipynb')
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'nbgrader_config.py').write_text(
            CONFIG.format(stub={'python': STUB}))
        course = cls(folder)
        for name in exercises:
            course._do('release', course.api.generate_assignment, name)
        return course

    @classmethod
    def open(cls, folder, exercises):
        """The course in a folder, with these exercises as they are now."""
        def is_there(name):
            files = [Path(folder, kind, name, f'{name}.ipynb')
                     for kind in ('source', 'release')]
            return all(file.exists() for file in files) and (
                files[0].read_text() == nbformat.writes(_source(name)) + '\n')
        return cls.make(folder, [name for name in exercises
                                 if not is_there(name)])

    def _do(self, what, function, *args):
        done = function(*args)
        if not done['success']:
            why = (done.get('log') or done.get('error') or '')[-2000:]
            if why.rstrip().endswith('Canceled'):  # it caught our Ctrl-C
                raise KeyboardInterrupt
            raise RuntimeError(f'nbgrader could not {what} {args[0]}: {why}')

    def released(self, exercise):
        """The students' version: a path."""
        return self.folder / 'release' / exercise / f'{exercise}.ipynb'

    def template(self, exercise):
        """The notebook that is graded, but for the answer: hidden checks in.

        What a student may not change comes from here, never from them.
        """
        return nbformat.read(
            self.folder / 'source' / exercise / f'{exercise}.ipynb', 4)

    def grade(self, student, exercise, notebook):
        """Enter an executed and judged notebook into the gradebook."""
        place = self.folder / 'submitted' / student / exercise
        place.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, place / f'{exercise}.ipynb')
        self._do('grade', self.api.autograde, exercise, student)

    def points(self, student, exercise):
        """Points by the name of the check, and the most: from the gradebook.

        Two dictionaries.
        """
        with self.api.gradebook as gradebook:
            found = gradebook.find_submission_notebook(
                exercise, exercise, student)
            return ({grade.name: grade.auto_score or 0.
                     for grade in found.grades},
                    {grade.name: grade.max_score for grade in found.grades})
