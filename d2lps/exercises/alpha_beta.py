"""Exercise: latency and bandwidth from a table of times, some of them late.

To chapter 11, notebooks/11-all-reduce-between-machines.ipynb.
"""
from collections.abc import Iterable, Sequence
from reprlib import repr as short

import numpy as np

from d2lps.annotations import Array
from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, scalar)


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


def _line(nbytes, seconds, weights=None):
    """alpha and the bandwidth of the straight line through times."""
    slope, alpha = np.polyfit(nbytes, seconds, 1, w=weights)
    return alpha, 1 / slope


def _mistaken(nbytes, seconds):
    """What wrong ways give, and why: (words, alpha, bandwidth)."""
    flat = np.repeat(nbytes, seconds.shape[1]), seconds.ravel()
    middle, mean = np.median(seconds, 1), seconds.mean(1)
    unweighted = ('A fit in which every second counts the same gives this '
                  'result. The noise of the largest messages is far longer '
                  'than alpha, so these messages decide alpha. A percent '
                  'should count the same at every size.')
    spoiled = ('A fit with weights in which late times count, too, gives '
               'this result. Some of the times are not noise, because the '
               'machine did other work. They must not pull the line.')
    return [(unweighted, *_line(*flat)), (unweighted, *_line(nbytes, mean)),
            (unweighted, *_line(nbytes, middle)),
            (unweighted, *_line(nbytes, seconds.min(1))),
            (spoiled, *_line(*flat, 1 / flat[1])),
            (spoiled, *_line(nbytes, mean, 1 / mean)),
            ('The fastest repeats give this result. Times scatter in both '
             'directions, so the fastest time is too short at every size. '
             'The usual time is wanted.',
             *_line(nbytes, seconds.min(1), 1 / seconds.min(1)))]


def _right(nbytes, seconds):
    """What is right for a table; nobody need know how it was made."""
    usual = np.median(seconds, 1)
    return _line(nbytes, usual, 1 / usual)


def run(answer: Answer, table: str, nbytes: Sequence[int],
        us: Sequence[Sequence[float]]) -> list[float]:
    with forbidding(_right, _line):
        found = answer(*_table(nbytes, us))
    try:
        alpha, bandwidth = map(scalar, found)
        return [float(alpha), float(bandwidth)]
    except (TypeError, ValueError):
        raise Wrong(f'your function returned {shown(found)}. Two numbers are '
                    'wanted, alpha and the bandwidth.') from None


def judge(found: Notes, table: str, nbytes: Sequence[int],
          us: Sequence[Sequence[float]]) -> None:
    nbytes, seconds = _table(nbytes, us)
    (alpha, bandwidth), truth = found, _right(nbytes, seconds)
    off = [mine / true - 1 for mine, true in zip(found, truth)]
    text = ' '.join(
        f'{name} is {mine:.4g} {unit}, about {true:.4g} is right, and an '
        f'error of up to {near:.0%} is allowed.'
        for name, mine, true, unit, near, miss in (
            ('alpha', alpha * 1e6, truth[0] * 1e6, 'µs', 0.1, off[0]),
            ('the bandwidth', bandwidth / 1e6, truth[1] / 1e6, 'MB/s', 0.03,
             off[1]))
        if not abs(miss) <= near)
    if not text:
        return
    if alpha < 0:
        text = (f'alpha is {alpha * 1e6:.4g} µs, about {truth[0] * 1e6:.4g} '
                'is right. A message cannot take less than zero seconds.')
    for words, *mistaken in _mistaken(nbytes, seconds):
        if np.allclose(found, mistaken, rtol=1e-3, atol=0):
            raise Wrong(f'{text} {words}')
    _units(alpha, bandwidth, *truth)
    if alpha < 0:
        raise Wrong(f'{text} Do the largest messages decide the fit? Then '
                    'their noise is in alpha.')
    raise Wrong(f'{text} {_which(found, nbytes, seconds)}')


def _units(alpha, bandwidth, true_alpha, true_bandwidth):
    """Raise `Wrong` for numbers that are something else."""
    if not np.isfinite([alpha, bandwidth]).all():
        raise Wrong(f'you returned {alpha:g} and {bandwidth:g}. Two finite '
                    'numbers are wanted.')
    if np.allclose([alpha, bandwidth], [true_bandwidth, true_alpha],
                   rtol=0.5, atol=0):
        raise Wrong('alpha and the bandwidth are in the wrong order: alpha, '
                    'in seconds, comes first.')
    for name, mine, wrong, words in (
            ('the bandwidth', bandwidth, 1 / true_bandwidth, 'seconds per '
             'byte, the slope of the line. Bytes per second are wanted'),
            ('the bandwidth', bandwidth, true_bandwidth / 1e6, 'megabytes per '
             'second. Bytes per second are wanted'),
            ('alpha', alpha, true_alpha * 1e6, 'microseconds. Seconds are '
             'wanted'),
            ('alpha', alpha, true_alpha * 1e3, 'milliseconds. Seconds are '
             'wanted')):
        if np.isclose(mine, wrong, rtol=0.5, atol=0):
            raise Wrong(f'{name} is {mine:.4g}, and looks like {words}.')
    if bandwidth <= 0:
        raise Wrong(f'the bandwidth is {bandwidth:.4g} bytes per second. It '
                    'must be above 0, because larger messages take longer.')


