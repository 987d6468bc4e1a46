"""The same numbers, added in another order or precision."""
import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from d2lps.checks import checked, one_of
from d2lps.figures import describe
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.rows import WIDE, new_figure
from d2lps.pictures.style import BLUE, GRAY, GREEN, ORANGE
from d2lps.pictures.widgets import live_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = [2 ** k for k in range(1, 13)]
TRIALS = 16  # arrays of numbers; a single one's error jumps up and down
DIGITS = {'float16': 11, 'bfloat16': 8, 'float32': 24}  # binary ones
# In words, a colour and a marker.
ORDERS = {
    'ring': ('one by one, as in a ring', BLUE, 'o'),
    'tree': ('in pairs, as in recursive doubling', GREEN, 's'),
    'sorted': ('one by one, smallest first', ORANGE, '^')}


def _rounded(x, precision):
    """float32 numbers, rounded to what `precision` can hold."""
    if precision == 'float16':
        return x.astype(np.float16).astype(np.float32)
    if precision == 'bfloat16':  # the upper half of the bits, ties to even
        bits = x.view(np.uint32)
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    return x


def _one_by_one(rows, precision):
    """Sums of columns 0 to k for all k, each addition rounded."""
    sums = np.empty_like(rows)
    total = sums[:, 0] = rows[:, 0]
    for k in range(1, rows.shape[1]):
        total = sums[:, k] = _rounded(total + rows[:, k], precision)
    return sums


def _in_pairs(rows, precision):
    """Sums of a power of two of columns: pairs, then pairs of pairs."""
    while rows.shape[1] > 1:
        rows = _rounded(rows[:, ::2] + rows[:, 1::2], precision)
    return rows[:, 0]


@cache
def _measure(precision):
    """The exact sums, and the sums in each order: arrays (sizes, trials).

    The numbers are between 0 and 1 and rounded before they are added.
    """
    numbers = np.random.default_rng(0).random((TRIALS, SIZES[-1]))
    numbers = _rounded(numbers.astype(np.float32), precision)
    exact = np.array([[math.fsum(row[:n].tolist()) for row in numbers]
                      for n in SIZES])
    ordered = np.zeros((len(SIZES), *numbers.shape), np.float32)
    for k, n in enumerate(SIZES):  # zeros in front, which change no sum
        ordered[k, :, -n:] = np.sort(numbers[:, :n], axis=1)
    rows = np.vstack([numbers, ordered.reshape(-1, SIZES[-1])])
    sums = _one_by_one(rows, precision)
    return exact, {
        'ring': sums[:TRIALS, [n - 1 for n in SIZES]].T,
        'tree': np.stack([_in_pairs(numbers[:, :n], precision)
                          for n in SIZES]),
        'sorted': sums[TRIALS:, -1].reshape(len(SIZES), TRIALS)}


def _share(error):
    """The error of a sum, in words."""
    if error == 0:
        return 'none'
    return (f'{float(f"{100 * error:.2g}"):,g} %' if error > 0.0009 else
            f'1 in {float(f"{1 / error:.2g}"):,.0f}')


def _errors(sums, exact):
    """The mean error for each size; nan where there is none."""
    error = (abs(sums - exact) / exact).mean(axis=1)
    return np.where(error > 0, error, np.nan)


def _scale(precision):
    """Powers of ten around all that may be drawn."""
    exact, sums = _measure(precision)
    unit = 2.0 ** -DIGITS[precision]
    least = min([unit, *(np.nanmin(_errors(totals, exact))
                         for totals in sums.values())])
    return [10.0 ** k for k in range(
        math.floor(math.log10(least)),
        math.ceil(math.log10(SIZES[-1] * unit)) + 1)]


def draw_sum(order: str, precision: str, num_numbers: int) -> 'Figure':
    """The picture of the toy."""
    exact, sums = _measure(precision)
    unit = 2.0 ** -DIGITS[precision]
    sizes, where = np.array(SIZES), SIZES.index(num_numbers)
    got, right = sums[order][where, 0], exact[where, 0]
    ticks = _scale(precision)
    figure = new_figure(WIDE, 4.6, layout=None)
    figure.suptitle(
        f'{num_numbers:,} numbers in {precision}: {got:.7g} instead of '
        f'{right:.7g}, error {_share(abs(got - right) / right)}', x=0.01,
        ha='left')
    ax = figure.add_axes((0.245, 0.29, 0.735, 0.62), xscale='log',
                         yscale='log', ylim=(ticks[0], ticks[-1]),
                         xlim=(SIZES[0] / 1.2, SIZES[-1] * 1.2),
                         xlabel='numbers that are added (n)')
    ax.set_ylabel(f'error, a mean of {TRIALS} sums\n(one rounding: at most '
                  f'{_share(unit)})')
    ax.yaxis.set_label_coords(-0.265, 0.5)  # there for all precisions
    ax.set_xticks(SIZES[::2], [f'{n:,}' for n in SIZES[::2]])
    ax.set_yticks(ticks, [*map(_share, ticks)])
    ax.minorticks_off()
    ax.axvline(num_numbers, color=GRAY, linewidth=1.5)
    for name, (label, color, marker) in ORDERS.items():
        thick = name == order
        ax.plot(sizes, _errors(sums[name], exact), color=color,
                linestyle='-', marker=marker, markersize=6,
                linewidth=4 if thick else 1.5, label=label)
        if thick:
            ax.plot(num_numbers, _errors(sums[name], exact)[where], 'o',
                    color=color, markersize=12, markeredgewidth=2,
                    markeredgecolor='gray')
    for times, style, label in (
            (sizes - 1, '--', 'n − 1 roundings: the limit of any order'),
            (np.log2(sizes), ':', 'log₂ n roundings: the limit of pairs')):
        ax.plot(sizes, times * unit, color='gray', linestyle=style,
                linewidth=1.5, label=label)
    figure.legend(loc='lower left', ncols=2)
    describe(ax, f'Lines show how the mean error of {TRIALS} sums grows with '
                 f'the numbers that are added, {ORDERS[order][0]} the thick '
                 'one, below the limits of what rounding can do.')
    return figure


@checked(precision=one_of(*DIGITS))
def explore_sums(precision: str = 'bfloat16') -> None:
    """Add numbers between 0 and 1 in some order and precision; see the error.

    precision: 'float16', 'bfloat16' or 'float32'. The error is the distance
    from the exact sum of the same rounded numbers.
    """
    live_picture(draw_sum, {
        'order': menu([(label, name) for name, (label, *_) in ORDERS.items()],
                      'ring', 'order'),
        'precision': menu([*DIGITS], precision, 'format'),
        'num_numbers': choose(SIZES, 4096, 'numbers')})
