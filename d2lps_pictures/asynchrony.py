"""Workers on a virtual clock: who waits when, and what it costs.

Each function draws on `ax`, or on a new figure, and returns the axes. Curves
whose names begin with 'sync', 'async', 'bound' or 'backup' have the same
colour everywhere.
"""
from functools import partial

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import Patch

from d2lps.asynchrony.clock import (KINDS, Plan, Point, step_times,
                                    virtual_clock)
from d2lps.checks import (a, checked, from_zero, list_of, number, one_of,
                          positive, refuse)
from d2lps_pictures.controls import choose, menu
from d2lps_pictures.plots import AXES
from d2lps_pictures.style import (BLUE, CHUNK_COLORS, GRAY, GREEN, ORANGE,
                                  PURPLE, RED, SKY)
from d2lps_pictures.widgets import live_picture

COLORS = {'sync': BLUE, 'bound': GREEN, 'async': ORANGE, 'backup': PURPLE}
OTHERS = *CHUNK_COLORS[6:], RED
PLAN = a(Plan, 'a Plan, such as virtual_clock([[1], [5]])')
MOST = 20_000
AHEAD = {'0 (sync)': 0, '1': 1, '2': 2, '4': 4, '8': 8, '16': 16,
         'any (async)': 'async'}


def _colors(names):
    """{name: colour}; what stands behind a comma does not change it."""
    colors, others = {}, {}
    for name in names:
        start = str(name).split(',')[0]
        way = start.split(' ')[0]
        if way not in COLORS:
            others.setdefault(start, OTHERS[len(others) % len(OTHERS)])
        colors[name] = COLORS.get(way) or others[start]
    return colors


def plans(name, value):
    """A check: Plans by the names of their curves."""
    if not isinstance(value, dict) or not value:
        refuse(name, value, "a dict such as {'async': virtual_clock(...)}")
    return {key: PLAN(f'{name}[{key!r}]', one) for key, one in value.items()}


@checked(plan=PLAN, until=positive, title=a(str, 'a text'), ax=AXES)
def plot_plan(plan, until=None, title=None, ax=None):
    """A row for each worker: when it computes, and when it waits.

    until: end of the time axis in virtual seconds.
    """
    until = until or plan.seconds
    ax = ax or plt.subplots(figsize=(8, 0.9 + 0.4 * plan.num_workers),
                            layout='constrained')[1]
    bars = {(SKY, 'computes'): [], (RED, 'computes, dropped'): [],
            (GRAY, 'waits'): []}
    computes, dropped, waits = bars.values()
    if len(plan.events) > MOST:
        raise ValueError(f'plan has {len(plan.events):,} pulls and pushes, '
                         f'and at most {MOST:,} can be drawn')
    late = {event[:2] for event in plan.events if event.call == 'late'}
    for rank, start, end, after, _ in plan.steps:
        if start < until:
            kind = dropped if (end, rank) in late else computes
            kind.append((rank, start, min(end, until)))
        if end < min(after, until):
            waits.append((rank, end, min(after, until)))
    for (color, _), found in bars.items():
        for rank in {bar[0] for bar in found}:
            ax.broken_barh([(start, end - start) for r, start, end in found
                            if r == rank], (rank - 0.4, 0.8), color=color,
                           edgecolor='white', linewidth=0.8)
    ax.set(xlim=(0, until), ylim=(plan.num_workers - 0.5, -0.5),
           xlabel='virtual seconds', yticks=range(plan.num_workers),
           yticklabels=[f'worker {r}' for r in range(plan.num_workers)])
    ax.set_title(title or '', fontsize=10, loc='left')
    ax.legend(handles=[Patch(color=color, label=label) for
                       (color, label), found in bars.items() if found],
              loc='upper left', bbox_to_anchor=(1, 1), frameon=False)
    return ax


