"""Matplotlib's figures as notebooks show them: small, sharp, and in words.

`import d2lps` in a notebook takes the style of `figures.mplstyle`, and shows
each figure, a reader's own as well, as an image of SVG with an alternative
text. A notebook shows it without being run. On a dark page there is no white
box, except behind photographs.
"""
import logging
import os
import re
import sys
import warnings
from base64 import b64encode
from functools import cache
from html import escape
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from d2lps.units import several

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_suffix('.mplstyle')
MOST_VALUES = 12  # of bars, in an alternative text
# Dark words have a white halo. A white page hides it; on a black page it makes
# the words readable.
HALO = ('text[style*="#333333"],[style*="#333333"] text{paint-order:stroke;'
        'stroke:#fff;stroke-width:2px}')
_described: 'WeakKeyDictionary[Axes, str]' = WeakKeyDictionary()
NO_METADATA = dict.fromkeys(('Creator', 'Date', 'Format', 'Type'))


def register() -> None:
    """Use the style, and let a notebook show figures by `html`."""
    from IPython import get_ipython
    shell = get_ipython()
    if shell is None or os.environ.get('D2LPS_CASES'):  # it is graded
        return
    # Matplotlib says so in red when it is imported, in a browser tab always.
    logging.getLogger('matplotlib.font_manager').addFilter(
        lambda record: 'building the font cache' not in record.getMessage())
    # If pyplot were the first to import the inline backend, the plots of that
    # cell would not be shown.
    from matplotlib_inline.config import InlineBackend
    use_style()
    # The backend's own PNGs would be a second copy of each figure. When it is
    # chosen again, it removes the formatters of `Figure`, but not those of its
    # base class.
    InlineBackend.instance(parent=shell).figure_formats = set()
    shell.display_formatter.formatters['text/html'].for_type_by_name(
        'matplotlib.figure', 'FigureBase', html)
    shell.events.register('pre_run_cell', _keep_formats)


@cache
def use_style() -> None:
    """Use `figures.mplstyle`, once; later settings of a reader stay."""
    import matplotlib.style
    matplotlib.style.use(STYLE)


def _keep_formats(*_):
    """d2l asks for a second copy as SVG before each of its plots."""
    d2l = sys.modules.get('d2l.mxnet')
    if d2l:
        d2l.use_svg_display = lambda: None


def html(figure: 'Figure') -> str:
    """A figure as an image with an alternative text."""
    if any(ax.images for ax in figure.axes):  # photographs, on white paper
        kind, data = 'png', _saved(figure, 'png')
    else:
        kind, data = 'svg+xml', svg(figure).encode()
    wide = round(96 * figure.get_figwidth())
    return (f'<img alt="{escape(alt_text(figure))}" width="{wide}" '
            'style="max-width:100%" '
            f'src="data:image/{kind};base64,{b64encode(data).decode()}">')


def svg(figure: 'Figure') -> str:
    """A figure as SVG, made small."""
    text = _saved(figure, 'svg').decode()
    text = re.sub(r'<!--.*?-->', '', text[text.index('<svg'):], flags=re.S)
    text = re.sub(r'\s+', ' ', text)
    # Powers of ten name one font only, which a reader may not have.
    text = re.sub(r"'DejaVu Sans'(?=[\";])", "'DejaVu Sans', sans-serif", text)
    # Hundredths of a point are enough; words and scales stay as they are.
    text = re.sub(r'<[^>]+>', lambda tag: re.sub(
        r'([1-9]\d*\.\d\d)\d+', r'\1', tag[0]), text)
    text = text.replace('> <', '><')
    text = text.replace('</style>', f'{HALO}</style>', 1)
    return re.sub(r'(width|height)="([\d.]+)pt"', lambda size: (
        f'{size[1]}="{float(size[2]) * 96 / 72:g}"'), text, count=2)


def _saved(figure, kind):
    from matplotlib.colors import to_hex
    file, engine = BytesIO(), figure.get_layout_engine()
    # A background that a reader has coloured stays.
    white = all(to_hex(part.get_facecolor()) == '#ffffff'
                for part in (figure, *figure.axes))
    figure.savefig(file, format=kind, metadata=(
        NO_METADATA if kind == 'svg' else None),
        transparent=white and kind == 'svg')
    if engine is None:  # Matplotlib has given it the style's layout engine
        figure.set_layout_engine('none')
    return file.getvalue()


def describe(ax: 'Axes', text: str) -> None:
    """Say in words what an `Axes` shows, where lines and bars do not."""
    _described[ax] = text


