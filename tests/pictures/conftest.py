"""What the tests of pictures share: whether one can be read, and its words."""
from xml.etree import ElementTree

import pytest

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
        drawings = picture.pictures if isinstance(picture, Row) else [picture]
        assert picture.alt == ' '.join(drawing.alt for drawing in drawings)
        for drawing in drawings:
            assert isinstance(drawing, Drawing)
            root = ElementTree.fromstring(drawing.svg())
            assert len(root) > 2  # more than patterns and ground
            assert root.get('aria-label') == drawing.alt
            assert len(drawing.alt) > 15
            assert 0 < drawing.width <= 760 and 0 < drawing.height <= 1000
    return check
