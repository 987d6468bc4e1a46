"""Workers on a virtual clock: who waits when, and what it costs.

Each function returns Matplotlib's `Axes`, or a list of some. Curves whose
names begin with 'sync', 'async', 'bound' or 'backup' have the same colour
everywhere.
"""
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from d2lps.asynchrony.clock import (KINDS, Plan, Point, step_times,
                                    virtual_clock)
from d2lps.checks import (checked, instance_of, list_of, number, one_of,
                          positive, refuse, text)
from d2lps.figures import describe, format_number
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import Row
from d2lps.pictures.rows import (HALF, WIDE, Span, draw_bars, legend_below,
                                 new_axes, new_figure, row_axes)
from d2lps.pictures.style import BLUE, GRAY, GREEN, ORANGE, PURPLE, RED, SKY
from d2lps.pictures.widgets import live_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {'sync': BLUE, 'bound': GREEN, 'async': ORANGE, 'backup': PURPLE}
OTHERS = '#555555', '#8A7D00', RED
PLAN = instance_of(Plan, 'a Plan, such as virtual_clock([[1], [5]])')
MOST = 20_000
PLAN_UNTIL, UNTIL = 30, 60  # virtual seconds of the toy's two charts
# Gradients: four workers make at most four in a virtual second.
ENOUGH = 4 * UNTIL
MARKS = 'os^Dvx'  # of curves, in order
DASHES = '-', '--', '-.', ':'
AHEAD = {'0': 0, '1': 1, '2': 2, '4': 4, '8': 8, '16': 16,
         'any': 'async'}


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


def plans(name: str, value: Any) -> dict[Any, Plan]:
    """A check: Plans by the names of their curves."""
    if not isinstance(value, dict) or not value:
        refuse(name, value, "a dict such as {'async': virtual_clock(...)}")
    return {key: PLAN(f'{name}[{key!r}]', plan)
            for key, plan in value.items()}


@checked(plan=PLAN, until=positive, title=partial(text, least=0))
def plot_plan(plan: Plan, until: float | None = None, title: str | None = None,
              ax: 'Axes | None' = None) -> 'Axes':
    """A row for each worker: when it computes, and when it waits.

    until: end of the time axis in virtual seconds. title: words above. ax: the
    `Axes` to draw in; without it, those of a new figure.
    """
    until = until or plan.seconds
    if len(plan.events) > MOST:
        raise ValueError(f'plan has {len(plan.events):,} pulls and pushes, '
                         f'and at most {MOST:,} can be drawn')
    computes: list[Span] = []
    dropped: list[Span] = []
    waits: list[Span] = []
    late = {event[:2] for event in plan.events if event.call == 'late'}
    for rank, start, end, after, _ in plan.steps:
        if start < until:
            kind = dropped if (end, rank) in late else computes
            kind.append((start, min(end, until), rank))
        if end < min(after, until):
            waits.append((end, min(after, until), rank))
    ax = row_axes([f'worker {rank}' for rank in range(plan.num_workers)],
                  until, ax=ax, title=title or '', xlabel='virtual seconds')
    bars = {'computes': computes, 'computes, dropped': dropped, 'waits': waits}
    for (label, spans), color in zip(bars.items(), (SKY, RED, GRAY)):
        draw_bars(ax, spans, color, label, '//' if spans is dropped else '')
    legend_below(ax)
    describe(ax, _plan_alt_text(bars, plan.num_workers, until, title))
    return ax


def _plan_alt_text(bars, num_workers, until, title):
    parts = []
    for rank in range(num_workers):
        shares = {label: sum(end - start for start, end, row in spans
                             if row == rank) / until
                  for label, spans in bars.items()}
        parts.append(f'worker {rank} ' + ', '.join(
            f'{label} {share:.0%}' for label, share in shares.items()
            if share))
    begin = f'{title}. ' if title else ''
    return (f'{begin}Of {format_number(until)} virtual seconds: '
            f'{"; ".join(parts)}.')


def plot_progress(plans: Mapping[str, Plan], until: float, ax: 'Axes'
                 ) -> 'Axes':
    """Gradients that were used so far, against virtual seconds.

    plans: a dict of `Plan`s by name. until: end of the time axis in virtual
    seconds.
    """
    colors = _colors(plans)
    for k, (name, plan) in enumerate(plans.items()):
        used = {0.0: 0} | {event.time: event.gradients for event in plan.events
                           if event.time <= until}
        used.setdefault(min(until, plan.seconds), max(used.values()))
        ax.step([*used], [*used.values()], where='post', color=colors[name],
                linestyle=DASHES[k % len(DASHES)], label=name)
    ax.set(xlim=(0, until), xlabel='virtual seconds', ylabel='gradients used')
    ax.set_ylim(bottom=0)
    legend_below(ax)
    return ax


