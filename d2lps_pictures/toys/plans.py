"""Every strategy to step through, with as many devices as one likes."""
from functools import cache, partial

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.collections import PathCollection

from d2lps.checks import checked, flag, from_zero, list_of, one_of, whole
from d2lps_pictures.controls import choose, menu, steps
from d2lps_pictures.menus import PLANS, STEPPED
from d2lps_pictures.player import plot_holdings
from d2lps_pictures.style import GREEN
from d2lps_pictures.widgets import live_picture

SIGNS = ('black arrow: added to what was there      white arrow: replaces it\n'
         'thick frame: changed in this round      {}: the whole sum')


def _explain(words):
    """A picture of words, where there is nothing to draw."""
    fig = plt.figure(figsize=(9, 3))
    fig.text(0.5, 0.5, words, ha='center', va='center', fontsize=12)
    return fig.add_axes([0, 0, 1, 1], visible=False)


def _write_sums(ax, held):
    """A number in each box for what it holds; device k brings k + 1."""
    ax.collections[1].set_alpha(0.3)  # the bars
    for ticks in [c for c in ax.collections if isinstance(c, PathCollection)]:
        ticks.remove()
    sums = held @ np.arange(1, held.shape[-1] + 1)
    full = (held == 1).all(axis=-1)
    for (row, chunk), value in np.ndenumerate(sums):
        if value:
            ax.text(chunk + 0.36, row, value, ha='center', va='center',
                    weight='bold' if full[row, chunk] else None,
                    color=GREEN if full[row, chunk] else 'black')


def _sentence(sends):
    """What the messages of a round do."""
    counts = {'added': sends.reduce.sum(), 'replacing': (~sends.reduce).sum()}
    return ', '.join(f'{count} message{"s" * int(count > 1)} {what}'
                     for what, count in counts.items() if count)


def _draw(words, schedule, number, sums):
    rows = len(schedule.nodes)
    high = 1.25 + rows * (0.38 if rows < 10 else 0.3)
    fig, ax = plt.subplots(figsize=(9, high))
    fig.subplots_adjust(0.09, 0.9 / high, 0.99, 1 - 0.35 / high)
    plot_holdings(schedule, number, ax)
    if sums:
        _write_sums(ax, list(schedule.states())[number])
    ax.set_yticklabels(f'device {node}' if isinstance(node, int) else node
                       for node in schedule.nodes)
    ax.set(ylabel='', title=f'{words}, {schedule.num_devices} devices: ' + (
        f'after round {number} of {len(schedule.rounds)}, '
        f'{_sentence(schedule.rounds[number - 1])}' if number else
        f'before round 1 of {len(schedule.rounds)}'))
    ax.set_xlabel('chunk', labelpad=1)
    fig.text(0.54, 0.08 / high, SIGNS.format('green' if sums else '✓'),
             size=9, color='0.3', ha='center')
    return ax


@cache
def _plan(name, num_devices):
    """The schedule, or a text that says why there is none."""
    return PLANS[name][1](num_devices)


def _last_round(plan, num_devices, **others):
    schedule = _plan(plan, num_devices)
    return None if isinstance(schedule, str) else len(schedule.rounds)


def draw_plan(plan, num_devices, number, sums):
    """The picture of the toy: `plan` after round `number`, or the last."""
    schedule = _plan(plan, num_devices)
    if isinstance(schedule, str):
        return _explain(schedule)
    return _draw(PLANS[plan][0], schedule,
                 min(number, len(schedule.rounds)), sums)


@checked(plan=one_of(*PLANS), number=from_zero, sums=flag,
         num_devices=partial(whole, least=STEPPED[0], most=STEPPED[-1]),
         plans=list_of(one_of(*PLANS), "a list such as ['ring', 'tree']"))
def explore_plans(plan='ring', num_devices=4, number=0, plans=None,
                  sums=False):
    """Choose a strategy and devices, and go through its rounds.

    number: the round to begin after; beyond the last, all are over.
    plans: names of those to choose from, of `PLANS`; without it, all.
    sums: write what a box holds as a number, with 1 from device 0, 2 from
    device 1 and so on.
    """
    names = dict.fromkeys([*(plans or PLANS), plan])
    live_picture(draw_plan, {
        'plan': menu([(PLANS[name][0], name) for name in names], plan,
                     'plan'),
        'num_devices': choose(STEPPED, num_devices, 'devices'),
        'number': steps(_last_round, number, 'round'),
        'sums': menu({'bars for who is in': False,
                      'sums of 1, 2, 3, …': True}, sums, 'boxes')})
