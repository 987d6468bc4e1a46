"""A picture follows the controls above it."""
import io

import ipywidgets
import matplotlib
import numpy as onp
import pytest
from IPython.display import Image
from matplotlib import pyplot as plt

from d2lps_pictures import timeline, widgets
from d2lps_pictures.drawing import Drawing

matplotlib.use('Agg')


@pytest.fixture
def drawn(monkeypatch):
    """All axes that were drawn by functions of `plots`, in order."""
    axes = []
    for module, name in ((timeline, 'plot_timeline'),
                         (widgets, 'plot_comparison'),
                         (widgets, 'plot_topology')):
        plot = getattr(module, name)

        def note(*args, draw=plot, **kwargs):
            axes.append(draw(*args, **kwargs))
            return axes[-1]
        monkeypatch.setattr(module, name, note)
    return axes


def pixels(image):
    assert isinstance(image, Image)
    return plt.imread(io.BytesIO(image.data))


def seconds(ax):
    """The lengths of a comparison's bars in ms by name."""
    names = [label.get_text() for label in ax.get_yticklabels()]
    return dict(zip(names, [bar.get_width() for bar in ax.patches]))


def test_a_picture_follows_its_controls(shown):
    drawn = []

    def draw(**values):
        drawn.append(values)
        ax = plt.subplots()[1]
        ax.set_title(str(values))
        return ax
    a, b = ipywidgets.IntSlider(3), ipywidgets.IntSlider(5)
    widgets.live_picture(draw, {'a': a, 'b': b})
    b.value = 6
    assert drawn == [{'a': 3, 'b': 5}, {'a': 3, 'b': 6}]
    controls, first, second = shown
    assert controls.children == (a, b)
    assert not onp.array_equal(*map(pixels, (first, second)))
    assert plt.get_fignums() == []  # or a notebook shows it twice


def test_a_picture_is_kept_when_the_notebook_is_saved(shown):
    widgets.live_picture(lambda: plt.subplots(figsize=(3, 2))[1], {})
    (data, size) = shown[-1]._repr_png_()
    assert data and size['width'] == pixels(shown[-1]).shape[1] // 2


def test_a_drawing_is_a_picture_too(shown):
    slider = ipywidgets.IntSlider(3)
    widgets.live_picture(lambda n: Drawing(9, 9, f'{n} boxes'), {'n': slider})
    slider.value = 4
    assert [one.alt for one in shown[1:]] == ['3 boxes', '4 boxes']


def test_what_draw_changes_itself_makes_no_more_pictures(shown):
    a, b = ipywidgets.IntSlider(8, max=9), ipywidgets.IntSlider(5)

    def draw(a, b):
        second.max = a  # which may change its value
        return Drawing(9, 9, f'{second.value} of {a}')
    second = b
    widgets.live_picture(draw, {'a': a, 'b': b})
    a.value = 3
    b.value = 2
    assert [one.alt for one in shown[1:]] == ['5 of 8', '3 of 3', '2 of 3']


def test_nothing_is_shown_if_nothing_can_be_drawn(shown):
    with pytest.raises(ZeroDivisionError):
        widgets.live_picture(lambda: 1 / 0, {})
    assert not shown


def test_several_axes_make_one_picture(shown):
    widgets.live_picture(lambda: plt.subplots(1, 2)[1], {}, None)
    assert pixels(shown[-1]).size


@pytest.mark.parametrize('margins, cut', [('tight', False), (None, True)])
def test_nothing_is_cut_off_unless_draw_sees_to_it(shown, margins, cut):
    def draw():
        ax = plt.subplots(figsize=(2, 2))[1]
        ax.set_ylabel('left')
        ax.yaxis.set_label_coords(-0.4, 0.5)  # beyond the edge
        return ax
    widgets.live_picture(draw, {}, margins)
    column = pixels(shown[-1])[:, 0, :3]
    assert (column < 1).any() == cut


def test_a_timeline_can_be_explored(shown, drawn):
    timeline.explore_timeline(num_devices=1, batch_size=16)
    controls, _ = shown
    controls.children[0].value = 2
    assert [len(ax.get_yticks()) for ax in drawn] == [1, 2]
    assert len(shown) == 3


def test_synchronisation_starts_with_the_server_of_the_notebook(shown, drawn):
    widgets.explore_synchronisation()
    bars, links = drawn
    assert {name: seconds(bars)[name] for name in (
        'gather_broadcast(4, 0)', "gather_broadcast(4, 'cpu')", 'sharded(4)')
        } == pytest.approx({'gather_broadcast(4, 0)': 60, 'sharded(4)': 15,
                            "gather_broadcast(4, 'cpu')": 80})
    assert len(links.collections[0].get_segments()) == 10
    assert any(text.get_text() == '15 best' for text in bars.texts)


