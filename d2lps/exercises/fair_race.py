"""Exercise: compare programs fairly on a machine whose speed changes.

To chapter 4, notebooks/04-on-your-own-machine.ipynb.
"""
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Case, Check, Notes, Picture,
                                      Wrong, number)
from d2lps.figures import describe

MOST_RUNS = 24
NEAR = 0.02  # the largest relative error of a ratio
SCATTER = 0.008  # relative noise of every time


def virtual_machine(names: Sequence[str], ms: Sequence[float],
                    cold: Sequence[float] = (), slow: Sequence[float] = (),
                    odd: Sequence[Sequence] = (), drift: float = 0,
                    seed: int = 1) -> Callable[[str], float]:
    """A function run(name) that makes up how many ms a repetition takes.

    names, ms: the programs, and what a repetition takes if nothing is odd.
    cold: for each name, how many times as long its first run takes.
    slow: (first, last, factor), runs of the machine, counted from 0, that
        take so many times as long, whichever program it is.
    odd: (name, repetition, factor), single runs that take so many times as
        long; a repetition is counted from 0, for each name.
    drift: by which share the machine is slower from one run to the next.
    """
    made: list[str] = []
    often: Counter[str] = Counter()
    noise = random.Random(seed)

    def run(name):
        usual = ms[names.index(name)] * (1 + drift) ** len(made)
        factor = 1 + SCATTER * noise.uniform(-1, 1)
        if often[name] == 0 and cold:
            factor *= cold[names.index(name)]
        if slow and slow[0] <= len(made) <= slow[1]:
            factor *= slow[2]
        for which, repetition, times in odd:
            if which == name and repetition == often[name]:
                factor *= times
        often[name] += 1
        made.append(name)
        return usual * factor

    return run


# What can disturb a race, by its name in `virtual_machine`.
TROUBLES = {'cold': 'cold runs', 'slow': 'its slow phase',
            'odd': 'its odd runs', 'drift': 'drift'}


def run(answer: Answer, machine: str, names: Sequence[str],
        **world: Any) -> Notes:
    """What the student's function did, on the machine and on quieter ones.

    A list of (troubles, race): the race on the same machine without these
    troubles, fewer troubles first. The first race is on the machine itself.
    """
    there = [trouble for trouble in TROUBLES if world.get(trouble)]
    without = [left_out for many in range(len(there) + 1)
               for left_out in combinations(there, many)]
    return [(left_out, _race(answer, names, {
        name: value for name, value in world.items() if name not in left_out}))
            for left_out in without]


def _race(answer, names, world):
    """Which runs the student's function made, and what it returned."""
    order, machine = [], virtual_machine(names, **world)
    too_many = Wrong(
        f'your function asks for run number {MOST_RUNS + 1}. {MOST_RUNS} '
        f'runs are allowed, for all {len(names)} programs together, with '
        'the cold runs.')

    def repetition(name):
        if name not in names:
            raise Wrong(f'run({shown(name)}) was called. The programs are '
                        f'{", ".join(map(repr, names))}.')
        order.append(names.index(name))
        if len(order) > MOST_RUNS:
            raise too_many
        return machine(name)

    returned = answer([*names], repetition)
    if len(order) > MOST_RUNS:  # the student's code caught our error
        raise too_many
    return {'order': order, 'ms': _numbers(returned, names)}


def _numbers(returned, names):
    """What was returned for each name, as floats."""
    wanted = 'The ms of each program are wanted: {name: ms, ...}.'
    if hasattr(returned, 'keys'):
        if {*returned.keys()} != {*names}:
            raise Wrong(f'your function returned times for '
                        f'{shown([*returned.keys()])}. {wanted}')
        returned = [returned[name] for name in names]
    if not isinstance(returned, (list, tuple, np.ndarray)) or (
            len(returned) != len(names)):
        raise Wrong(f'your function returned {shown(returned)}. {wanted}')
    numbers = [number(one, 'One number is wanted, its ms.',
                      f'for {name!r} your function returned')
               for name, one in zip(names, returned)]
    for name, one in zip(names, numbers):
        if not (math.isfinite(one) and one > 0):
            raise Wrong(f'for {name!r} your function returned {one:g}. A '
                        'time in ms is wanted.')
    return numbers


