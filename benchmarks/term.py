"""A term of a class: three weeks, handed in, graded, mended, registered.

python benchmarks/term.py [--students 6] [--exercises tree buckets]

Says how many minutes each step takes, and what is wrong in the tables for the
registrar, Moodle and Canvas, and on the students' pages. With 60 students and
all exercises that takes half an hour on two cores.
"""
import argparse
import csv
import datetime
import functools
import html
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import nbformat

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / 'tests' / name)
                             for name in ('teaching', 'exercises'))]
import importers  # noqa: E402
from handins import (  # noqa: E402
    RUNNING,
    answer_cell,
    answers_of,
    released,
    solution,
    with_answer,
)
from test_answers import said_of  # noqa: E402

from teaching import grade, grading, walls  # noqa: E402
from teaching.course import Course  # noqa: E402
from teaching.results import known_people  # noqa: E402

WEEKS = 3
FIRST_DUE = datetime.datetime(2026, 11, 20, 18, tzinfo=datetime.UTC)
PERCENT = 10
NAMES = ('Zoë Müller', 'Pat O’Neil', 'Li; Ng', 'Ole "Øl" Ødegård',
         'Иван Петров', '=Kim Lee')
EXTRA = 1.5  # points that the teacher gives by hand, see `give_by_hand`
COMMENT = 'Why <b>two</b> loops?'


class HandIn(NamedTuple):
    """What somebody hands in: code (None for nothing), and how late.

    first: what was handed in before, in time.
    """
    kind: str
    code: str | None
    days: int = 0
    first: str | None = None


def made_up(students, exercises, luck):
    """From (student, exercise) to a `HandIn`."""
    plan = {}
    for exercise in exercises:
        solved = answer_cell(solution(exercise)).source
        right = [one.code for one in answers_of(exercise) if not one.loses]
        wrong = [one.code for one in answers_of(exercise) if one.loses]
        stub = answer_cell(released(exercise)).source
        kinds = {'right': luck.choice([*right, solved]), 'solution': solved,
                 'wrong': luck.choice(wrong), 'stub': stub, 'missing': None,
                 'corrected': solved}
        for student in students:
            [kind] = luck.choices([*kinds], [35, 10, 25, 10, 10, 10])
            late = luck.choice([0] * 5 + [1, 3])
            if kind == 'corrected':
                plan[student, exercise] = HandIn(kind, solved, late or 1, stub)
            else:
                plan[student, exercise] = HandIn(
                    kind, kinds[kind], late if kinds[kind] else 0)
    return plan


@functools.cache
def points_of(exercise, code):
    """The points of an answer, without sandbox and gradebook."""
    if code is None:
        return 0
    notebook = with_answer(solution(exercise), code)
    wrong = {f'{kind.replace("seen", "check")}-{part}'
             for part, kind, _ in said_of(exercise, notebook)}
    checks = [cell.metadata.nbgrader for cell in notebook.cells
              if cell.metadata.get('nbgrader', {}).get('grade')]
    return sum(one.points for one in checks if one.grade_id not in wrong)


def expected(plan, by_hand):
    """From (student, exercise) to the points.

    by_hand: (student, exercise) with `EXTRA` points by hand.
    """
    return {key: (points_of(key[1], one.code) + EXTRA * (key in by_hand))
            * (1 - one.days * PERCENT / 100) for key, one in plan.items()}


def due(exercise, exercises):
    week = exercises.index(exercise) * WEEKS // len(exercises)
    return week, FIRST_DUE + datetime.timedelta(weeks=week)


