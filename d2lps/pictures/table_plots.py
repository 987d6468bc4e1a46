"""Pictures of tables: curves, bars, and a grid of shaded cells."""
import re
from collections.abc import Mapping, Sequence
from functools import partial
from math import inf, isfinite, log10
from typing import Any, TypeAlias

import numpy as np

from d2lps.annotations import Array
from d2lps.checks import (
    LARGEST,
    as_array,
    boolean,
    checked,
    either,
    instance_of,
    list_of,
    number,
    one_of,
    positive,
    refuse,
    text,
)
from d2lps.pictures.chart import (
    WORDS,
    Ticks,
    format_number,
    ink_on,
    new_chart,
    parted,
    row_chart,
)
from d2lps.pictures.drawing import INK, Drawing, width_of
from d2lps.pictures.style import BLUE, CHUNK_COLORS, GREEN, ORANGE, PURPLE, RED

COLORS = BLUE, ORANGE, GREEN, RED, PURPLE, CHUNK_COLORS[5], INK, '#8A7D00'
RULE, RULES = '#555', ['--', ':', '-.']
STYLES = '-', '--', '-.', ':'
TEXT = partial(text, least=0)
MOST, LEAST = LARGEST, 1 / LARGEST
any_number = partial(number, least=-MOST, most=MOST)
SCALE = one_of('linear', 'log')
Table: TypeAlias = Any  # a table or column of pandas, or a dict by name
Ends: TypeAlias = tuple[float | None, float | None]  # None: as the data
Styles: TypeAlias = str | Sequence[str] | Mapping[str, str]
PIXELS = dict(width=lambda name, value: number(name, value, 200, 2000, 640),
              height=lambda name, value: number(name, value, 60, 2000, 300))


