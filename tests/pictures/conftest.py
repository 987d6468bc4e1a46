"""What the tests of pictures share: where a drawing cannot be read."""
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from shapes import SVG, numbers, overlap, text_of, within


def place(shape):
    """Left, top, right, bottom of a text, a box or a circle."""
    get = {name: float(value) for name, value in shape.attrib.items()
           if name in ('x', 'y', 'width', 'height', 'cx', 'cy', 'r')}
    if shape.tag == f'{SVG}circle':
        x, y, r = get['cx'], get['cy'], get['r']
        return x - r, y - r, x + r, y + r
    if shape.tag == f'{SVG}rect':
        x, y = get['x'], get['y']
        return x, y, x + get['width'], y + get['height']
    return text_of(shape).box


def crosses(line, box):
    """Whether a line from (x1, y1) to (x2, y2) passes through a box."""
    (x1, y1), (x2, y2) = line
    first, last = 0, 1
    for start, move, low, high in ((x1, x2 - x1, box[0], box[2]),
                                   (y1, y2 - y1, box[1], box[3])):
        if move == 0:
            if not low < start < high:
                return False
            continue
        ends = sorted([(low - start) / move, (high - start) / move])
        first, last = max(first, ends[0]), min(last, ends[1])
    return first < last


def lines(path):
    """The pieces of a line, or of an arrow's shaft or head."""
    xy = numbers(path.get('d'))
    return list(pairwise(zip(xy[::2], xy[1::2])))


def opaque(shape):
    return (shape.tag in (f'{SVG}rect', f'{SVG}circle') and
            shape.get('fill', 'black') != 'none')


@pytest.fixture
def texts():
    """All words of a drawing, a line of them each."""
    def read(drawing):
        root = ElementTree.fromstring(drawing.svg())
        return [text.text for text in root.iter(f'{SVG}text')]
    return read


@pytest.fixture
def faults():
    """Where words of a drawing leave their box, are small, or are crossed."""
    def find(drawing):
        root = ElementTree.fromstring(drawing.svg())
        shapes = [shape for shape in root if shape.tag != f'{SVG}defs'][1:]
        places = [None if shape.tag == f'{SVG}path' else place(shape)
                  for shape in shapes]
        canvas = 0, 0, drawing.width, drawing.height
        found = []
        for at, (text, mine) in enumerate(zip(shapes, places)):
            if text.tag != f'{SVG}text':
                continue
            if float(text.get('font-size')) < 12:
                found.append(f'{text.text!r} is small')
            if not within(mine, canvas):
                found.append(f'{text.text!r} leaves the drawing')
            # The topmost box that is below all of it hides what is deeper.
            cover = max([k for k in range(at) if opaque(shapes[k])
                         and within(mine, places[k], 1)], default=0)
            for k in range(cover, len(shapes)):
                shape, other = shapes[k], places[k]
                if k == at:
                    continue
                if shape.tag == f'{SVG}path':
                    if any(crosses(line, mine) for line in lines(shape)):
                        found.append(f'{text.text!r} is crossed')
                elif not overlap(mine, other):
                    continue
                elif shape.tag == f'{SVG}text':
                    found.append(f'{text.text!r} meets {shape.text!r}')
                elif k > at and opaque(shape):
                    found.append(f'{text.text!r} is hidden')
                elif shape.get('stroke') and not within(mine, other):
                    found.append(f'{text.text!r} leaves its box')
        return found
    return find
