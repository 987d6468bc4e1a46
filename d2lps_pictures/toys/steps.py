"""The seven parts of a step over several machines, one by one."""
from functools import partial

import ipywidgets
from IPython.display import display

from d2lps.checks import checked, whole
from d2lps_pictures.drawings.cluster import draw_seven_steps


@checked(step=partial(whole, most=7))
def explore_steps(step=1):
    """Choose one of the seven parts of a step; see what travels where.

    step: 1 to 7, the one that it begins with.
    """
    slider = ipywidgets.IntSlider(step, 1, 7, description='part')
    display(slider)
    shown = display(draw_seven_steps(step), display_id=True)
    slider.observe(lambda change: shown.update(draw_seven_steps(change.new)),
                   'value')
