"""Gradients rounded to a few levels: what a sum loses, and where."""
from functools import partial

import numpy as np
from matplotlib import pyplot as plt

from d2lps.checks import checked, whole
from d2lps.collectives import strategies
from d2lps_pictures.controls import choose
from d2lps_pictures.style import BLUE, GRAY, ORANGE
from d2lps_pictures.widgets import live_picture

LEVELS, WORKERS, SHOWN = [1, 3, 7, 31, 127], [2, 4, 8, 16, 32], 24


def _rounded(x, levels):
    """x in steps of its largest value divided by `levels`."""
    step = max(abs(x).max(), 1e-30) / levels
    return np.rint(x / step) * step


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


def _draw(levels, num_workers):
    right, ring, once = _sums(levels, num_workers)
    fig, (left, bars) = plt.subplots(1, 2, width_ratios=[3, 1],
                                     figsize=(9, 3), layout='constrained')
    left.bar(range(SHOWN), right[:SHOWN], color=GRAY, label='the sum')
    left.plot(ring[:SHOWN], 'x', color=ORANGE, label='rounded at every hop')
    left.plot(once[:SHOWN], '.', color=BLUE, label='rounded once each way')
    left.set_title(f'{SHOWN} numbers, summed over {num_workers} workers, in '
                   f'{2 * levels + 1} values', fontsize=10)
    left.legend(frameon=False, fontsize=8)
    errors = [_error(one, right) for one in (ring, once)]
    drawn = bars.bar(['every hop', 'once'], errors, color=[ORANGE, BLUE])
    bars.bar_label(drawn, [f'{error:.1%}' for error in errors])
    left.set(xlabel='place in the array', ylabel='value of the sum')
    bars.set(title='error of the sum', yticks=[])
    bars.margins(y=0.2)
    for ax in (left, bars):
        ax.spines[['top', 'right']].set_visible(False)
    return left


@checked(levels=partial(whole, most=127),
         num_workers=partial(whole, least=2, most=64))
def explore_rounding(levels=7, num_workers=8):
    """Choose how coarse numbers are that travel, and how many workers sum.

    levels: values above 0; there are as many below, and 0. 127 is int8.
    """
    live_picture(_draw, dict(
        levels=choose(LEVELS, levels, 'levels'),
        num_workers=choose(WORKERS, num_workers, 'workers')))
