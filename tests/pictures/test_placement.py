"""What the picture of a store's servers shows."""
import matplotlib
import pytest
from d2lps.pictures.placement import plot_placement
from matplotlib import pyplot as plt

matplotlib.use('Agg')


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close('all')


def test_each_server_has_a_bar_as_long_as_what_lies_there():
    ax = plot_placement({0: 30, 1: 5, 2: 100}, num_servers=2, split_from=50)
    bars = [(round(bar.get_y() + bar.get_height() / 2), bar.get_x(),
             bar.get_width()) for bar in ax.patches]
    # Key 0 on server 0, key 1 on server 1, and half of key 2 behind each.
    assert bars == [(0, 0, 30), (1, 0, 5), (0, 30, 50), (1, 5, 50)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        '0', '1', '2']
    assert [text.get_text().strip() for text in ax.texts] == ['80', '55']


def test_pictures_of_the_same_keys_share_their_axis():
    sizes = {'large': 900, 'small': 1}
    limits = [plot_placement(sizes, 2, split_from).get_xlim()
              for split_from in (10, 10_000)]
    assert limits[0] == limits[1] and limits[0][1] > 901


@pytest.mark.parametrize('name, bad', [
    ('sizes', {}), ('sizes', [3]), ('sizes', {0: -1}), ('sizes', {0.5: 3}),
    ('num_servers', 0), ('num_servers', 10**9), ('split_from', 'all'),
    ('ax', 3)])
def test_a_wrong_argument_is_named(name, bad):
    with pytest.raises(ValueError, match=f'{name}.* must be'):
        plot_placement(**{**dict(sizes={0: 3}, num_servers=2), name: bad})