def put(folder, exercise, code, when):
    """As nbgrader's exchange leaves a submission."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f'{exercise}.ipynb'
    nbformat.write(with_answer(released(exercise), code), path)
    os.utime(path, (when.timestamp(),) * 2)
    (folder / 'timestamp.txt').write_text(f'{when:%Y-%m-%d %H:%M:%S.%f} UTC')


def hand_in(folder, plan, exercises, week):
    """What comes before the grading of a week: its own, and late ones."""
    for (student, exercise), one in plan.items():
        of_week, deadline = due(exercise, exercises)
        deadline -= datetime.timedelta(hours=1)
        if one.first and of_week == week:
            put(folder / student / exercise, exercise, one.first, deadline)
        elif one.code and of_week + bool(one.days) == week:
            put(folder / student / exercise, exercise, one.code,
                deadline + datetime.timedelta(days=one.days))


def give_by_hand(folder, keys):
    """What the formgrader saves when a teacher writes into its fields."""
    names = known_people(folder / 'out')
    with Course(folder / 'out' / 'course').api.gradebook as gradebook:
        for student, exercise in keys:
            found = gradebook.find_submission_notebook(exercise, exercise,
                                                       names[student])
            found.grades[0].extra_credit = EXTRA
            found.comments[0].manual_comment = COMMENT
        gradebook.db.commit()


class Minutes:
    """Runs steps, and says how long each takes."""

    def __init__(self):
        self.all = 0

    def of(self, step, function, *args):
        start = time.monotonic()
        found = function(*args)
        minutes = (time.monotonic() - start) / 60
        self.all += minutes
        print(f'--- {minutes:6.1f} minutes: {step}', flush=True)
        return found


def run_grade(folder, exercises, *options):
    """What was graded anew: (student, exercise)."""
    before = noted(folder)
    grade.main([str(folder / 'in'), '--to', str(folder / 'out'), '--walls',
                'none' if walls.problem() else 'bwrap', '--exercises',
                *exercises, *options])
    return {key for key, value in noted(folder).items()
            if before.get(key) != value}


def noted(folder):
    """From (student, exercise) to what a result depends on."""
    found = {}
    for path in (folder / 'out' / 'results').glob('*/*.json'):
        found[path.parent.name, path.stem] = json.loads(
            path.read_text())['digest']
    return found


def mended(folder, exercises):
    """Hidden cases, with one more for each part of these exercises."""
    shutil.copytree(ROOT / 'teaching' / 'hidden', folder)
    for exercise in exercises:
        path = folder / f'{exercise}.json'
        cases = json.loads(path.read_text())
        for part in cases.values():
            part.append(part[0])
        path.write_text(json.dumps(cases))
    return folder


def number(points):
    return f'{round(points, 2):g}'


def mistakes(what, found, wanted):
    """Where two dictionaries differ: a list of texts."""
    return [f'{what}, {key}: {found.get(key)!r}, not {wanted.get(key)!r}'
            for key in {**wanted, **found}
            if found.get(key) != wanted.get(key)]


def of_the_table(folder, plan, points, exercises):
    """What is wrong in students.csv."""
    with open(folder / 'out' / 'students.csv', newline='',
              encoding='utf-8-sig') as file:
        found = {row.pop('student'): row for row in csv.DictReader(file)}
    wanted = {}
    for folder_name, student in known_people(folder / 'out').items():
        mine = {one: points[folder_name, one] for one in exercises}
        days = [plan[folder_name, one].days for one in exercises]
        row = wanted[student] = {
            'folder': folder_name.replace('=', "'="),
            **{name: number(one) for name, one in mine.items()},
            'total': number(sum(mine.values())), 'of': f'{10 * len(mine)}',
            'late days': str(max(days, default=0) or '')}
        remarks = found[student].pop('remarks')
        row['says'] = [f'{one} day' for one in days if one]
        found[student]['says'] = [one for one in row['says'] if one in remarks]
    return mistakes('students.csv', found, wanted)


def of_the_pages(folder, points, exercises, by_hand):
    """What is wrong on the students' pages."""
    found, wanted = {}, {}
    for folder_name, student in known_people(folder / 'out').items():
        page = (folder / 'out' / 'feedback' / f'{student}.html').read_text()
        total = sum(points[folder_name, one] for one in exercises)
        words = f'<p>{number(total)} of {10 * len(exercises)} points.</p>'
        found[student] = words in page, page.count(html.escape(COMMENT))
        wanted[student] = True, sum(one == folder_name for one, _ in by_hand)
    return mistakes('pages', found, wanted)


