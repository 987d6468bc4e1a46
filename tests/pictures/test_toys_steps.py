"""The seven steps, one after the other."""
import ipywidgets
import pytest
from d2lps.pictures.drawings.draw_cluster import draw_seven_steps
from d2lps.pictures.toys.explore_steps import explore_steps


def svg(drawing):
    return drawing.svg()


def test_the_map_follows_the_slider(shown):
    explore_steps(step=4)
    board, first = shown
    slider, = board.children
    assert isinstance(slider, ipywidgets.SelectionSlider)
    assert slider.value == 4
    assert [value for _, value in slider.options] == [1, 2, 3, 4, 5, 6, 7]
    assert svg(first) == svg(draw_seven_steps(4))
    for step in (5, 7, 1):
        slider.value = step
        assert svg(shown[-1]) == svg(draw_seven_steps(step))
    assert len(shown) == 5


def test_each_step_says_something_else(shown):
    explore_steps()
    for step in range(2, 8):
        shown[0].children[0].value = step
    assert len({drawing.alt for drawing in shown[1:]}) == 7


@pytest.mark.parametrize('bad', [0, 8, 'two'])
def test_there_are_seven(bad):
    with pytest.raises(ValueError, match='step must be'):
        explore_steps(bad)