def _limit(name, value):
    """Two ends of an axis; None for one that follows from the data."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        refuse(name, value, 'two numbers such as (0, 1), or (0, None)')
    return [None if end is None else any_number(f'{name}[{k}]', end)
            for k, end in enumerate(value)]


def _ticks(name, value):
    """Values, or their words by value."""
    if isinstance(value, dict):
        return {any_number(f'a place of {name}', place): str(words)
                for place, words in value.items()}
    return {one: format_number(one) for one in _all_numbers(
        name, value, 'a list of numbers, or a dict of their words', 0)}


def _all_numbers(name, value, words='a list of numbers', least=1):
    """Those of a list, or of a range or a column of a table."""
    if isinstance(value, str) or not hasattr(value, '__iter__') or (
            getattr(value, 'ndim', 1) != 1):
        refuse(name, value, words)
    return list_of(any_number, words, least)(name, [*value])


def _by_name(words):
    return instance_of(dict, f'a dict such as {words}')


def _numbers(name, value):
    """{words: value}"""
    return {key: any_number(f'{name}[{key!r}]', one) for key, one in
            _by_name("{'the best possible': 15}")(name, value).items()}


def _points(name, value):
    """{words: (x, y)}"""
    for key, one in _by_name("{'here': (2, 15)}")(name, value).items():
        if not isinstance(one, (tuple, list)) or len(one) != 2:
            refuse(f'{name}[{key!r}]', one, 'two numbers such as (2, 15)')
        for k, end in enumerate(one):
            any_number(f'{name}[{key!r}][{k}]', end)
    return value


def _marks(name, value):
    """{words: a value for each row}"""
    found = {key: _all_numbers(f'{name}[{key!r}]', one) for key, one in
             _by_name("{'predicted': [15, 60]}")(name, value).items()}
    if any(one < 0 for row in found.values() for one in row):
        refuse(name, value, 'numbers of 0 or more, where bars are')
    return found


def _some(check, words):
    """A check for one text, or for a list or a dict of them by name."""
    def check_all(name, value):
        if isinstance(value, dict):
            return {key: check(f'{name}[{key!r}]', one)
                    for key, one in value.items()}
        if isinstance(value, str):
            return check(name, value)
        return list_of(check, words)(name, value)
    return check_all


def _style(name, value):
    if not isinstance(value, str):
        refuse(name, value, "a text such as 'o-'")
    try:
        parted(value)
    except ValueError as error:
        raise ValueError(f'{name}: {error}') from None
    return value


def _color(name, value):
    if not isinstance(value, str) or not re.fullmatch(
            '#([0-9a-fA-F]{3}){1,2}', value):
        refuse(name, value, "a colour such as pictures.BLUE or '#0072B2'")
    return value


STYLED = _some(_style, "a list of styles such as ['o-', '--']")
COLORED = _some(_color, "a list of colours such as ['#0072B2']")


def _above_zero(curves, xscale, yscale, xlim, ylim, lines, verticals, points,
                **_):
    """A rule: what is not above 0 has no place on a logarithmic axis."""
    for k, axis, scale, ends, ruled in ((0, 'x', xscale, xlim, verticals),
                                        (1, 'y', yscale, ylim, lines)):
        if scale != 'log':
            continue
        given = {f'{axis}lim': ends, ('verticals', 'lines')[k]: ruled,
                 'points': {text: at[k] for text, at in (points or {}).items()}
                 } | {f'curves[{name!r}]': curve[k]
                      for name, curve in curves.items()}
        for name, values in given.items():
            values = values.values() if isinstance(values, dict) else values
            for one in values or ():
                if not isinstance(one, (str, type(None))) and one < LEAST:
                    raise ValueError(
                        f'{name} must be above 0 in {axis}, because {axis}'
                        f"scale is 'log'; it had {format_number(one)}")


def _curves(name, value):
    """{name: (x, y)} of a table or of a dict."""
    given = value
    try:
        if hasattr(value, 'to_frame'):  # a Series
            value = value.to_frame(value.name or '')
        if hasattr(value, 'columns'):
            value = {column: (value.index, value[column])
                     for column in value}
        curves = {str(key): (
            [one if isinstance(one, str) else float(one)
             for one in _without_mask(x)],
            [float(one) for one in _without_mask(y)])
            for key, (x, y) in value.items()}
        if curves and all(
                len(x) == len(y) and _drawable([one for one in (*x, *y)
                                                if not isinstance(one, str)])
                for x, y in curves.values()):
            return curves
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        pass
    refuse(name, _plain(given), 'a table, or a dict such as '
           "{'ring': ([2, 4, 8], [10, 15, 17])}, of numbers to 1e100")


def _without_mask(values):
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError('it has a mask')
    return values


def _drawable(numbers):
    """Are none too large for an axis? nan and inf are gaps."""
    return not any(MOST < abs(one) < inf for one in numbers)


def _plain(table):
    """What can be shown in a few words in an error."""
    return table.to_numpy() if hasattr(table, 'to_numpy') else table


def _ends(name, values, limit, scale):
    """The two ends of an axis, with a little room beyond the data."""
    known = [value for value in values if isfinite(value)
             and (scale == 'linear' or value > 0)] or [1]
    low, high = min(known), max(known)
    if scale == 'log':
        room = max(10 ** (0.04 * (log10(high) - log10(low))), 1.05)
        ends = low / room, high * room
    else:
        room = 0.05 * (high - low)
        if high - low <= max(LEAST, 1e-12 * abs(high)):  # the same number
            room = abs(0.1 * high) if abs(high) > LEAST else 1
        ends = low - room, high + room
    low, high = (end if given is None else given
                 for end, given in zip(ends, limit or (None, None)))
    if high - low <= max(LEAST, 1e-12 * abs(high)):
        raise ValueError(f'{name} must be two numbers, the smaller one first, '
                         f'with more than rounding between them; it was '
                         f'{limit}, of an axis from {low:g} to {high:g}')
    return low, high


def _styled(names, given, usual):
    """A style, or a colour, for each name: from a list, a dict, or usual."""
    if isinstance(given, str):
        given = [given] * len(names)
    if isinstance(given, dict):
        return [given.get(name, usual[k % len(usual)])
                for k, name in enumerate(names)]
    given = [*(given or usual)]
    return [given[k % len(given)] for k in range(len(names))]


@checked(_above_zero, curves=_curves, xlabel=TEXT, ylabel=TEXT, title=TEXT,
         xscale=SCALE, yscale=SCALE, xlim=_limit, ylim=_limit, xticks=_ticks,
         yticks=_ticks, lines=_numbers, verticals=_numbers, points=_points,
         styles=STYLED, colors=COLORED, steps=boolean, **PIXELS)
def plot_curves(curves: Table, xlabel: str = '', ylabel: str = '',
                title: str = '', xscale: str = 'linear',
                yscale: str = 'linear', xlim: Ends | None = None,
                ylim: Ends | None = None, xticks: Ticks | None = None,
                yticks: Ticks | None = None, styles: Styles | None = None,
                colors: Styles | None = None, lines: Any = None,
                verticals: Any = None, points: Any = None, steps: bool = False,
                width: float = 640, height: float = 320) -> Drawing:
    """Curves over a common axis, as a `Drawing`.

    curves: a table, with a curve for each column over its index, or a dict
    of (x, y) by name. x may be words.
    xlim, ylim: ends of an axis, such as (0, None): None follows the data.
    xticks, yticks: values to be named, or their words by value.
    styles: for the curves in order, or by name, such as '-', '--', 'o',
    's-' (see `Chart.curve`). colors: the same for colours.
    lines, verticals: words by a value of y, or x, that has a line across;
    given as {words: value}. points: {words: (x, y)}, marked by a dot.
    steps: a value holds until the next one.
    A legend is there if there are several curves, or such lines.
    """
    names = [*curves]
    words = [x for x in curves[names[0]][0] if isinstance(x, str)]
    if words:  # such as sizes: '4 kB', '1 MB'
        curves = {name: ([words.index(x) for x in xs], ys)
                  for name, (xs, ys) in curves.items()}
        xticks = dict(enumerate(words))
        xlim = xlim or (-0.3, len(words) - 0.7)
    styles = _styled(names, styles, STYLES)
    colors = _styled(names, colors, COLORS)
    lines, verticals, points = lines or {}, verticals or {}, points or {}
    legend = [*zip(names, colors, styles)] if len(names) > 1 or (
        lines or verticals) else []
    ruled = [*((text, RULE, (None, y), dash) for (text, y), dash
               in zip(lines.items(), RULES * len(lines))),
             *((text, RULE, (x, None), dash) for (text, x), dash
               in zip(verticals.items(), RULES[::-1] * len(verticals)))]
    legend += [(text, color, dash) for text, color, _, dash in ruled]
    legend = [(text or ' ', color, style) for text, color, style in legend]
    all_xs = [x for xs, _ in curves.values() for x in xs]
    all_ys = [y for _, ys in curves.values() for y in ys]
    at = [*points.values()]
    chart = new_chart(
        width, height, _alt_text(curves, xlabel, ylabel, title),
        _ends('xlim', [*all_xs, *verticals.values(), *(x for x, _ in at)],
              xlim, xscale),
        _ends('ylim', [*all_ys, *lines.values(), *(y for _, y in at)],
              ylim, yscale),
        title=title, xlabel=xlabel, ylabel=ylabel, xscale=xscale,
        yscale=yscale, xticks=xticks, yticks=yticks, legend=legend,
        legend_at=_beside(legend, width))
    for text, color, (x, y), dash in ruled:
        chart.rule(x, y, color, dash)
    for name, color, style in zip(names, colors, styles):
        xs, ys = curves[name]
        chart.curve(xs, ys, color, style, steps=steps)
    for text, (x, y) in points.items():
        right = chart.x(x) + width_of(text, WORDS) + 12 > chart.right
        chart.curve([x], [y], INK, 'o')
        chart.text(x, y, text, -10 if right else 10, 13,
                   'end' if right else 'start', plate=True)
    return chart.drawing


def _beside(legend, width):
    """Where there is room for a legend."""
    wide = max([width_of(words, WORDS) for words, *_ in legend], default=0)
    return 'right' if wide + 52 < 0.36 * width and len(legend) > 3 else (
        'below')


def _alt_text(curves, xlabel, ylabel, title):
    """The alternative text: where each curve begins and ends."""
    parts = []
    for name, (xs, ys) in curves.items():
        known = [(x, y) for x, y in zip(xs, ys) if isfinite(y)]
        if not known:
            continue
        (x1, y1), (x2, y2) = known[0], known[-1]
        if len(known) == 1:
            course = f'{format_number(y1)} at {_at(x1)}'
        else:
            top, low = max(y for _, y in known), min(y for _, y in known)
            course = (f'from {format_number(y1)} at {_at(x1)} to '
                      f'{format_number(y2)} at {_at(x2)}')
            if top > max(y1, y2):
                course += f', at most {format_number(top)}'
            if low < min(y1, y2):
                course += f', at least {format_number(low)}'
        parts.append(f'{name}: {course}' if name else course)
    axes = ' against '.join(filter(None, (ylabel, xlabel)))
    begin = ': '.join(filter(None, (title, axes))) or 'Curves'
    return f'{begin}. {"; ".join(parts)}.'


def _at(x):
    return x if isinstance(x, str) else format_number(x)


def _table(name, value):
    """Names of rows, names of columns, and a matrix."""
    given = value
    try:
        if isinstance(value, dict):
            value = [*value.items()]
        if isinstance(value, list):  # names may be there twice
            rows, numbers = zip(*value)
            matrix = as_array(numbers, float).reshape(len(rows), -1)
            columns = [''] * matrix.shape[1]
        else:
            if hasattr(value, 'to_frame'):  # a Series
                value = value.to_frame('')
            rows, columns = value.index, value.columns
            matrix = value.to_numpy(float)
        # In a row without any number there is no bar.
        if matrix.ndim == 2 and matrix.size and (matrix >= 0).any(axis=1).all(
                ) and not ((matrix < 0) | (matrix > MOST)).any():
            return [*map(str, rows)], [*map(str, columns)], matrix
    except (AttributeError, TypeError, ValueError):
        pass
    refuse(name, _plain(given), 'a table, or a dict such as '
           "{'ring': 15, 'tree': 60}, of numbers from 0 to 1e100")


@checked(values=_table, xlabel=TEXT, title=TEXT, stacked=boolean,
         colors=COLORED,
         marks=_marks, alt=TEXT, until=positive,
         width=PIXELS['width'],
         labels=list_of(TEXT, 'a list of texts'),
         columns=list_of(TEXT, 'a list of texts'),
         verticals=list_of(number, 'a list of numbers', 0))
def plot_bars(values: Table, xlabel: str = '', title: str = '',
              stacked: bool = False, colors: Styles | None = None,
              marks: Mapping[str, Sequence[float]] | None = None,
              labels: Sequence[str] | None = None,
              verticals: Sequence[float] = (), until: float | None = None,
              columns: Sequence[str] | None = None, width: float = 640,
              alt: str | None = None) -> Drawing:
    """Bars from left to right with their numbers beside, as a `Drawing`.

    values: a dict or Series of numbers by name, a list of (name, number), or
    a table: a group of bars for each row, or with stacked=True one bar in
    parts, its sum beside. A dict of lists is a table, too; columns: the
    names of its columns.
    colors: of the columns, or of the bars if there is one column; a list, or
    a dict by name. marks: {words: a value for each row}, upright ticks.
    labels: words beside the bars of a single column, not their numbers.
    verticals: values that have a dashed line across. until: end of the axis,
    to compare two pictures. alt: the words for who does not see it.
    """
    rows, names, numbers = values
    columns, marks = columns or names, marks or {}
    if len(columns) != len(names):
        raise ValueError(f'columns must be the names of {len(names)} columns; '
                         f'there were {len(columns)}')
    several = len(columns) > 1
    if several:
        inks = [[*_styled(columns, colors, COLORS)]] * len(rows)
    else:
        inks = [[color] for color in _styled(rows, colors, [BLUE])]
    sums = np.nansum(numbers, axis=1)
    ends = sums if stacked else np.nanmax(numbers, axis=1)
    longest = max([*ends, *verticals, *(max(given)
                                        for given in marks.values())])
    if labels and (several or len(labels) != len(rows)):
        raise ValueError(f'labels must be one for each of {len(rows)} bars, '
                         f'in one column; there were {len(labels)}')
    texts = labels or [format_number(one) for one in sums]
    room = max(width_of(words, WORDS) * 1.13 for words in [
        *texts, *map(format_number, [] if stacked else numbers.flat)]) + 14
    legend = [(name, color, 'box') for name, color in
              zip(columns, inks[0])] if several else []
    legend += [(words, INK, '|') for words in marks]
    left = max(width_of(name, WORDS) for name in rows) + 14
    inner = max(width - left - 16, 120)
    until = until or (longest or 1) * inner / max(inner - room, 60)
    bars = 1 if stacked else len(columns)
    chart = row_chart(
        rows, until, alt or _bars_alt_text(
            (rows, columns, numbers), xlabel, title), width=width,
        high=26 if bars == 1 else 12 + 18 * bars, title=title, xlabel=xlabel,
        legend=legend, least_left=0)
    for row in range(len(rows)):
        begin, high = 0, 0.72 if bars == 1 else 0.84
        for k, one in enumerate(numbers[row]):
            one = 0 if np.isnan(one) else one
            low = row - high / 2 + (0 if stacked else k * high / bars)
            chart.bar(begin, begin + one, low, low + high / bars,
                      inks[row][k], format_number(one) if stacked else '')
            if not stacked:
                words = format_number(one) if several else texts[row]
                at = _free(chart, one, words, [
                    *verticals, *(given[row] for given in marks.values())])
                chart.text(at, low + high / bars / 2, words, 6, 0, 'start')
            begin += stacked * one
        if stacked:
            at = _free(chart, begin, texts[row], [
                *verticals, *(given[row] for given in marks.values())])
            chart.text(at, row, texts[row], 6, 0, 'start', bold=True)
    for one in verticals:
        chart.rule(x=one)
    for given in marks.values():
        chart.curve([*given], range(len(rows)), INK, '|', size=1.1)
    return chart.drawing


def _free(chart, value, words, marks):
    """Where words may stand beside a bar: after a mark that they would hit."""
    room = width_of(words, WORDS, True) + 9
    for mark in sorted(marks):
        if -9 < chart.x(mark) - chart.x(value) < room:
            value = mark
    return value


def _bars_alt_text(values, xlabel, title):
    rows, columns, matrix = values
    parts = [f'{row}: ' + ', '.join(
        (f'{column} ' if column else '') + format_number(one)
        for column, one in zip(columns, numbers))
        for row, numbers in zip(rows, matrix.tolist())]
    begin = ': '.join(filter(None, (title, xlabel))) or 'Bars'
    return f'{begin}. {"; ".join(parts)}.'


def _matrix(name, value):
    try:
        found = as_array(value, float)
    except ValueError:
        found = np.zeros(0)
    if found.ndim != 2 or not 0 < found.size <= 2500 or not _drawable(
            found.flat) or np.isnan(found).all():
        refuse(name, _plain(value), 'a matrix of at most 2,500 numbers')
    return found


def _names(name, value):
    """Words, of numbers as a reader wants them."""
    text_or_number = either(TEXT, any_number, words='a text or a number')
    given = [*value] if isinstance(value, range) else value
    list_of(text_or_number, 'a list of texts or numbers')(name, given)
    return [one if isinstance(one, str) else format_number(one)
            for one in given]


@checked(values=_matrix, rows=_names, columns=_names,
         xlabel=TEXT, ylabel=TEXT, title=TEXT, most=number)
def plot_grid(values: Array, rows: Sequence[object] | None = None,
              columns: Sequence[object] | None = None, xlabel: str = '',
              ylabel: str = '', title: str = '', most: float | None = None
             ) -> Drawing:
    """A matrix of numbers, each in a cell that is the darker the larger.

    rows, columns: their names, or numbers from 0. most: what is darkest, to
    compare several. Returns a `Drawing`.
    """
    rows = rows or [*map(str, range(len(values)))]
    columns = columns or [*map(str, range(values.shape[1]))]
    if (len(rows), len(columns)) != values.shape:
        raise ValueError(f'values has {len(values)} rows and '
                         f'{values.shape[1]} columns; there were {len(rows)} '
                         f'and {len(columns)} names')
    most = most or max(np.nanmax(values), 0) or 1
    words = [[format_number(one) for one in row] for row in values]
    wide = max(40, *(width_of(one, WORDS) + 10 for row in [*words, columns]
                     for one in row))
    left = max(width_of(row, WORDS) for row in rows) + 16
    top = 8 + 20 * bool(title) + 18 * bool(ylabel)
    width = max(left + wide * len(columns) + 12,
                width_of(title, 13, True) + 10,
                width_of(ylabel, WORDS) + 10,
                left + width_of(xlabel, WORDS) + 10)
    drawing = Drawing(width, top + 32 * len(rows) + 24 + 18 * bool(xlabel),
                      _grid_alt_text(values, rows, xlabel, ylabel,
                                     title))
    if title:
        drawing.text(4, 16, title, 13, 'start', bold=True)
    if ylabel:
        drawing.text(4, top - 8, ylabel, WORDS, 'start')
    for row, name in enumerate(rows):
        y = top + 32 * row
        drawing.text(left - 8, y + 16, name, WORDS, 'end')
        for column, value in enumerate(values[row]):
            shade = _shade(value / most)
            drawing.add(f'<rect x="{left + wide * column:g}" y="{y:g}" '
                        f'width="{wide:g}" height="32" fill="{shade}" '
                        'stroke="white"/>')
            drawing.text(left + wide * (column + 0.5), y + 16,
                         words[row][column], WORDS, fill=ink_on(shade))
    y = top + 32 * len(rows)
    for column, name in enumerate(columns):
        drawing.text(left + wide * (column + 0.5), y + 13, name, WORDS)
    if xlabel:
        drawing.text(left, y + 32, xlabel, WORDS, 'start')
    return drawing


def _shade(share):
    """From nearly white to blue."""
    share = 0 if np.isnan(share) else min(max(share, 0), 1)
    return '#' + ''.join(f'{round(light + share * (dark - light)):02x}'
                         for light, dark in zip((240, 244, 248),
                                                (0, 84, 140)))


def _grid_alt_text(values, rows, xlabel, ylabel, title):
    parts = '; '.join(f'row {name}: ' + ', '.join(map(format_number, row))
                     for name, row in zip(rows, values))
    axes = ', '.join(filter(None, (
        ylabel and f'rows: {ylabel}', xlabel and f'columns: {xlabel}')))
    begin = '. '.join(filter(None, (title, axes))) or 'A grid of numbers'
    return f'{begin}. {parts}.'