def _which(found, nbytes, seconds):
    """Which sizes the line does not fit."""
    usual = np.median(seconds, 1)
    miss = (found[0] + nbytes / found[1]) / usual - 1
    worst = np.abs(miss).argmax()
    text = (f'At {nbytes[worst]:,} bytes your line is {miss[worst]:+.0%} '
            'away from the usual time there.')
    late = (seconds > 1.3 * usual[:, None]).sum()
    if abs(miss[worst]) > 0.1 * (1 + miss).min() > np.ptp(miss):
        return ('At all sizes, your line has about the same distance from '
                'the usual time. The times are in seconds, and they are for '
                'one direction already.')
    if abs(miss[worst]) < 0.08:
        return f'{text} Does every size count in your fit?'
    if (np.diff(nbytes) < 0).any():
        text += ' (The sizes of this table are in no order.)'
    return text + (
        f' In this table {late} times of {seconds.size} are late: do they '
        'pull the line? And does' if late else ' No time in this table is '
        'late, so late times are not the reason: does'
    ) + ' a percent count the same at every size?'


def run_crossover(answer: Answer, n: int, alpha_us: float,
                  MB_per_s: float) -> float:
    found = scalar(answer(n, alpha_us * 1e-6, MB_per_s * 1e6))
    try:
        return float(found)
    except (TypeError, ValueError):
        raise Wrong(f'your function returned {short(found)}. A number of '
                    'bytes is wanted.') from None


def judge_crossover(found: float, n: int, alpha_us: float,
                    MB_per_s: float) -> None:
    alpha, bandwidth = alpha_us * 1e-6, MB_per_s * 1e6
    right = n * alpha * bandwidth
    if np.isclose(found, right, rtol=1e-3, atol=1):
        return
    text = (f'you say {found:,.7g} bytes. Then each message of the ring '
            f'costs {alpha_us:g} µs of latency, and '
            f'{found / n / bandwidth * 1e6:.4g} µs for its bytes; these two '
            'must be equal.')
    for wrong, words in (
            (alpha * bandwidth,
             f'A message carries one of {n} chunks, not all.'),
            (alpha / bandwidth, 'Seconds times bytes per second are bytes.'),
            (2 * (n - 1) * alpha * bandwidth, 'The 2(n - 1) messages go '
             'one after the other, and each message takes its own latency and '
             'the time of its own bytes.'),
            ((n - 1) * alpha * bandwidth, f'There are {n} chunks.')):
        if np.isclose(found, wrong, rtol=1e-3):
            raise Wrong(f'{text} {words}')
    raise Wrong(text)


def picture(answer: Answer, crossover: Answer) -> Picture:
    """The times of a table, and the student's line, on log axes."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import legend_below, new_figure
    nbytes, seconds = _table(BUSY['nbytes'], BUSY['us'])
    alpha, bandwidth = run(answer, **BUSY)
    if not (np.isfinite([alpha, bandwidth]).all() and bandwidth > 0):
        raise Wrong(f'alpha = {alpha:.4g} and bandwidth = {bandwidth:.4g} '
                    'make no line that can be drawn.')
    x = np.geomspace(nbytes.min(), nbytes.max(), 200)
    line = alpha + x / bandwidth
    late = seconds > 1.3 * np.median(seconds, 1)[:, None]
    sizes = np.repeat(nbytes[:, None], seconds.shape[1], 1)
    figure = new_figure(5.4, 3.6)
    ax = figure.subplots()
    for words, which, marker, color in (('times', ~late, '.', BLUE),
                                        ('late', late, 'x', ORANGE)):
        ax.loglog(sizes[which], seconds[which] * 1e6, marker, color=color,
                  label=f'{words}: {which.sum()}')
    ax.plot(x[line > 0], line[line > 0] * 1e6, color='gray',
            label='your alpha + n / bandwidth')
    words = '' if (line > 0).all() else (
        ',\nbelow zero for small messages')
    try:
        at = run_crossover(crossover, 4, alpha * 1e6, bandwidth / 1e6)
        if 0 < at < 1e15:
            ax.axvline(at / 4, color='gray', linestyle=':',
                       label=f'a ring of 4 with {at / 1e3:,.0f} kB')
    except NotImplementedError:  # the student has no second function yet
        pass
    ax.set(xlabel='bytes of a message', ylabel='time / µs', title=(
        f'alpha = {alpha * 1e6:.1f} µs, '
        f'bandwidth = {bandwidth / 1e6:.0f} MB/s{words}'))
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
