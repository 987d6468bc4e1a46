"""The promise of the exercise: the solution is right on any such machine."""
import random

import pytest
from answers import answer_cell, solution

from d2lps.exercises import fair_race

MACHINES = 50  # of each kind


@pytest.fixture(scope='module')
def race():
    names = {}
    exec('import numpy as np\n' + answer_cell(solution('fair-race')).source,
         names)
    return names['race']


def made(part, many, draw):
    """A machine as the notebook describes it."""
    names = ['a', 'b', 'c'][:many]
    world = {'machine': part, 'names': names, 'seed': draw.randrange(10 ** 6),
             'ms': [draw.uniform(20, 60) for _ in names]}
    world['cold'] = [draw.uniform(1, 5) for _ in names]
    if part == 'phase':
        longest = {2: 8, 3: 6}[many]
        first = draw.randrange(24)
        last = first + draw.randrange(longest)
        world['slow'] = [first, last, draw.uniform(1.1, 3)]
    if part == 'odd':
        world['odd'] = [
            [name, repetition, draw.choice([0.8, 0.9, 1.4, 5])]
            for name in names
            for repetition in draw.sample(range(6), draw.randrange(3))]
    if part == 'drift':
        most = {2: 0.04, 3: 0.02}[many]
        world['drift'] = draw.uniform(-most, most)
    return world


@pytest.mark.parametrize('many', [2, 3])
@pytest.mark.parametrize('part', ['cold', 'phase', 'odd', 'drift'])
def test_the_solution_is_right_on_every_machine(race, part, many):
    draw = random.Random(many)
    for _ in range(MACHINES):
        world = made(part, many, draw)
        fair_race.judge(fair_race.run(race, **world), **world)


def test_what_is_replayed_is_what_the_student_saw():
    world = dict(fair_race.RACE)
    seen = []

    def race(names, run):
        for name in [*names, *names[::-1], names[0]]:
            seen.append(run(name))
        return [1 for _ in names]

    notes = fair_race.run(race, **world)
    world.pop('machine')
    runs = fair_race.replay(notes['order'], **world)
    assert [ms for _, ms in sorted(
        run for mine in runs for run in mine)] == seen
