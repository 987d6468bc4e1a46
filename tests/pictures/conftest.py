"""What the tests of pictures share: whether one can be read, and its words."""
from xml.etree import ElementTree

import pytest

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
    """Check that a picture renders, and says in words what one sees."""
    def check(picture):
        if isinstance(picture, Row):
            assert picture.alt == ' '.join(map(_alt_of, picture.pictures))
            picture = picture.pictures
        for one in picture if isinstance(picture, list) else [picture]:
            if isinstance(one, Drawing):
                root = ElementTree.fromstring(one.svg())
                assert root.get('aria-label') == one.alt
            else:  # Matplotlib's Figure has itself as its figure
                root = ElementTree.fromstring(figures.svg(one.figure))
            assert len([*root.iter()]) > 3  # more than ground
            assert len(_alt_of(one)) > 15
            width, height = map(float, (root.get('width'), root.get('height')))
            assert 0 < width <= 760 and 0 < height <= 1000
    return check


def _alt_of(picture):
    return picture.alt if isinstance(picture, Drawing) else (
        figures.alt_text(picture.figure))
