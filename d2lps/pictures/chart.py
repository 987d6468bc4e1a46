"""Charts on a `Drawing`: axes, and what is drawn in units of the data.

    chart = new_chart(640, 300, 'A line goes up.', xlim=(0, 10), ylim=(0, 5),
                      xlabel='time / ms', title='One line')
    chart.curve([0, 10], [1, 4], color=BLUE, style='--')
    chart.drawing  # shows itself

For several charts in one picture: `Chart(drawing, left, top, width, height,
**the same)`, once for each. `row_chart` has a row with a name for each of
some things, for bars on a common time axis. Numbers of pixels count from the
top left; `chart.x(value)` and `chart.y(value)` say where a value lies, so
that all that a `Drawing` can do may be added.
"""
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import Any, Self, TypeAlias

from d2lps.checks import shown
from d2lps.pictures.drawing import INK, Drawing, Point, width_of
from d2lps.pictures.style import CHUNK_COLORS, rgb

Limits: TypeAlias = tuple[float, float]  # both ends of an axis
Ticks: TypeAlias = Sequence[float] | Mapping[float, str]
Span: TypeAlias = tuple[float, float, float, float]  # x1, x2, y1, y2
Entry: TypeAlias = tuple[str, str, str]  # of a legend: words, colour, style
TITLE, WORDS = 13, 12
AXIS, GRID = '#888', '#e6e6e6'
DASHES = {'-': '', '--': '7 4', ':': '2 3', '-.': '8 3 2 3'}
MARKERS = {  # from the middle, in halves of the marker's width
    'o': '', '.': '',  # circles: see `_scaled`
    's': 'm-.9 -.9l1.8 0l0 1.8l-1.8 0z', 'D': 'm0 -1.2l1.2 1.2l-1.2 1.2'
    'l-1.2 -1.2z', '^': 'm0 -1.2l1.2 2.2l-2.4 0z',
    'v': 'm0 1.2l1.2 -2.2l-2.4 0z', '<': 'm-1.2 0l2.2 -1.2l0 2.4z',
    '>': 'm1.2 0l-2.2 -1.2l0 2.4z', 'x': 'm-1 -1l2 2m0 -2l-2 2',
    '+': 'm-1.2 0l2.4 0m-1.2 -1.2l0 2.4', '|': 'm0 -2.2l0 4.4',
    'P': 'm-.4 -1.2l.8 0l0 .8l.8 0l0 .8l-.8 0l0 .8l-.8 0l0 -.8l-.8 0l0 -.8'
    'l.8 0z'}
OPEN = 'x+|'  # markers that are lines, not areas
RADIUS = 4.5


def format_number(value: float) -> str:
    """A number as a reader wants it: 0.0123, 1.5, 12.3, 4,321."""
    if value and not 1e-5 < abs(value) < 1e9:
        return f'{value:.3g}'
    return f'{value:,.0f}' if abs(value) >= 99.95 else f'{value:.3g}'


