"""Grade a folder of submissions.

Every notebook is executed in a process of its own, judged outside of it, and
entered into an nbgrader gradebook. No file of a student stops the grading of
the others, and each result is written as soon as it is there.
"""
import argparse
import asyncio
import fcntl
import functools
import os
import socket
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode
from nbgrader.utils import is_grade
from sqlalchemy.exc import SQLAlchemyError

import d2lps
from d2lps.annotations import PathLike
from d2lps.exercises.checking import (EXERCISES, NO_TORCH, WITH_TORCH, Missing,
                                      the_torch)
from d2lps.units import several
from teaching import interruption, lms, spreadsheets, walls
from teaching.course import Course
from teaching.executing import execute, hidden_cases
from teaching.judging import judge, why_stopped
from teaching.late import Rules
from teaching.rebuilding import rebuild
from teaching.records import Result, Submission
from teaching.results import KEPT, Results, digest, known_people
from teaching.submissions import loose, read_all

HIDDEN = Path(__file__).with_name('hidden')
NEEDS_TORCH = 'not graded: needs PyTorch'
TABLES = 'grades.csv', 'students.csv', lms.FILLED_IN
LOCK = '.grading'  # a file that a grading locks; it says which one does
OUR_NAMES = {'course', 'feedback', 'results', KEPT, *TABLES,
             *(f'{name}.new' for name in TABLES)}  # in a folder of results
# The modules here on which no result depends. Results depend on the others,
# and on all of d2lps, because an answer can call any part of it.
NOT_JUDGING = ('byhand', 'course', 'course_config', 'feedback', 'grade',
               'grading', 'handback', 'interruption', 'late', 'lms',
               'release', 'results', 'spreadsheets')


class Task(NamedTuple):
    """A student's exercise. notebook: None if no file was handed in.

    remarks: on the files that were read. time: when it was handed in, if that
    is known. digest: of all that the result depends on. alone: is no other
    notebook executed at the same time?
    """
    student: str
    exercise: str
    notebook: NotebookNode | None
    remarks: list[str]
    time: str | None
    digest: str
    alone: bool = False


