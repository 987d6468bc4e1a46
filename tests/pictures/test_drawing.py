"""Boxes, arrows and words: what a drawing is made of."""
from base64 import b64decode
from xml.etree import ElementTree

import pytest
from d2lps.pictures.drawing import PATTERNS, Drawing, color, width_of

SVG = '{http://www.w3.org/2000/svg}'


def drawn(drawing, kind):
    root = ElementTree.fromstring(drawing.svg())
    return [shape for shape in root if shape.tag == f'{SVG}{kind}']


def a_drawing(alt='Two boxes.'):
    return Drawing(200, 100, alt)


def test_it_shows_itself_as_an_image_with_its_words():
    drawing = a_drawing('a < b, "c" & d').box(0, 0, 50, 20, '<&>')
    image = ElementTree.fromstring(drawing._repr_html_().replace('>', '/>'))
    assert image.get('alt') == 'a < b, "c" & d'
    kind, data = image.get('src').split(',')
    assert kind == 'data:image/svg+xml;base64'
    assert b64decode(data).decode() == drawing.svg()
    root = ElementTree.fromstring(drawing.svg())
    assert root.get('aria-label') == drawing.alt
    assert root.find(f'{SVG}text').text == '<&>'


def test_a_device_has_a_colour_and_a_pattern_of_its_own():
    drawing = a_drawing()
    for device in range(8):
        drawing.box(20 * device, 0, 20, 20, device, fill=device)
    bands = [box.get('fill') for box in drawn(drawing, 'rect')[1:]]
    for device in range(8):
        assert color(device) in bands
        assert f'url(#p{device})' in bands
    assert len({*PATTERNS}) == len({color(k) for k in range(8)}) == 8
    # A pattern is defined when it is used, and only then.
    assert 'id="p7"' in drawing.svg() and 'id=' not in a_drawing().svg()


def test_a_sum_has_a_band_for_each_device_one_under_the_other():
    drawing = a_drawing().box(10, 20, 30, 60, 'sum', fill=[0, 2, 1])
    bands = [(box.get('fill'), float(box.get('y')), float(box.get('height')))
             for box in drawn(drawing, 'rect') if box.get('fill-opacity')]
    assert bands[:3] == [(color(0), 20, 20), (color(2), 40, 20),
                         (color(1), 60, 20)]


def test_the_number_0_is_written_and_no_words_are_none():
    drawing = a_drawing().box(0, 0, 20, 20, 0).box(30, 0, 20, 20)
    assert [text.text for text in drawn(drawing, 'text')] == ['0']


def test_lines_of_words_lie_around_their_place():
    drawing = a_drawing().text(50, 40, 'one\ntwo\nthree', 10)
    heights = [float(text.get('y')) for text in drawn(drawing, 'text')]
    assert heights == [pytest.approx(40 + 3.5 + 12 * k) for k in (-1, 0, 1)]


@pytest.mark.parametrize('end', [(90, 50), (10, 50), (50, 90), (50, 10),
                                 (80, 80)])
def test_the_head_of_an_arrow_ends_where_it_points(end):
    shaft, head = reversed(drawn(a_drawing().arrow((50, 50), end), 'path'))
    tip = head.get('d')[1:].split('L')[0]
    assert tuple(map(float, tip.split())) == end
    # The shaft stops before the tip, or a thick one would blunt it.
    begin, stop = [tuple(map(float, point.split()))
                   for point in shaft.get('d')[1:].split('L')]
    assert begin == (50, 50)
    assert sum((a - b) ** 2 for a, b in zip(stop, begin)) < sum(
        (a - b) ** 2 for a, b in zip(end, begin))
    assert head.get('fill') == shaft.get('stroke')


def test_an_arrow_may_have_two_heads_and_lines_have_none():
    assert len(drawn(a_drawing().arrow((0, 0), (9, 9), both=True),
                     'path')) == 3
    assert len(drawn(a_drawing().line((0, 0), (9, 9)), 'path')) == 1
    assert drawn(a_drawing().arrow((5, 5), (5, 5)), 'path')  # no division


def test_an_arrow_that_says_what_it_carries(faults):
    for points in ((10, 50), (150, 50)), ((30, 10), (30, 90)):
        assert not faults(a_drawing().arrow(*points, text='push'))


def test_a_badge_has_its_number(faults):
    drawing = a_drawing().line((0, 50), (100, 50)).badge(50, 50, 7)
    assert drawn(drawing, 'text')[0].text == '7' and not faults(drawing)


@pytest.mark.parametrize('draw, fault', [
    (lambda d: d.box(0, 0, 30, 20, 'much too long'), 'leaves'),
    (lambda d: d.text(190, 50, 'outside'), 'leaves the drawing'),
    (lambda d: d.text(50, 50, 'words').arrow((0, 50), (99, 50)), 'crossed'),
    (lambda d: d.text(50, 50, 'words').text(60, 52, 'words'), 'meets'),
    (lambda d: d.text(50, 50, 'words').box(40, 40, 20, 20), 'hidden'),
    (lambda d: d.text(50, 50, 'words', 9), 'small')])
def test_the_faults_that_other_tests_look_for_are_found(draw, fault, faults):
    assert any(fault in words for words in faults(draw(a_drawing())))


def test_a_plate_lifts_words_from_a_line(faults):
    drawing = a_drawing().line((0, 50), (100, 50))
    assert not faults(drawing.text(50, 50, 'words', plate=True))
    shapes = drawn(drawing, 'rect')[1]
    assert float(shapes.get('width')) >= width_of('words', 13)


def test_a_file_has_the_same(tmp_path):
    drawing = a_drawing('Élan').box(0, 0, 20, 20, '→')
    assert drawing.save(tmp_path / 'a.svg') is drawing
    root = ElementTree.parse(tmp_path / 'a.svg').getroot()
    assert root.get('aria-label') == 'Élan'
