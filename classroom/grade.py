"""Grade a folder of submissions: python -m classroom.grade FROM [TO] [...].

Every notebook is executed in a process of its own, judged outside of it, and
entered into an nbgrader gradebook. Nothing that one student hands in stops
the grading of the others, and each result is there as soon as it is found.
"""
import argparse
import asyncio
import copy
import functools
import os
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

import d2lps
from classroom import walls
from classroom.course import Course
from classroom.executing import execute
from classroom.judging import judge
from classroom.results import Result, Results, digest
from classroom.submissions import hidden_cases, read_all, rebuild
from d2lps_exercises import checking
from d2lps_exercises.checking import (EXERCISES, NO_TORCH, WITH_TORCH, Missing,
                                      the_torch)

HIDDEN = Path(__file__).with_name('hidden')
MISSING = 'missing'  # no file, and nothing that could be meant for it
NEEDS_TORCH = 'not graded: needs PyTorch'
MADE = 'course', 'feedback', 'results', 'grades.csv', 'grades.csv.new'


class Grading:
    """Grades what was read, into a folder.

    to: the folder, with what an earlier grading has left: what has not
    changed since is not graded again, but for the students named in `again`.
    """

    def __init__(self, submissions, exercises, to, behind_walls=True,
                 again=()):
        self._course = Course.open(Path(to) / 'course', exercises)
        self.results = Results(to, submissions)
        self._walls = behind_walls
        self._again = again
        self._pairs = [(submission, exercise) for submission in submissions
                       for exercise in exercises]
        self.graded, self._torch = 0, False

    def run(self):
        self._note_by_hand()
        asyncio.run(self._run())
        self._note_by_hand()  # graded anew, or written in the meantime

    def _note_by_hand(self):
        """What a teacher wrote; what is known stays if it cannot be read."""
        try:
            self.results.note_by_hand(self._course.by_hand())
        except SQLAlchemyError as error:
            print("nbgrader's gradebook cannot be read, so what was written "
                  f'there by hand is as before: {error.args[0]}')

    async def _run(self):
        slots = asyncio.Queue()
        for slot in range(min(1 + (os.cpu_count() or 1),  # some only wait
                              walls.MOST_SLOTS)):
            slots.put_nowait(slot)
        # The gradebook is for one at a time, and slow: results do not wait.
        needed = any(exercise in WITH_TORCH and exercise in one.notebooks
                     for one, exercise in self._pairs)
        self._torch = needed and await asyncio.to_thread(has_torch,
                                                         self._walls)
        with ThreadPoolExecutor(1) as gradebook:
            await asyncio.gather(*[self._safely(*pair, slots, gradebook)
                                   for pair in self._pairs])

    async def _safely(self, submission, exercise, slots, gradebook):
        try:
            await self._one(submission, exercise, slots, gradebook)
        except Exception as error:  # ours, or nbgrader's: the others go on
            self.results.add(Result(
                submission.student, exercise, 0.,
                _most(self._course.template(exercise)),
                [f'could not be graded: {type(error).__name__}: {error}'], []))

    async def _one(self, submission, exercise, slots, gradebook):
        student, template = submission.student, self._course.template(exercise)
        remarks = list(submission.remarks.get(exercise, []))
        handed_in = submission.notebooks.get(exercise)
        if handed_in is None:
            self.results.add(Result(student, exercise, 0., _most(template),
                                    remarks or [MISSING], []))
            return
        cases = hidden_cases(HIDDEN, exercise)
        name = digest(handed_in, remarks, template, cases, _checks())
        if student not in self._again and self.results.known(
                student, exercise, name):
            return
        if exercise in WITH_TORCH and not self._torch:
            self.results.add(Result(student, exercise, None, _most(template),
                                    [NEEDS_TORCH, *remarks], []))
            return
        slot = await slots.get()
        try:
            notebook, more = rebuild(template, copy.deepcopy(handed_in))
            problems = await execute(notebook, cases, slot, self._walls)
        finally:
            slots.put_nowait(slot)
        if asyncio.current_task().cancelling():
            # Our Ctrl-C, which nbclient has taken for the kernel's death.
            raise asyncio.CancelledError
        numbers = {cell.id: k for k, cell in enumerate(notebook.cells, 1)}
        more += [f'cell {numbers[cell]}: {why}' for cell, why
                 in problems.items() if not why.startswith('before')]
        verdicts = await asyncio.to_thread(judge, exercise, notebook, cases,
                                           problems)
        result = Result(student, exercise, sum(
            one.points for one in verdicts if one.wrong is None),
                        _most(notebook), remarks + more, verdicts)
        self.results.add(result)
        self.graded += 1
        print(f'{student}, {exercise}: {result.points:g} of {result.of:g}',
              flush=True)
        try:
            await asyncio.get_running_loop().run_in_executor(
                gradebook, self._course.grade, student, exercise, notebook)
        except Exception as error:  # such as a full disk: the points stay
            remarks.append("could not be entered into nbgrader's gradebook: "
                           f'{type(error).__name__}: {error}')
            self.results.add(result._replace(remarks=remarks + more))
        else:
            self.results.add(result, name)


