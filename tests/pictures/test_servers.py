"""Workers and servers to play with: formula, simulator, picture."""
import matplotlib
import pytest
from d2lps_pictures import servers
from d2lps_pictures.servers import (explore_servers, plot_servers,
                                    predicted_seconds, simulated)
from matplotlib import pyplot as plt

matplotlib.use('Agg')
SIZE, LINK = 40e6, 125e6


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close('all')


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


def test_the_picture_names_the_busiest_links():
    left, right = plot_servers(4, 1, SIZE, LINK)
    assert left.get_title() == '4 workers, 1 server: 2.56 s'
    names = [label.get_text() for label in right.get_yticklabels()]
    seconds = dict(zip(names, (bar.get_width() for bar in right.patches)))
    assert seconds == pytest.approx({
        'worker sends': 0.32, 'worker receives': 0.32,
        'server sends': 1.28, 'server receives': 1.28})
    colors = {bar.get_facecolor() for bar in right.patches
              if bar.get_width() > 1}
    assert len(colors) == 1 and colors.isdisjoint(
        bar.get_facecolor() for bar in right.patches if bar.get_width() < 1)


def test_a_server_on_a_workers_machine_saves_its_own_bytes():
    _, right = plot_servers(4, 2, SIZE, LINK, colocated=True)
    seconds = [bar.get_width() for bar in right.patches]
    names = [label.get_text() for label in right.get_yticklabels()]
    assert dict(zip(names, seconds)) == pytest.approx({
        # Half of its own bytes away, and half of three others' here.
        'worker with server sends': 0.16 + 3 * 0.16,
        'worker with server receives': 3 * 0.16 + 0.16,
        'worker sends': 0.32, 'worker receives': 0.32})


def test_the_widget_leaves_room_for_one_server_a_worker(monkeypatch):
    shown = []

    def live_picture(draw, controls):
        shown.append(draw(**{name: c.value for name, c in controls.items()}))

    monkeypatch.setattr(servers, 'live_picture', live_picture)
    explore_servers(num_workers=2, num_servers=128, colocated=True)
    explore_servers(num_workers=2, num_servers=128)
    assert [ax.get_title().split(':')[0] for ax in shown] == [
        '2 workers, 2 servers', '2 workers, 128 servers']


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
