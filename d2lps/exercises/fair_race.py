"""Exercise: compare programs fairly on a machine whose speed changes.

To chapter 4, notebooks/04-on-your-own-machine.ipynb.
"""
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any, TypedDict

import numpy as np

from d2lps.checks import shown
from d2lps.exercises.charts import bar_chart
from d2lps.exercises.checking import (Answer, Case, Check, Differs, Picture,
                                      Wrong, number, returned)
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


class Runs(TypedDict):
    """The runs that a student's function made, and its result.

    order: of each run, the number of its program. ms: of each program.
    """
    order: list[int]
    ms: list[float]


def run(answer: Answer, machine: str, names: Sequence[str],
        **world: Any) -> Runs:
    """The runs that the student's function made, and its result."""
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

    result = returned(answer, [*names], repetition)
    if len(order) > MOST_RUNS:  # the student's code caught our error
        raise too_many
    return {'order': order, 'ms': _numbers(result, names)}


def _numbers(result, names):
    """The result for each name, as floats."""
    if hasattr(result, 'keys') and {*result.keys()} == {*names}:
        result = [result[name] for name in names]
    if not isinstance(result, (list, tuple, np.ndarray)) or (
            len(result) != len(names)):
        raise Wrong(f'you return {brief(result)}; the ms of each of {names} '
                    'are right.')
    numbers = [number(time, 'one number of ms for each program is right')
               for time in result]
    for name, time in zip(names, numbers):
        if not (math.isfinite(time) and time > 0):
            raise Wrong(f'for {name!r} you return {time:g}; a number of ms '
                        'above 0 is right.')
    return numbers


def replay(order: Sequence[int], names: Sequence[str],
           **world: Any) -> list[list[tuple[int, float]]]:
    """The runs of each name, as (number of the run, ms)."""
    machine = virtual_machine(names, **world)
    runs: list[list[tuple[int, float]]] = [[] for _ in names]
    for place, k in enumerate(order):
        runs[k].append((place, machine(names[k])))
    return runs


def worst_pair(mine: Sequence[float],
               ms: Sequence[float]) -> tuple[float, int, int]:
    """The relative error of the worst ratio, and its two programs."""
    pairs = [(abs(mine[i] / mine[j] / (ms[i] / ms[j]) - 1), i, j)
             for i in range(len(ms)) for j in range(len(ms))
             if i != j and ms[i] >= ms[j]]
    return max(pairs)


def judge(notes: Runs, machine: str, names: Sequence[str],
          ms: Sequence[float], **world: Any) -> None:
    """Every ratio within 2% of the truth."""
    times = notes['ms']
    runs = replay(notes['order'], names, ms=ms, **world)
    for name, mine in zip(names, runs, strict=True):
        if not mine:
            raise Wrong(f'you return a time for {name!r}, and never ran it.')
    off, i, j = worst_pair(times, ms)
    if off > NEAR:
        _judge_range(times, runs, names, ms)
        raise Differs(
            f'your ratio {names[i]!r} / {names[j]!r} is '
            f'{times[i] / times[j]:.3f}; {ms[i] / ms[j]:.3f} is right',
            times, [*map(float, ms)], NEAR, known=_known(times, runs, ms),
            place=_place(runs, (i, j), names, world))


def judge_cold(notes: Runs, names: Sequence[str], ms: Sequence[float],
               **world: Any) -> None:
    """The ratios, and this once: are they ms at all?"""
    judge(notes, names=names, ms=ms, **world)
    world.pop('machine')
    _judge_range(notes['ms'], replay(notes['order'], names, ms=ms, **world),
                 names, ms, 'The ratios are right.')


def _judge_range(times, runs, names, ms, place=''):
    """Raise `Wrong` for a time that is far from all runs of its program."""
    for name, mine, time in zip(names, runs, times):
        least, most = min(_times(mine)), max(_times(mine))
        if not 0.9 * least <= time <= 1.1 * most:
            raise Differs(f'for {name!r} you return {time:.4g}; its runs took '
                          f'{least:.4g} to {most:.4g} ms', times,
                          [*map(float, ms)], NEAR, place=place,
                          unit='milliseconds')


def _times(runs):
    return [time for _, time in runs]


