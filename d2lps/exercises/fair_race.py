"""Exercise: compare programs fairly on a machine whose speed changes.

To chapter 4, notebooks/04-on-your-own-machine.ipynb.
"""
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np

from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Case, Check, Differs, Notes,
                                      Picture, Wrong, number, returned)
from d2lps.explaining import brief
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


def run(answer: Answer, machine: str, names: Sequence[str],
        **world: Any) -> Notes:
    """Which runs the student's function made, and what it returned."""
    order: list[int] = []
    time_of = virtual_machine(names, **world)
    too_many = Wrong(
        f'your function asks for run number {MOST_RUNS + 1}; {MOST_RUNS} '
        'runs of all programs together are right at most.', anywhere=True)

    def repetition(name):
        if name not in names:
            raise Wrong(f'you call run({shown(name)}); one of {names} is '
                        'right.')
        order.append(names.index(name))
        if len(order) > MOST_RUNS:
            raise too_many
        return time_of(name)

    found = returned(answer, [*names], repetition)
    if len(order) > MOST_RUNS:  # the student's code caught our error
        raise too_many
    return {'order': order, 'ms': _numbers(found, names)}


def _numbers(found, names):
    """What was returned for each name, as floats."""
    if hasattr(found, 'keys') and {*found.keys()} == {*names}:
        found = [found[name] for name in names]
    if not isinstance(found, (list, tuple, np.ndarray)) or (
            len(found) != len(names)):
        raise Wrong(f'you return {brief(found)}; the ms of each of {names} '
                    'are right.')
    numbers = [number(one, 'one number of ms for each program is right')
               for one in found]
    for name, one in zip(names, numbers):
        if not (math.isfinite(one) and one > 0):
            raise Wrong(f'for {name!r} you return {one:g}; a number of ms '
                        'above 0 is right.')
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
    found = notes['ms']
    runs = replay(notes['order'], names, ms=ms, **world)
    for name, mine in zip(names, runs, strict=True):
        if not mine:
            raise Wrong(f'you return a time for {name!r}, and never ran it.')
    off, i, j = worst_pair(found, ms)
    if off > NEAR:
        _judge_range(found, runs, names, ms)
        raise Differs(
            f'your ratio {names[i]!r} / {names[j]!r} is '
            f'{found[i] / found[j]:.3f}; {ms[i] / ms[j]:.3f} is right',
            found, [*map(float, ms)], NEAR, known=_known(found, runs, ms),
            place=_place(runs, (i, j), names, world))


def judge_cold(notes: Notes, names: Sequence[str], ms: Sequence[float],
               **world: Any) -> None:
    """The ratios, and this once: are they ms at all?"""
    judge(notes, names=names, ms=ms, **world)
    world.pop('machine')
    _judge_range(notes['ms'], replay(notes['order'], names, ms=ms, **world),
                 names, ms, 'The ratios are right.')


def _judge_range(found, runs, names, ms, place=''):
    """Raise `Wrong` for a time that is far from all runs of its program."""
    for name, mine, one in zip(names, runs, found):
        least, most = min(_times(mine)), max(_times(mine))
        if not 0.9 * least <= one <= 1.1 * most:
            raise Differs(f'for {name!r} you return {one:.4g}; its runs took '
                          f'{least:.4g} to {most:.4g} ms', found,
                          [*map(float, ms)], NEAR, place=place,
                          unit='milliseconds')


def _times(runs):
    return [time for _, time in runs]


# What the times of programs can be, and what is wrong with that.
SUMMARIES: dict[str, Callable[[list[float]], float]] = {
    'the first runs, and these are cold': lambda times: times[0],
    'the last runs: a single run decides': lambda times: times[-1],
    'the shortest runs: a single run decides': min,
    'the longest runs: a single run decides': max,
    'means of all runs, with the cold ones': fmean,
    'medians of all runs, with the cold ones': median,
    'means: each single run moves a mean': lambda times: fmean(times[1:])}