def of_the_platforms(folder, points, exercises, students):
    """What is wrong in the tables for Canvas and Moodle."""
    first, *others = exercises
    emails = {one: f'{k}@x.org' for k, one in enumerate(students)}
    names = {one: one.rsplit(' ', 1) for one in students}
    text = fill_in(folder, exercises, [
        ('Student', 'ID', 'Section', f'{first} (7)'),
        ('    Points Possible', '', '', '10'),
        *((', '.join(reversed(names[one])), email, 'A', '')
          for one, email in emails.items())])
    found, _ = importers.canvas(text, {*emails.values()})
    wrong = mistakes('Canvas', found, {
        (emails[student], exercise): number(one)
        for (student, exercise), one in points.items()})
    text = fill_in(folder, exercises, [
        ('First name', 'Last name', 'Email address',
         f'Assignment: {first} (Real)'),
        *((*names[one], email, '-') for one, email in emails.items())])
    titles = {f'Assignment: {first} (Real)': first} | {
        one: one for one in others}
    found = importers.report(text, 'Email address', dict.fromkeys(titles, 10),
                             {*emails.values()})
    wrong += mistakes('Moodle', {
        (email, titles[title]): one for (email, title), one in found.items()},
        {(emails[student], exercise): round(one, 2)
         for (student, exercise), one in points.items()})
    text = fill_in(folder, [first], [
        ('Identifier', 'Full name', 'Grade', 'Maximum Grade',
         'Grade can be changed', 'Last modified (grade)'),
        *((f'Participant {k}', one, '', '10.00', 'Yes', '-')
          for k, one in enumerate(students))])
    numbers = {str(k): one for k, one in enumerate(students)}
    found = importers.worksheet(text, 10, dict.fromkeys(numbers, '-'))
    return wrong + mistakes('worksheet', found, {
        k: round(points[one, first], 2) for k, one in numbers.items()})


def fill_in(folder, exercises, rows):
    """An exported table as `make grade` fills it in."""
    with open(folder / 'exported.csv', 'w', newline='',
              encoding='utf-8') as file:
        csv.writer(file).writerows(rows)
    run_grade(folder, exercises, '--lms', str(folder / 'exported.csv'))
    return (folder / 'out' / 'for-import.csv').read_text()


def main(args=None):
    parser = argparse.ArgumentParser()
    parser.add_argument('--students', type=int, default=60)
    parser.add_argument('--exercises', nargs='*', default=RUNNING)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args(args)
    exercises = [one for one in RUNNING if one in args.exercises]
    students = [f'{NAMES[k % len(NAMES)]} {k:02}'
                for k in range(args.students)]
    plan = made_up(students, exercises, random.Random(args.seed))
    by_hand = [key for key, one in plan.items()
               if one.kind in ('wrong', 'stub')][:args.students // 2]
    points = expected(plan, by_hand)
    minutes = Minutes()
    with tempfile.TemporaryDirectory(prefix='d2lps-term-') as place:
        folder = Path(place)
        for student in students:
            (folder / 'in' / student).mkdir(parents=True)
        with open(folder / 'due.csv', 'w', newline='') as file:
            csv.writer(file).writerows([('exercise', 'due'), *(
                (one, due(one, exercises)[1]) for one in exercises)])
        rules = '--due', str(folder / 'due.csv'), '--late', str(PERCENT)
        for week in range(WEEKS + 1):
            hand_in(folder / 'in', plan, exercises, week)
            given = [one for one in exercises
                     if due(one, exercises)[0] <= week]
            minutes.of(f'week {week + 1}' if week < WEEKS else 'late ones',
                       run_grade, folder, given, *rules)
        give_by_hand(folder, by_hand)
        anew = minutes.of('nothing new', run_grade, folder, exercises)
        wrong = [f'graded anew: {anew}'] if anew else []
        second = [one for one in exercises if due(one, exercises)[0] == 1]
        grading.HIDDEN = mended(folder / 'hidden', second)
        anew = minutes.of('week 2 anew, with mended checks', run_grade,
                          folder, exercises)
        if {exercise for _, exercise in anew} != {*second}:
            wrong.append(f'graded anew: {anew}')
        wrong += of_the_table(folder, plan, points, exercises)
        wrong += of_the_pages(folder, points, exercises, by_hand)
        wrong += minutes.of('tables for platforms', of_the_platforms, folder,
                            points, exercises, students)
        grading.HIDDEN = ROOT / 'teaching' / 'hidden'
    print(f'{minutes.all:.1f} minutes for {len(students)} students and '
          f'{len(exercises)} exercises, {len(plan)} answers')
    print(*wrong or ['all tables and pages are right'], sep='\n')
    return wrong


if __name__ == '__main__':
    sys.exit(bool(main()))