@checked(plans=plans)
def plot_staleness(plans: Mapping[str, Plan]) -> 'list[Axes]':
    """Histograms of the updates that gradients missed, a figure for each plan.

    `Row(*plot_staleness(...))` shows them side by side.
    """
    axes = [new_axes(None, HALF, 2.5) for _ in plans]
    most = max(max(plan.staleness) for plan in plans.values())
    highest = max(max(plan.staleness.values()) for plan in plans.values())
    colors = _colors(plans)
    for ax, (name, plan) in zip(axes, plans.items()):
        missed = sorted(plan.staleness)
        ax.bar(missed, [plan.staleness[updates] for updates in missed],
               color=colors[name])
        ax.set(title=name, xlabel='staleness', ylabel='gradients',
               xlim=(-0.7, most + 0.7), ylim=(0, 1.05 * highest))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.grid(False, axis='x')
    return axes


def curves(name: str, value: Any) -> dict[Any, list[list[Point]]]:
    """A check: lists of `follow`'s Points, one a seed, by name."""
    wanted = "a dict such as {'sync': [the Points of a seed, ...]}"
    if not isinstance(value, dict) or not value:
        refuse(name, value, wanted)
    points = list_of(list_of(instance_of(Point, 'a Point'), wanted), wanted)
    return {key: points(f'{name}[{key!r}]', runs)
            for key, runs in value.items()}


@checked(curves=curves)
def plot_accuracy(curves: Mapping[str, Sequence[Sequence[Point]]]
                  ) -> 'list[Axes]':
    """Test accuracy against virtual seconds, and against gradients used.

    curves: for each name the `Point`s of some seeds: a line for their mean,
    and a band from the lowest to the highest. What is 'divided' is dashed.
    There are two figures, which `Row(*plot_accuracy(...))` shows.
    """
    axes = [new_axes(None, WIDE, 3.2) for _ in range(2)]
    _draw_accuracy(axes[0], curves, 'seconds', 'virtual seconds')
    _draw_accuracy(axes[1], curves, 'gradients', 'gradients used')
    for ax in axes:
        ax.set(ylim=(0, 1), ylabel='test accuracy')
        legend_below(ax)
    return axes


def _draw_accuracy(ax, curves, field, xlabel):
    """The curves against a field of `Point`, 'seconds' or 'gradients'."""
    colors, ends = _colors(curves), []
    for k, (name, runs) in enumerate(curves.items()):
        x, y = (np.array([[getattr(point, name) for point in run]
                          for run in runs]) for name in (field, 'accuracy'))
        look = {'color': colors[name],
                'linestyle': '--' if 'divided' in name else '-'}
        x = x.mean(axis=0)
        ax.fill_between(x, y.min(axis=0), y.max(axis=0), color=colors[name],
                        alpha=0.15, linewidth=0)
        ax.plot(x, y.mean(axis=0), **look, label=name,
                marker=MARKS[k % len(MARKS)], markersize=5)
        ends.append(f'{name} ends at {y[:, -1].mean():.2f} after '
                    f'{format_number(x[-1])}')
    ax.margins(x=0.02)
    ax.set_xlim(left=0)
    ax.set_xlabel(xlabel)
    describe(ax, f'Test accuracy against {xlabel}: {"; ".join(ends)}.')


@checked(kind=one_of(*KINDS), bound=one_of(*AHEAD.values()),
         slowdown=partial(number, least=1, most=1e6, example=5))
def explore_clock(kind: str = 'one straggler', bound: int | str = 4,
                  slowdown: float = 5) -> None:
    """Choose who is slow and how far ahead the others may be.

    Left, what four workers do; right, how many gradients have been used.
    """
    def draw(kind, bound, slowdown):
        times = step_times(kind, 4, ENOUGH, slowdown)
        chosen = bound if bound == 'async' else f'bound {bound}'
        ways = {'sync': 'sync', chosen: bound, 'async': 'async'}
        played = {name: virtual_clock(times, value, ENOUGH)
                  for name, value in ways.items()}
        left = new_figure(3.8, 2.4, layout=None)
        plot_plan(played[chosen], PLAN_UNTIL, f'{chosen}: '
                  f'{played[chosen].throughput:.3g} gradients a second',
                  left.add_axes((0.2, 0.34, 0.78, 0.54)))
        right = new_figure(3.35, 2.4, layout=None)
        plot_progress(played, UNTIL,
                      right.add_axes((0.21, 0.34, 0.76, 0.54)))
        return Row(left, right)

    live_picture(draw, {
        'kind': menu(KINDS, kind, 'step times'),
        'bound': choose(AHEAD, bound, 'steps ahead'),
        'slowdown': choose([1, 2, 5, 10], slowdown, 'straggler slow by')})
