"""Every strategy to step through, with as many devices as one likes."""
from functools import partial

import ipywidgets
import numpy as np
from IPython.display import display
from matplotlib import pyplot as plt
from matplotlib.collections import PathCollection

from d2lps.checks import checked, flag, from_zero, list_of, one_of, whole
from d2lps.collectives import strategies
from d2lps.pictures.player import plot_holdings, step_buttons
from d2lps.pictures.style import GREEN
from d2lps.pictures.widgets import choose, live_picture

# By name: words for the menu, and a function of the number of devices that
# returns the schedule, or a text that says why there is none.
PLANS = {
    'gather_broadcast': ('gather and broadcast', strategies.gather_broadcast),
    'cpu': ('gather and broadcast on CPU',
            lambda n: strategies.gather_broadcast(n, 'cpu')),
    'sharded': ('sharded', strategies.sharded),
    'running_sum': ('running sum', strategies.running_sum),
    'pipelined': ('running sum, pipelined', lambda n: strategies.pipelined(
        strategies.running_sum(n), n)),
    'ring': ('ring', strategies.ring),
    'bidirectional_ring': ('ring in both directions',
                           strategies.bidirectional_ring),
    'two_rings': ('two rings of 8 V100 GPUs', lambda n: (
        strategies.two_rings() if n == 8 else
        'The cables of 8 GPUs make two rings.\n\n'
        'Move the slider "devices" to 8.')),
    'tree': ('tree', strategies.tree),
    'double_tree': ('double tree', strategies.double_tree),
    'recursive_doubling': ('recursive doubling',
                           strategies.recursive_doubling),
    'halving_doubling': ('halving and doubling', strategies.halving_doubling),
    'hierarchical': ('hierarchical, 2 machines', lambda n: (
        strategies.hierarchical(2, n // 2) if n % 2 == 0 else
        'Two machines share the devices equally: take an even number.\n\n'
        f'Move the slider "devices" to {n - 1} or {n + 1}.')),
    'parameter_server': ('one parameter server', lambda n: (
        strategies.parameter_server(n, 1))),
    'parameter_servers': ('as many servers as workers', lambda n: (
        strategies.parameter_server(n, n)))}
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


@checked(plan=one_of(*PLANS), number=from_zero, sums=flag,
         num_devices=partial(whole, least=2, most=8),
         plans=list_of(one_of(*PLANS), "a list such as ['ring', 'tree']"))
def explore_plans(plan='ring', num_devices=4, number=0, plans=None,
                  sums=False):
    """Choose a strategy and devices, and go through its rounds.

    number: the round to begin after; beyond the last, all are over.
    plans: names of those to choose from, of `PLANS`; without it, all.
    sums: write what a box holds as a number, with 1 from device 0, 2 from
    device 1 and so on.
    """
    slider = ipywidgets.IntSlider(number, 0, max(number, 1),
                                  description='round')

    def draw(plan, num_devices, number, sums):
        words, make = PLANS[plan]
        schedule = make(num_devices)
        if isinstance(schedule, str):
            return _explain(schedule)
        slider.max = len(schedule.rounds)
        return _draw(words, schedule, slider.value, sums)

    names = dict.fromkeys([*(plans or PLANS), plan])
    display(step_buttons(slider))
    live_picture(draw, {
        'plan': ipywidgets.Dropdown(
            options=[(PLANS[name][0], name) for name in names], value=plan,
            description='plan'),
        'num_devices': choose([*range(2, 9)], num_devices, 'devices'),
        'number': slider, 'sums': ipywidgets.Dropdown(
            options={'bars for who is in': False, 'sums of 1, 2, 3, …': True},
            value=sums, description='boxes')}, None)
