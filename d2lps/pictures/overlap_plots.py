"""A training step in rows: what is computed, and what is sent meanwhile."""
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from d2lps.asynchrony.overlap import ORDERS, Task, best_possible, simulate_step
from d2lps.checks import (checked, instance_of, list_of, number, one_of,
                          positive, text)
from d2lps.figures import describe, format_number
from d2lps.pictures.controls import checkbox, choose, menu
from d2lps.pictures.drawing import color
from d2lps.pictures.rows import (WIDE, Span, draw_bars, name_bar, new_figure,
                                 row_axes)
from d2lps.pictures.widgets import live_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The toy: eight layers, as in a network for images. The first compute most,
# the last have most of the parameters.
TOY = {'backward': [.012, .012, .010, .010, .008, .004, .002, .002],
       'nbytes': [1e6, 1e6, 2e6, 2e6, 4e6, 10e6, 30e6, 10e6]}
FORWARD = [seconds / 2 for seconds in TOY['backward']]
ROWS = {'backward': 'compute', 'forward': 'compute', 'push': 'push',
        'pull': 'pull'}


@checked(tasks=list_of(instance_of(Task, 'a Task'), 'a list of Tasks'),
         title=partial(text, least=0), until=positive, best=number,
         rows=list_of(partial(text, least=0), 'a list of texts'))
def plot_step(tasks: Sequence[Task], title: str = '',
              until: float | None = None, best: float | None = None,
              rows: Sequence[str] | None = None, ax: 'Axes | None' = None
              ) -> 'Axes':
    """Draw a step: a row for computing and for each direction of the link.

    A colour and a number for each layer, or for the first one of a bucket;
    the forward pass is hatched where bars are wide enough. until: end of the
    time axis in seconds, to compare two pictures. best: a dashed line, in
    seconds. rows: the name of each task's row, if it shall not be 'compute',
    'push' or 'pull'. ax: the `Axes` to draw in; without it, those of a new
    figure.
    """
    in_row = rows or [ROWS[task.kind] for task in tasks]
    if len(in_row) != len(tasks):
        raise ValueError(f'rows must name one for each of the {len(tasks)} '
                         f'tasks; it had {len(in_row)}')
    rows = [*dict.fromkeys(in_row)]
    total = max(task.end for task in tasks)
    heading = f'{total * 1e3:.0f} ms'
    if best is not None:
        heading += f', dashed: no less than {best * 1e3:.0f} ms'
    heading = f'{title}: {heading}' if title else heading
    ax = row_axes(rows, (until or total * 1.02 or 1) * 1e3, ax=ax,
                  title=heading, xlabel='time / ms', row_height=0.33,
                  legend=False)
    bars: dict[tuple[str, bool], list[Span]] = {}
    for run, name in _runs(tasks, in_row):  # slices have one number together
        fill, forward = color(run[0].layers[0]), run[0].kind == 'forward'
        named = name_bar(
            ax, run[0].start * 1e3, run[-1].end * 1e3, rows.index(name),
            _numbers(run[0]), fill, forward or len(run) > 1)
        # A bar that is too narrow for a number is too narrow for a hatch.
        bars.setdefault((fill, forward and named), []).extend(
            (task.start * 1e3, task.end * 1e3, rows.index(name))
            for task in run)
    for (fill, hatched), spans in bars.items():
        draw_bars(ax, spans, fill, hatch='//' if hatched else '')
    if best is not None:
        ax.axvline(best * 1e3, color='gray', linestyle='--', linewidth=1.5)
    describe(ax, f'{heading}. {_alt_text(tasks, in_row)}')
    return ax


def _runs(tasks, in_row):
    """Tasks for the same layers that follow one another, and their row."""
    runs: dict[str, list[list[Task]]] = {}
    for task, name in zip(tasks, in_row):
        earlier = runs.setdefault(name, [])
        last = earlier[-1][-1] if earlier else None
        if last and (last.kind, last.layers, last.end) == (
                task.kind, task.layers, task.start):
            earlier[-1].append(task)
        else:
            earlier.append([task])
    named = [(run, name) for name, of_row in runs.items() for run in of_row]
    return sorted(named, key=lambda pair: pair[0][0].start)


def _alt_text(tasks, in_row):
    """The layers in each row, and their times."""
    rows = []
    for name in dict.fromkeys(in_row):
        own = sorted((task for task, row in zip(tasks, in_row)
                      if row == name), key=lambda task: task.start)
        shown = [f'{_numbers(task)} at {format_number(1e3 * task.start)}'
                 for task in own[:12]]
        rows.append(f'{name}, from {format_number(1e3 * own[0].start)} to '
                    f'{format_number(1e3 * own[-1].end)} ms: layers '
                    f'{", ".join(shown)}{" ..." * (len(own) > 12)}')
    return f'{"; ".join(rows)}.'


def _numbers(task):
    """Layers of a task as a reader counts them: 1, 2-3."""
    first, last = task.layers[0] + 1, task.layers[-1] + 1
    return f'{first}' if first == last else f'{first}-{last}'


@checked(bandwidth=positive, order=one_of(*ORDERS))
def explore_overlap(bandwidth: float = 1000, order: str = 'fifo') -> None:
    """Choose a link and an order; see a step of the toy of eight layers.

    bandwidth: MB/s. With the next forward pass there is the lower bound, too.
    """
    def draw(bandwidth, latency, bucket_size, slice_size, order, forward):
        link = bandwidth * 1e6, latency / 1e3
        then = FORWARD if forward else ()
        tasks = simulate_step(
            *TOY.values(), *link, order, bucket_size * 1e6,
            slice_size * 1e6 or None, forward=then)
        figure = new_figure(WIDE, 1.9, None)
        figure.subplots_adjust(0.1, 0.3, 0.98, 0.84)
        # Without the forward pass, a reader has not met the bound.
        best = best_possible(*TOY.values(), *link, forward=then)
        plot_step(tasks, order, best=best if forward else None,
                  ax=figure.subplots())
        return figure

    live_picture(draw, {
        'bandwidth': choose([250, 500, 1000, 2000, 4000, 10000], bandwidth,
                            'MB/s'),
        'latency': choose([0, 1, 2, 5, 10], 0, 'latency ms'),
        'bucket_size': choose([0, 2, 4, 8, 12, 25, 60], 0, 'bucket MB'),
        'slice_size': menu({'whole': 0, '4 MB': 4, '1 MB': 1}, 0, 'messages'),
        'order': menu(ORDERS, order, 'order'),
        'forward': checkbox(False, 'next forward pass')})
