"""A picture follows the controls above it."""
import ipywidgets
import matplotlib
import pytest
from matplotlib import pyplot as plt

from d2lps import widgets

matplotlib.use('Agg')


@pytest.fixture
def shown(monkeypatch):
    """All that is displayed, in order; an update is one more."""
    things = []

    class Handle:
        update = staticmethod(things.append)

    def display(thing, **_):
        things.append(thing)
        return Handle
    monkeypatch.setattr(widgets, 'display', display)
    return things


def test_a_picture_follows_its_controls(shown):
    drawn = []

    def draw(**values):
        drawn.append(values)
        return plt.subplots()[1]
    a, b = ipywidgets.IntSlider(3), ipywidgets.IntSlider(5)
    widgets.live_picture(draw, {'a': a, 'b': b})
    b.value = 6
    assert drawn == [{'a': 3, 'b': 5}, {'a': 3, 'b': 6}]
    controls, first, second = shown
    assert controls.children == (a, b)
    assert first is not second and isinstance(second, plt.Figure)
    assert plt.get_fignums() == []  # or a notebook shows it twice


def test_a_timeline_can_be_explored(shown):
    widgets.explore_timeline(num_devices=1, batch_size=16)
    controls, first = shown
    controls.children[0].value = 2
    assert [len(picture.axes[0].get_yticks())
            for picture in (first, shown[-1])] == [1, 2]
