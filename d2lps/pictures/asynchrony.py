"""Workers on a virtual clock: who waits when, and what it costs.

Each function returns a `Drawing`, or a `Row` of some. Curves whose names
begin with 'sync', 'async', 'bound' or 'backup' have the same colour
everywhere.
"""
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from d2lps.asynchrony.clock import (
    KINDS,
    Plan,
    Point,
    step_times,
    virtual_clock,
)
from d2lps.checks import (
    checked,
    from_zero,
    instance_of,
    list_of,
    number,
    one_of,
    positive,
    refuse,
)
from d2lps.pictures.chart import (
    Span,
    format_number,
    linear_ticks,
    new_chart,
    row_chart,
)
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import Drawing, Row
from d2lps.pictures.style import (
    BLUE,
    CHUNK_COLORS,
    GRAY,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    SKY,
)
from d2lps.pictures.table_plots import PIXELS, TEXT
from d2lps.pictures.widgets import live_picture

COLORS = {'sync': BLUE, 'bound': GREEN, 'async': ORANGE, 'backup': PURPLE}
OTHERS = *CHUNK_COLORS[6:], RED
PLAN = instance_of(Plan, 'a Plan, such as virtual_clock([[1], [5]])')
MOST = 20_000
UNTIL = 60  # virtual seconds that the toy shows, four steps in each at most
ENOUGH = 4 * UNTIL
MARKS = ['o', 's', '^', 'D', 'v', 'x']  # of curves, in order
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
    return {key: PLAN(f'{name}[{key!r}]', one) for key, one in value.items()}


@checked(plan=PLAN, until=positive, title=TEXT, width=PIXELS['width'])
def plot_plan(plan: Plan, until: float | None = None, title: str | None = None,
              width: float = 720) -> Drawing:
    """A row for each worker: when it computes, and when it waits.

    until: end of the time axis in virtual seconds.
    """
    until = until or plan.seconds
    if len(plan.events) > MOST:
        raise ValueError(f'plan has {len(plan.events):,} pulls and pushes, '
                         f'and at most {MOST:,} can be drawn')
    computes: list[Span] = []
    dropped: list[Span] = []
    waits: list[Span] = []
    bars = {(SKY, 'computes'): computes, (RED, 'computes, dropped'): dropped,
            (GRAY, 'waits'): waits}
    late = {event[:2] for event in plan.events if event.call == 'late'}
    for rank, start, end, after, _ in plan.steps:
        row = rank - 0.4, rank + 0.4
        if start < until:
            kind = dropped if (end, rank) in late else computes
            kind.append((start, min(end, until), *row))
        if end < min(after, until):
            waits.append((end, min(after, until), *row))
    chart = row_chart(
        [f'worker {rank}' for rank in range(plan.num_workers)], until,
        _plan_alt_text(bars, plan.num_workers, until, title),
        title=title or '', width=width, xlabel='virtual seconds',
        legend=[(words, color, 'box 1' if color == RED else 'box')
                for (color, words), found in bars.items() if found])
    for (color, _), found in bars.items():
        chart.bars(found, color, 1 if color == RED else None)
    return chart.drawing


def _plan_alt_text(bars, num_workers, until, title):
    parts = []
    for rank in range(num_workers):
        shares = {words: sum(end - start for start, end, top, _ in found
                             if round(top + 0.4) == rank) / until
                  for (_, words), found in bars.items()}
        parts.append(f'worker {rank} ' + ', '.join(
            f'{words} {share:.0%}' for words, share in shares.items()
            if share))
    begin = f'{title}. ' if title else ''
    return (f'{begin}Of {format_number(until)} virtual seconds: '
            f'{"; ".join(parts)}.')


def plot_progress(plans: Mapping[str, Plan], until: float | None = None,
                  width: float = 480, height: float = 280) -> Drawing:
    """Gradients that were used until then, against virtual seconds.

    plans: a dict of `Plan`s by name.
    """
    until = until or max(plan.seconds for plan in plans.values())
    most = max(event.gradients for plan in plans.values()
               for event in plan.events if event.time <= until)
    used = {name: max([event.gradients for event in plan.events
                       if event.time <= until], default=0)
            for name, plan in plans.items()}
    parts = ', '.join(f'{name} {count}' for name, count in used.items())
    colors = _colors(plans)
    dash = dict(zip(plans, ['-', '--', '-.', ':'] * len(plans)))
    chart = new_chart(
        width, height, f'Gradients used after {format_number(until)} virtual '
        f'seconds: {parts}.', (0, until), (0, 1.05 * max(most, 1)),
        xlabel='virtual seconds', ylabel='gradients used',
        legend=[(name, colors[name], dash[name]) for name in plans])
    for name, plan in plans.items():
        chart.curve([0, *(event.time for event in plan.events)],
                    [0, *(event.gradients for event in plan.events)],
                    colors[name], dash[name], steps=True)
    return chart.drawing


