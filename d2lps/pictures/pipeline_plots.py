"""A pipeline in one picture: which stage does which pass when."""
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from d2lps.checks import checked, positive, text
from d2lps.figures import describe, format_number
from d2lps.pictures.rows import draw_bars, legend_below, name_bar, row_axes
from d2lps.pictures.style import BLUE, GREEN, ORANGE, SKY
from d2lps.pipelines.timing import TIMED, Timed, bubble, idle_share, most_kept

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIGHT = '#f5c98f'  # orange, of a later model chunk
# By the kind of a pass, and whether it is in a later model chunk than 0.
LOOKS = {('F', False): (BLUE, 'forward'),
         ('F', True): (SKY, 'forward, later model chunk'),
         ('B', False): (ORANGE, 'backward'),
         ('B', True): (LIGHT, 'backward, later model chunk'),
         ('I', False): (ORANGE, 'gradient of the input'),
         ('I', True): (LIGHT, 'gradient of the input, later model chunk'),
         ('W', False): (GREEN, 'gradients of the weights'),
         ('W', True): (GREEN, 'gradients of the weights')}


@checked(timed=TIMED, title=partial(text, least=0), until=positive)
def plot_pipeline(timed: Sequence[Timed], title: str = '',
                  until: float | None = None, ax: 'Axes | None' = None
                  ) -> 'Axes':
    """Draw the passes of a pipeline: a row for each stage, a box for each.

    In a box stands the number of the micro-batch. *kept*, on the right, is
    the largest number of micro-batches whose activations the stage holds.
    title: text above; the time and the idle share are added. until: end of
    the time axis, to compare two pictures. ax: the `Axes` to draw in.
    """
    timed = sorted(timed, key=lambda done: (done.start, done.end))
    num_stages = 1 + max(done.stage for done in timed)
    length = max(done.end for done in timed)
    heading = (f'{format_number(length)} units of time, '
             f'idle for {idle_share(timed):.0%}')
    if title:
        heading = f'{title}: {heading}'
    ax = row_axes([f'stage {stage}' for stage in range(num_stages)],
                  until or length, ax=ax, title=heading, xlabel='time')
    draw_bars(ax, [(0, length, stage) for stage in range(num_stages)],
              '#88888840', 'idle', height=0.9)
    for (kind, later), (color, label) in LOOKS.items():
        spans = [(done.start, done.end, done.stage) for done in timed
                 if (done.step.kind, done.step.chunk > 0) == (kind, later)]
        if spans:
            draw_bars(ax, spans, color, label, height=0.8)
    for done in timed:
        color, _ = LOOKS[done.step.kind, done.step.chunk > 0]
        name_bar(ax, done.start, done.end, done.stage, done.step.batch, color)
    kept = [most_kept([done.step for done in timed if done.stage == stage])
            for stage in range(num_stages)]
    side = {'transform': ax.get_yaxis_transform(), 'ha': 'center',
            'va': 'center'}
    for stage, most in enumerate(kept):
        ax.text(1.035, stage, format_number(most), weight='bold', **side)
    ax.text(1.035, -0.85, 'kept', **side)
    legend_below(ax, 3 if any(done.step.chunk for done in timed) else 4)
    describe(ax, f'{heading}. The time of waiting is {bubble(timed):.2f} of '
                 'the time of work. The stages keep the activations of at '
                 f'most {", ".join(map(format_number, kept))} micro-batches.')
    return ax
