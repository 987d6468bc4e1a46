"""Exercise: latency and bandwidth from a table of times, some of them late.

To chapter 11, notebooks/11-all-reduce-between-machines.ipynb.
"""
from collections.abc import Iterable, Sequence

import numpy as np

from d2lps.annotations import Array
from d2lps.exercises.charts import result_or_none
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, compare,
                                      number, numbers, returned)
from d2lps.explaining import brief, same

# The unit of each result, and its largest relative error.
NUMBERS = {'alpha': ('seconds', 0.1),
           'the bandwidth': ('bytes per second', 0.03)}


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


def _line(nbytes, times, weights):
    """alpha and bandwidth of a straight line, with one time of each size."""
    slope, alpha = np.polyfit(nbytes, times, 1, w=weights)
    return alpha, 1 / slope


def _right(nbytes, seconds):
    """alpha and bandwidth of a table; nobody need know how it was made."""
    usual = np.median(seconds, 1)
    return _line(nbytes, usual, 1 / usual)


def _late(seconds):
    """True for each time of a table that is late."""
    return seconds > 1.3 * np.median(seconds, 1)[:, None]


def run(answer: Answer, table: str, nbytes: Sequence[int],
        us: Sequence[Sequence[float]]) -> list[float]:
    return _two_numbers(answer, *_table(nbytes, us))


def _two_numbers(answer, nbytes, seconds):
    return numbers(returned(answer, nbytes, seconds), 2,
                   'two finite numbers, alpha and the bandwidth, are right.')


def judge(pair: list[float], table: str, nbytes: Sequence[int],
          us: Sequence[Sequence[float]]) -> None:
    made = _table(nbytes, us)
    for (name, (unit, near)), mine, right in zip(
            NUMBERS.items(), pair, map(float, _right(*made))):
        if not same(mine, right, near):
            raise Differs(f'{name} is {mine:.3g}; about {right:.3g} is right',
                          mine, right, near / 2, values={}, unit=unit,
                          known=_known(pair, *made),
                          place=_farthest(pair, *made))


def _known(pair, nbytes, seconds):
    """Facts: the other numbers, or the other line, that these are."""
    def are(numbers, near=1e-3):  # one by one: alpha is far smaller
        return all(same(*pair, near) for pair in zip(
            pair, map(float, numbers)))

    alpha, bandwidth = _right(nbytes, seconds)
    known = {}
    if are((bandwidth, alpha), 0.1):
        known['order',] = 'Your two numbers are right in the opposite order.'
    if are((1 / bandwidth, 1 / alpha), 0.1):
        known['slope',] = ('Your alpha is the slope of the line: `np.polyfit` '
                           'returns the slope first.')
    for of, why in (('mean', 'late times change a mean'), ('median', ''),
                    ('min', 'it is below the usual time')):
        times = getattr(np, of)(seconds, axis=1)
        for note, weights in (
                (f': {why}', 1 / times),
                (', without weights: the largest errors count most', None)):
            if are(_line(nbytes, times, weights)):
                known[of, note] = (f'Yours is the line through the {of} of '
                                   f'each size{note}.')
    return known


def _farthest(pair, nbytes, seconds):
    """The size at which a line is farthest from the usual times."""
    alpha, bandwidth = pair
    usual = np.median(seconds, 1)
    line = alpha + nbytes / (bandwidth or np.inf)
    k = np.abs(line / usual - 1).argmax()
    return (f'At {nbytes[k]:,} bytes your line says {line[k] * 1e6:,.4g} µs; '
            f'{usual[k] * 1e6:,.4g} µs is usual.')


def run_crossover(answer: Answer, n: int, alpha_us: float,
                  MB_per_s: float) -> float:
    return number(returned(answer, n, alpha_us * 1e-6, MB_per_s * 1e6),
                  'a number of bytes is right')


def crossover_of(n: int, alpha_us: float, MB_per_s: float) -> float:
    """The bytes at which a chunk takes as long as its latency."""
    return float(n * alpha_us * MB_per_s)  # µs times MB/s are bytes


def _chunk(size, n, alpha_us, MB_per_s):
    return (f'At your size a chunk takes {brief(size / n / MB_per_s)} µs, '
            f'and its latency {alpha_us:g} µs.')


def picture(answer: Answer, crossover: Answer) -> Picture:
    """The times of a table, and the student's line, on log axes."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import legend_below, new_figure
    nbytes, seconds = _table(BUSY['nbytes'], BUSY['us'])
    alpha, bandwidth = _two_numbers(answer, nbytes.copy(), seconds.copy())
    late, sizes = _late(seconds), np.broadcast_to(nbytes[:, None],
                                                  seconds.shape)
    ax = new_figure(5.4, 3.6).subplots()
    for label, which, marker, color in (('times', ~late, '.', BLUE),
                                        ('late', late, 'x', ORANGE)):
        ax.loglog(sizes[which], seconds[which] * 1e6, marker, color=color,
                  label=f'{label}: {which.sum()}')
    x = np.geomspace(nbytes.min(), nbytes.max(), 200)
    line = alpha + x / (bandwidth or np.inf)
    ax.plot(x[line > 0], line[line > 0] * 1e6, color='gray',
            label='your alpha + n / bandwidth')
    size = result_or_none(run_crossover, crossover, 4, alpha * 1e6,
                          bandwidth / 1e6)
    if size and 0 < size < 1e15:
        ax.axvline(size / 4, color='gray', linestyle=':',
                   label=f'a ring of 4 with {size / 1e3:,.0f} kB')
    ax.set(xlabel='bytes of a message', ylabel='time / µs', title=(
        f'alpha = {alpha * 1e6:.1f} µs, '
        f'bandwidth = {bandwidth / 1e6:.0f} MB/s'))
    legend_below(ax, columns=2)
    return ax.figure


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
        run, judge, 'alpha is within 10%, and the bandwidth within 3%.',
        case='{table}'),
    'late': Check(
        [BUSY,
         _case('busy at small sizes', alpha_us=120, MB_per_s=110, seed=5,
               sizes=[8, 8388608], repeats=5, mixed=True,
               late=[[k, 2, 1.7] for k in range(5)]),
         _case('busy at large sizes', alpha_us=25, MB_per_s=2500, seed=6,
               repeats=7, late=[[-1, 3, 1.5], [-2, 3, 1.6]]),
         _case('one time late', seed=7, late=[[4, 1, 1000]])],
        run, judge, 'late times do not pull the line.', case='{table}'),
    'crossover': Check(
        [{'n': 4, 'alpha_us': 50, 'MB_per_s': 1000},
         {'n': 2, 'alpha_us': 200, 'MB_per_s': 12.5},
         {'n': 16, 'alpha_us': 3, 'MB_per_s': 40000}],
        run_crossover, compare(crossover_of, unit='bytes', place=_chunk),
        'at this size, latency and bytes take the same time.',
        case='n = {n}, {alpha_us} µs, {MB_per_s} MB/s')}
