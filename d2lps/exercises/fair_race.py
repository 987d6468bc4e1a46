"""Exercise: compare programs fairly on a machine whose speed changes.

To chapter 4, notebooks/04-on-your-own-machine.ipynb.
"""
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import Any

from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Case, Check, Notes, Picture,
                                      Wrong, scalar)
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
    order, one = [], virtual_machine(names, **world)

    def repetition(name):
        if name not in names:
            raise Wrong(f'run({shown(name)}) was called. The programs are '
                        f'{", ".join(map(repr, names))}.')
        order.append(names.index(name))
        if len(order) > MOST_RUNS:
            raise Wrong(_too_many(names))
        return one(name)

    found = answer([*names], repetition)
    if len(order) > MOST_RUNS:  # the student's code caught our error
        raise Wrong(_too_many(names))
    return {'order': order, 'found': _numbers(found, names)}


def _too_many(names):
    return (f'your function asks for run number {MOST_RUNS + 1}. {MOST_RUNS} '
            f'runs are allowed, for all {len(names)} programs together, with '
            'the cold runs.')


def _numbers(found, names):
    """What was returned for each name, as floats."""
    wanted = 'The ms of each program are wanted: {name: ms, ...}.'
    if hasattr(found, 'keys'):
        missing = [name for name in names if name not in found.keys()]
        if missing:
            raise Wrong(f'your function returned nothing for {missing[0]!r}. '
                        f'{wanted}')
        found = [found[name] for name in names]
    try:
        if isinstance(found, (str, bytes)):
            raise TypeError
        found = [*found]
    except TypeError:
        raise Wrong(f'your function returned {shown(found)}. {wanted}'
                    ) from None
    if len(found) != len(names):
        raise Wrong(f'your function returned {len(found)} values for '
                    f'{len(names)} programs. {wanted}')
    for name, one in zip(names, found):
        try:
            float(scalar(one))
        except (TypeError, ValueError):
            raise Wrong(f'for {name!r} your function returned {shown(one)}. '
                        'One number is wanted, its ms.') from None
    return [float(scalar(one)) for one in found]


def replay(order: Sequence[int], names: Sequence[str],
           **world: Any) -> list[list[tuple[int, float]]]:
    """Of each name: its runs, as (number of the run, ms)."""
    one = virtual_machine(names, **world)
    runs: list[list[tuple[int, float]]] = [[] for _ in names]
    for number, k in enumerate(order):
        runs[k].append((number, one(names[k])))
    return runs


def judge(notes: Notes, machine: str, names: Sequence[str],
          ms: Sequence[float], **world: Any) -> None:
    """Every ratio within 2% of the truth."""
    runs = replay(notes['order'][:MOST_RUNS], names, ms=ms, **world)
    found = [float(one) for one in notes['found']]
    for name, mine, one in zip(names, runs, found, strict=True):
        if not mine:
            raise Wrong(f'{name!r} was never run, but your function returned '
                        'a time for it.')
        if not (math.isfinite(one) and one > 0):
            raise Wrong(f'for {name!r} your function returned {one:g}. A '
                        'time in ms is wanted.')
    off, i, j = worst_pair(found, ms)
    if off <= NEAR:
        return
    text = (f'you say that {names[i]!r} takes {found[i] / found[j]:.3f} times '
            f'as long as {names[j]!r}, and {ms[i] / ms[j]:.3f} is right.')
    if (found[i] - found[j]) * (ms[i] - ms[j]) < 0:
        text += ' So you name the wrong program as the faster one.'
    if _upside_down(runs, found):
        raise Wrong(f'{text} Your ratio is the inverse. Did you return '
                    'times, and does each time have the right name?')
    _in_ms(names, runs, found, text)
    raise Wrong(f'{text} {_why(found, i, j, runs, names, ms, **world)}')


def _upside_down(runs, found):
    """Whether these are medians under the wrong names, or 1 / medians."""
    for first in 0, 1:  # of the runs that count
        times = [[time for _, time in mine] for mine in runs]
        usual = [median(took[first:] or took) for took in times]
        product = [one * time for one, time in zip(found, usual)]
        if all(math.isclose(one, product[0], rel_tol=1e-6)
               for one in product):
            return True
        if all(math.isclose(one, time, rel_tol=1e-6)
               for one, time in zip(found, usual[::-1])):
            return True
    return False


def judge_cold(notes: Notes, machine: str, names: Sequence[str],
               ms: Sequence[float], **world: Any) -> None:
    """The ratios, and this once: are they ms at all?"""
    judge(notes, machine, names, ms, **world)
    runs = replay(notes['order'][:MOST_RUNS], names, ms=ms, **world)
    _in_ms(names, runs, [float(one) for one in notes['found']],
           'the ratios are right.')


