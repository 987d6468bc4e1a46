"""Workers and servers to play with: formula, simulator, picture."""
import pytest
from d2lps.pictures import servers
from d2lps.pictures.servers import (explore_servers, plot_servers,
                                    predicted_seconds, simulated)
from shapes import Shapes, chart_faults

SIZE, LINK = 40e6, 125e6


@pytest.mark.parametrize('m, n, colocated, seconds', [
    (1, 1, False, 0.64), (2, 1, False, 1.28), (4, 1, False, 2.56),
    (4, 2, False, 1.28), (4, 4, False, 0.64), (1, 4, False, 0.64),
    (2, 1, True, 0.64), (2, 2, True, 0.32), (4, 1, True, 1.92),
    (4, 4, True, 0.48), (1, 1, True, 0)])
def test_the_formula(m, n, colocated, seconds):
    predicted = predicted_seconds(m, n, SIZE, LINK, colocated)
    assert predicted == pytest.approx(seconds)


@pytest.mark.parametrize('colocated', [False, True])
@pytest.mark.parametrize('m', range(1, 9))
def test_the_simulator_says_the_same(m, colocated):
    for n in range(1, (m if colocated else 12) + 1):
        assert simulated(m, n, SIZE, LINK, colocated).seconds == (
            pytest.approx(predicted_seconds(m, n, SIZE, LINK, colocated)))


def test_the_formula_knows_its_limits():
    with pytest.raises(ValueError, match='num_servers is 3, but .* 2 workers'):
        predicted_seconds(2, 3, SIZE, LINK, colocated=True)


def read(row):
    """The shapes and axes of both charts."""
    assert not any(map(chart_faults, row.drawings))
    left, right = map(Shapes, row.drawings)
    return (left, left.frame(xscale='log')), (right, right.frame())


def seconds_of(frame):
    return {row: pytest.approx(end, abs=0.01)
            for row, _, end, _ in frame.bars()}


def test_the_picture_names_the_busiest_links():
    (left, _), (_, frame) = read(plot_servers(4, 1, SIZE, LINK))
    assert '4 workers, 1 server: 2.56 s' in left.words
    assert seconds_of(frame) == {
        'worker sends': 0.32, 'worker receives': 0.32,
        'server sends': 1.28, 'server receives': 1.28}
    colors = {color for _, _, end, color in frame.bars() if end > 1}
    assert colors == {servers.ORANGE} and colors.isdisjoint(
        color for _, _, end, color in frame.bars() if end < 1)


def test_the_formula_is_a_line_and_the_simulator_a_point():
    (shapes, frame), _ = read(plot_servers(4, 2, SIZE, LINK))
    point, = shapes.marks
    assert frame.value(*point.points[0]) == pytest.approx((2, 1.28), rel=.02)
    line = shapes.lines[-1]
    for x, y in line.points:
        n, seconds = frame.value(x, y)
        assert seconds == pytest.approx(predicted_seconds(
            4, round(n), SIZE, LINK), abs=0.03)
    assert frame.value(*line.points[-1])[0] == pytest.approx(128, rel=0.02)
    assert shapes.legend == {'predicted': servers.BLUE,
                             'simulated': servers.ORANGE}


def test_a_server_on_a_workers_machine_saves_its_own_bytes():
    _, (_, frame) = read(plot_servers(4, 2, SIZE, LINK, colocated=True))
    assert seconds_of(frame) == {
        # Half of its own bytes away, and half of three others' here.
        'worker with server sends': 0.16 + 3 * 0.16,
        'worker with server receives': 3 * 0.16 + 0.16,
        'worker sends': 0.32, 'worker receives': 0.32}


def test_the_widget_leaves_room_for_one_server_a_worker(monkeypatch):
    shown = []

    def live_picture(draw, controls):
        shown.append(draw(**{name: c.value for name, c in controls.items()}))

    monkeypatch.setattr(servers, 'live_picture', live_picture)
    explore_servers(num_workers=2, num_servers=128, colocated=True)
    explore_servers(num_workers=2, num_servers=128)
    explore_servers(num_workers=128, num_servers=128, colocated=True)
    assert [row.alt.split(':')[0] for row in shown] == [
        '2 workers, 2 servers', '2 workers, 128 servers',
        '128 workers, 128 servers']
    assert len({tuple(drawing.height for drawing in row.drawings)
                for row in shown}) == 1
    assert not any(chart_faults(drawing) for row in shown
                   for drawing in row.drawings)


@pytest.mark.parametrize('m, n', [(1, 1), (2, 1), (4, 1), (2, 2), (4, 4)])
def test_pieces_use_both_directions(m, n):
    # All but the first and the last piece travel both ways at once.
    for pieces in (1, 4, 10):
        together = simulated(m, n, SIZE, LINK, pieces=pieces).seconds
        assert together == pytest.approx(
            predicted_seconds(m, n, SIZE, LINK) * (pieces + 1) / (2 * pieces))


def test_a_server_beside_each_worker_uses_both_directions_already():
    for pieces in (1, 4, 10):
        assert simulated(4, 4, SIZE, LINK, True, pieces).seconds == (
            pytest.approx(predicted_seconds(4, 4, SIZE, LINK, True)))