def linear_ticks(low: float, high: float, most: float = 6) -> list[float]:
    """Round numbers from low to high, about `most` of them."""
    wide = (high - low) / max(most, 1)
    step = 10.0 ** floor(log10(wide))
    step *= next((k for k in (1, 2, 5) if k * step >= 0.999 * wide), 10)
    return [round(k * step, 12) for k in range(
        ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, most: float = 6) -> list[float]:
    """Powers of ten from low to high; with few of them 2 and 5 times, too."""
    powers = [*range(floor(log10(low)), ceil(log10(high)) + 1)]
    within = [k for k in powers if 0.999 * low <= 10.0 ** k <= 1.001 * high]
    if len(within) > 2:
        return [10.0 ** k for k in within[::ceil(len(within) / most)]]
    return [k * 10.0 ** power for power in powers for k in (1, 2, 5)
            if 0.999 * low <= k * 10.0 ** power <= 1.001 * high]


def format_tick(value: float) -> str:
    """A tick's number: 0.5, 1,000, and 10⁶ for what is long."""
    if value and not 1e-4 < abs(value) < 1e6:
        power = floor(log10(abs(value)) + 1e-9)
        times = value / 10.0 ** power
        small = str(power).translate(str.maketrans('-0123456789',
                                                   '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))
        return ('' if round(times, 6) == 1 else f'{times:g}·') + f'10{small}'
    return f'{value:,.10g}'


def wrapped(words: object, size: float, width: float, bold: bool = False
           ) -> list[str]:
    """Words in lines that are at most `width` pixels wide."""
    lines: list[str] = []
    for word in str(words).split(' '):
        if lines and width_of(f'{lines[-1]} {word}', size, bold) <= width:
            lines[-1] += f' {word}'
        else:
            lines.append(word)
    return lines


def parted(style: str) -> tuple[str, str]:
    """A marker and a line: ('o', '--') of 'o--' or '--o'."""
    marker = ''.join(c for c in style if c in MARKERS and c != '.')
    line = style.replace(marker, '') if marker else style
    if line == '.':
        marker, line = '.', ''
    if not style or len(marker) > 1 or line and line not in DASHES:
        raise ValueError(
            f'style must be a line, a marker or both: {", ".join(DASHES)} '
            f'and one of {"".join(MARKERS)}; it was {shown(style)}')
    return marker, line


def ink_on(color: str) -> str:
    """White or black, whichever is read more easily upon a colour."""
    red, green, blue = rgb(color)
    return 'white' if 0.3 * red + 0.59 * green + 0.11 * blue < 140 else INK


class Chart:
    """Axes in a box of a `Drawing`; all words are inside of that box.

    left, top, width, height: the whole box, in pixels.
    xlim, ylim: the two ends of an axis, in units of the data; those of y may
    be turned round. xscale, yscale: 'linear' or 'log'.
    xticks, yticks: values, or a dict of their words; without it, round ones.
    legend: a list of (words, colour, style), below the chart or, with
    legend_at='right', beside it; style: as in `curve`, 'box', or 'box 3'
    for one with pattern 3.
    grid: of which axes there are lines, such as 'xy'.
    least_left: room for the words on the left, so that charts one below the
    other begin at the same place.
    """

    def __init__(self, drawing: Drawing, left: float, top: float, width: float,
                 height: float, xlim: Limits, ylim: Limits, *, title: str = '',
                 xlabel: str = '', ylabel: str = '', xscale: str = 'linear',
                 yscale: str = 'linear', xticks: Ticks | None = None,
                 yticks: Ticks | None = None, legend: Sequence[Entry] = (),
                 legend_at: str = 'below', grid: str = 'xy',
                 least_left: float = 0) -> None:
        self.drawing, self.xlim, self.ylim = drawing, xlim, ylim
        self.xscale, self.yscale = xscale, yscale
        titles = wrapped(title, TITLE, width - 8, True) if title else []
        beside, below = 0.0, 0
        if legend and legend_at == 'right':
            beside = legend_width(legend)
        elif legend:
            below = 20 * len(_legend_rows(legend, width)) + 6
        beside_y = wrapped(ylabel, WORDS, width - 8) if ylabel else []
        upper = (top + 6 + 17 * len(titles) + 4 * (not titles)
                 + (10 + 15 * len(beside_y) if ylabel else 0))
        lower = top + height - 24 - _below(xlabel, width) - below
        if xticks == []:
            lower += 16
        if yticks is None:
            yticks = _ticks(ylim, yscale, max(2, (lower - upper) / 36))
        y_names = _named(yticks)
        wide = max([width_of(words, WORDS) for words in y_names.values()],
                   default=0)
        self.left = left + max(wide + 14, least_left)
        self.right = left + width - max(16, beside)
        self.top, self.bottom = upper, lower
        if xticks is None:
            xticks = _ticks(xlim, xscale, max(2, (self.right - self.left)
                                              / 80))
        x_names = _named(xticks)
        if not beside:  # the last words are centred at the end of the axis
            self.right -= max([0, *(width_of(words, WORDS) / 2 - 14
                                    for words in x_names.values())])
        self._axes(x_names, y_names, grid)
        if titles:
            drawing.text(left + 4, top + 6 + 8.5 * len(titles),
                         '\n'.join(titles), TITLE, 'start', bold=True)
        if ylabel:
            drawing.text(left + 4, upper - 9.5 - 7.5 * len(beside_y),
                         '\n'.join(beside_y), WORDS, 'start')
        if xlabel:
            lines = wrapped(xlabel, WORDS, width - 8)
            half = max(width_of(line, WORDS) for line in lines) / 2
            middle = min(max((self.left + self.right) / 2, left + half + 4),
                         left + width - half - 4)
            drawing.text(middle, lower + 25 + 7 * len(lines)
                         - 14 * (not xticks), '\n'.join(lines), WORDS)
        if legend:
            drawing.add('<g class="legend">')
        if beside:
            for k, entry in enumerate(legend):
                self._entry(self.right + 12, upper + 10 + 20 * k, *entry)
        elif below:
            for k, row in enumerate(_legend_rows(legend, width)):
                x, y = left + 10, top + height - below + 8 + 20 * k
                for entry in row:
                    self._entry(x, y, *entry)
                    x += legend_width([entry])
        if legend:
            drawing.add('</g>')

    def x(self, value: float) -> float:
        """Where a value of the data lies, in pixels from the left."""
        return self.left + _share(value, self.xlim, self.xscale) * (
            self.right - self.left)

    def y(self, value: float) -> float:
        """Where a value of the data lies, in pixels from the top."""
        return self.bottom - _share(value, self.ylim, self.yscale) * (
            self.bottom - self.top)

    def _axes(self, xticks, yticks, grid):
        draw = self.drawing
        places = [(words, self.x(value)) for value, words
                  in sorted(xticks.items()) if _inside(value, self.xlim)]
        lines = []
        if 'x' in grid:
            lines += [f'M{x:.1f} {self.top:.1f}V{self.bottom:.1f}'
                      for _, x in places]
        if 'y' in grid:
            lines += [f'M{self.left:.1f} {self.y(value):.1f}H'
                      f'{self.right:.1f}' for value in yticks
                      if _inside(value, self.ylim)]
        if lines:
            draw.add(f'<path class="grid" d="{"".join(lines)}" fill="none" '
                     f'stroke="{GRID}" stroke-width="1"/>')
        draw.add(f'<path class="axes" d="M{self.left:.1f} {self.top:.1f}V'
                 f'{self.bottom:.1f}H{self.right:.1f}" fill="none" '
                 f'stroke="{AXIS}" stroke-width="1"/>')
        end = -1e9
        for words, x in places:  # those that would meet are left out
            half = width_of(words, WORDS) / 2
            if words and x - half > end:
                end = x + half + 6
                draw.text(x, self.bottom + 13, words, WORDS)
        for value, words in yticks.items():
            if words and _inside(value, self.ylim):
                draw.text(self.left - 7, self.y(value), words, WORDS, 'end')

    def _entry(self, x, y, words, color, style):
        box = style.startswith('box')
        if box:
            self.drawing.box(x, y - 6, 18, 12, fill=color, stroke=AXIS)
            if style != 'box':
                self.drawing.add(self.drawing.hatch(x, y - 6, 18, 12,
                                                    int(style[4:])))
        else:
            marker, line = parted(style)
            if line:
                self.drawing.add(_path(f'M{x:.1f} {y:.1f}h28', color, 2,
                                       DASHES[line]))
            if marker:
                self.drawing.add(_marks([(x + 14, y)], marker, color))
        wide = 24 if box else 34
        self.drawing.text(x + wide, y, words, WORDS, 'start')

    def curve(self, xs: Iterable[float], ys: Iterable[float],
              color: str = CHUNK_COLORS[0], style: str = '-', width: float = 2,
              opacity: float = 1, steps: bool = False, size: float = 1
             ) -> Self:
        """A line, markers or both through points.

        style: a line (-, --, :, -.), a marker (o . s ^ v < > D x + P |), or
        both, such as 'o--'. What is no number makes a gap. steps: a value
        holds until the next point. size: of markers, 1 is usual.
        """
        marker, line = parted(style)
        runs: list[list[Point]] = [[]]
        beyond = False
        for x, y in zip(xs, ys):
            if not (isfinite(x) and isfinite(y)) or (
                    self.xscale == 'log' and x <= 0) or (
                    self.yscale == 'log' and y <= 0):
                runs.append([])
                continue
            beyond |= not (_inside(x, self.xlim) and _inside(y, self.ylim))
            runs[-1].append((self.x(x), self.y(y)))
        shapes = []
        if line:
            d = ''.join(_svg_path(run, steps) for run in runs if len(run) > 1)
            if d:
                shapes.append(_path(d, color, width, DASHES[line], opacity))
        if marker:
            points = [point for run in runs for point in run]
            if points:
                shapes.append(_marks(points, marker, color, opacity,
                                     RADIUS * size))
        if beyond and shapes:  # a picture in the picture cuts what is outside
            box = (f'{self.left:.1f} {self.top:.1f} '
                   f'{self.right - self.left:.1f} '
                   f'{self.bottom - self.top:.1f}')
            left, top, wide, high = box.split()
            shapes = [f'<svg x="{left}" y="{top}" '
                      f'width="{wide}" height="{high}" '
                      f'viewBox="{box}">', *shapes, '</svg>']
        if shapes:
            self.drawing.add(''.join(shapes))
        return self

    def bar(self, x1: float, x2: float, y1: float, y2: float, color: str,
            text: object = '', pattern: int | None = None) -> Self:
        """A filled box between two values of x and two of y.

        text: words in its middle, if they fit. pattern: a device's number,
        for its pattern. What lies beyond the ends of x is cut.
        """
        ends = sorted(self.xlim)
        x1, x2 = [self.x(min(max(x, ends[0]), ends[1]))
                  for x in sorted((x1, x2))]
        y1, y2 = sorted((self.y(y1), self.y(y2)))
        draw = self.drawing
        edge = ' stroke="white" stroke-width=".6"' if x2 - x1 > 2 else ''
        draw.add(f'<rect x="{x1:.2f}" y="{y1:.2f}" width="{x2 - x1:.2f}" '
                 f'height="{y2 - y1:.2f}" fill="{color}"{edge}/>')
        if pattern is not None:
            draw.add(draw.hatch(x1, y1, x2 - x1, y2 - y1, pattern))
        if text != '' and width_of(text, WORDS) + 4 <= x2 - x1:
            hatched = pattern is not None
            draw.text((x1 + x2) / 2, (y1 + y2) / 2, text, WORDS,
                      fill=INK if hatched else ink_on(color), plate=hatched)
        return self

    def bars(self, spans: Iterable[Span], color: str,
             pattern: int | None = None) -> Self:
        """Many filled boxes (x1, x2, y1, y2) of one colour, without words.

        They take little room: all are one shape, and slivers on the same
        spot are one box. pattern: a number for a pattern of lines on them.
        """
        low, high = sorted(self.xlim)
        boxes = sorted(
            (*sorted((round(self.y(y1), 2), round(self.y(y2), 2))),
             round(self.x(max(x1, low)), 1), round(self.x(min(x2, high)), 1))
            for x1, x2, y1, y2 in spans if x1 <= high and x2 >= low)
        joined: list[list[float]] = []
        for top, bottom, x1, x2 in boxes:
            if joined and joined[-1][:2] == [top, bottom] and (
                    x1 - joined[-1][3] < 0.3 and min(
                        x2 - x1, x1 - joined[-1][2]) < 1.5):
                joined[-1][3] = max(x2, joined[-1][3])
            else:
                joined.append([top, bottom, x1, x2])
        for thin in False, True:  # a white edge would hide the thin ones
            d = ''.join(f'M{x1:g} {top:g}H{max(x2, x1 + 0.4):g}V{bottom:g}'
                        f'H{x1:g}z' for top, bottom, x1, x2 in joined
                        if (x2 - x1 < 3) == thin)
            edge = '' if thin else ' stroke="white" stroke-width=".6"'
            if d:
                self.drawing.add(f'<path class="bars" d="{d}" fill="{color}"'
                                 f'{edge}/>')
            if d and pattern and not thin:
                self.drawing.add(self.drawing.pattern_on(d, pattern))
        return self

    def rule(self, x: float | None = None, y: float | None = None,
             color: str = INK, style: str = '--', text: str = '') -> Self:
        """A line right across, at a value of x, with words at it, or of y."""
        if x is not None:
            at = self.x(x)
            d = f'M{at:.1f} {self.top:.1f}V{self.bottom:.1f}'
        elif y is not None:
            at = self.y(y)
            d = f'M{self.left:.1f} {at:.1f}H{self.right:.1f}'
        else:
            raise ValueError('a rule needs a value of x or of y')
        self.drawing.add(_path(d, color, 1.3, DASHES[style]))
        if text:
            right = at + width_of(text, WORDS) + 8 > self.right
            self.drawing.text(at - 5 if right else at + 5, self.top + 9, text,
                              WORDS, 'end' if right else 'start')
        return self

    def text(self, x: float, y: float, words: object, dx: float = 0,
             dy: float = 0, anchor: str = 'middle', **how: Any) -> Self:
        """Words at a point of the data, moved by (dx, dy) pixels."""
        self.drawing.text(self.x(x) + dx, self.y(y) + dy, words, WORDS,
                          anchor, **how)
        return self


def new_chart(width: float, height: float, alt: str, xlim: Limits,
              ylim: Limits, **axes: Any) -> Chart:
    """A `Chart` that has a `Drawing` of its own; axes: as for `Chart`."""
    drawing = Drawing(width, height, alt)
    return Chart(drawing, 0, 0, width, height, xlim, ylim, **axes)


def row_chart(names: Sequence[object], until: float, alt: str, *,
              width: float = 720, high: float = 26, title: str = '',
              least_left: float = 92, grid: str = 'x',
              ends: Limits | None = None, **axes: Any) -> Chart:
    """A `Chart` with a row for each name, the first on top, from 0 to until.

    Row k lies between y = k - 0.5 and k + 0.5; `high`: its pixels. ends: of
    the axis, if it does not begin at 0.
    """
    titles = len(wrapped(title, TITLE, width - 8, True)) if title else 0
    legend = axes.get('legend', ())
    below = 20 * len(_legend_rows(legend, width)) + 6 if legend else 0
    height = (6 + 17 * titles + 4 * (not titles) + high * len(names) + 24
              + _below(axes.get('xlabel'), width) + below
              - 16 * (axes.get('xticks') == []))
    return new_chart(
        width, height, alt, ends or (0, until), (len(names) - 0.5, -0.5),
        title=title, yticks=dict(enumerate(map(str, names))),
        least_left=least_left, grid=grid, **axes)


def stack(*drawings: Drawing) -> Drawing:
    """Drawings one below the other, as one."""
    whole = Drawing(max(one.width for one in drawings),
                    sum(one.height for one in drawings),
                    ' '.join(one.alt for one in drawings))
    down = 0.0
    for one in drawings:
        whole.put(one, 0, down)
        down += one.height
    return whole


def legend_width(legend: Iterable[Entry]) -> float:
    """How much room entries of a legend take, one below the other."""
    return max((24 if style[:3] == 'box' else 34) + width_of(words, WORDS) + 18
               for words, _, style in legend)


def _below(xlabel, width):
    """Pixels for the words below an axis."""
    return 4 + 14 * len(wrapped(xlabel, WORDS, width - 8)) if xlabel else 0


def _legend_rows(legend, width):
    """The entries in lines that are not too wide."""
    rows, used = [[]], 10
    for entry in legend:
        wide = legend_width([entry])
        if rows[-1] and used + wide > width:
            rows.append([])
            used = 10
        rows[-1].append(entry)
        used += wide
    return rows


def _ticks(limits, scale, most):
    low, high = sorted(limits)
    return (log_ticks if scale == 'log' else linear_ticks)(low, high, most)


def _named(ticks):
    return (ticks if isinstance(ticks, dict) else
            {value: format_tick(value) for value in ticks})


def _share(value, limits, scale):
    low, high = limits
    if scale == 'log':
        value, low, high = log10(value), log10(low), log10(high)
    return (value - low) / (high - low)


def _inside(value, limits):
    low, high = sorted(limits)
    slack = 1e-6 * (high - low)
    return low - slack <= value <= high + slack


def _svg_path(points, steps):
    """A path through points; what would lie on one pixel is left out."""
    points = [(round(x, 1), round(y, 1)) for x, y in points]
    if steps:
        points = [points[0], *(corner for (_, y), (x, new) in pairwise(points)
                               for corner in ((x, y), (x, new)))]
    kept = points[:1]
    for point, after in pairwise(points[1:]):
        if not _between(kept[-1], point, after):
            kept.append(point)
    if len(points) > 1:
        kept.append(points[-1])
    return 'M' + 'L'.join(f'{x:g} {y:g}' for x, y in kept)


def _between(before, point, after):
    """Is it on the straight line, upright or level, to the next one?"""
    (x1, y1), (x, y), (x2, y2) = before, point, after
    upright = x1 == x == x2 and (y - y1) * (y2 - y) >= 0
    level = y1 == y == y2 and (x - x1) * (x2 - x) >= 0
    return point == before or upright or level


def _path(d, color, width, dash='', opacity=1):
    dash = f' stroke-dasharray="{dash}"' if dash else ''
    faint = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ''
    return (f'<path d="{d}" fill="none" stroke="{color}" stroke-width="'
            f'{width:g}" stroke-linejoin="round"{dash}{faint}/>')


def _marks(points, marker, color, opacity=1, radius=RADIUS):
    """Markers in one path: each begins with M and its middle."""
    shape = _scaled(marker, radius)
    # Where two lie on the same pixel, one is enough.
    d = ''.join(dict.fromkeys(f'M{x:.1f} {y:.1f}{shape}' for x, y in points))
    faint = f' opacity="{opacity:g}"' if opacity < 1 else ''
    paint = (f'fill="none" stroke="{color}" stroke-width="2"'
             if marker in OPEN else
             f'fill="{color}" stroke="white" stroke-width=".8"')
    return f'<path class="marks" d="{d}" {paint}{faint}/>'


def _scaled(marker, radius):
    if marker in 'o.':
        r = radius * (1 if marker == 'o' else 0.55)
        return (f'm{-r:.3g} 0a{r:.3g} {r:.3g} 0 1 0 {2 * r:.3g} 0'
                f'a{r:.3g} {r:.3g} 0 1 0 {-2 * r:.3g} 0')
    return re.sub(r'-?[\d.]+', lambda found: (
        f'{float(found[0]) * radius:.3g}'), MARKERS[marker])