def _known(found, runs, ms):
    """What the times are, if the same runs are enough for right ones."""
    times = [*map(_times, runs)]
    usual = [median(mine[1:] or mine) for mine in times]
    if worst_pair(usual, ms)[0] > NEAR:
        return {}
    if all(one == round(one) for one in found):
        return {('round',): 'Your times are whole numbers of ms.'}
    return {(words,): f'Your times are {words}.'
            for words, of in SUMMARIES.items()
            if all(len(mine) > 1 and math.isclose(one, of(mine))
                   for one, mine in zip(found, times))}


def _place(runs, pair, names, world):
    """What disturbed the runs of two programs."""
    for k in pair:
        if len(runs[k]) == 1:
            return f'You ran {names[k]!r} only once.'
    one, other = (names[k] for k in pair)
    if slow := world.get('slow'):
        hit, other_hit = (
            f'{sum(slow[0] <= place <= slow[1] for place, _ in runs[k])} of '
            f'{len(runs[k])}' for k in pair)
        return (f'The slow phase hits {hit} runs of {one!r}, {other_hit} of '
                f'{other!r}. You use {sum(map(len, runs))} of {MOST_RUNS} '
                'runs.') if hit != other_hit else ''
    if world.get('drift'):
        middle, other_middle = (
            median(place + 1 for place, _ in runs[k][1:]) for k in pair)
        return (f'The warm runs of {one!r} have their middle at run '
                f'{middle:g}, those of {other!r} at run {other_middle:g}.'
                ) if middle != other_middle else ''
    for name, repetition, factor in world.get('odd', ()):
        k = names.index(name)
        if k in pair and repetition < len(runs[k]):
            return (f'Run {repetition + 1} of {name!r} took {factor:g} times '
                    'as long as usual.')
    return ''


def picture(answer: Answer) -> Picture:
    """The machine's runs in order, and the result beside the truth."""
    from d2lps.pictures import BLUE, GRAY, GREEN, ORANGE
    from d2lps.pictures.rows import WIDE, new_figure
    names, ms, (first, last, _) = RACE['names'], RACE['ms'], RACE['slow']
    notes = run(answer, **RACE)
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
MACHINE = '{machine}'  # the case in a message
CHECKS = {
    'cold': Check(
        [{'machine': 'cold start', 'names': TWO, 'ms': [30, 24],
          'cold': [1.5, 3], 'seed': 1},
         {'machine': 'cold start', 'names': THREE, 'ms': [50, 31.5, 30],
          'cold': [2, 1.4, 3.5], 'seed': 2}],
        run, judge_cold, 'the first run of each program does not count.',
        case=MACHINE),
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
        run, judge, 'a slow phase hits all programs equally.',
        case=MACHINE),
    'spikes': Check(
        [{'machine': 'late now and then', 'names': TWO, 'ms': [30, 24],
          'cold': [1.5, 3], 'seed': 6,
          'odd': [['copy', 1, 4], ['copy', 4, 1.6]]},
         {'machine': 'late now and then', 'names': THREE, 'ms': [50, 31, 30],
          'cold': [2, 1.4, 3], 'seed': 7,
          'odd': [['sharded', 1, 1.5], ['sharded', 3, 6],
                  ['allreduce', 2, 2.5]]}],
        run, judge, 'slow single runs do not pull the result.',
        case=MACHINE),
    'fast': Check(
        [{'machine': 'fast now and then', 'names': TWO, 'ms': [30, 27],
          'cold': [1.5, 2], 'seed': 8, 'odd': [['sharded', 3, 0.85]]},
         {'machine': 'fast now and then', 'names': THREE, 'ms': [50, 31, 30],
          'cold': [2, 1.4, 3], 'seed': 9,
          'odd': [['mx.kv', 1, 0.88], ['mx.kv', 4, 0.9],
                  ['sharded', 2, 1.7]]}],
        run, judge, 'a run on a faster clock does not decide the result.',
        case=MACHINE),
    'drift': Check(
        [{'machine': 'slower and slower', 'names': TWO, 'ms': [30, 30.9],
          'cold': [1.3, 2], 'drift': 0.03, 'seed': 10},
         {'machine': 'slower and slower', 'names': THREE, 'ms': [50, 35, 30],
          'cold': [1.2, 1.6, 2], 'drift': 0.015, 'seed': 11}],
        run, judge, 'on average, no program runs later than the others.',
        case=MACHINE)}
