"""The seven parts of a step over several machines, one by one."""
from functools import partial

from d2lps.checks import checked, integer
from d2lps.pictures.controls import choose
from d2lps.pictures.drawings.draw_cluster import draw_seven_steps
from d2lps.pictures.widgets import live_picture


@checked(step=partial(integer, most=7))
def explore_steps(step: int = 1) -> None:
    """Choose one of the seven parts of a step; see what travels where.

    step: 1 to 7, the one that it begins with.
    """
    live_picture(draw_seven_steps, {
        'step': choose([*range(1, 8)], step, 'part')})
