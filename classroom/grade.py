"""Grade a folder of submissions: python -m classroom.grade FROM [TO] [...].

Every notebook is executed in a process of its own, judged outside of it, and
entered into an nbgrader gradebook. Nothing that one student hands in stops
the grading of the others.
"""
import argparse
import asyncio
import copy
import csv
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from classroom import feedback, walls
from classroom.course import Course
from classroom.executing import execute
from classroom.judging import judge
from classroom.submissions import hidden_cases, read_all, rebuild
from d2lps.exercises.checking import EXERCISES

HIDDEN = Path(__file__).with_name('hidden')
MADE = 'course', 'feedback', 'grades.csv'
COLUMNS = 'student', 'exercise', 'points', 'of', 'remarks'
Result = namedtuple('Result', (*COLUMNS, 'verdicts'))


def grade(submissions, exercises, to, behind_walls=True, tell=print):
    """Grade what was read; a list of `Result`, one a student and exercise.

    to: the folder for the course of nbgrader. Writes nothing else.
    """
    course = Course.make(Path(to) / 'course', exercises)
    return asyncio.run(_grade(submissions, exercises, course, behind_walls,
                              tell))


async def _grade(submissions, exercises, course, behind_walls, tell):
    slots = asyncio.Queue()
    for slot in range(min(1 + (os.cpu_count() or 1),  # some only wait
                          walls.MOST_SLOTS)):
        slots.put_nowait(slot)

    async def one(submission, exercise, gradebook):
        slot = await slots.get()
        try:
            return await _one(submission, exercise, course, slot,
                              behind_walls, gradebook)
        except Exception as error:  # ours, or nbgrader's: the others go on
            return Result(submission.student, exercise, 0., _most(
                course.template(exercise)), [
                f'could not be graded: {type(error).__name__}: {error}'], [])
        finally:
            slots.put_nowait(slot)
            tell('.', end='', flush=True)

    with ThreadPoolExecutor(1) as gradebook:  # it is for one at a time
        return await asyncio.gather(*[
            one(submission, exercise, gradebook) for submission in submissions
            for exercise in exercises])


async def _one(submission, exercise, course, slot, behind_walls, gradebook):
    template = course.template(exercise)
    remarks = list(submission.remarks.get(exercise, []))
    handed_in = submission.notebooks.get(exercise)
    if handed_in is None:
        return Result(submission.student, exercise, 0., _most(template),
                      remarks or ['missing'], [])
    notebook, more = rebuild(template, copy.deepcopy(handed_in))
    cases = hidden_cases(HIDDEN, exercise)
    problems = await execute(notebook, cases, slot, behind_walls)
    named = {cell.id: k for k, cell in enumerate(notebook.cells, 1)}
    more += [f'cell {named[cell]}: {why}' for cell, why in problems.items()
             if not why.startswith('before')]
    verdicts = await asyncio.to_thread(judge, exercise, notebook, cases,
                                       problems)

    def enter():
        course.grade(submission.student, exercise, notebook)
        return course.points(submission.student, exercise)
    points, most = await asyncio.get_running_loop().run_in_executor(
        gradebook, enter)
    return Result(submission.student, exercise, sum(points.values()),
                  sum(most.values()), remarks + more, verdicts)


def _most(template):
    return float(sum(cell.metadata.nbgrader.points for cell in template.cells
                     if cell.metadata.get('nbgrader', {}).get('grade')))


def write(results, submissions, to):
    """grades.csv, and a feedback page for each student, in the folder `to`."""
    with open(to / 'grades.csv', 'w', newline='', encoding='utf-8',
              errors='replace') as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for result in results:
            remarks = ''.join(letter if letter.isprintable() else ' '
                              for letter in '; '.join(result.remarks))
            if remarks.startswith(('=', '+', '-', '@')):
                remarks = f"'{remarks}"  # a spreadsheet would run it
            table.writerow([result.student, result.exercise,
                            f'{result.points:g}', f'{result.of:g}',
                            remarks])
    (to / 'feedback').mkdir()
    for submission in submissions:
        own = [result for result in results
               if result.student == submission.student]
        page = feedback.page(submission, own)
        (to / 'feedback' / f'{submission.student}.html').write_text(
            page, encoding='utf-8', errors='replace')


def empty(to, submitted):
    """The folder `to`, in which nothing is but what was made here."""
    to, submitted = (Path(path).expanduser().resolve()
                     for path in (to, submitted))
    if to == submitted or to in submitted.parents or submitted in to.parents:
        raise ValueError(f'TO must be a folder beside FROM; {to} is not')
    if to.is_dir() and any(to.iterdir()):
        if {path.name for path in to.iterdir()} - {*MADE} or not (
                to / 'course' / 'nbgrader_config.py').exists():
            raise ValueError(f'TO must be a new folder, or one that was made '
                             f'by this command; {to} is neither, or has '
                             'something else in it')
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
        loose = [path.name for path in sorted(
            Path(args.submitted).expanduser().iterdir())
            if path.is_file() and not path.name.startswith('.')]
        if loose:
            print('in no student\'s folder, so left out:', *loose)
        exercises = chosen(submissions, args.exercises)
        to = empty(args.to, args.submitted)
        with tempfile.TemporaryDirectory(dir=to.parent, prefix='grading-',
                                         ignore_cleanup_errors=True) as new:
            new = Path(new)
            results = grade(submissions, exercises, new,
                            args.walls == 'bwrap')
            write(results, submissions, new)
            for name in MADE:  # what was there stays until all is graded
                old = to / name
                old.unlink(True) if old.is_file() else shutil.rmtree(old, True)
                (new / name).rename(old)
    except KeyboardInterrupt:
        sys.exit('\nd2lps: ended before all were graded; nothing was changed')
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f'd2lps: {error}')
    handed_in = sum(bool(result.verdicts) for result in results)
    remarked = sum(bool(result.remarks) for result in results)
    print(f'\n{len(submissions)} students, {handed_in} notebooks graded in '
          f'{time.time() - start:.0f} s, {remarked} rows with remarks: '
          f'{to / "grades.csv"}')


if __name__ == '__main__':
    main()
