"""The picture of who holds what says it."""
import numpy as np
import pytest
from shapes import Shapes, chart_faults

from d2lps.collectives import Schedule, Send, strategies
from d2lps.pictures import player
from d2lps.pictures.style import CHUNK_COLORS


class Held:
    """What a picture says of who holds what."""

    def __init__(self, drawing, plan):
        self.shapes = Shapes(drawing)
        chunks = len(plan.weights)
        corners = [piece[:2] for piece in self.shapes.of('boxes')]
        self.places = {divmod(k, chunks): corner
                       for k, corner in enumerate(corners)}
        _, _, self.wide, self.high = self.shapes.of('boxes')[0][:4]

    def cell(self, x, y):
        """(row, chunk) of the box that a point lies in."""
        found, = [cell for cell, (left, top) in self.places.items()
                  if left - 0.1 <= x <= left + self.wide + 0.1 and
                  top - 0.1 <= y <= top + self.high + 0.1]
        return found

    def bars(self, devices):
        """(row, chunk, device) of all bars."""
        for who in range(devices):
            for x, y, wide, high, *_ in self.shapes.of(f'bars of-{who}'):
                row, chunk = self.cell(x + wide / 2, y + high / 2)
                left, _ = self.places[row, chunk]
                assert x - left == pytest.approx(self.wide * who / devices,
                                                 abs=0.1)
                yield row, chunk, who

    def cells(self, kind):
        for x, y, *more in self.shapes.of(kind):
            wide, high = more[:2] if kind == 'frames' else (0, 0)
            yield self.cell(x + wide / 2, y + high / 2)

    def arrows(self, kind):
        """(x, from row, to row) of each arrow."""
        middle = {row: top + self.high / 2
                  for (row, _), (_, top) in self.places.items()}

        def row(y):
            return min(middle, key=lambda k: abs(middle[k] - y))
        return [(piece[0], row(piece[5]), row(piece[1]))
                for piece in self.shapes.of(kind)]


@pytest.mark.parametrize('plan', [
    strategies.ring(4), strategies.tree(5), strategies.parameter_server(3, 2),
    strategies.hierarchical(2, 2), strategies.running_sum(1)], ids=repr)
def test_bars_and_ticks_say_what_is_held(plan):
    for number, held in enumerate(plan.states()):
        drawing = player.plot_holdings(plan, number)
        assert not chart_faults(drawing)
        found = Held(drawing, plan)
        assert {*found.bars(held.shape[2])} == {
            tuple(one) for one in np.argwhere(held).tolist()}
        assert {*found.cells('ticks')} == {*zip(*(
            k.tolist() for k in np.nonzero((held == 1).all(axis=2))))}
        for who in range(held.shape[2]):
            for shape, *_ in found.shapes.all:
                if shape.get('class') == f'bars of-{who}':
                    assert shape.get('fill') == CHUNK_COLORS[who]


@pytest.mark.parametrize('number', [1, 2, 4, 6])
def test_arrows_and_frames_say_what_was_sent(number):
    plan = strategies.ring(4)
    sends = plan.rounds[number - 1]
    found = Held(player.plot_holdings(plan, number), plan)
    assert sorted(found.cells('frames')) == sorted(
        zip(sends.dst.tolist(), sends.chunk.tolist()))
    kind, other = ('adds', 'replaces')[::1 if number <= 3 else -1]
    assert not found.arrows(other)
    arrows = found.arrows(kind)
    assert [ends[1:] for ends in arrows] == [*zip(sends.src.tolist(),
                                                  sends.dst.tolist())]
    for (x, *_), chunk in zip(arrows, sends.chunk.tolist()):
        left, _ = found.places[0, chunk]  # in the gap behind its column
        assert left + found.wide < x < left + found.wide / 0.4
    fills = [shape.get('fill') for shape, *_ in found.shapes.all
             if shape.get('class') == kind]
    assert fills == ['white' if number > 3 else player.INK]


def test_arrows_of_one_chunk_do_not_cover_each_other():
    plan = strategies.sharded(6)
    found = Held(player.plot_holdings(plan, 1), plan)
    x = [round(arrow[0], 1) for arrow in found.arrows('adds')]
    assert len({*x}) == len(x) == 30


def test_what_is_counted_twice_is_written_in_the_bar():
    send = Send(0, 1, 0, True)
    drawing = player.plot_holdings(Schedule([[send], [send]], 2), 2)
    assert [text.words for text in Shapes(drawing).texts
            if text.fill == '#c00'] == ['2']
    assert '#c00' not in player.plot_holdings(strategies.ring(3), 4).svg()


def test_nodes_have_their_names():
    drawing = player.plot_holdings(strategies.gather_broadcast(2, 'cpu'))
    words = Shapes(drawing).words
    assert [word for word in words if word in (
        'device 0', 'device 1', 'cpu')] == ['device 0', 'device 1', 'cpu']
    assert 'after round 0 of 2' in ' '.join(words)
    assert 'device 0 has 1 contribution, 0 whole sums' in drawing.alt


def test_it_may_have_another_title_sums_signs_and_width():
    plan = strategies.ring(4)
    drawing = player.plot_holdings(plan, 6, 'The end', sums=True, width=700,
                                   signs=True)
    shapes = Shapes(drawing)
    assert not chart_faults(drawing) and drawing.width == 700
    assert shapes.words.count('10') == 16 + 1  # 1 + 2 + 3 + 4, a sign
    assert {'The end', *player.SIGNS.values()} <= {*shapes.words}
    assert not shapes.of('ticks')
    narrow = player.plot_holdings(plan, 3, width=236)
    assert not chart_faults(narrow) and narrow.width == 236


def test_too_many_boxes_are_refused():
    player.plot_holdings(strategies.ring(12))
    with pytest.raises(ValueError, match=r'ring\(13\).*over 144'):
        player.plot_holdings(strategies.ring(13))


def test_a_picture_has_few_parts():
    # Boxes and bars are drawn in a few heaps: one shape each would be large.
    drawing = player.plot_holdings(strategies.ring(12), 6)
    shapes = Shapes(drawing)
    assert len(shapes.of('boxes')) == 144
    paths = [shape for shape, *_ in shapes.all if shape.tag.endswith('path')]
    assert len(paths) < 30 and not chart_faults(drawing)


@pytest.mark.parametrize('draw, words', [
    (lambda: player.plot_holdings(3), 'schedule must be a Schedule'),
    (lambda: player.plot_holdings(strategies.ring(2), 3), 'number .*0 to 2'),
    (lambda: player.plot_holdings(strategies.ring(2), -1), 'number must be'),
    (lambda: player.plot_holdings(strategies.ring(2), 0.5), 'number must be'),
    (lambda: player.plot_holdings(strategies.ring(2), sums=1),
     'sums must be True or False'),
])
def test_bad_arguments_are_named(draw, words):
    with pytest.raises(ValueError, match=words):
        draw()
