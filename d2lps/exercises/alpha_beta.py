"""Exercise: latency and bandwidth from a table of times, some of them late.

To chapter 11, notebooks/11-all-reduce-between-machines.ipynb.
"""
from collections.abc import Iterable, Sequence

import numpy as np

from d2lps.annotations import Array
from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, number)

NAMES = 'alpha', 'the bandwidth'
NEAR = 0.1, 0.03  # the largest relative errors of alpha and the bandwidth


def ping_pong(alpha_us: float = 50, MB_per_s: float = 1000,
              sizes: tuple[int, int] = (8, 33554432), count: int = 12,
              repeats: int = 9, late: Iterable[tuple[int, int, float]] = (),
              seed: int = 1, mixed: bool = False) -> tuple[Array, Array]:
    """A made table: sizes in bytes (count,), and seconds (count, repeats).

    alpha_us, MB_per_s: the truth, around which times scatter by 3%.
    sizes: the smallest and the largest; the others are spread in between.
    late: (row, how many, factor), repeats that took so many times as long,
        as the machine did something else; -1 is the row of the largest.
    mixed: whether the sizes are in any order.
    """
    random = np.random.default_rng(seed)
    nbytes = np.rint(np.geomspace(*sizes, count)).astype(int)
    seconds = alpha_us * 1e-6 + nbytes / (MB_per_s * 1e6)
    noise = random.standard_normal((count, repeats)).clip(-3, 3)
    seconds = seconds[:, None] * (1 + 0.03 * noise)
    for row, many, factor in late:
        which = random.permutation(repeats)[:many]
        seconds[row, which] *= factor
    if mixed:
        order = random.permutation(count)
        nbytes, seconds = nbytes[order], seconds[order]
    return nbytes, seconds


def _table(nbytes, us):
    """The arrays of a case, in bytes and seconds."""
    return np.array(nbytes), np.array(us) * 1e-6


def _right(nbytes, seconds):
    """alpha and bandwidth of a table; nobody need know how it was made."""
    usual = np.median(seconds, 1)
    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
    return alpha, 1 / slope


def _late(seconds):
    """Which times of a table are late."""
    return seconds > 1.3 * np.median(seconds, 1)[:, None]


def _simpler(nbytes, seconds):
    """Simpler tables with the same right answer: (words, nbytes, seconds)."""
    order, late = nbytes.argsort(), _late(seconds)
    usual = np.median(seconds, 1)[:, None]
    alpha, bandwidth = _right(nbytes, seconds)
    line = np.repeat((alpha + nbytes / bandwidth)[:, None], len(seconds[0]), 1)
    return [('with its sizes in order', nbytes[order], seconds[order]),
            (f'without its {late.sum()} late times', nbytes,
             np.where(late, usual, seconds)),
            ('without scatter' + ' and late times' * bool(late.any()), nbytes,
             line)]


def run(answer: Answer, table: str, nbytes: Sequence[int],
        us: Sequence[Sequence[float]]) -> Notes:
    """(words, alpha, bandwidth): for the table, and for simpler ones."""
    found = [('', *_two_numbers(answer, *_table(nbytes, us)))]
    for words, *simpler in _simpler(*_table(nbytes, us)):
        try:
            found.append((words, *_two_numbers(answer, *simpler)))
        except Exception:  # only the table itself is graded
            continue
    return found


def _two_numbers(answer, nbytes, seconds):
    with forbidding(_right, _simpler):
        found = answer(nbytes, seconds)
    try:
        numbers = np.array([*found], float)
        if numbers.shape == (2,) and np.isfinite(numbers).all():
            return numbers.tolist()
    except (TypeError, ValueError):
        pass
    raise Wrong(f'your function returned {shown(found)}. Two finite numbers '
                'are wanted, alpha and the bandwidth.')


def judge(found: Notes, table: str, nbytes: Sequence[int],
          us: Sequence[Sequence[float]]) -> None:
    nbytes, seconds = _table(nbytes, us)
    true = _right(nbytes, seconds)
    (_, *mine), *simpler = found
    said = [f'{name} is {one * factor:.4g} {unit}, about {right * factor:.4g} '
            f'is right, and an error of up to {near:.0%} is allowed'
            for name, one, right, factor, unit, near in zip(
                NAMES, mine, true, (1e6, 1e-6), ('µs', 'MB/s'), NEAR)
            if not abs(one / right - 1) <= near]
    if said:
        _judge_units(mine, true)
        raise Wrong(f'{"; ".join(said)}. {_line_there(mine, nbytes, seconds)} '
                    + _without_what(simpler, true, nbytes, seconds))


def _judge_units(mine, true):
    """Raise `Wrong` if a number is the right one in another unit."""
    alpha, bandwidth = true
    for name, one, right, wanted, units in zip(
            NAMES, mine, true, ('seconds', 'bytes per second'),
            ({alpha * 1e6: 'microseconds',
              bandwidth: 'the bandwidth, which comes second'},
             {bandwidth / 1e6: 'megabytes per second',
              1 / bandwidth: 'seconds per byte, the slope of the line'})):
        for value, unit in units.items():
            if np.isclose(one, value, rtol=0.1, atol=0):
                raise Wrong(f'{name} is {one:.4g}, and looks like {unit}. '
                            f'About {right:.4g} is right, in {wanted}.')


