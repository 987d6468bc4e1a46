"""Reads charts back: what is where in a picture, in units of its labels."""
import math
import re
from functools import cache
from itertools import combinations
from typing import NamedTuple
from xml.etree import ElementTree

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

SVG = '{http://www.w3.org/2000/svg}'
FONTS = {bold: FontProperties(family='DejaVu Sans', weight=bold)
         for bold in ('normal', 'bold')}


@cache
def wide(words, size, weight):
    """How wide words are in the font that a drawing asks for first."""
    font = FONTS[weight].copy()
    font.set_size(size)
    return TextToPath().get_text_width_height_descent(words, font, False)[0]


class Text(NamedTuple):
    words: str
    x: float
    y: float
    box: tuple  # left, top, right, bottom
    size: float
    bold: bool
    fill: str
    anchor: str


class Box(NamedTuple):
    color: str
    x1: float
    y1: float
    x2: float
    y2: float


class Marks(NamedTuple):
    color: str
    points: list  # the middle of each
    shape: str


class Line(NamedTuple):
    color: str
    points: list
    dash: str
    width: float
    opacity: float


def numbers(text):
    return [float(word) for word in re.findall(r'-?[\d.]+(?:e-?\d+)?', text)]


def flat(drawing):
    """(element, right, down): all shapes, and how far they are moved.

    What is in a legend has 'legend' as its class.
    """
    def walk(element, right, down):
        for child in element:
            if child.tag == f'{SVG}g':
                if child.get('class') == 'legend':
                    for one in child:
                        one.set('class', 'legend')
                dx, dy = numbers(child.get('transform', '0 0'))
                yield from walk(child, right + dx, down + dy)
            elif child.tag == f'{SVG}svg':
                # Cuts what is outside of it; its units are the picture's.
                assert child.get('viewBox').split() == [
                    child.get(name) for name in ('x', 'y', 'width', 'height')]
                yield from walk(child, right, down)
            elif child.tag != f'{SVG}defs':
                yield child, right, down
    root = ElementTree.fromstring(drawing.svg())
    return [*walk(root, 0, 0)][1:]  # without the white ground


class Shapes:
    """What a drawing has: texts, boxes, lines, marks, and its axes."""

    def __init__(self, drawing):
        self.width, self.height = drawing.width, drawing.height
        self.all = flat(drawing)
        self.texts = [text_of(*one) for one in self.all
                      if one[0].tag == f'{SVG}text']
        self.words = [text.words for text in self.texts]
        self.boxes, self.lines, self.marks, self.axes = [], [], [], []
        self.legend, color = {}, None  # {words: colour of the sign}
        for shape, dx, dy in self.all:
            kind = shape.get('class', '')
            if kind == 'legend':
                if shape.tag == f'{SVG}text':
                    self.legend[shape.text] = color
                elif 'url' not in shape.get('fill', ''):
                    color = (shape.get('stroke') if shape.get('fill') in (
                        None, 'none') else shape.get('fill'))
            elif shape.get('fill-opacity') == '.9':
                pass  # white behind words
            elif shape.tag == f'{SVG}rect' and 'url' not in shape.get('fill'):
                x, y, wide_, high = (float(shape.get(name)) for name in (
                    'x', 'y', 'width', 'height'))
                self.boxes.append(Box(shape.get('fill'), x + dx, y + dy,
                                      x + wide_ + dx, y + high + dy))
            elif shape.tag != f'{SVG}path':
                continue
            elif kind == 'axes':
                left, top, bottom, right = numbers(shape.get('d'))
                self.axes.append((left + dx, top + dy, right + dx,
                                  bottom + dy))
            elif kind == 'marks':
                parts = re.findall(r'M([-\d.]+) ([-\d.]+)([^M]*)',
                                   shape.get('d'))
                color = (shape.get('fill') if shape.get('fill') != 'none'
                         else shape.get('stroke'))
                self.marks.append(Marks(color, [
                    (float(x) + dx, float(y) + dy) for x, y, _ in parts],
                    parts[0][2]))
            elif kind == 'bars':
                for part in shape.get('d').split('M')[1:]:
                    x1, y1, x2, y2, _ = numbers(part)
                    self.boxes.append(Box(shape.get('fill'), x1 + dx, y1 + dy,
                                          x2 + dx, y2 + dy))
            elif shape.get('fill') == 'none' and kind != 'grid':
                way = _points(shape.get('d'))
                self.lines.append(Line(
                    shape.get('stroke'), [(x + dx, y + dy) for x, y in way],
                    shape.get('stroke-dasharray', ''),
                    float(shape.get('stroke-width', 1)),
                    float(shape.get('stroke-opacity', 1))))

    def of(self, kind):
        """The numbers of each piece of a heap of shapes of this class."""
        return [numbers(part) for shape, dx, dy in self.all
                if shape.get('class') == kind
                for part in shape.get('d').split('M')[1:]]

    def frame(self, number=0, xscale='linear', yscale='linear'):
        return Frame(self, self.axes[number], xscale, yscale)


