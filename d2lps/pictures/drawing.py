"""Boxes, arrows and words in one style: an SVG picture, shown as an image."""
from base64 import b64encode
from html import escape
from pathlib import Path

from d2lps.checks import checked, positive, text
from d2lps.pictures.style import CHUNK_COLORS

# One for each device, so that a picture is read without colours, too: lines
# of a pattern that is 8 wide and 8 high.
PATTERNS = ('', 'M0 8L8 0', 'M0 4H8', 'M0 0L8 8', 'M4 0V8', 'M0 4H8M4 0V8',
            'M0 0L8 8M0 8L8 0', 'M4 3v2')
INK, PALE, FRAME = '#222', '#f4f4f4', '#555'


def color(device):
    """The colour of a device's contribution, or of a chunk."""
    return CHUNK_COLORS[device % len(CHUNK_COLORS)]


class Drawing:
    """A picture of `width` x `height` pixels; what is drawn later is on top.

    alt: what one sees, in words, for those who do not.
    In a notebook it shows itself: as an image, which a notebook may show
    that was run elsewhere.
    """

    @checked(width=positive, height=positive, alt=text)
    def __init__(self, width, height, alt):
        self.width, self.height, self.alt = width, height, alt
        self._shapes, self._patterns = [], set()

    def add(self, shape):
        """A shape of your own, as SVG."""
        self._shapes.append(shape)
        return self

    def box(self, x, y, width, height, text='', fill=PALE, size=13,
            dashed=False, stroke=FRAME):
        """A box with words in its middle; with a number, a device's fill."""
        pattern = ''
        if isinstance(fill, int):
            device, fill = fill, color(fill)
            pattern = self.hatch(x, y, width, height, device)
        dash = ' stroke-dasharray="5 4"' if dashed else ''
        self.add(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" '
                 f'height="{height:g}" rx="3" fill="{fill}" '
                 f'stroke="{stroke}"{dash}/>{pattern}')
        if text:
            self.text(x + width / 2, y + height / 2, text, size,
                      halo=bool(pattern))
        return self

    def hatch(self, x, y, width, height, device):
        """The pattern of a device, over a box that is filled: SVG."""
        self._patterns.add(device % len(PATTERNS))
        return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" '
                f'height="{height:g}" rx="3" '
                f'fill="url(#p{device % len(PATTERNS)})"/>')

    def text(self, x, y, text, size=13, anchor='middle', bold=False,
             fill=INK, halo=False):
        """Words around (x, y), a line for each line; anchor: of SVG.

        halo: white around each letter, for words on a pattern.
        """
        around = (' paint-order="stroke" stroke="white" stroke-width="4"'
                  if halo else '')
        lines = str(text).split('\n')
        for k, line in enumerate(lines):
            high = y + size * (0.35 + 1.2 * (k - (len(lines) - 1) / 2))
            weight = ' font-weight="bold"' if bold else ''
            self.add(f'<text x="{x:g}" y="{high:g}" font-size="{size:g}" '
                     f'text-anchor="{anchor}" fill="{fill}"{weight}{around}>'
                     f'{escape(line)}</text>')
        return self

    def line(self, *points, stroke=FRAME, width=1.5, dashed=False):
        """A line through points (x, y)."""
        return self._path(points, stroke, width, dashed, '')

    def arrow(self, *points, stroke=INK, width=2, dashed=False, text='',
              size=12):
        """An arrow through points (x, y), with words beside its middle."""
        self._path(points, stroke, width, dashed, ' marker-end="url(#head)"')
        if text:
            (x1, y1), (x2, y2) = points[:2]
            flat = abs(x2 - x1) > abs(y2 - y1)
            self.text((x1 + x2) / 2 + 6 * (not flat),
                      (y1 + y2) / 2 - 9 * flat, text, size,
                      'middle' if flat else 'start')
        return self

    def _path(self, points, stroke, width, dashed, more):
        dash = ' stroke-dasharray="5 4"' if dashed else ''
        way = 'L'.join(f'{x:g} {y:g}' for x, y in points)
        return self.add(f'<path d="M{way}" fill="none" stroke="{stroke}" '
                        f'stroke-width="{width:g}"{dash}{more}/>')

    def svg(self):
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
            f'aria-label="{escape(self.alt)}"><defs><marker id="head" '
            'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" '
            'markerHeight="5" orient="auto"><path d="M0 0L8 4L0 8z" '
            f'fill="context-stroke"/></marker>{patterns}</defs>'
            f'<rect width="100%" height="100%" fill="white"/>'
            f'{"".join(self._shapes)}</svg>')

    def save(self, path):
        """Write the SVG into a file; returns the drawing itself."""
        Path(path).write_text(self.svg())
        return self

    def _repr_html_(self):
        data = b64encode(self.svg().encode()).decode()
        return (f'<img alt="{escape(self.alt)}" style="max-width:100%" '
                f'src="data:image/svg+xml;base64,{data}">')
