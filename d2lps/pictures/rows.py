"""Charts with a row for each of some things, and bars along a time axis."""
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from d2lps.checks import writable
from d2lps.figures import format_number, use_style
from d2lps.pictures.drawing import width_of, wrapped
from d2lps.pictures.style import ink_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Span: TypeAlias = tuple[float, float, float]  # its ends in time, and its row
WIDE = 7.2  # inches
HALF = 3.55  # inches, of one of two pictures of a `Row`
TITLE, AXIS, LEGEND = 0.3, 0.55, 0.35  # inches above and below the rows
LETTERS = 13.3  # pixels, of the style's 10 points
# Bars get a white edge, unless it would cover them.
LEAST_WIDTH = 0.004  # of the time axis
LEAST_HEIGHT = 0.1  # of the distance between rows
OURS = 'legend below'  # the label of a legend that we have made


def new_axes(ax: 'Axes | None', width: float = 5.4, height: float = 3.1
             ) -> 'Axes':
    """ax, or the `Axes` of a new figure, which its notebook cell shows.

    width, height: of a new figure, in inches.
    """
    if ax is None:
        from matplotlib import pyplot as plt
        use_style()
        _, ax = plt.subplots(figsize=(width, height))
    return ax


def new_figure(width: float = 5.4, height: float = 3.1,
               layout: str | None = 'constrained') -> 'Figure':
    """A figure that shows itself where it is returned, unlike Pyplot's.

    width, height: inches. layout: of Matplotlib, see `Figure`; None: places
    are fixed.
    """
    from matplotlib.figure import Figure
    use_style()
    return Figure((width, height), layout=layout or 'none')


def row_axes(names: Sequence[object], until: float, *,
             ax: 'Axes | None' = None, begin: float = 0, title: str = '',
             xlabel: str = '', row_height: float = 0.3, width: float = WIDE,
             legend: bool = True) -> 'Axes':
    """`Axes` with a row for each name, the first on top.

    Row k is at y = k. begin, until: both ends of the time axis. row_height:
    inches. width: of a new figure, in inches; legend: whether it has room
    for one below.
    """
    names = [writable(str(name)) for name in names]
    room = 96 * width if ax is None else _width(ax)
    if ax is None or ax.figure.get_layout_engine():  # names take some of it
        room -= 20 + max([width_of(name, LETTERS) for name in names],
                         default=0)
    lines = wrapped(title, LETTERS, room, True) if title else []
    ax = new_axes(ax, width, row_height * len(names) + (
        TITLE * bool(lines) + 0.16 * len(lines[1:]) + AXIS
        + LEGEND * legend))
    ax.set(xlim=(begin, until), ylim=(len(names) - 0.5, -0.5),
           xlabel=xlabel)
    if lines:
        ax.set_title('\n'.join(lines))
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis='y', length=0)
    ax.grid(False, axis='y')
    return ax


def _width(ax):
    """The width of axes in pixels; with a layout engine, of their column."""
    figure = ax.figure
    if figure.get_layout_engine() and ax.get_gridspec():
        return 96 * figure.get_figwidth() / ax.get_gridspec().ncols
    return 96 * figure.get_figwidth() * ax.get_position().width


def draw_bars(ax: 'Axes', spans: Iterable[Span], color: str, label: str = '',
              hatch: str = '', height: float = 0.72) -> None:
    """Filled bars (start, end, row) of one colour, with one legend entry.

    All are one shape, because a shape for each bar would make the file large.
    Slivers on the same spot are drawn as one bar. height: a share of the
    distance between rows.
    """
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path
    left, right = ax.get_xlim()
    start, end, row = np.array(_joined(spans, right - left)).reshape(-1, 3).T
    if label and len(row):  # an entry with a hatch, even if all bars are thin
        ax.add_patch(Rectangle((left, 0), 0, 0, facecolor=color, hatch=hatch,
                               edgecolor='white', linewidth=0, label=label))
    thin = end - start < LEAST_WIDTH * (right - left)
    for which in ~thin, thin:
        if not which.any():
            continue
        x1, x2, y = start[which], end[which], row[which]
        x2 = np.maximum(x2, x1 + LEAST_WIDTH / 4 * (right - left))
        low, high = y - height / 2, y + height / 2
        corners = np.stack([x1, low, x2, low, x2, high, x1, high, x1, low], 1)
        codes = np.tile([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY],
                        len(y))
        ax.add_patch(PathPatch(
            Path(corners.reshape(-1, 2), codes), facecolor=color,
            edgecolor='white',
            linewidth=0 if which is thin or height < LEAST_HEIGHT else 0.6,
            hatch=hatch if which is not thin else ''))


def _joined(spans, wide):
    """The spans; slivers that nobody could tell apart are joined."""
    joined, least = [], LEAST_WIDTH * wide
    for start, end, row in sorted(spans, key=lambda span: (span[2], *span)):
        if joined and joined[-1][2] == row and (
                start - joined[-1][1] < least / 8 and
                min(end - start, start - joined[-1][0]) < least / 2):
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([start, end, row])
    return joined


def name_bar(ax: 'Axes', start: float, end: float, row: float, text: object,
             color: str, hatched: bool = False) -> bool:
    """Words in the middle of a bar of this colour; whether they fit.

    hatched: there are lines on the bar, or it is cut into slices, but not
    behind the words.
    """
    left, right = ax.get_xlim()
    shown = min(end, right) - max(start, left)
    pixels = shown / (right - left) * 0.85 * _width(ax)
    fits = width_of(text, LETTERS) + 2 <= pixels
    if fits:
        ax.text(start + (end - start) / 2, row, str(text), ha='center',
                va='center', color=ink_on(color), clip_on=True,
                bbox={'facecolor': color, 'edgecolor': 'none', 'pad': 1}
                if hatched else None)
    return fits


def label_parts(ax: 'Axes') -> None:
    """Write its value into each part of stacked bars, and the sums beside.

    ax: with bars from left to right, as of `DataFrame.plot.barh`.
    """
    values = np.nan_to_num([bars.datavalues for bars in ax.containers])
    sums = values.sum(axis=0)
    ax.set_xlim(right=1.1 * sums.max())
    ax.figure.draw_without_rendering()  # makes room for names beside the axes
    wide = 96 / ax.figure.dpi * ax.get_window_extent().width
    pixels = wide / (1.1 * sums.max())  # of a unit of x
    for bars, parts in zip(ax.containers, values):
        labels = [*map(format_number, parts)]
        ax.bar_label(bars, [
            label if width_of(label, LETTERS) + 2 < part * pixels else ''
            for label, part in zip(labels, parts)], label_type='center',
            color=ink_on(bars[0].get_facecolor()))
    for place, total in enumerate(sums):  # an empty bar stands at 0
        ax.annotate(format_number(total), (total, place), (4, 0), va='center',
                    textcoords='offset points', weight='bold')


def legend_below(ax: 'Axes', columns: int = 6) -> None:
    """One legend for all `Axes` of a figure, below them.

    It takes the place of an earlier one that was made here.
    """
    figure = ax.figure
    entries = {label: handle for axes in figure.axes for handle, label in zip(
        *axes.get_legend_handles_labels())}
    for legend in [*figure.legends]:
        if legend.get_label() == OURS:
            legend.remove()
    figure.legend(
        entries.values(), entries.keys(), loc='outside lower left',
        ncols=min(columns, len(entries) or 1)).set_label(OURS)
