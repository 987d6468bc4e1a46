"""Pictures of divisions among GPUs, of their steps, and of published runs."""
from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from d2lps.checks import checked, integer, number, refuse
from d2lps.figures import describe
from d2lps.pictures.rows import WIDE, legend_below, new_axes
from d2lps.pictures.style import (BLUE, GRAY, GREEN, ORANGE, PURPLE, RED, SKY,
                                  ink_on)
from d2lps.planning import Division, Gpu
from d2lps.planning.divide import a_division
from d2lps.planning.gpus import a_gpu

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

STAGES = SKY, ORANGE, GREEN, PURPLE, BLUE, RED, GRAY, '#8A7D00'
# The parts of a step, and how they are drawn.
PARTS = {'compute': SKY, 'tensor': ORANGE, 'context': PURPLE, 'bubble': GRAY,
         'sends': GREEN, 'data': BLUE, 'optimizer': RED}
MOST = 16  # machines that can be drawn


@checked(division=a_division, gpu=a_gpu)
def plot_division(division: Division, gpu: Gpu) -> 'Axes':
    """A row for each NVLink domain: what each GPU is responsible for.

    The colour is the stage of the pipeline, the letter the copy of the model
    (A, B, ...), and the number the part of each layer.

    Args:
        division: without context parallelism, on 16 domains at most.
        gpu: says how many GPUs are in a domain.

    Raises:
        ValueError: there would be too many domains, or copies.
    """
    d = division
    domains = -(-d.gpus // gpu.domain)
    if domains > MOST or d.context > 1 or d.data > 26:
        raise ValueError(f'division must be one without context, of 26 '
                         f'copies and {MOST} domains at most; it was {d}')
    ax = new_axes(None, WIDE if gpu.domain > 8 else 5.4, 0.5 + 0.27 * domains)
    for rank in range(d.gpus):
        part, rest = rank % d.tensor, rank // d.tensor
        stage, copy = rest % d.pipeline, rest // d.pipeline
        color = STAGES[stage % len(STAGES)]
        x, y = rank % gpu.domain, rank // gpu.domain
        ax.barh(y, 0.92, 0.86, x - 0.46, color=color)
        ax.text(x, y, f'{chr(65 + copy)}{part}', ha='center', va='center',
                color=ink_on(color))
    ax.set(xlim=(-0.5, gpu.domain - 0.5), ylim=(domains - 0.5, -0.5),
           xticks=[], yticks=range(domains),
           yticklabels=[f'machine {k}' for k in range(domains)])
    ax.grid(False)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.tick_params(length=0)
    title = (f'copies (letters): {d.data}, stages (colours): {d.pipeline}, '
             f'parts (numbers): {d.tensor}')
    ax.set_title(title)
    describe(ax, f'{domains} rows of {gpu.domain} boxes, a box for each GPU. '
             f'{title}. The parts of a layer are neighbours.')
    return ax


@checked(machines=integer, processes=integer)
def plot_launch(machines: int = 2, processes: int = 4) -> 'Axes':
    """A box for each machine: its torchrun, and the ranks that it starts.

    The torchruns of all machines connect to machine 0, whose name is HEAD.
    """
    ax = new_axes(None, WIDE, 0.75 * machines + 0.5)
    for node in range(machines):
        ax.barh(node, processes + 2.2, 0.9, -0.1, color='white',
                edgecolor='#555')
        ax.barh(node, 1.8, 0.6, 0.1, color=GRAY)
        ax.text(1, node, 'torchrun', ha='center', va='center')
        for local in range(processes):
            ax.barh(node, 0.9, 0.6, 2.05 + local, color=SKY)
            ax.text(2.5 + local, node, f'rank {node * processes + local}',
                    ha='center', va='center')
        if node:
            ax.annotate('', (0.3, 0.3), (0.3, node - 0.3), arrowprops={
                'arrowstyle': '->', 'connectionstyle': 'arc3,rad=-0.3'})
    ax.set(xlim=(-0.7, processes + 2.2), ylim=(machines - 0.4, -0.6),
           xticks=[2.5 + local for local in range(processes)],
           xticklabels=[f'GPU {local}' for local in range(processes)],
           yticks=range(machines), yticklabels=['machine 0\n= HEAD'] + [
               f'machine {node}' for node in range(1, machines)])
    ax.xaxis.tick_top()
    ax.grid(False)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.tick_params(length=0)
    describe(ax, f'{machines} machines. Each has a torchrun and {processes} '
             f'processes, one for each GPU: ranks 0 to {processes - 1} on '
             'machine 0, the next ranks on the next machine. An arrow goes '
             'from the torchrun of each other machine to that of machine 0, '
             'which is HEAD.')
    return ax


def _rows(name, table, columns):
    """Raise ValueError unless a table has rows of numbers in these columns."""
    for column in columns:
        if column not in getattr(table, 'columns', ()):
            refuse(name, table, f'a table with a column {column!r}')
        for row, value in table[column].items():
            number(f'{name}[{column!r}][{row!r}]', value)
    if not len(table):
        raise ValueError(f'{name} must have a row; it had none')


def _planned(table, names):
    sides = () if len(names) else ('data', 'tensor', 'pipeline', 'context')
    _rows('table', table, [*sides, *(f'{part} s' for part in PARTS)])
    if len(names) not in (0, len(table)):
        refuse('names', names, f'one for each of {len(table)} rows')


@checked(_planned)
def plot_parts(table: 'pd.DataFrame', names: Sequence[str] = ()) -> 'Axes':
    """A bar for each row of a plan: the seconds of each part of a step.

    The number behind a bar is the sum of its parts.

    Args:
        table: as from `planning.best_divisions`, or some of its rows.
        names: of the bars; without them, the GPUs along each side.
    """
    parts = table[[f'{part} s' for part in PARTS]].set_axis([*PARTS], axis=1)
    seconds = parts.sum(axis=1)
    seen = parts.loc[:, parts.max() > 0.005 * seconds.max()]
    ax = seen.set_axis([*names] or [
        f'data {row.data}, tensor {row.tensor}, pipeline {row.pipeline}'
        + (f', context {row.context}' if row.context > 1 else '')
        for row in table.itertuples()]).plot.barh(
            stacked=True, width=0.75, color=PARTS, legend=False,
            xlabel='s in a step', ax=new_axes(
                None, WIDE, 0.9 + 0.32 * len(table)))
    for place, total in enumerate(seconds):
        ax.annotate(f'{total:.1f}', (total, place), (4, 0), va='center',
                    textcoords='offset points')
    ax.margins(x=0.1)
    ax.invert_yaxis()
    ax.grid(False, axis='y')
    legend_below(ax)
    return ax


def _compared(table, groups):
    _rows('table', table, ('published MFU', 'predicted MFU'))
    if not table.index.equals(getattr(groups, 'index', None)):
        refuse('groups', groups, 'a column with a row for each of the table')


@checked(_compared)
def plot_published(table: 'pd.DataFrame', groups: 'pd.Series') -> 'Axes':
    """MFU predicted against MFU published, a mark for each run.

    Args:
        table: as from `planning.compare_runs`.
        groups: whose each run is, one for each row.
    """
    ax = new_axes(None, WIDE, 4.2)
    highest = max(table['published MFU'].max(), table['predicted MFU'].max())
    most = max(0.7, 1.05 * highest)
    ax.fill_between([0, most], [0, 0.8 * most], [0, 1.2 * most], color=GRAY,
                    alpha=0.35, linewidth=0, label='within 20%')
    ax.plot([0, most], [0, most], color='#888888', linestyle='-',
            linewidth=1, label='equal')
    looks = cycle(zip('osD^vPX*', [*STAGES[:6], '#000000', STAGES[7]]))
    for group, (marker, color) in zip(groups.unique(), looks):
        rows = table[groups == group]
        ax.scatter(rows['published MFU'], rows['predicted MFU'], 34,
                   color=color, marker=marker, label=group, edgecolor='white',
                   linewidth=0.6)
    ax.set(xlim=(0, most), ylim=(0, most), xlabel='MFU, published',
           ylabel='MFU, predicted')
    legend_below(ax, columns=3)
    return ax
