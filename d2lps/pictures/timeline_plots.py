"""A training step in one picture: which device does what when."""
from functools import partial
from typing import TYPE_CHECKING

from d2lps.checks import checked, instance_of, integer, positive, text
from d2lps.figures import describe, format_number
from d2lps.pictures.controls import choose
from d2lps.pictures.rows import (WIDE, Span, draw_bars, legend_below,
                                 new_figure, row_axes)
from d2lps.pictures.style import BLUE, GRAY, GREEN, ORANGE, RED, SKY
from d2lps.pictures.widgets import live_picture
from d2lps.processor import cores
from d2lps.training.timeline import PHASES, Timeline, step_timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PHASE_COLORS = dict(zip(PHASES, (SKY, BLUE, ORANGE, RED, GREEN, GRAY)))
ROW = 0.3  # inches, in the toy
# Two phases of the same lightness differ by their hatches.
PHASE_HATCHES = dict(zip(PHASES, ('', '', '\\\\', '//', '--', '')))


@checked(timeline=instance_of(
    Timeline, 'a Timeline, such as step_timeline(2, 256)'),
    title=partial(text, least=0), until=positive)
def plot_timeline(timeline: Timeline, title: str | None = None,
                  until: float | None = None, ax: 'Axes | None' = None
                  ) -> 'Axes':
    """Draw a `Timeline`: a row for each device, a bar for each operation.

    title: words above; how much the devices overlapped is added.
    until: end of the time axis in seconds, to compare two pictures. ax: the
    `Axes` to draw in; without it, those of a new figure.
    """
    bars: dict[str, list[Span]] = {}
    for event in timeline.events:
        bars.setdefault(event.phase, []).append((
            event.start * 1e3, event.end * 1e3,
            timeline.devices.index(event.device)))
    heading = f'{timeline.seconds * 1e3:.0f} ms'
    if title:
        heading = f'{title}: {heading}'
    if len(timeline.devices) > 1:
        heading += (f', more than one device at work {timeline.overlap:.0%} '
                  'of the time')
    ax = row_axes(
        timeline.devices, (until or timeline.seconds or 1) * 1e3, ax=ax,
        title=heading, xlabel='time / ms')
    # Without a backward pass nothing is trained: 'forward' would mislead.
    names = {} if 'backward' in bars else {'forward': 'operation'}
    for phase, color in PHASE_COLORS.items():
        if phase in bars:
            draw_bars(ax, bars[phase], color, names.get(phase, phase),
                      PHASE_HATCHES[phase])
    ax.plot([], [], 's', markersize=8, markerfacecolor='none',
            markeredgecolor='gray', label='idle')
    legend_below(ax)
    describe(ax, f'{heading}. {_alt_text(timeline, names)}')
    return ax


def _alt_text(timeline, names):
    """The time of each device for each phase."""
    rows = []
    for device in timeline.devices:
        took = {}
        for event in timeline.events:
            if event.device == device:
                took[event.phase] = took.get(event.phase, 0) + (
                    event.end - event.start)
        rows.append(f'{device}: ' + (', '.join(
            f'{names.get(phase, phase)} {format_number(1e3 * took[phase])} ms'
            for phase in PHASES if phase in took) or 'idle'))
    return f'{"; ".join(rows)}.'


@checked(num_devices=integer, batch_size=integer)
def explore_timeline(num_devices: int = 2, batch_size: int = 16) -> None:
    """Choose devices and batch size, see one training step's timeline.

    Four steps are made for each picture, the last of which is recorded; so
    the menu has small batches, which take a moment only.
    """
    most = min(cores() + 2, 8)  # what MXNet can record, see `Timeline`
    integer('num_devices', num_devices, most=most)

    def draw(num_devices, batch_size):
        height = 1.3 + ROW * most  # there is room for all devices
        figure = new_figure(WIDE, height, None)
        rows = ROW * num_devices / height
        bottom = 1 - 0.35 / height - rows
        plot_timeline(
            step_timeline(num_devices, batch_size),
            f'{batch_size / num_devices:.3g} examples on each device',
            ax=figure.add_axes((0.09, bottom, 0.89, rows)))
        [legend] = figure.legends  # close below the axes
        legend.set_bbox_to_anchor((0, bottom - 0.85 / height))
        return figure

    live_picture(draw, {
        'num_devices': choose([*range(1, most + 1)], num_devices, 'devices'),
        'batch_size': choose([4, 8, 16, 32, 64, 128], batch_size,
                             'batch size')})