@checked(plans=plans, until=positive, ax=AXES)
def plot_progress(plans, until=None, ax=None):
    """Gradients that were used until then, against virtual seconds.

    plans: a dict of `Plan`s by name.
    """
    ax = ax or plt.subplots(figsize=(5, 3), layout='constrained')[1]
    until = until or max(plan.seconds for plan in plans.values())
    colors = _colors(plans)
    for name, plan in plans.items():
        ax.step([0, *(event.time for event in plan.events)],
                [0, *(event.gradients for event in plan.events)],
                where='post', color=colors[name], label=name)
    most = max(event.gradients for plan in plans.values()
               for event in plan.events if event.time <= until)
    ax.set(xlabel='virtual seconds', ylabel='gradients used',
           xlim=(0, until), ylim=(0, 1.05 * max(most, 1)))
    ax.legend(frameon=False)
    return ax


@checked(plans=plans)
def plot_staleness(plans):
    """Histograms, one beside the other: updates that gradients missed."""
    most = max(max(plan.staleness) for plan in plans.values())
    figure, axes = plt.subplots(1, len(plans), sharey=True, squeeze=False,
                                figsize=(2.6 * len(plans), 2.4),
                                layout='constrained')
    for ax, (name, plan) in zip(axes.flat, plans.items()):
        ax.bar([*plan.staleness], [*plan.staleness.values()],
               color=_colors(plans)[name])
        ax.set(title=name, xlim=(-0.7, most + 0.7), xlabel='staleness')
    axes.flat[0].set_ylabel('gradients')
    return axes


def curves(name, value):
    """A check: lists of `follow`'s Points, one a seed, by name."""
    words = "a dict such as {'sync': [the Points of a seed, ...]}"
    if not isinstance(value, dict) or not value:
        refuse(name, value, words)
    points = list_of(list_of(a(Point, 'a Point'), words), words)
    return {key: points(f'{name}[{key!r}]', runs)
            for key, runs in value.items()}


@checked(curves=curves)
def plot_accuracy(curves):
    """Test accuracy against virtual seconds, and against gradients used.

    curves: for each name the `Point`s of some seeds, drawn thin; their mean
    is thick. What is 'divided' is dashed.
    """
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.2), sharey=True,
                                layout='constrained')
    for name, runs in curves.items():
        style = dict(color=_colors(curves)[name],
                     linestyle='--' if 'divided' in name else '-')
        for ax, axis in zip(axes, ('seconds', 'gradients')):
            x, y = (np.array([[getattr(point, one) for point in run]
                              for run in runs]) for one in (axis, 'accuracy'))
            ax.plot(x.T, y.T, linewidth=0.6, alpha=0.6, **style)
            ax.plot(x.mean(axis=0), y.mean(axis=0), marker='.', label=name,
                    **style)
    axes[0].set(xlabel='virtual seconds', ylabel='test accuracy',
                ylim=(0, 1))
    axes[1].set_xlabel('gradients used')
    axes[1].legend(loc='upper left', bbox_to_anchor=(1, 1), frameon=False)
    return axes


@checked(kind=one_of(*KINDS), bound=one_of(*AHEAD.values()),
         slowdown=partial(number, least=1, most=1e6, example=5),
         seed=from_zero)
def explore_clock(kind='one straggler', bound=4, slowdown=5, seed=0):
    """Choose who is slow and how far ahead the others may be.

    Left, what four workers do; right, how many gradients have been used.
    """
    def draw(kind, bound, slowdown):
        times = step_times(kind, 4, 200, slowdown, seed)
        chosen = f'bound {bound}'
        played = {name: virtual_clock(times, value, 200) for name, value in (
            ('sync', 'sync'), (chosen, bound), ('async', 'async'))}
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(11, 2.8), width_ratios=[1.5, 1])
        figure.subplots_adjust(0.075, 0.17, 0.99, 0.9, wspace=0.42)
        plot_plan(played[chosen], 30, f'{chosen}: '
                  f'{played[chosen].throughput:.3g} gradients per second',
                  left)
        return plot_progress(played, 60, right)

    live_picture(draw, {
        'kind': menu(KINDS, kind, 'step times'),
        'bound': choose(AHEAD, bound, 'rounds ahead'),
        'slowdown': choose([1, 2, 5, 10], slowdown, 'slow by')})
