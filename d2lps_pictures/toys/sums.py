"""The same numbers, added in another order or precision."""
import math
from functools import cache, partial

import numpy as np
from matplotlib import pyplot as plt

from d2lps.checks import checked, from_zero, one_of
from d2lps_pictures.controls import choose, menu
from d2lps_pictures.style import BLUE, GRAY, GREEN, ORANGE
from d2lps_pictures.widgets import live_picture

SIZES = [2 ** k for k in range(1, 13)]
TRIALS = 16  # arrays of numbers; a single one's error jumps up and down
DIGITS = {'float16': 11, 'bfloat16': 8, 'float32': 24}  # binary ones
# In words, and a colour.
ORDERS = {
    'ring': ('one by one, as in a ring', BLUE),
    'tree': ('in pairs, as in recursive doubling', GREEN),
    'sorted': ('one by one, smallest first', ORANGE)}


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
def _measure(precision, seed):
    """The exact sums, and what each order makes of them: (sizes, trials).

    The numbers are between 0 and 1 and rounded before they are added.
    """
    numbers = np.random.default_rng(seed).random((TRIALS, SIZES[-1]))
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
    return (f'{float(f"{100 * error:.2g}"):g} %' if error > 0.0009 else
            f'1 in {float(f"{1 / error:.2g}"):,.0f}')


def _draw(order, precision, num_numbers, seed):
    exact, sums = _measure(precision, seed)
    fig, ax = plt.subplots(figsize=(9.5, 4.2))
    fig.subplots_adjust(0.17, 0.12, 0.66, 0.92)
    unit = 2.0 ** -DIGITS[precision]
    sizes, where = np.array(SIZES), SIZES.index(num_numbers)
    ax.plot(sizes, (sizes - 1) * unit, '--', color='0.4',
            label='n − 1 roundings: the limit\nof any order')
    ax.plot(sizes, np.log2(sizes) * unit, ':', color='0.4',
            label='log₂ n roundings: the limit\nof pairs')
    for name, (words, color) in ORDERS.items():
        error = (abs(sums[name] - exact) / exact).mean(axis=1)
        error[error == 0] = np.nan  # no place for it on this scale
        ax.plot(sizes, error, 'o-', color=color, markersize=4, label=words,
                linewidth=3 if name == order else 1)
        if name == order:
            ax.plot(num_numbers, error[where], 'o', color=color,
                    markersize=12, markeredgecolor='black')
    ax.axvline(num_numbers, color=GRAY, linewidth=4, alpha=0.4, zorder=0)
    got, right = sums[order][where, 0], exact[where, 0]
    ax.set(xscale='log', yscale='log', ylabel='error',
           xlabel='numbers that are added (n)',
           title=f'{num_numbers:,} numbers in {precision}: {got:.7g} instead '
           f'of {right:.7g}, error {_share(abs(got - right) / right)}')
    ax.yaxis.set_major_formatter(lambda error, _: _share(error))
    ax.set_xticks(SIZES[::2], [f'{n:,}' for n in SIZES[::2]])
    ax.minorticks_off()
    ax.grid(color='0.93')
    ax.spines[['top', 'right']].set_visible(False)
    ax.legend(loc='upper left', bbox_to_anchor=(1.02, 1), frameon=False,
              title=f'means of {TRIALS} sums;\none rounding: at most '
              f'{_share(unit)}', alignment='left', fontsize=9)
    return ax


@checked(order=one_of(*ORDERS), precision=one_of(*DIGITS), seed=from_zero,
         num_numbers=one_of(*SIZES))
def explore_sums(order='ring', precision='bfloat16', num_numbers=4096,
                 seed=0):
    """Add numbers between 0 and 1 in some order and precision; see the error.

    order: 'ring', 'tree' or 'sorted'. precision: 'float16', 'bfloat16' or
    'float32'. num_numbers: a power of two from 2 to 4,096. The error is the
    distance from the exact sum of the same rounded numbers.
    """
    live_picture(partial(_draw, seed=seed), {
        'order': menu([(words, name) for name, (words, _) in ORDERS.items()],
                      order, 'order'),
        'precision': menu([*DIGITS], precision, 'format'),
        'num_numbers': choose(SIZES, num_numbers, 'numbers')})