def replay(order: Sequence[int], names: Sequence[str],
           **world: Any) -> list[list[tuple[int, float]]]:
    """Of each name: its runs, as (number of the run, ms)."""
    machine = virtual_machine(names, **world)
    runs: list[list[tuple[int, float]]] = [[] for _ in names]
    for place, k in enumerate(order):
        runs[k].append((place, machine(names[k])))
    return runs


def worst_pair(found: Sequence[float],
               ms: Sequence[float]) -> tuple[float, int, int]:
    """How far the worst ratio is away, and whose it is: (share, i, j)."""
    pairs = [(abs(found[i] / found[j] / (ms[i] / ms[j]) - 1), i, j)
             for i in range(len(ms)) for j in range(len(ms))
             if i != j and ms[i] >= ms[j]]
    return max(pairs)


def judge(notes: Notes, machine: str, names: Sequence[str],
          ms: Sequence[float], **world: Any) -> None:
    """Every ratio within 2% of the truth."""
    order, found = notes[0][1]['order'], notes[0][1]['ms']
    runs = replay(order[:MOST_RUNS], names, ms=ms, **world)
    for name, mine in zip(names, runs, strict=True):
        if not mine:
            raise Wrong(f'{name!r} was never run, but your function returned '
                        'a time for it.')
    off, i, j = worst_pair(found, ms)
    if off > NEAR:
        raise Wrong(' '.join([
            f'you say that {names[i]!r} takes {found[i] / found[j]:.3f} times '
            f'as long as {names[j]!r}, and {ms[i] / ms[j]:.3f} is right.',
            *(_unit(names, runs, found) or _hints(
                notes, (i, j), runs, names, ms, world))]))


def judge_cold(notes: Notes, names: Sequence[str], ms: Sequence[float],
               **world: Any) -> None:
    """The ratios, and this once: are they ms at all?"""
    judge(notes, names=names, ms=ms, **world)
    world.pop('machine')
    runs = replay(notes[0][1]['order'], names, ms=ms, **world)
    wrong_unit = _unit(names, runs, notes[0][1]['ms'])
    if wrong_unit:
        raise Wrong(' '.join(['the ratios are right.', *wrong_unit]))


def _unit(names, runs, found):
    """Words about a time that is far from all runs of its program."""
    words = []
    for name, mine, one in zip(names, runs, found):
        took = [time for _, time in mine]
        if not 0.9 * min(took) <= one <= 1.1 * max(took):
            words.append(f'For {name!r} your function returned {one:.4g}, and '
                         f'its runs took {min(took):.4g} to {max(took):.4g} '
                         'ms.')
    if words:
        words.append(
            'Did you return the ms of one run?' if len(words) == len(names)
            else 'Is only this one not in ms?')
    return words


def _hints(notes, pair, runs, names, ms, world):
    """What the student returned, what disturbed it, and a question."""
    found = notes[0][1]['ms']
    if worst_pair([1 / one for one in found], ms)[0] <= NEAR:
        return ['Your ratio is the inverse. Did you return times?']
    said = [_returned(found[k], runs[k], names[k]) for k in pair]
    guilty = next((left_out for left_out, race in notes
                   if worst_pair(race['ms'], ms)[0] <= NEAR), None)
    if guilty is None:
        return ['It is not right on a quiet machine either.', (
            'All your times are whole numbers. How much does rounding change '
            'a ratio of such small numbers?'
            if all(one == round(one) for one in found) else
            'Does each time have the right name?')]
    words = ' and '.join(TROUBLES[trouble] for trouble in guilty)
    said.append(f'On the same machine without {words} your result would be '
                'right.')
    trouble = guilty[0]  # of several, one after the other
    said += [_what_it_did(trouble, runs[k], names[k], world) for k in pair]
    said.append(_question(trouble, pair, runs, ms, world))
    used = sum(map(len, runs))
    if used <= MOST_RUNS // 2:
        said.append(f'You used {used} of {MOST_RUNS} runs.')
    return [one for one in said if one]