def text_of(shape, dx=0, dy=0):
    x, y, size = (float(shape.get(name)) for name in ('x', 'y', 'font-size'))
    weight = shape.get('font-weight', 'normal')
    long, anchor = wide(shape.text, size, weight), shape.get('text-anchor')
    left = x + dx - long * {'start': 0, 'middle': 0.5, 'end': 1}[anchor]
    low = y + dy + 0.2 * size * any(c in shape.text for c in 'gjpqy,(')
    return Text(shape.text, x + dx, y + dy - 0.35 * size,
                (left, y + dy - 0.73 * size, left + long, low), size,
                weight == 'bold', shape.get('fill'), anchor)


def _points(path):
    """The corners of a way of M, L, H, V and h."""
    points = []
    for letter, values in re.findall(r'([MLHVhz])([^A-Za-z]*)', path):
        found = numbers(values)
        x, y = points[-1] if points else (0, 0)
        if letter in 'ML':
            points += zip(found[::2], found[1::2])
        elif letter in 'Hh':
            points.append((found[0] + x * (letter == 'h'), y))
        elif letter == 'V':
            points.append((x, found[0]))
    return points


class Frame:
    """Axes: from pixels to the values that the words beside them say."""

    def __init__(self, shapes, axes, xscale, yscale):
        self.left, self.top, self.right, self.bottom = axes
        self.shapes = shapes
        below = [text for text in shapes.texts if text.anchor == 'middle'
                 and 5 < text.y - self.bottom < 20
                 and self.left - 40 < text.x < self.right + 40]
        beside = [text for text in shapes.texts if text.anchor == 'end'
                  and -12 < text.x - self.left < 0
                  and self.top - 8 < text.y < self.bottom + 8]
        self.xticks = {text.words: text.x for text in below}
        self.yticks = {text.words: text.y for text in beside}
        self.x = _scale(self.xticks, xscale)
        self.y = _scale(self.yticks, yscale)

    def value(self, x, y):
        return self.x(x), self.y(y)

    def row(self, y):
        """The name of the row that a pixel lies in."""
        return min(self.yticks, key=lambda name: abs(self.yticks[name] - y))

    def inside(self, x, y):
        return (self.left - 1 <= x <= self.right + 1 and
                self.top - 1 <= y <= self.bottom + 1)

    def bars(self):
        """(row, start, end, colour) of each box in the axes, in order."""
        return sorted((self.row((box.y1 + box.y2) / 2), self.x(box.x1),
                       self.x(box.x2), box.color) for box in self.shapes.boxes
                      if self.inside(box.x1, box.y1))


def _number(words):
    """What a tick's words mean, or nothing."""
    small = str.maketrans('⁻⁰¹²³⁴⁵⁶⁷⁸⁹', '-0123456789')
    power = re.fullmatch(r'(?:([\d.]+)·)?10([⁻⁰-⁹¹²³]+)', words)
    if power:
        return float(power[1] or 1) * 10.0 ** int(power[2].translate(small))
    try:
        return float(words.replace(',', ''))
    except ValueError:
        return None


def _scale(ticks, kind):
    """From pixels to values, by the first and the last of the ticks."""
    known = [(_number(words), at) for words, at in ticks.items()
             if _number(words) is not None]
    if len(known) < 2:
        return None
    (low, begin), (high, end) = known[0], known[-1]
    if kind == 'log':
        low, high = math.log10(low), math.log10(high)

    def value(pixel):
        found = low + (pixel - begin) / (end - begin) * (high - low)
        return 10 ** found if kind == 'log' else found
    for number, at in known:  # those in between lie on the same scale
        assert abs(value(at) - number) <= 0.02 * abs(value(end) - value(
            begin)) if kind != 'log' else abs(value(at) / number - 1) < 0.05
    return value


def within(inner, outer, slack=0.5):
    return (inner[0] >= outer[0] - slack and inner[1] >= outer[1] - slack
            and inner[2] <= outer[2] + slack and inner[3] <= outer[3] + slack)


def overlap(one, other):
    return (one[0] < other[2] and other[0] < one[2] and
            one[1] < other[3] and other[1] < one[3])


def chart_faults(drawing):
    """What a reader could not read, or would not see."""
    shapes, found = Shapes(drawing), []
    if drawing.width > 720:
        found.append(f'{drawing.width} pixels are too wide')
    if len(drawing.svg()) > 150_000:
        found.append(f'{len(drawing.svg())} bytes are many')
    canvas = 0, 0, drawing.width, drawing.height
    for text in shapes.texts:
        if text.size < 12:
            found.append(f'{text.words!r} is small')
        if not within(text.box, canvas):
            found.append(f'{text.words!r} leaves the drawing')
        for left, top, right, bottom in shapes.axes:
            for line in ((left, top, left, bottom), (left, bottom, right,
                                                     bottom)):
                if overlap(text.box, line):
                    found.append(f'{text.words!r} meets an axis')
    for one, other in combinations(shapes.texts, 2):
        if overlap(one.box, other.box):
            found.append(f'{one.words!r} meets {other.words!r}')
    for box in shapes.boxes:
        if not within(box[1:], canvas):
            found.append(f'{box} leaves the drawing')
    for x, y in [point for mark in shapes.marks for point in mark.points]:
        if not within((x, y, x, y), canvas):
            found.append(f'a mark at {x, y} leaves the drawing')
    return found


def read(drawing, xscale='linear', yscale='linear', number=0):
    """The shapes of a picture in which all can be read, and its axes."""
    assert not chart_faults(drawing)
    shapes = Shapes(drawing)
    return shapes, shapes.frame(number, xscale, yscale)
