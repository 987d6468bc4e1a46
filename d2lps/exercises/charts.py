"""Charts that the pictures of several exercises draw in the same way."""
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from d2lps.figures import describe, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


def bar_chart(table: 'DataFrame', ax: 'Axes | None' = None, *,
              stacked: bool = False, colors: Sequence[str] = (),
              **labels: Any) -> 'Axes':
    """Bars for each row of a table, a colour for each column.

    Each bar has its number beside it. stacked: the bars of a row are parts of
    one bar, with their numbers inside and the sum beside it. ax: the axes to
    draw in; without it, those of a new figure. labels: of `Axes.set`.
    """
    from d2lps.pictures import BLUE, GREEN, ORANGE, PURPLE
    from d2lps.pictures.rows import (WIDE, label_parts, legend_below,
                                     new_figure)
    colors = colors or (BLUE, ORANGE, GREEN, PURPLE)
    rows, columns = table.shape
    if ax is None:
        ax = new_figure(WIDE, 1.1 + 0.27 * rows * (
            1 if stacked else columns)).subplots()
    height, left = 0.84 / (1 if stacked else columns), np.zeros(rows)
    for k, color in zip(range(columns), colors):
        values = table.iloc[:, k].to_numpy()
        middle = 0 if stacked else (k - (columns - 1) / 2) * height
        bars = ax.barh(np.arange(rows) + middle, values, height, left,
                       color=color, label=table.columns[k])
        if stacked:
            left += values
        else:
            ax.bar_label(bars, fmt=format_number, padding=4)
    ax.set(yticks=range(rows), yticklabels=table.index,
           ylim=(rows - 0.5, -0.5), **labels)
    ax.grid(False, axis='y')
    ax.margins(x=0.12)
    if stacked and left.any():
        label_parts(ax)
    if columns > 1:
        legend_below(ax)
    return ax


def row_chart(names: Sequence[object], until: float, told: str, *,
              height: float | None = None, **labels: Any) -> 'Axes':
    """`row_axes` of a new figure. height: inches. told: alternative text."""
    from d2lps.pictures.rows import WIDE, new_figure, row_axes
    height = 1.2 + 0.3 * len(names) if height is None else height
    ax = row_axes(names, until, ax=new_figure(WIDE, height).subplots(),
                  **labels)
    describe(ax, told)
    return ax


def draw_named(ax: 'Axes', bars: Iterable[tuple[float, float, float, object]],
               color: str, *style: Any) -> None:
    """Bars (start, end, row, name) with their names in them.

    style: the further arguments of `draw_bars`.
    """
    from d2lps.pictures.rows import draw_bars, name_bar
    bars = [*bars]
    draw_bars(ax, [bar[:3] for bar in bars], color, *style)
    for start, end, row, name in bars:
        name_bar(ax, start, end, row, name, color)


def result_or_none(function: Callable[..., Any], *arguments: Any,
                   **case: Any) -> Any:
    """Result of a call; None if the student has not written it yet."""
    try:
        return function(*arguments, **case)
    except NotImplementedError:
        return None
