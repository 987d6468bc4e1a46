"""The seven steps over several machines, to go through one by one."""
from functools import partial

import ipywidgets
from IPython.display import display

from d2lps.checks import checked, whole
from d2lps.pictures.drawings.cluster import draw_seven_steps


@checked(step=partial(whole, most=7))
def explore_steps(step=1):
    """Choose one of the seven steps; see what travels where.

    step: 1 to 7, the one that it begins with.
    """
    slider = ipywidgets.IntSlider(step, 1, 7, description='step')
    display(slider)
    shown = display(draw_seven_steps(step), display_id=True)
    slider.observe(lambda change: shown.update(draw_seven_steps(change.new)),
                   'value')
