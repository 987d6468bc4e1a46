"""Boxes, arrows and words in one style: SVG pictures, shown as images."""
import sys
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from d2lps import figures
from d2lps.annotations import PathLike
from d2lps.checks import checked, positive, refuse, text, writable
from d2lps.pictures.style import CHUNK_COLORS, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# One for each device, so that a picture is read without colours, too: lines
# of a pattern that is 8 wide and 8 high.
PATTERNS = ('', 'M0 8L8 0', 'M0 4H8', 'M0 0L8 8', 'M4 0V8', 'M0 4H8M4 0V8',
            'M0 0L8 8M0 8L8 0', 'M4 3v2')
Point: TypeAlias = tuple[float, float]  # x and y in pixels, from the top left
PALE, FRAME = '#f4f4f4', '#555'
TITLE, WORDS = 13, 12  # sizes of letters
# Letters that are about half as wide as others, for where no font is known.
NARROW = " .,:;'()-/iIjlrtf"


def color(device: int) -> str:
    """The colour of a device's contribution, or of a chunk."""
    return CHUNK_COLORS[device % len(CHUNK_COLORS)]


@lru_cache(10_000)
def _line_width(line, bold):
    """The width of a line in letters of 100 pixels.

    The font is DejaVu Sans, the widest of those that a drawing asks for.
    """
    try:
        from matplotlib.font_manager import FontProperties, findfont, get_font
    except ImportError:  # a page of the book draws without it
        wide = sum(36 if letter in NARROW else 65 for letter in line)
        return wide * 1.12 if bold else wide
    # get_font gives each thread and each forked process a font of its own. Two
    # processes with one font would move each other's place in its file.
    font = get_font(findfont(FontProperties(
        family='DejaVu Sans', weight='bold' if bold else 'normal')))
    font.set_size(100, 72)
    font.set_text(line)
    return font.get_width_height()[0] / 64


def width_of(text: object, size: float, bold: bool = False) -> float:
    """The width of the longest line, in pixels."""
    return size / 100 * max(_line_width(line, bold)
                            for line in writable(str(text)).split('\n'))


def wrapped(text: object, size: float, width: float, bold: bool = False
           ) -> list[str]:
    """Words in lines that are at most `width` pixels wide."""
    lines: list[str] = []
    for word in str(text).split(' '):
        if lines and width_of(f'{lines[-1]} {word}', size, bold) <= width:
            lines[-1] += f' {word}'
        else:
            lines.append(word)
    return lines


def _alt(name, value):
    """A check for a text; the names of plans may have half characters."""
    return text(name, writable(value) if isinstance(value, str) else value)