def _returned(one, runs, name):
    """Which run's time was returned for a program; '' if it is not one."""
    times = [time for _, time in runs]
    if one not in times or len(times) < 3:
        return ''
    k = times.index(one)
    which = {min(times): ', the shortest', max(times): ', the longest'}
    return (f'For {name!r} you return its run {k + 1} of {len(times)}'
            f'{which.get(one, "")}.')


def _question(trouble, pair, runs, ms, world):
    """What to think about next."""
    if trouble == 'cold':
        return 'Should the first run of a program count?'
    warm = [median(time for _, time in mine[1:] or mine) for mine in runs]
    if trouble == 'drift':
        text = (f'Each run takes {abs(world["drift"]):.1%} '
                f'{"longer" if world["drift"] > 0 else "less"} than the run '
                'before. ')
        one, other = (_middle(runs[k]) for k in pair)
        return text + (
            'How many runs must count, and in which order, so that both '
            'middles are the same?'
            if one != other else
            'Do you compare two programs, or two moments?')
    if worst_pair(warm, ms)[0] <= NEAR:
        return ('The same runs, without the first of each program, are enough '
                'for a right result. Which summary of them hardly changes '
                'when a few of them are strange?')
    return ('In which order does a slow phase hit as many runs of each '
            'program, and leave enough of them?' if trouble == 'slow' else
            'Which summary of many runs hardly changes by two odd ones?')


def _middle(runs):
    """The middle of a program's runs without the first, in runs of all."""
    return median(number + 1 for number, _ in runs[1:] or runs)


def _what_it_did(trouble, runs, name, world):
    """Words about a trouble and the runs of one program."""
    times = [time for _, time in runs]
    numbers = [number + 1 for number, _ in runs]
    if len(runs) == 1:
        return f'You ran {name!r} only once.'
    if trouble == 'cold':
        return (f'The first run of {name!r} took {times[0]:.4g} ms, and the '
                f'next {times[1]:.4g}.')
    if trouble == 'slow':
        first, last, _ = world['slow']
        hit = sum(first < number <= last + 1 for number in numbers)
        return f'It hit {hit} of the {len(runs)} runs of {name!r}.'
    if trouble == 'odd':
        odd = [f'Run {repetition + 1} of {name!r} took {factor:g} times as '
               'long as usual.' for which, repetition, factor in world['odd']
               if which == name and repetition < len(runs)]
        return ' '.join(odd) or f'No run of {name!r} was odd.'
    return (f'{name!r} had the runs {numbers[0]} to {numbers[-1]} of the '
            f'machine. Without its first, their middle is {_middle(runs):g}.')


def picture(answer: Answer) -> Picture:
    """The machine's runs in order, and the result beside the truth."""
    from d2lps.pictures import BLUE, GRAY, GREEN, ORANGE
    from d2lps.pictures.rows import WIDE, new_figure
    names, ms, (first, last, _) = RACE['names'], RACE['ms'], RACE['slow']
    notes = _race(answer, names, {
        key: value for key, value in RACE.items()
        if key not in ('machine', 'names')})
    runs = replay(notes['order'], **{key: value for key, value in RACE.items()
                                     if key != 'machine'})
    shares = [[time / ms[k] for _, time in mine]
              for k, mine in enumerate(runs)]
    title = (f'{len(notes["order"])} runs: how many times as long as the '
             'truth each took')
    said = '; '.join(
        f'{name}: ' + ', '.join(f'{share:.2f} in run {number + 1}' for
                                (number, _), share in zip(mine, one))
        for name, mine, one in zip(names, runs, shares))
    figure = new_figure(WIDE, 5.2)
    top, ax = figure.subplots(2, height_ratios=[3, 2])
    describe(top, f'{title}. The machine is slow in runs {first + 1} to '
                  f'{last + 1}. {said}.')
    for name, mine, one, color, marker in zip(
            names, runs, shares, (BLUE, ORANGE, GREEN), 'os^'):
        top.plot([number + 1 for number, _ in mine], one, marker, color=color,
                 label=name)
    top.axvspan(first + 0.5, last + 1.5, color='gray', alpha=0.3, linewidth=0,
                label='slow phase')
    top.axhline(1, color='gray', label='truth', zorder=1)
    top.set(title=title, xlabel='run of the machine',
            xlim=(0, MOST_RUNS + 1), xticks=[1, 4, 8, 12, 16, 20, 24],
            ylim=(0.7, max([2, *(max(one) for one in shares if one)]) + 0.2))
    found, fastest = notes['ms'], ms.index(min(ms))
    off, *_ = worst_pair(found, ms)
    for move, color, label, times in ((-0.2, BLUE, 'yours', found),
                                      (0.2, GRAY, 'truth', ms)):
        bars = ax.barh([k + move for k in range(len(names))],
                       [one / times[fastest] for one in times], 0.38,
                       color=color, label=label)
        ax.bar_label(bars, fmt='%.3g', padding=4)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.margins(x=0.1)
    ax.grid(False, axis='y')
    ax.set(xlabel=f'times as long as {names[fastest]}', title='Your result: '
           f'the worst ratio is {off:.1%} away from the truth')
    for one in top, ax:
        one.legend(loc='upper left', bbox_to_anchor=(1, 1))
    return figure