@checked(plans=plans)
def plot_staleness(plans: Mapping[str, Plan]) -> Row:
    """Histograms, one beside the other: updates that gradients missed."""
    most = max(max(plan.staleness) for plan in plans.values())
    highest = max(max(plan.staleness.values()) for plan in plans.values())
    colors, pictures = _colors(plans), []
    for name, plan in plans.items():
        parts = ', '.join(f'{count} missed {missed}' for missed, count
                         in sorted(plan.staleness.items()))
        chart = new_chart(
            352 if len(plans) < 3 else 236, 240, f'{name}: of the gradients, '
            f'{parts}.', (-0.7, most + 0.7), (0, 1.05 * highest),
            title=str(name), xlabel='staleness', ylabel='gradients', grid='y',
            xticks=[k for k in linear_ticks(0, most) if k == int(k)])
        chart.bars([(missed - 0.4, missed + 0.4, 0, count)
                    for missed, count in plan.staleness.items()],
                   colors[name])
        pictures.append(chart.drawing)
    return Row(*pictures)


def curves(name: str, value: Any) -> dict[Any, list[list[Point]]]:
    """A check: lists of `follow`'s Points, one a seed, by name."""
    words = "a dict such as {'sync': [the Points of a seed, ...]}"
    if not isinstance(value, dict) or not value:
        refuse(name, value, words)
    points = list_of(list_of(instance_of(Point, 'a Point'), words), words)
    return {key: points(f'{name}[{key!r}]', runs)
            for key, runs in value.items()}


@checked(curves=curves)
def plot_accuracy(curves: Mapping[str, Sequence[Sequence[Point]]]) -> Row:
    """Test accuracy against virtual seconds, and against gradients used.

    curves: for each name the `Point`s of some seeds, drawn thin; their mean
    is thick. What is 'divided' is dashed.
    """
    return Row(*(_accuracy(curves, axis, xlabel) for axis, xlabel in (
        ('seconds', 'virtual seconds'), ('gradients', 'gradients used'))))


def _accuracy(curves, axis, xlabel):
    colors, found = _colors(curves), {}
    for (name, runs), marker in zip(curves.items(),
                                    MARKS * len(curves)):
        x, y = (np.array([[getattr(point, one) for point in run]
                          for run in runs]) for one in (axis, 'accuracy'))
        found[name] = x, y, marker + ('--' if 'divided' in name else '-')
    parts = '; '.join(f'{name} ends at {y[:, -1].mean():.2f} after '
                     f'{format_number(x[:, -1].mean())}'
                     for name, (x, y, _) in found.items())
    most = max(x.max() for x, _, _ in found.values())
    chart = new_chart(
        352, 320, f'Test accuracy against {xlabel}: {parts}.',
        (0, 1.02 * most), (0, 1), xlabel=xlabel, ylabel='test accuracy',
        legend=[(name, colors[name], style)
                for name, (_, _, style) in found.items()])
    for name, (x, y, style) in found.items():
        line = style[1:]
        for one, run in zip(x, y):
            chart.curve(one, run, colors[name], line, 0.8, opacity=0.5)
        chart.curve(x.mean(axis=0), y.mean(axis=0), colors[name], style,
                    size=0.8)
    return chart.drawing


@checked(kind=one_of(*KINDS), bound=one_of(*AHEAD.values()),
         slowdown=partial(number, least=1, most=1e6, example=5),
         seed=from_zero)
def explore_clock(kind: str = 'one straggler', bound: int | str = 4,
                  slowdown: float = 5, seed: int = 0) -> None:
    """Choose who is slow and how far ahead the others may be.

    Left, what four workers do; right, how many gradients have been used.
    """
    def draw(kind, bound, slowdown):
        times = step_times(kind, 4, ENOUGH, slowdown, seed)
        chosen = bound if bound == 'async' else f'bound {bound}'
        ways = {'sync': 'sync', chosen: bound, 'async': 'async'}
        played = {name: virtual_clock(times, value, ENOUGH)
                  for name, value in ways.items()}
        left = plot_plan(
            played[chosen], 30, f'{chosen}: '
            f'{played[chosen].throughput:.3g} gradients per second', 400)
        return Row(left, plot_progress(played, UNTIL, width=312,
                                       height=left.height))

    live_picture(draw, {
        'kind': menu(KINDS, kind, 'step times'),
        'bound': choose(AHEAD, bound, 'rounds ahead'),
        'slowdown': choose([1, 2, 5, 10], slowdown, 'straggler slow by')})