class Grading:
    """Grades submissions, into a folder.

    to: the folder, with the results of an earlier grading: a notebook is not
    graded again unless it, the checks or d2lps have changed. asked_for:
    exercises that count for all, also for students who handed in nothing.
    late: percent of the points for each late day; None for that of the
    earlier grading.
    """

    def __init__(self, submissions: Sequence[Submission],
                 exercises: Sequence[str], to: PathLike,
                 behind_walls: bool = True,
                 asked_for: Collection[str] = (),
                 late: float | None = None) -> None:
        self._course = Course.open(Path(to) / 'course', exercises)
        self._submissions, self._exercises = submissions, exercises
        self._templates = {exercise: self._course.template(exercise)
                           for exercise in exercises}
        self._checks = {  # a digest, since all notebooks share it
            exercise: digest(template, hidden_cases(HIDDEN, exercise),
                             _judging_code())
            for exercise, template in self._templates.items()}
        self._max_points = {
            exercise: _max_points(template)
            for exercise, template in self._templates.items()}
        self.results = Results(to, submissions, {
            exercise: self._max_points[exercise] for exercise in asked_for})
        self._late = self.results.rules.percent if late is None else late
        self._behind_walls = behind_walls
        self.graded: set[tuple[str, str]] = set()  # (student, exercise)
        self._disturbed: list[Task] = []  # to be executed once more, alone

    def run(self) -> None:
        """Grade all that is new or changed."""
        self._read_gradebook()
        tasks = [self._task(submission, exercise)
                 for submission in self._submissions
                 for exercise in self._exercises]
        torch = any(task.notebook and task.exercise in WITH_TORCH
                    for task in tasks) and has_torch(self._behind_walls)
        todo = []
        for task in tasks:
            if self._is_to_do(task, torch):
                todo.append(task)
            else:
                self._keep(task)
        self.results.write(*self.results.people)
        try:
            asyncio.run(self._grade_all(todo))
        except asyncio.CancelledError:  # see teaching.interruption
            raise KeyboardInterrupt from None
        self._read_gradebook()  # graded again, or written in the meantime
        try:
            self._course.enter_late_days(self.results.all())
        except SQLAlchemyError as error:
            print("nbgrader's gradebook does not have all late days, but the "
                  f'tables have them: {error.args[0]}')

    def _read_gradebook(self) -> None:
        """Read a teacher's notes; the known ones stay if that is impossible.
        """
        by_hand, due = self.results.by_hand, self.results.rules.due
        try:
            by_hand, due = self._course.by_hand(), self._course.due_dates()
        except SQLAlchemyError as error:
            print("nbgrader's gradebook cannot be read, so points and "
                  f'comments by hand are as before: {error.args[0]}')
        self.results.note_gradebook(by_hand, Rules(due, self._late))

    def _task(self, submission: Submission, exercise: str) -> Task:
        notebook = submission.notebooks.get(exercise)
        remarks = submission.remarks.get(exercise, [])
        return Task(submission.student, exercise, notebook, remarks,
                    submission.times.get(exercise),
                    digest(notebook, remarks, self._checks[exercise]))

    def _is_to_do(self, task: Task, torch: bool) -> bool:
        """Is there a notebook that was not graded yet, and can be?"""
        if not task.notebook or task.exercise in WITH_TORCH and not torch:
            return False
        return not self.results.known(task.student, task.exercise,
                                      task.digest)

    def _keep(self, task: Task) -> None:
        """Note the result of a notebook that is not executed."""
        known = self.results.known(task.student, task.exercise, task.digest)
        if task.notebook and known:
            if known.time != task.time:
                self.results.note(known._replace(time=task.time), task.digest)
        elif task.notebook:
            self._no_result(task, None, [NEEDS_TORCH, *task.remarks])
        elif self.results.was_graded(task.student, task.exercise):
            print(f'{task.student}, {task.exercise}: not handed in this time; '
                  'the earlier result stays')
        elif task.remarks:
            self._no_result(task, 0., task.remarks)

    def _no_result(self, task: Task, points: float | None,
                   remarks: list[str]) -> None:
        self.results.note(Result(task.student, task.exercise, points,
                                 self._max_points[task.exercise], remarks,
                                 []))

    async def _grade_all(self, todo: Sequence[Task]) -> None:
        self._todo = len(todo)
        interruption.now_cancels(asyncio.current_task())
        self._slots: asyncio.Queue[int] = asyncio.Queue()
        for slot in range(min(1 + (os.cpu_count() or 1),  # some only wait
                              walls.MOST_SLOTS)):
            self._slots.put_nowait(slot)
        # The gradebook is for one at a time, and slow: results do not wait.
        with ThreadPoolExecutor(1) as self._gradebook:
            await asyncio.gather(*map(self._grade, todo))
            for task in self._disturbed:
                await self._grade(task._replace(alone=True))

    async def _grade(self, task: Task) -> None:
        """Grade a notebook, or note that it has to be graded again, alone.

        Another notebook can have taken all memory, or have filled the disk.
        """
        try:
            notebook, result = await self._result(task)
            self.results.add(result)
            self.graded.add((task.student, task.exercise))
            print(f'{len(self.graded)} of {self._todo}: {task.student}, '
                  f'{task.exercise}: {result.points:g} of '
                  f'{result.max_points:g}',
                  flush=True)
            await self._enter(task, notebook, result)
        except Exception as error:
            if not task.alone:
                self._disturbed.append(task)
                return
            self._no_result(task, None, [
                f'could not be graded: {type(error).__name__}: {error}'])
            self.results.write(task.student)
            print(f'{task.student}, {task.exercise}: could not be graded')

    async def _result(self, task: Task) -> tuple[NotebookNode, Result]:
        """The executed notebook, and its result."""
        assert task.notebook  # as `_is_to_do` says
        cases = hidden_cases(HIDDEN, task.exercise)
        slot = await self._slots.get()
        try:
            notebook, remarks = rebuild(self._templates[task.exercise],
                                        task.notebook)
            problems = await execute(notebook, cases, slot, self._behind_walls,
                                     task.alone)
        finally:
            self._slots.put_nowait(slot)
        for number, cell in enumerate(notebook.cells, 1):
            if cell.id in problems and not problems[cell.id].skipped:
                remarks.append(f'cell {number}: {problems[cell.id].reason}')
        verdicts = await asyncio.to_thread(judge, task.exercise, notebook,
                                           cases, problems)
        points = sum(verdict.points for verdict in verdicts
                     if verdict.wrong is None)
        if points < self._max_points[task.exercise]:
            remarks += why_stopped(notebook, verdicts)
        return notebook, Result(
            task.student, task.exercise, points,
            self._max_points[task.exercise], task.remarks + remarks, verdicts,
            task.time)

    async def _enter(self, task: Task, notebook: NotebookNode,
                     result: Result) -> None:
        """Enter a result into the gradebook; it stays if that fails."""
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._gradebook, self._course.grade, task.student,
                task.exercise, notebook)
        except Exception as error:  # such as a gradebook that is in use
            self.results.add(result._replace(remarks=[
                *result.remarks, "could not be entered into nbgrader's "
                f'gradebook: {type(error).__name__}: {error}']))
        else:
            self.results.note(result, task.digest)


def has_torch(behind_walls: bool) -> bool:
    """Is PyTorch here, and where students' code runs?"""
    try:
        the_torch()
    except Missing:
        return False
    return walls.can_import('torch', behind_walls)


@functools.cache
def _judging_code() -> list[str]:
    """The code with which answers are run and checked, d2lps included."""
    ours = [path for path in Path(__file__).parent.glob('*.py')
            if path.stem not in NOT_JUDGING]
    lesson = Path(d2lps.__file__).parent.rglob('*.py')
    return [path.read_text() for path in sorted([*ours, *lesson])]


def _max_points(notebook: NotebookNode) -> float:
    return float(sum(cell.metadata.nbgrader.points for cell in notebook.cells
                     if is_grade(cell)))


