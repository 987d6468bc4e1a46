"""A term of a class: handed in for three weeks, graded, mended, registered.

python benchmarks/term.py [--students 6] [--exercises tree buckets]

Says how many minutes each step takes, and whether the registrar's table is
right. With 60 students and all exercises that takes half an hour on two cores.
"""
import argparse
import csv
import datetime
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
sys.path[:0] = [str(ROOT), str(ROOT / 'tests' / 'teaching')]
from handins import (  # noqa: E402
    RUNNING,
    answer_cell,
    answers_of,
    released,
    solution,
    with_answer,
)

from teaching import grade, walls  # noqa: E402

WEEKS = 3
FIRST_DUE = datetime.datetime(2026, 11, 20, 18, tzinfo=datetime.UTC)
PERCENT = 10
NAMES = 'Zoë Müller', 'O’Neil, Pat', 'Ng; Li', 'Ødegård "Ole"', 'Иван', 'Kim'


class HandIn(NamedTuple):
    """What somebody hands in: code (None for nothing), and how late."""
    kind: str
    code: str | None
    days: int = 0


def made_up(students, exercises, luck):
    """From (student, exercise) to a `HandIn`."""
    plan = {}
    for exercise in exercises:
        solved = answer_cell(solution(exercise)).source
        right = [one.code for one in answers_of(exercise) if not one.says]
        wrong = [one.code for one in answers_of(exercise) if one.says]
        for student in students:
            kind = luck.choices(['right', 'solution', 'wrong', 'stub',
                                 'missing'], [40, 10, 30, 10, 10])[0]
            code = {'right': luck.choice([*right, solved]),
                    'solution': solved, 'wrong': luck.choice(wrong),
                    'stub': answer_cell(released(exercise)).source,
                    'missing': None}[kind]
            plan[student, exercise] = HandIn(kind, code, (
                0 if code is None else luck.choice([0] * 5 + [1, 3])))
    return plan


def due(exercise, exercises):
    week = exercises.index(exercise) * WEEKS // len(exercises)
    return week, FIRST_DUE + datetime.timedelta(weeks=week)


def put(folder, exercise, code, when):
    """As nbgrader's exchange leaves a submission."""
    folder.mkdir(parents=True)
    path = folder / f'{exercise}.ipynb'
    nbformat.write(with_answer(released(exercise), code), path)
    os.utime(path, (when.timestamp(),) * 2)
    (folder / 'timestamp.txt').write_text(f'{when:%Y-%m-%d %H:%M:%S.%f} UTC')


def hand_in(folder, plan, exercises, week):
    """What comes before the grading of a week: its own, and late ones."""
    for (student, exercise), one in plan.items():
        of_week, deadline = due(exercise, exercises)
        place = folder / student / exercise
        if one.code is None or of_week + bool(one.days) != week:
            continue
        when = deadline + datetime.timedelta(days=one.days, hours=-1)
        put(place, exercise, one.code, when)


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


def mistakes(folder, plan, exercises):
    """What is wrong with the registrar's table: a list of texts."""
    with open(folder / 'out' / 'students.csv', newline='',
              encoding='utf-8-sig') as file:
        rows = {row['folder']: row for row in csv.DictReader(file)}
    found, points_of = [], {}
    for student in {student for student, _ in plan}:
        row = rows.pop(student, None)
        if row is None:
            found.append(f'{student} is not in it')
            continue
        mine = {exercise: plan[student, exercise] for exercise in exercises}
        for exercise, one in mine.items():
            points = float(row[exercise])
            kept = 1 - one.days * PERCENT / 100
            full = {'right': 10, 'solution': 10, 'stub': 0, 'missing': 0}
            expected = full.get(one.kind, points_of.setdefault(
                (exercise, one.code), points / kept))
            if abs(points - expected * kept) > .011 or (
                    one.kind == 'wrong' and points >= 10 * kept):
                found.append(f'{student}, {exercise}: {points:g} for an '
                             f'answer that is {one.kind}, {one.days} days '
                             'late')
        total = sum(float(row[exercise]) for exercise in exercises)
        if abs(total - float(row['total'])) > .011 * len(exercises):
            found.append(f'{student}: {row["total"]} is no total')
        days = sum(one.days for one in mine.values())
        if (row['of'], row['late days']) != (
                f'{10 * len(exercises)}', str(days or '')):
            found.append(f'{student}: of {row["of"]}, {row["late days"]} late '
                         f'days, not {days}')
    return found + [f'{student} is in it, too' for student in rows]


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
    minutes, wrong = Minutes(), []
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
        minutes.of('nothing new', run_grade, folder, exercises)
        second = [one for one in exercises if due(one, exercises)[0] == 1]
        grade.HIDDEN = mended(folder / 'hidden', second)
        anew = minutes.of('week 2 anew, with mended checks', run_grade,
                          folder, exercises)
        if {exercise for _, exercise in anew} - {*second}:
            wrong.append(f'graded anew: {anew}')
        wrong += mistakes(folder, plan, exercises)
    print(f'{minutes.all:.1f} minutes for {len(students)} students and '
          f'{len(exercises)} exercises, {len(plan)} answers')
    print(*wrong or ['the table is right'], sep='\n')
    return wrong


if __name__ == '__main__':
    sys.exit(bool(main()))
