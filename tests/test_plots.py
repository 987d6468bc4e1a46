"""Pictures show the events they are given."""
import matplotlib
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from d2lps import Event, Timeline, devices
from d2lps.plots import PHASE_COLORS, plot_timeline

matplotlib.use('Agg')
EVENTS = [Event('cpu(0)', 'forward', 'Convolution', 0, 0.002),
          Event('cpu(1)', 'backward', 'ImperativeBulk', 0.001, 0.004)]


@pytest.fixture
def timeline():
    timeline = Timeline(devices(2))
    timeline.events = EVENTS
    yield timeline
    plt.close('all')


def test_each_event_is_a_bar_in_the_row_of_its_device(timeline):
    ax = plot_timeline(timeline)
    bars = [(*bar.get_paths()[0].get_extents().extents,
             to_hex(bar.get_facecolor()[0]).upper())
            for bar in ax.collections]
    expected = [(0, -0.36, 2, 0.36, PHASE_COLORS['forward']),
                (1, 0.64, 4, 1.36, PHASE_COLORS['backward'])]
    for bar, (*extents, color) in zip(bars, expected, strict=True):
        assert bar[:4] == pytest.approx(extents)
        assert bar[4] == color
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        'cpu(0)', 'cpu(1)']


def test_the_legend_has_the_phases_that_are_seen(timeline):
    legend = plot_timeline(timeline).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        'forward', 'backward']


def test_the_title_says_how_much_devices_overlap(timeline):
    ax = plot_timeline(timeline, 'Ours', until=0.01)
    assert ax.get_title(loc='left') == (
        'Ours: 4 ms, more than one device at work 25% of the time')
    assert ax.get_xlim() == (0, 10)


def test_a_picture_goes_where_it_is_told(timeline):
    _, ax = plt.subplots()
    assert plot_timeline(timeline, ax=ax) is ax
