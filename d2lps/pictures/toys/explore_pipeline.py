"""Micro-batches through stages of a pipeline: who is idle, what is kept."""
from functools import partial
from typing import TYPE_CHECKING

from d2lps.checks import checked, integer, one_of
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.pipeline_plots import plot_pipeline
from d2lps.pictures.rows import WIDE, new_figure
from d2lps.pictures.widgets import live_picture
from d2lps.pipelines import gpipe, one_f_one_b, time_passes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDERS = {'GPipe': gpipe, '1F1B': one_f_one_b}
MOST_STAGES, MOST_BATCHES = 8, 16
ROW = 0.31  # inches, of a stage


def draw_pipeline(num_stages: int, num_batches: int, schedule: str
                  ) -> 'Figure':
    """The picture of the toy: of one size, however many stages there are.

    A forward pass takes as long as a backward pass.
    """
    timed = time_passes([ORDERS[schedule](stage, num_stages, num_batches)
                         for stage in range(num_stages)], {'F': 1, 'B': 1})
    rows, high = ROW * num_stages, ROW * MOST_STAGES + 1.1  # inches
    figure = new_figure(WIDE, high, layout=None)
    bottom = 1 - (0.35 + rows) / high
    plot_pipeline(timed, schedule, ax=figure.add_axes(
        (0.7 / WIDE, bottom, 1 - 1.15 / WIDE, rows / high), xticks=[]))
    [legend] = figure.legends  # close below the axes
    legend.set_bbox_to_anchor((0.6 / WIDE, bottom - 0.6 / high))
    return figure


@checked(num_stages=partial(integer, least=2, most=MOST_STAGES),
         num_batches=partial(integer, least=2, most=MOST_BATCHES),
         schedule=one_of(*ORDERS))
def explore_pipeline(num_stages: int = 4, num_batches: int = 8,
                     schedule: str = 'GPipe') -> None:
    """Choose stages, micro-batches and their order; see who is idle."""
    live_picture(draw_pipeline, {
        'num_stages': choose([*range(2, MOST_STAGES + 1)], num_stages,
                             'stages'),
        'num_batches': choose([*range(2, MOST_BATCHES + 1)], num_batches,
                              'batches'),
        'schedule': menu([*ORDERS], schedule, 'order')})