def _in_ms(names, runs, found, text):
    """Each result lies between the shortest and the longest run."""
    for name, mine, one in zip(names, runs, found):
        took = [time for _, time in mine]
        if not 0.9 * min(took) <= one <= 1.1 * max(took):
            raise Wrong(f'{text} For {name!r} your function returned '
                        f'{one:.4g}, and its runs took {min(took):.4g} to '
                        f'{max(took):.4g} ms. Did you return the ms of one '
                        'run?')


def worst_pair(found: Sequence[float],
               ms: Sequence[float]) -> tuple[float, int, int]:
    """How far the worst ratio is away, and whose it is: (share, i, j)."""
    pairs = [(abs(found[i] / found[j] / (ms[i] / ms[j]) - 1), i, j)
             for i in range(len(ms)) for j in range(len(ms))
             if i != j and ms[i] >= ms[j]]
    return max(pairs)


def _why(found, i, j, runs, names, ms, **world):
    """The likeliest mistake, by what the machine did in the student's runs."""
    used = sum(len(mine) for mine in runs)
    text = _cause(found, i, j, runs, names, ms, **world)
    if used <= MOST_RUNS // 2:
        text += f' You used {used} of {MOST_RUNS} runs.'
    return text


def _one_of_two(times, which):
    """Of an even number of times one of the two in the middle."""
    if not times or len(times) % 2:
        return 0
    return sorted(times)[len(times) // 2 - which]


WAYS = {'first': lambda times: times[0], 'mean': mean, 'fastest': min,
        'slowest': max, 'median': median,
        'warm slowest': lambda times: max(times[1:] or times),
        'warm mean': lambda times: mean(times[1:] or times),
        'warm median': lambda times: median(times[1:] or times),
        'upper': lambda times: _one_of_two(times, 0),
        'lower': lambda times: _one_of_two(times, 1),
        'warm upper': lambda times: _one_of_two(times[1:], 0),
        'warm lower': lambda times: _one_of_two(times[1:], 1),
        'as it came': lambda times: times[len(times) // 2]}


def _cause(found, i, j, runs, names, ms, cold=(), slow=(), odd=(), drift=0,
           seed=1):
    times = [[time for _, time in mine] for mine in runs]
    fits = [name for name, way in WAYS.items() if all(
        math.isclose(way(took), one, rel_tol=1e-6)
        for took, one in zip(times, found))]
    once = [name for name, took in zip(names, times) if len(took) == 1]
    if once and cold:
        return (f'You ran {once[0]!r} once, and its first run is cold: it '
                'also asks for memory. How long would a second run have '
                'taken?')
    if 'first' in fits:
        return ('You returned the first runs, which are cold. They must not '
                'count.')
    if not fits and any(all(one == round(WAYS[way](took)) for took, one in
                            zip(times, found))
                        for way in ('median', 'warm median')):
        return (f'{found[i]:g} and {found[j]:g} are whole numbers. What does '
                'rounding do to the ratio of such small numbers?')
    strange = [(name, repetition, factor) for name, repetition, factor in odd
               if name in (names[i], names[j]) and
               repetition < len(times[names.index(name)])]
    if 'fastest' in fits and any(factor < 1 for *_, factor in strange):
        return _odd_run(strange, times, names, ms, fast=True)
    if 'fastest' in fits and drift:
        quickest = [min(runs[k], key=lambda run: run[1])[0] + 1
                    for k in (i, j)]
        return ('You returned the fastest run of each program: run '
                f'{quickest[0]} of the machine for {names[i]!r}, run '
                f'{quickest[1]} for {names[j]!r}. The machine takes '
                f'{abs(drift):.1%} {"longer" if drift > 0 else "less"} from '
                'each run to the next. So do you compare two programs, or '
                'two moments?')
    longest = 'warm slowest' in fits and all(len(took) > 2 for took in times)
    if 'slowest' in fits or longest:
        return ('You returned the slowest run of each program, and the '
                'program is not the reason why it was slow.')
    if 'median' not in fits and 'warm median' not in fits:
        if {'upper', 'lower', 'warm upper', 'warm lower'} & {*fits}:
            return ('You have an even number of times, and you took one of '
                    'the two in the middle. What is the median of 1, 2, 4 '
                    'and 9?')
        if 'as it came' in fits:
            return (f'You returned repetition {len(times[i]) // 2 + 1} of '
                    f'{names[i]!r} in the order of the runs. Which time is '
                    'in the middle when the times are sorted?')
    if 'mean' in fits and cold:
        k = max((i, j), key=lambda k: times[k][0] / median(times[k]))
        return ('You returned the mean of all runs. The first run of '
                f'{names[k]!r} took {times[k][0]:.4g} ms and the next one '
                f'{times[k][1]:.4g}: should it count?')
    if 'warm mean' in fits and strange:
        return _odd_run(strange, times, names, ms, fast=False)
    if slow:
        return _phase(i, j, runs, names, ms, slow)
    if drift:
        if 'median' in fits and cold and _right_without_cold(
                runs, names, ms, drift, seed):
            return _cold_in_the_middle(i, j, times, names)
        if _warm_is_right(times, ms):
            return ('Without the first runs, the same runs can give the '
                    'right ratio. Which summary of them shows the usual time?')
        return _order(i, j, runs, names, drift)
    if strange:
        return _odd_run(strange, times, names, ms, fast=False)
    k = max((i, j), key=lambda k: times[k][0] / median(times[k]))
    return (f'The first run of {names[k]!r} took {times[k][0]:.4g} ms, and '
            f'the next one {times[k][1]:.4g}. Which runs must count?')


def _warm_is_right(times, ms):
    warm = [median(took[1:] or took) for took in times]
    return worst_pair(warm, ms)[0] <= NEAR


def _right_without_cold(runs, names, ms, drift, seed):
    """Whether the medians of all runs would be right without cold starts."""
    order = sorted((number, k) for k, mine in enumerate(runs)
                   for number, _ in mine)
    other = replay([k for _, k in order], names, ms=ms, drift=drift,
                   seed=seed)
    middles = [median(time for _, time in mine) for mine in other]
    return worst_pair(middles, ms)[0] <= NEAR


def _cold_in_the_middle(i, j, times, names):
    k = max((i, j), key=lambda k: times[k][0] / times[k][1])
    return (f'You returned the median of all {len(times[k])} runs of each '
            'program. Without cold starts it would be right. The first run '
            f'of {names[k]!r} took {times[k][0]:.4g} ms, the next one '
            f'{times[k][1]:.4g}: as one of the slow runs it moves the '
            'middle. Leave it out. How many runs must count then?')


def _odd_run(strange, times, names, ms, fast):
    """Words about the run that is furthest from what is usual."""
    if fast:
        name, repetition, _ = min(strange, key=lambda one: one[2])
    else:
        name, repetition, _ = max(strange, key=lambda one: abs(
            math.log(one[2])))
    k = names.index(name)
    text = (f'Repetition {repetition + 1} of {name!r} took '
            f'{times[k][repetition]:.4g} ms, and {ms[k]:.4g} ms are usual.')
    if fast:
        return (f'{text} For a moment the clock ran faster, and you let the '
                'fastest run decide.')
    return (f'{text} One such run must not pull the result, and there can be '
            'two. Which summary of all runs hardly changes by them?')


def _phase(i, j, runs, names, ms, slow):
    first, last, _ = slow
    hit = {names[k]: [first <= number <= last for number, _ in runs[k]]
           for k in (i, j)}
    words = ' and '.join(f'{sum(which)} of the {len(which)} runs of {name!r}'
                         for name, which in hit.items())
    text = (f'The machine was slow in its runs {first + 1} to {last + 1}. '
            f'This hit {words}.')
    shares = [sum(which) / len(which) for which in hit.values()]
    if _warm_is_right([[time for _, time in mine] for mine in runs], ms):
        return (f'{text} Without the first runs, the same runs can give the '
                'right ratio. Which summary of them hardly changes by the '
                'slow phase?')
    if abs(shares[0] - shares[1]) < 0.05:
        return (f'{text} It hit the same share of both. Which summary of all '
                'runs hardly changes by it?')
    return (f'{text} In which order does it hit the same share of all '
            'programs, and leave enough runs of each?')


def _order(i, j, runs, names, drift):
    """Who is always before whom, or later in the middle."""
    numbers = [[number for number, _ in runs[k]] for k in (i, j)]
    both = [*zip(*numbers)]
    middle = [median(mine[1:]) for mine in numbers]
    text = (f'This machine takes {abs(drift):.1%} '
            f'{"longer" if drift > 0 else "less"} from each run to the next. ')
    for one, other, sign in (i, j, 1), (j, i, -1):
        if all((b - a) * sign > 0 for a, b in both):
            return (f'{text}{names[one]!r} always runs before '
                    f'{names[other]!r}. Whose runs then find a slower '
                    'machine?')
    if middle[0] == middle[1]:
        return (f'{text}Do the runs that count for {names[i]!r} and for '
                f'{names[j]!r} lie around the same moment?')
    where = [f'{number + 1:g}' for number in middle]
    return (f'{text}Without the first run, the middle of the runs of '
            f'{names[i]!r} is run {where[0]} of the machine, and the middle '
            f'of the runs of {names[j]!r} is run {where[1]}. How many runs '
            'must count, and in which order, so that both middles are the '
            'same run number?')


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
    found, fastest = notes['found'], ms.index(min(ms))
    off = worst_pair(found, ms)[0] if min(found) > 0 else math.inf
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