def _line_there(mine, nbytes, seconds):
    """Where the line is farthest from the usual times."""
    alpha, bandwidth = mine
    miss = (alpha + nbytes / (bandwidth or np.inf)) / np.median(seconds, 1) - 1
    worst = np.abs(miss).argmax()
    return (f'Your line is below the usual time at {(miss < 0).sum()} of '
            f'{len(miss)} sizes. It is farthest away at {nbytes[worst]:,} '
            f'bytes, by {miss[worst]:+.0%}.')


def _without_what(simpler, true, nbytes, seconds):
    """The simpler table at which the result would be right."""
    good = next((words for words, *two in simpler
                 if all(abs(np.divide(two, true) - 1) <= NEAR)), None)
    if good is None:
        return ('Your result is wrong also for a table whose times lie '
                'exactly on a straight line.')
    text = f'For the same table {good} your result would be right.'
    if 'scatter' not in good:
        return text
    usual = 0.03e6 * np.median(seconds, 1)
    return (f'{text} Times scatter by 3%: that is {usual.min():,.3g} µs of '
            f'the shortest time, and {usual.max():,.6g} µs of the longest. '
            'In a fit, a percent should count the same at every size.')


def run_crossover(answer: Answer, n: int, alpha_us: float,
                  MB_per_s: float) -> float:
    return number(answer(n, alpha_us * 1e-6, MB_per_s * 1e6),
                  'A number of bytes is wanted.')


def judge_crossover(found: float, n: int, alpha_us: float,
                    MB_per_s: float) -> None:
    right = n * alpha_us * MB_per_s  # µs times MB/s are bytes
    if not np.isclose(found, right, rtol=1e-3, atol=1):
        raise Wrong(
            f'you say {found:,.7g} bytes, and {right:,.7g} are right. With '
            f'your size, a message of the ring has a chunk of '
            f'{found / n:,.7g} bytes, which take {found / n / MB_per_s:.4g} '
            f'µs. Its latency takes {alpha_us:g} µs. These two must be equal.')


def picture(answer: Answer, crossover: Answer) -> Picture:
    """The times of a table, and the student's line, on log axes."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import legend_below, new_figure
    nbytes, seconds = _table(BUSY['nbytes'], BUSY['us'])
    alpha, bandwidth = _two_numbers(answer, nbytes.copy(), seconds.copy())
    x = np.geomspace(nbytes.min(), nbytes.max(), 200)
    line = alpha + x / (bandwidth or np.inf)
    late = _late(seconds)
    sizes = np.repeat(nbytes[:, None], seconds.shape[1], 1)
    figure = new_figure(5.4, 3.6)
    ax = figure.subplots()
    for words, which, marker, color in (('times', ~late, '.', BLUE),
                                        ('late', late, 'x', ORANGE)):
        ax.loglog(sizes[which], seconds[which] * 1e6, marker, color=color,
                  label=f'{words}: {which.sum()}')
    ax.plot(x[line > 0], line[line > 0] * 1e6, color='gray',
            label='your alpha + n / bandwidth')
    try:
        at = run_crossover(crossover, 4, alpha * 1e6, bandwidth / 1e6)
        if 0 < at < 1e15:
            ax.axvline(at / 4, color='gray', linestyle=':',
                       label=f'a ring of 4 with {at / 1e3:,.0f} kB')
    except NotImplementedError:  # the student has no second function yet
        pass
    ax.set(xlabel='bytes of a message', ylabel='time / µs', title=(
        f'alpha = {alpha * 1e6:.1f} µs, '
        f'bandwidth = {bandwidth / 1e6:.0f} MB/s'))
    legend_below(ax, columns=2)
    return figure


def _case(table, **made):
    nbytes, seconds = ping_pong(**made)
    return {'table': table, 'nbytes': nbytes.tolist(), 'us': [
        [float(f'{t * 1e6:.5g}') for t in row] for row in seconds]}


BUSY = _case('busy now and then', seed=3, late=[
    [0, 4, 1.7], [1, 4, 1.8], [2, 3, 1.6], [3, 4, 2.5], [7, 1, 40],
    [-1, 4, 3]])
CHECKS = {
    'clean': Check(
        [_case('noise only'),
         _case('from 1 kB', alpha_us=8, MB_per_s=12000, seed=2,
               sizes=[1024, 67108864]),
         _case('sizes in any order', alpha_us=300, MB_per_s=12.5, seed=4,
               sizes=[64, 4194304], count=9, mixed=True)],
        run, judge, 'alpha is within 10%, and the bandwidth within 3%.'),
    'late': Check(
        [BUSY,
         _case('busy at small sizes', alpha_us=120, MB_per_s=110, seed=5,
               sizes=[8, 8388608], repeats=5, mixed=True,
               late=[[k, 2, 1.7] for k in range(5)]),
         _case('busy at large sizes', alpha_us=25, MB_per_s=2500, seed=6,
               repeats=7, late=[[-1, 3, 1.5], [-2, 3, 1.6]]),
         _case('one time late', seed=7, late=[[4, 1, 1000]])],
        run, judge, 'late times do not pull the line.'),
    'crossover': Check(
        [{'n': 4, 'alpha_us': 50, 'MB_per_s': 1000},
         {'n': 2, 'alpha_us': 200, 'MB_per_s': 12.5},
         {'n': 16, 'alpha_us': 3, 'MB_per_s': 40000}],
        run_crossover, judge_crossover,
        'at this size, latency and bytes take the same time.')}