# Wrong ways to sum up the runs of a program, with the reason.
SUMMARIES: dict[str, Callable[[list[float]], float]] = {
    'the first runs, and these are cold': lambda times: times[0],
    'the last runs: a single run decides': lambda times: times[-1],
    'the shortest runs: a single run decides': min,
    'the longest runs: a single run decides': max,
    'means of all runs, with the cold ones': fmean,
    'medians of all runs, with the cold ones': median,
    'means: each single run moves a mean': lambda times: fmean(times[1:])}


def _known(given, runs, ms):
    """Facts: what the times are, if these runs suffice for right ones."""
    times = [*map(_times, runs)]
    usual = [median(mine[1:] or mine) for mine in times]
    if worst_pair(usual, ms)[0] > NEAR:
        return {}
    return {(summary,): f'Your times are {summary}.'
            for summary, of in SUMMARIES.items()
            if all(len(mine) > 1 and math.isclose(time, of(mine))
                   for time, mine in zip(given, times))}


def _place(runs, pair, names, world):
    """Words about a disturbance of the runs of two programs."""
    for k in pair:
        if len(runs[k]) == 1:
            return f'You ran {names[k]!r} only once.'
    name, other = (names[k] for k in pair)
    if slow := world.get('slow'):
        hit, other_hit = (
            f'{sum(slow[0] <= place <= slow[1] for place, _ in runs[k])} of '
            f'{len(runs[k])}' for k in pair)
        return (f'The slow phase hits {hit} runs of {name!r}, {other_hit} of '
                f'{other!r}. You use {sum(map(len, runs))} of {MOST_RUNS} '
                'runs.') if hit != other_hit else ''
    if world.get('drift'):
        middle, other_middle = (
            median(place + 1 for place, _ in runs[k][1:]) for k in pair)
        return (f'The warm runs of {name!r} have their middle at run '
                f'{middle:g}, those of {other!r} at run {other_middle:g}.'
                ) if middle != other_middle else ''
    for odd_name, repetition, factor in world.get('odd', ()):
        k = names.index(odd_name)
        if k in pair and repetition < len(runs[k]):
            return (f'Run {repetition + 1} of {odd_name!r} took {factor:g} '
                    'times as long as usual.')
    return ''


def picture(answer: Answer) -> Picture:
    """The machine's runs in order, and the result beside the truth."""
    import pandas as pd

    from d2lps.pictures import BLUE, GRAY, ORANGE
    from d2lps.pictures.rows import WIDE, new_figure
    names, ms, (first, last, _) = RACE['names'], RACE['ms'], RACE['slow']
    notes = run(answer, **RACE)
    runs = replay(notes['order'], **{key: value for key, value in RACE.items()
                                     if key != 'machine'})
    title = (f'{len(notes["order"])} runs: how many times as long as the '
             'truth each took')
    top, below = new_figure(WIDE, 4.9).subplots(2, height_ratios=[3, 2])
    told = []
    for name, mine, true, color, marker in zip(names, runs, ms, (BLUE, ORANGE),
                                               'os'):
        shares = [time / true for _, time in mine]
        top.plot([number + 1 for number, _ in mine], shares, marker,
                 color=color, label=name)
        told += [f'{name}, run {number + 1}: {share:.2f}'
                 for (number, _), share in zip(mine, shares)]
    describe(top, f'{title}. The machine is slow in runs {first + 1} to '
                  f'{last + 1}. {"; ".join(told)}.')
    top.axvspan(first + 0.5, last + 1.5, color='gray', alpha=0.3, linewidth=0,
                label='slow phase')
    top.axhline(1, color='gray', zorder=1)
    top.set(title=title, xlabel='run of the machine', xlim=(0, MOST_RUNS + 1))
    fastest = ms.index(min(ms))
    off, *_ = worst_pair(notes['ms'], ms)
    result = np.array([notes['ms'], ms]).T
    bar_chart(
        pd.DataFrame(result / result[fastest], names, ['yours', 'truth']),
        below, colors=[BLUE, GRAY],
        xlabel=f'times as long as {names[fastest]}', title='Your result: the '
        f'worst ratio is {off:.1%} away from the truth')
    return top.figure


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