def folder_for_results(to: PathLike, submitted: PathLike) -> Path:
    """The folder `to`, which has no file in it but those of a grading."""
    to, submitted = (Path(path).expanduser().resolve()
                     for path in (to, submitted))
    if to == submitted or to in submitted.parents or submitted in to.parents:
        raise ValueError(f'TO must be a folder beside FROM; {to} is not')
    names = {path.name for path in to.iterdir()} if to.is_dir() else set()
    # A program that has grades.csv open may keep a hidden file beside it.
    others = {name for name in names if not name.startswith('.')} - OUR_NAMES
    is_ours = LOCK in names or (to / 'course' / 'nbgrader_config.py').exists()
    if names and (others or not is_ours):
        raise ValueError('TO must be a new folder, or one that was made by '
                         f'this command; {to} is neither' + (
                             f', or has something else in it: {sorted(others)}'
                             if others else ''))
    to.mkdir(parents=True, exist_ok=True)
    return to


@contextmanager
def alone_in(to: Path) -> Iterator[None]:
    """Keep other gradings out of the folder `to`.

    Raises ValueError if there is another: its results would be missing in
    our tables, or ours in its tables.
    """
    with open(to / LOCK, 'a+') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise ValueError(
                f'another grading writes into {to}: {file.read(200)}. Wait '
                'for its end, or choose another folder with TO') from None
        file.truncate(0)
        file.write(f'process {os.getpid()} on {socket.gethostname()}, since '
                   f'{time.strftime("%H:%M:%S")}')
        file.flush()
        yield


def chosen(submissions: Sequence[Submission],
           names: Collection[str]) -> list[str]:
    """The exercises to grade: those named, or all that anybody handed in."""
    unknown = {*names} - {*EXERCISES}
    if unknown:
        raise ValueError(f'EXERCISES must be among {", ".join(EXERCISES)}; '
                         f'it had {", ".join(sorted(unknown))}')
    handed_in = {name for submission in submissions for name in
                 {*submission.notebooks, *submission.remarks} - {''}}
    if not names and not handed_in:
        raise ValueError('FROM has no exercise in it: the files should be '
                         'called tree.ipynb and so on')
    return [name for name in EXERCISES if name in (names or handed_in)]


def grade(args: argparse.Namespace) -> None:
    """Grade a folder. Raises ValueError for a wrong argument."""
    start = time.time()
    if args.walls == 'bwrap' and walls.problem():
        raise ValueError(
            f"students' code would run without walls: {walls.problem()}. "
            'WALLS=none runs it all the same, as you, and it can read what '
            'you can read')
    if args.late is not None and not 0 <= args.late <= 100:
        raise ValueError('LATE must be a percentage, such as 10; it was '
                         f'{args.late:g}')
    export = lms.Export(args.lms) if args.lms else None
    known = known_people(args.to)
    submissions = read_all(args.submitted, known)
    if left_out := loose(args.submitted):
        print("in no student's folder, so left out:",
              *map(spreadsheets.plain, left_out))
    exercises = chosen(submissions, args.exercises)
    to = folder_for_results(args.to, args.submitted)
    with alone_in(to):
        if known_people(to) != known:  # another grading has just ended
            submissions = read_all(args.submitted, known_people(to))
        grading = Grading(submissions, exercises, to, args.walls == 'bwrap',
                          args.exercises, args.late)
        grading.run()
        if export:
            lms.fill_in(export, grading.results.all(), grading.results.people,
                        args.exercises or EXERCISES)
            (to / lms.FILLED_IN).write_text(export.text(), encoding='utf-8',
                                            newline='')
            for note in export.notes:
                print(spreadsheets.plain(note))
            print(f'to be imported: {to / lms.FILLED_IN}')
    summary(grading, submissions, exercises, args.exercises,
            time.time() - start, to)


def summary(grading: Grading, submissions: Sequence[Submission],
            exercises: Sequence[str], asked_for: Collection[str],
            seconds: float, to: Path) -> None:
    """Print how many notebooks were graded, and which were not."""
    results = grading.results.all()
    without = [result.exercise for result in results
               if NEEDS_TORCH in result.remarks]
    if without:
        names = ', '.join(dict.fromkeys(without))
        print(f'not graded: {several(len(without), "notebook")} of {names}. '
              f'{NO_TORCH}. Then the same command grades them.')
    there = Counter(result.exercise for result in results)
    some = [f'{name} ({there[name]})' for name in exercises
            if there[name] < len(submissions) and name not in asked_for]
    if some:
        print('not handed in by all, which counts for nobody unless '
              f'EXERCISES names it: {", ".join(some)}')
    kept = (sum(bool(result.verdicts) for result in results)
            - len(grading.graded))
    print(f'{several(len(submissions), "student")}, '
          f'{several(len(grading.graded), "notebook")} graded in '
          f'{seconds:.0f} s, {several(kept, "earlier result")} kept: '
          f'{to / "grades.csv"}')