def has_torch(behind_walls):
    """Is PyTorch here, and where students' code runs?"""
    try:
        the_torch()
    except Missing:
        return False
    return walls.can_import('torch', behind_walls)


@functools.cache
def _checks():
    """The code that answers are checked with: the lesson's as well."""
    folders = [Path(module.__file__).parent for module in (
        checking, d2lps)] + [Path(__file__).parent]
    return [path.read_text() for folder in folders
            for path in sorted(folder.rglob('*.py'))]


def _most(notebook):
    return float(sum(cell.metadata.nbgrader.points for cell in notebook.cells
                     if cell.metadata.get('nbgrader', {}).get('grade')))


def folder_for_results(to, submitted):
    """The folder `to`, in which nothing is but what was made here."""
    to, submitted = (Path(path).expanduser().resolve()
                     for path in (to, submitted))
    if to == submitted or to in submitted.parents or submitted in to.parents:
        raise ValueError(f'TO must be a folder beside FROM; {to} is not')
    if to.is_dir() and any(to.iterdir()):
        # A program that has grades.csv open may keep a hidden file beside it.
        others = {path.name for path in to.iterdir()
                  if not path.name.startswith('.')} - {*MADE}
        if others or not (to / 'course' / 'nbgrader_config.py').exists():
            raise ValueError(f'TO must be a new folder, or one that was made '
                             f'by this command; {to} is neither, or has '
                             f'something else in it: {sorted(others)}')
    to.mkdir(parents=True, exist_ok=True)
    return to


def chosen(submissions, names):
    """The exercises to grade: those named, or all that anybody handed in."""
    unknown = {*names} - {*EXERCISES}
    if unknown:
        raise ValueError(f'EXERCISES must be among {", ".join(EXERCISES)}; '
                         f'it had {", ".join(sorted(unknown))}')
    found = names or {name for one in submissions
                      for name in {*one.notebooks, *one.remarks} - {''}}
    if not found:
        raise ValueError('FROM has no exercise in it: the files should be '
                         'called tree.ipynb and so on')
    return [name for name in EXERCISES if name in found]


def main(args=None):
    parser = argparse.ArgumentParser(prog='classroom.grade')
    parser.add_argument('submitted', help='a folder with one for each student')
    parser.add_argument('--to', default='graded', help='where results go')
    parser.add_argument('--exercises', nargs='*', default=[])
    parser.add_argument('--again', nargs='*', default=[], metavar='STUDENT',
                        help='also what has not changed since')
    parser.add_argument('--walls', choices=['bwrap', 'none'], default='bwrap')
    args = parser.parse_args(args)
    warnings.simplefilter('ignore')  # of nbgrader, for its own developers
    start = time.time()
    try:
        if args.walls == 'bwrap' and walls.problem():
            raise ValueError(
                f'students\' code would run without walls: {walls.problem()}. '
                'WALLS=none runs it all the same, as you, and it can read '
                'what you can read')
        submissions = read_all(args.submitted)
        unknown = {*args.again} - {one.student for one in submissions}
        if unknown:
            raise ValueError(f'AGAIN must name students; there is no '
                             f'{", ".join(sorted(unknown))}')
        loose = [path.name for path in sorted(
            Path(args.submitted).expanduser().iterdir())
            if path.is_file() and not path.name.startswith('.')]
        if loose:
            print('in no student\'s folder, so left out:', *loose)
        exercises = chosen(submissions, args.exercises)
        to = folder_for_results(args.to, args.submitted)
        grading = Grading(submissions, exercises, to, args.walls == 'bwrap',
                          args.again)
        grading.run()
    except KeyboardInterrupt:
        sys.exit('d2lps: ended before all were graded; what was graded stays, '
                 'and the same again goes on from there')
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f'd2lps: {error}')
    results = grading.results.all()
    kept = sum(bool(result.verdicts) for result in results) - grading.graded
    missing = sum(result.remarks == [MISSING] for result in results)
    remarked = sum(bool(result.remarks) for result in results) - missing
    without = [one for one in results if one.points is None]
    if without:
        names = {one.exercise: None for one in without}
        print(f'{len(without)} notebooks are not graded, of '
              f'{", ".join(names)}. {NO_TORCH}. Then the same again grades '
              'them.')
    print(f'{len(submissions)} students, {grading.graded} notebooks graded in '
          f'{time.time() - start:.0f} s, {kept} results of before kept, '
          f'{missing} missing, {remarked} with remarks: {to / "grades.csv"}')


if __name__ == '__main__':
    main()
