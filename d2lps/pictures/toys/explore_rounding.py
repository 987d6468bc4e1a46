"""Gradients rounded to a few levels: what a sum loses, and where."""
from functools import cache, partial

import numpy as np

from d2lps.checks import checked, integer
from d2lps.collectives import strategies
from d2lps.pictures.chart import Chart
from d2lps.pictures.controls import choose
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.style import BLUE, GRAY, ORANGE
from d2lps.pictures.widgets import live_picture

LEVELS, WORKERS, SHOWN = [1, 3, 7, 31, 127], [2, 4, 8, 16, 32], 24


def _rounded(x, levels):
    """x in steps of its largest value divided by `levels`."""
    step = max(abs(x).max(), 1e-30) / levels
    return np.rint(x / step) * step


@cache
def _sums(levels, num_workers):
    """The right sum, that of a ring that rounds at every hop, and once."""
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(num_workers, 32 * SHOWN))
    once = _rounded(sum(_rounded(one, levels) for one in gradients), levels)
    arrays = [_rounded(one, levels) for one in gradients]
    strategies.ring(num_workers).run(
        arrays, op=lambda mine, theirs: _rounded(mine + theirs, levels))
    return gradients.sum(axis=0), arrays[0], once


def _error(found, right):
    return np.linalg.norm(found - right) / np.linalg.norm(right)


def draw_rounding(levels: int, num_workers: int) -> Drawing:
    """The picture of the toy, whose arguments these are."""
    right, ring, once = _sums(levels, num_workers)
    errors = [_error(one, right) for one in (ring, once)]
    title = (f'{SHOWN} numbers, summed over {num_workers} workers, in '
             f'{2 * levels + 1} values')
    drawing = Drawing(720, 330, (
        f'{title}. Rounded at every hop, the sum has an error of '
        f'{errors[0]:.1%}; rounded once each way, of {errors[1]:.1%}.'))
    most = 1.1 * max(abs(one[:SHOWN]).max() for one in (right, ring, once))
    chart = Chart(drawing, 0, 0, 520, 330, (-1, SHOWN), (-most, most),
                  title=title, xlabel='place in the array',
                  ylabel='value of the sum', grid='y', legend=[
                      ('the sum', GRAY, 'box'),
                      ('rounded at every hop', ORANGE, 'x'),
                      ('rounded once each way', BLUE, '.')])
    for k, value in enumerate(right[:SHOWN]):
        chart.bar(k - 0.4, k + 0.4, 0, value, GRAY)
    places = range(SHOWN)
    chart.curve(places, ring[:SHOWN], ORANGE, 'x')
    chart.curve(places, once[:SHOWN], BLUE, '.', size=1.6)
    bars = Chart(drawing, 520, 0, 200, 330, (-0.6, 1.6),
                 (0, 1.25 * max(errors)), title='error of the sum', yticks=[],
                 xticks={0: 'every hop', 1: 'once'}, grid='')
    for k, (error, color) in enumerate(zip(errors, (ORANGE, BLUE))):
        bars.bar(k - 0.4, k + 0.4, 0, error, color)
        bars.text(k, error, f'{error:.1%}', dy=-9)
    return drawing


@checked(levels=partial(integer, most=127),
         num_workers=partial(integer, least=2, most=64))
def explore_rounding(levels: int = 7, num_workers: int = 8) -> None:
    """Choose how coarse numbers are that travel, and how many workers sum.

    levels: values above 0; there are as many below, and 0. 127 is int8.
    """
    live_picture(draw_rounding, dict(
        levels=choose(LEVELS, levels, 'levels'),
        num_workers=choose(WORKERS, num_workers, 'workers')))