class Drawing:
    """A picture of `width` x `height` pixels; what is drawn later is on top.

    alt: what one sees, in words, for those who do not.
    In a notebook it shows itself: as an image, which a notebook may show
    that was run elsewhere.
    """

    @checked(width=positive, height=positive, alt=_alt)
    def __init__(self, width: float, height: float, alt: str) -> None:
        self.width, self.height, self.alt = width, height, alt
        self._shapes: list[str] = []
        self._patterns: set[int] = set()
        self._defined: dict[str, str] = {}  # shapes to be copied: their names

    def add(self, shape: str) -> Self:
        """A shape of your own, as SVG."""
        self._shapes.append(shape)
        return self

    def define(self, shape: str) -> str:
        """Add a shape that only copies show, `<use href="#name">`; its name.

        The same shape is added once.
        """
        if shape not in self._defined:
            name = self._defined[shape] = f's{len(self._defined)}'
            self.add(f'<defs><g id="{name}">{shape}</g></defs>')
        return self._defined[shape]

    def box(self, x: float, y: float, width: float, height: float,
            text: object = '', fill: str | int | Sequence[int] = PALE,
            size: float = 13, dashed: bool = False, stroke: str = FRAME
           ) -> Self:
        """A box with words in its middle.

        fill: a colour, or a device's number for its colour and pattern, or a
        list of numbers: what devices have added up, a band for each.
        """
        devices: Sequence[int] = []
        if isinstance(fill, int):
            devices = [fill]
        elif not isinstance(fill, str):
            devices = fill
        for k, device in enumerate(devices):
            high = height / len(devices)
            band = x, y + high * k, width, high
            self._rect(*band, f'fill="{color(device)}" fill-opacity=".6"')
            self.add(self.hatch(*band, device))
        fill = fill if isinstance(fill, str) else 'none'
        dash = ' stroke-dasharray="5 4"' if dashed else ''
        self._rect(x, y, width, height,
                   f'rx="3" fill="{fill}" stroke="{stroke}"{dash}')
        if text != '':
            self.text(x + width / 2, y + height / 2, text, size,
                      plate=bool(devices))
        return self

    def _rect(self, x, y, width, height, more):
        self.add(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" '
                 f'height="{height:g}" {more}/>')

    def hatch(self, x: float, y: float, width: float, height: float,
              device: int) -> str:
        """The pattern of a device, over a box that is filled: SVG."""
        self._patterns.add(device % len(PATTERNS))
        return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" '
                f'height="{height:g}" '
                f'fill="url(#p{device % len(PATTERNS)})"/>')

    def text(self, x: float, y: float, text: object, size: float = 13,
             anchor: str = 'middle', bold: bool = False, fill: str = INK,
             plate: bool = False) -> Self:
        """Words around (x, y), a line for each line; anchor: of SVG.

        plate: white behind them, for words on a pattern.
        """
        lines = writable(str(text)).split('\n')
        if plate:
            wide, high = width_of(text, size, bold) + 6, 1.2 * size * len(
                lines)
            left = x - 3 - (wide - 6) * {'start': 0, 'middle': 0.5,
                                         'end': 1}[anchor]
            self._rect(left, y - high / 2, wide, high,
                       'rx="3" fill="white" fill-opacity=".9"')
        for k, line in enumerate(lines):
            high = y + size * (0.35 + 1.2 * (k - (len(lines) - 1) / 2))
            weight = ' font-weight="bold"' if bold else ''
            self.add(f'<text x="{x:g}" y="{high:g}" font-size="{size:g}" '
                     f'text-anchor="{anchor}" fill="{fill}"{weight}>'
                     f'{escape(line)}</text>')
        return self

    def badge(self, x: float, y: float, number: int, fill: str = INK) -> Self:
        """A number in a circle, to refer to."""
        self.add(f'<circle cx="{x:g}" cy="{y:g}" r="11" fill="{fill}"/>')
        return self.text(x, y, number, 13, bold=True, fill='white')

    def line(self, *points: Point, stroke: str = FRAME, width: float = 1.5,
             dashed: bool = False) -> Self:
        """A line through points (x, y)."""
        dash = ' stroke-dasharray="5 4"' if dashed else ''
        path = 'L'.join(f'{x:g} {y:g}' for x, y in points)
        return self.add(f'<path d="M{path}" fill="none" stroke="{stroke}" '
                        f'stroke-width="{width:g}"{dash}/>')

    def arrow(self, *points: Point, stroke: str = INK, width: float = 2,
              dashed: bool = False, text: str = '', size: float = 12,
              both: bool = False) -> Self:
        """An arrow through points (x, y), with words beside its middle.

        both: with a head at each end.
        """
        path = [*points]
        path[-1] = self._head(path[-1], path[-2], stroke, width)
        if both:
            path[0] = self._head(path[0], path[1], stroke, width)
        self.line(*path, stroke=stroke, width=width, dashed=dashed)
        if text:
            (x1, y1), (x2, y2) = points[:2]
            flat = abs(x2 - x1) > abs(y2 - y1)
            self.text((x1 + x2) / 2 + 6 * (not flat),
                      (y1 + y2) / 2 - 9 * flat, text, size,
                      'middle' if flat else 'start')
        return self

    def _head(self, tip, before, stroke, width):
        """Draw an arrow's head; returns where the shaft ends."""
        x, y = tip
        long = (4 + 2.5 * width) / (hypot(x - before[0], y - before[1]) or 1)
        dx, dy = (x - before[0]) * long, (y - before[1]) * long
        self.add(f'<path d="M{x:g} {y:g}L{x - dx - dy / 2:g} '
                 f'{y - dy + dx / 2:g}L{x - dx + dy / 2:g} '
                 f'{y - dy - dx / 2:g}z" fill="{stroke}"/>')
        return x - 0.9 * dx, y - 0.9 * dy

    def svg(self) -> str:
        """The picture as SVG, a text."""
        patterns = ''.join(
            f'<pattern id="p{k}" width="8" height="8" '
            f'patternUnits="userSpaceOnUse"><path d="{PATTERNS[k]}" '
            'stroke="white" stroke-opacity=".75" stroke-width="1.5" '
            'fill="none"/></pattern>' for k in sorted(self._patterns))
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" '
            'font-family="DejaVu Sans, Verdana, sans-serif" role="img" '
            f'aria-label="{escape(self.alt)}"><defs>{patterns}</defs>'
            f'<rect width="100%" height="100%" fill="white"/>'
            f'{"".join(self._shapes)}</svg>')

    def save(self, path: PathLike) -> Self:
        """Write the SVG into a file; returns the drawing itself."""
        Path(path).write_text(self.svg(), encoding='utf-8')
        return self

    def __repr__(self) -> str:
        return self.alt  # what a notebook shows where it shows no image

    def _repr_html_(self) -> str:
        data = b64encode(self.svg().encode()).decode()
        return (f'<img alt="{escape(self.alt)}" style="max-width:100%" '
                f'src="data:image/svg+xml;base64,{data}">')


class Row:
    """Pictures side by side; where there is no room, one below the other.

    pictures: `Drawing`s, Matplotlib's figures, or `Axes` that stand for their
    figure. A figure is then shown here, and not once more below the cell.
    """

    def __init__(self, *pictures: Any) -> None:
        if not pictures:
            raise ValueError('a Row needs one picture or more')
        self.pictures = [_picture(picture) for picture in pictures]
        self.alt = ' '.join(map(_alt_of, self.pictures))

    def __repr__(self) -> str:
        return self.alt

    def _repr_html_(self):
        # Images in a line break like words, without any style of ours.
        images = ' '.join(html_of(picture).replace(
            'style="', 'style="vertical-align:top;', 1)
            for picture in self.pictures)
        return f'<div class="d2lps-row">{images}</div>'


def _picture(value):
    """A Drawing or a figure, which Pyplot then no longer shows."""
    if isinstance(value, Drawing):
        return value
    figure = getattr(value, 'figure', None)  # a Figure is its own
    if not hasattr(figure, 'savefig'):
        refuse('a picture of a Row', value, 'a Drawing, a Figure or Axes')
    pyplot = sys.modules.get('matplotlib.pyplot')
    if pyplot:
        pyplot.close(figure)
    return figure


def _alt_of(picture):
    return picture.alt if isinstance(picture, Drawing) else (
        figures.alt_text(picture))


def html_of(picture: Any) -> str:
    """The HTML of a Drawing, a Row or a figure."""
    return (picture._repr_html_() if isinstance(picture, (Drawing, Row))
            else figures.html(picture))


Picture: TypeAlias = 'Drawing | Row | Figure'