def test_some_strategies_are_shown_if_named(shown, drawn):
    widgets.explore_synchronisation(plans=['sharded', 'cpu'])
    assert [*seconds(drawn[0])] == ['sharded(4)', "gather_broadcast(4, 'cpu')"]
    shown[0].children[0].value = 'cables in a ring'
    assert [*seconds(drawn[-2])] == ['sharded(4)']


@pytest.mark.full
def test_each_control_changes_the_picture(shown, drawn):
    widgets.explore_synchronisation()
    links, n, megabytes, bandwidth, latency, which = shown[0].children
    for control, value in ((n, 8), (megabytes, 40), (bandwidth, 32),
                           (latency, 100), (which, max),
                           (links, 'cables in a ring')):
        before, count = shown[-1], len(shown)
        control.value = value
        assert len(shown) == count + 1
        assert not onp.array_equal(pixels(before), pixels(shown[-1]))
    assert plt.get_fignums() == []


def test_times_are_those_of_the_values_chosen(shown, drawn):
    widgets.explore_synchronisation(num_devices=8, megabytes=10, bandwidth=10,
                                    latency=20)
    times = seconds(drawn[0])
    assert times['gather_broadcast(8, 0)'] == pytest.approx(2 * (7 + 0.04))
    assert times['ring(8)'] == pytest.approx(14 * (1 / 8 + 0.04))


def test_the_picture_is_of_the_best_or_the_worst(shown, drawn):
    widgets.explore_synchronisation('cables in a ring', 8)
    times, links = seconds(drawn[0]), drawn[1]
    assert min(times, key=times.get) == 'bidirectional_ring(8)'
    assert links.get_title() == 'bidirectional_ring(8), busy links dark'
    shown[0].children[-1].value = max
    assert drawn[-1].get_title().startswith(max(times, key=times.get))


@pytest.mark.full
@pytest.mark.parametrize('links', widgets.LINKS)
@pytest.mark.parametrize('n', [2, 6, 10, 16])
def test_all_choices_of_links_and_devices_can_be_drawn(shown, drawn, links, n):
    widgets.explore_synchronisation(links, n, latency=5)
    bars, picture = drawn
    assert len(bars.patches) == (11 if 'switch' in links else 10)
    names = [text.get_text() for text in picture.texts]
    assert {str(i) for i in range(n)} <= set(names)
    image = pixels(shown[-1])[..., :3]
    for edge in (image[:, 0], image[:, -1], image[0], image[-1]):
        assert (edge == 1).all()  # white: nothing is cut off


def test_a_value_of_ones_own_joins_those_to_choose_from(shown, drawn):
    widgets.explore_synchronisation(megabytes=123)
    assert shown[0].children[2].value == 123
    assert 123 in shown[0].children[2].options


@pytest.mark.parametrize('show, words', [
    (lambda: widgets.explore_synchronisation('a ring'), 'links must be'),
    (lambda: widgets.explore_synchronisation(num_devices=3), 'an even number'),
    (lambda: widgets.explore_synchronisation(plans=['cpu']),
     "more than 'cpu'"),
    (lambda: widgets.explore_synchronisation(plans=['ring', 'no']),
     r'plans\[1\] must be'),
    (lambda: widgets.explore_synchronisation(num_devices=18), 'from 2 to 16'),
    (lambda: widgets.explore_synchronisation(megabytes=0), 'megabytes must'),
    (lambda: widgets.explore_synchronisation(bandwidth=float('inf')),
     'bandwidth must be a positive number'),
    (lambda: widgets.explore_synchronisation(latency=-1), 'latency must be'),
    (lambda: timeline.explore_timeline(99),
     'num_devices must be .* from 1 to'),
    (lambda: timeline.explore_timeline(batch_size='two'),
     'batch_size must be'),
    (lambda: widgets.live_picture(None, {}), 'draw must be a function'),
    (lambda: widgets.live_picture(print, {'n': 3}), 'controls must be a dict'),
    (lambda: widgets.live_picture(print, {}, 'wide'),
     "margins must be 'tight'"),
])
def test_bad_arguments_are_named(shown, show, words):
    with pytest.raises(ValueError, match=words):
        show()
    assert not shown and not plt.get_fignums()
