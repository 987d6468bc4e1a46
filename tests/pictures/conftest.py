"""What the tests of pictures share: whether one can be read, and its words."""
from xml.etree import ElementTree

import pytest
from matplotlib import pyplot

from d2lps import figures
from d2lps.pictures.drawing import Drawing, Row

SVG = '{http://www.w3.org/2000/svg}'


@pytest.fixture
def texts():
    """All words of a drawing, one line each."""
    def read(drawing):
        root = ElementTree.fromstring(drawing.svg())
        return [text.text for text in root.iter(f'{SVG}text')]
    return read


@pytest.fixture
def readable():
    """Check that a picture renders, and has an alternative text; its SVG.

    Axes, one or a list of them, stand for their figure.
    """
    def check(picture):
        one = picture[0] if isinstance(picture, list) else picture
        if hasattr(one, 'figure'):
            return check_figure(one.figure)
        if isinstance(one, Row):
            return ''.join(map(check, one.pictures))
        return check_drawing(one)
    return check


def check_drawing(drawing):
    assert isinstance(drawing, Drawing)
    svg = drawing.svg()
    root = ElementTree.fromstring(svg)
    assert len(root) > 2  # more than patterns and ground
    assert root.get('aria-label') == drawing.alt
    assert len(drawing.alt) > 15
    assert 0 < drawing.width <= 760 and 0 < drawing.height <= 1000
    return svg


def check_figure(figure):
    """It renders, and none of its words is cut at its edge."""
    pyplot.close(figure)
    svg = figures.svg(figure)
    ElementTree.fromstring(svg)
    assert any(one.lines or one.patches or one.collections or one.images
               for one in figure.axes)  # it is not empty
    assert len(figures.alt_text(figure)) > 15
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()  # inches
    width, height = figure.get_size_inches()
    assert width <= 7.4 and height <= 10
    assert min(drawn.x0, drawn.y0) > -0.02
    assert drawn.x1 < width + 0.02 and drawn.y1 < height + 0.02
    return svg