def alt_text(figure: 'Figure') -> str:
    """The content of a figure in words, for readers who cannot see it.

    It says the title of each `Axes`, the names of both axes, the first and
    the last value of each line, the values of bars, and how many points are
    scattered. The text of `describe` for an `Axes` replaces all this. Other
    shapes are left out: a figure is shown whatever is in it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # Matplotlib gave its own
        return _of_figure(figure)


def _of_figure(figure):
    title = figure._suptitle.get_text() if figure._suptitle else ''
    parts = [' '.join(part.split())  # names may have several lines
             for part in (title, *_all_of(_of_axes, figure.axes))]
    return ' '.join(part if part[-1] in '.!?' else f'{part}.'
                    for part in parts if part) or 'A figure that has no words.'


def _all_of(tell, shapes):
    """The words of each; '' for a shape of a kind that `tell` cannot read."""
    for shape in shapes:
        try:
            yield tell(shape)
        except Exception:  # readers plot all that Matplotlib can draw
            yield ''


def _of_axes(ax: 'Axes') -> str:
    title = (ax.get_title('left') or ax.get_title()
             or ax.get_title('right'))
    if ax in _described:
        told = _described[ax]
        known = ' '.join(title.split()) in ' '.join(told.split())
        return told if known else f'{title}. {told}'
    axes = ' against '.join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
    begin = ': '.join(filter(None, (title, axes)))
    parts = [*_all_of(_of_line, ax.lines),
             *_all_of(_of_points, ax.collections),
             *_all_of(_of_bars, ax.containers)]
    if ax.images:
        begin = ': '.join(filter(None, ('an image', begin)))
    elif not any(parts):  # a pie, say
        parts = [', '.join(filter(None, (
            text.get_text() for text in ax.texts[:MOST_VALUES])))]
    return '. '.join(filter(None, (begin, '; '.join(filter(None, parts)))))


def _of_line(line):
    """The ends of a line, and its highest and lowest point."""
    # As the reader gave them, and as numbers, with nan where there is a gap.
    given, drawn = ([line.get_xdata(orig), line.get_ydata(orig)]
                    for orig in (True, False))
    ax = line.axes
    if [isinstance(next(iter(side), 0), str) for side in given] == [
            False, True]:
        given, drawn = given[::-1], drawn[::-1]  # names are told last
    known = [(x, y, height) for x, y, place, height in zip(*given, *drawn)
             if isfinite(place) and isfinite(height)]
    if not known or not line.get_visible():
        return ''
    (x1, y1, first), (x2, y2, last) = known[0], known[-1]
    transform = line.get_transform()
    if transform == ax.get_yaxis_transform():
        course = f'a line at {format_number(y1)}'
    elif transform == ax.get_xaxis_transform():
        course = f'an upright line at {format_number(x1)}'
    elif len(known) == 1:
        course = f'{format_number(y1)} at {format_number(x1)}'
    else:
        course = (f'from {format_number(y1)} at {format_number(x1)} to '
                  f'{format_number(y2)} at {format_number(x2)}')
        _, top, highest = max(known, key=lambda point: point[2])
        _, low, lowest = min(known, key=lambda point: point[2])
        if highest > max(first, last):
            course += f', at most {format_number(top)}'
        if lowest < min(first, last):
            course += f', at least {format_number(low)}'
    return _named(_name_of(line), course)


def _name_of(line):
    """Its label; d2l's plots name lines in their legend only."""
    ax, label = line.axes, str(line.get_label())
    legend = ax.get_legend()
    names = legend.get_texts() if legend else []
    if label.startswith('_') and len(names) == len(ax.lines) and (
            not ax.get_legend_handles_labels()[1]):
        return names[[*ax.lines].index(line)].get_text()
    return label


def _of_bars(bars):
    from matplotlib.category import StrCategoryLocator
    from matplotlib.ticker import FixedLocator
    if not hasattr(bars, 'datavalues'):  # lines with error bars, say
        return ''
    upright, ax = bars.orientation == 'vertical', bars[0].axes
    axis = ax.xaxis if upright else ax.yaxis
    locator, names = axis.get_major_locator(), {}
    if isinstance(locator, (FixedLocator, StrCategoryLocator)):
        # Not its labels: where axes are shared, inner ones have none.
        places = axis.get_majorticklocs()
        names = dict(zip(places, axis.get_major_formatter().format_ticks(
            places)))
    values = []
    for bar, value in zip(bars, bars.datavalues):
        middle = (bar.get_x() + bar.get_width() / 2 if upright else
                  bar.get_y() + bar.get_height() / 2)
        near = min(names, key=lambda place: abs(place - middle), default=None)
        name, height = format_number(middle), format_number(value)
        if near is not None and abs(near - middle) < 0.5:
            name = names[near]
        values.append(f'{height} at {name}' if name[:1].isdigit() else
                      f'{name} {height}')
    more = len(values) - MOST_VALUES
    return _named(str(bars.get_label()), ', '.join(values[:MOST_VALUES]) + (
        f' and {more} more' if more > 0 else ''))


def _of_points(collection):
    """The number of points of a scatter plot; '' for areas and the like."""
    from matplotlib.collections import PathCollection
    if not isinstance(collection, PathCollection) or (
            not len(collection.get_sizes())):  # of contours
        return ''
    return _named(str(collection.get_label()),
                  several(len(collection.get_offsets()), 'point'))


def _named(name, text):
    return text if name.startswith('_') else f'{name}: {text}'


def format_number(value: Any) -> str:
    """A number as a reader wants it: 0.0123, 1.5, 12.3, 4,321."""
    try:
        value = float(value)
    except (TypeError, ValueError):
        return str(value)
    if value and not 1e-5 < abs(value) < 1e9:
        return f'{value:.3g}'
    return f'{value:,.0f}' if abs(value) >= 99.95 else f'{value:.3g}'
