"""Gradients rounded to a few levels: what a sum loses, and where."""
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from d2lps.checks import checked, integer
from d2lps.collectives import strategies
from d2lps.figures import describe
from d2lps.pictures.controls import choose
from d2lps.pictures.rows import WIDE, new_figure
from d2lps.pictures.style import BLUE, GRAY, ORANGE
from d2lps.pictures.widgets import live_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    arrays = [_rounded(gradient, levels) for gradient in gradients]
    once = _rounded(sum(arrays), levels)
    strategies.ring(num_workers).run(
        arrays, op=lambda mine, theirs: _rounded(mine + theirs, levels))
    return gradients.sum(axis=0), arrays[0], once


def _error(rounded, right):
    return np.linalg.norm(rounded - right) / np.linalg.norm(right)


def draw_rounding(levels: int, num_workers: int) -> 'Figure':
    """The picture of the toy, whose arguments these are."""
    right, ring, once = _sums(levels, num_workers)
    errors = [_error(sums, right) for sums in (ring, once)]
    places = range(SHOWN)
    figure = new_figure(WIDE, 3.5, layout=None)
    figure.subplots_adjust(0.08, 0.25, 0.99, 0.91, wspace=0.08)
    ax, bars = figure.subplots(1, 2, width_ratios=[3, 1])
    ax.set(title=f'{SHOWN} numbers, summed over {num_workers} workers, in '
           f'{2 * levels + 1} values', xlabel='place in the array',
           ylabel='value of the sum')
    ax.grid(False, axis='x')
    ax.bar(places, right[:SHOWN], color=GRAY, label='the sum')
    ax.plot(places, ring[:SHOWN], 'x', color=ORANGE, markeredgewidth=2,
            label='rounded at every hop')
    ax.plot(places, once[:SHOWN], '.', color=BLUE, markersize=9,
            label='rounded once each way')
    most = 1.1 * max(abs(sums[:SHOWN]).max() for sums in (right, ring, once))
    ax.set_ylim(-most, most)
    bars.set(title='error of the sum', yticks=[], ylim=(0, 1.2 * max(errors)))
    bars.grid(False)
    bars.bar_label(bars.bar(['every hop', 'once'], errors,
                            color=[ORANGE, BLUE]), fmt='{:.1%}')
    figure.legend(loc='lower left', ncols=3)
    describe(ax, f'{ax.get_title("left")}: bars of the sums, and marks beside '
                 'their ends for what rounding makes of them.')
    describe(bars, f'Rounded at every hop, the sum has an error of '
                   f'{errors[0]:.1%}; rounded once each way, of '
                   f'{errors[1]:.1%}.')
    return figure


@checked(levels=partial(integer, most=127),
         num_workers=partial(integer, least=2, most=64))
def explore_rounding(levels: int = 7, num_workers: int = 8) -> None:
    """Choose how coarse numbers are that travel, and how many workers sum.

    levels: values above 0; there are as many below, and 0. 127 is int8.
    """
    live_picture(draw_rounding, dict(
        levels=choose(LEVELS, levels, 'levels'),
        num_workers=choose(WORKERS, num_workers, 'workers')))