TWO, THREE = ['sharded', 'copy'], ['allreduce', 'mx.kv', 'sharded']
RACE: Case = {
    'machine': 'all but drift', 'names': TWO, 'ms': [33, 30],
    'cold': [3, 1.6], 'slow': [4, 9, 1.4], 'seed': 4,
    'odd': [['copy', 5, 1.9], ['sharded', 6, 0.85], ['sharded', 8, 2.5]]}
CHECKS = {
    'cold': Check(
        [{'machine': 'cold start', 'names': TWO, 'ms': [30, 24],
          'cold': [1.5, 3], 'seed': 1},
         {'machine': 'cold start', 'names': THREE, 'ms': [50, 31.5, 30],
          'cold': [2, 1.4, 3.5], 'seed': 2}],
        run, judge_cold, 'the first run of each program does not count.'),
    'phase': Check(
        [{'machine': 'slow in runs 4 to 11', 'names': TWO, 'ms': [30, 33],
          'cold': [1.5, 2.5],
          'slow': [3, 10, 1.4], 'seed': 3},
         {'machine': 'slow in runs 10 to 15', 'names': THREE,
          'ms': [50, 35, 30], 'cold': [2, 1.4, 3], 'slow': [9, 14, 1.5],
          'seed': 4},
         {'machine': 'slow in runs 15 to 22', 'names': TWO, 'ms': [24, 24.96],
          'cold': [3, 1.5], 'slow': [14, 21, 1.3], 'seed': 5},
         {'machine': 'slow in runs 2 to 9', 'names': TWO, 'ms': [36, 40],
          'cold': [1.3, 2], 'slow': [1, 8, 1.35], 'seed': 12}],
        run, judge, 'a slow phase hits all programs equally.'),
    'spikes': Check(
        [{'machine': 'late now and then', 'names': TWO, 'ms': [30, 24],
          'cold': [1.5, 3], 'seed': 6,
          'odd': [['copy', 1, 4], ['copy', 4, 1.6]]},
         {'machine': 'late now and then', 'names': THREE, 'ms': [50, 31, 30],
          'cold': [2, 1.4, 3], 'seed': 7,
          'odd': [['sharded', 1, 1.5], ['sharded', 3, 6],
                  ['allreduce', 2, 2.5]]}],
        run, judge, 'slow single runs do not pull the result.'),
    'fast': Check(
        [{'machine': 'fast now and then', 'names': TWO, 'ms': [30, 27],
          'cold': [1.5, 2], 'seed': 8, 'odd': [['sharded', 3, 0.85]]},
         {'machine': 'fast now and then', 'names': THREE, 'ms': [50, 31, 30],
          'cold': [2, 1.4, 3], 'seed': 9,
          'odd': [['mx.kv', 1, 0.88], ['mx.kv', 4, 0.9],
                  ['sharded', 2, 1.7]]}],
        run, judge, 'a run on a faster clock does not decide the result.'),
    'drift': Check(
        [{'machine': 'slower and slower', 'names': TWO, 'ms': [30, 30.9],
          'cold': [1.3, 2], 'drift': 0.03, 'seed': 10},
         {'machine': 'slower and slower', 'names': THREE, 'ms': [50, 35, 30],
          'cold': [1.2, 1.6, 2], 'drift': 0.015, 'seed': 11}],
        run, judge, 'on average, no program runs later than the others.')}
