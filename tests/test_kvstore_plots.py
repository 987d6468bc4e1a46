"""What the picture of a store's servers shows."""
import matplotlib
from d2lps.kvstore.plots import plot_placement
from matplotlib import pyplot as plt

matplotlib.use('Agg')


def test_each_server_has_a_bar_as_long_as_what_lies_there():
    ax = plot_placement({0: 30, 1: 5, 2: 100}, num_servers=2, split_from=50)
    bars = [(round(bar.get_y() + bar.get_height() / 2), bar.get_x(),
             bar.get_width()) for bar in ax.patches]
    # Key 0 on server 0, key 1 on server 1, and half of key 2 behind each.
    assert bars == [(0, 0, 30), (1, 0, 5), (0, 30, 50), (1, 5, 50)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        '0', '1', '2']
    plt.close('all')
