"""A training step in one picture: which device does what when."""
from matplotlib import pyplot as plt
from matplotlib.patches import Patch

from d2lps.checks import a, checked, positive, whole
from d2lps.engine import cores
from d2lps_pictures.controls import choose
from d2lps_pictures.plots import AXES
from d2lps_pictures.style import BLUE, GRAY, GREEN, ORANGE, RED, SKY
from d2lps_pictures.widgets import live_picture
from d2lps.training.timeline import PHASES, Timeline, step_timeline

PHASE_COLORS = dict(zip(PHASES, (SKY, BLUE, ORANGE, RED, GREEN, GRAY)))


@checked(timeline=a(Timeline, 'a Timeline, such as step_timeline(2, 256)'),
         title=a(str, 'a text'), ax=AXES,
         until=positive)
def plot_timeline(timeline, title=None, ax=None, until=None):
    """Draw a `Timeline`: a row for each device, a bar for each operation.

    title: words above; how much the devices overlapped is added.
    until: end of the time axis in seconds, to compare two pictures.
    Draws on `ax`, or on a new figure, and returns the axes.
    """
    rows = len(timeline.devices)
    ax = ax or plt.subplots(figsize=(8, 1.3 + 0.42 * rows),
                            layout='constrained')[1]
    bars = {}  # by row and phase: one heap each, since one a bar is slow
    for event in timeline.events:
        bars.setdefault((timeline.devices.index(event.device), event.phase),
                        []).append((event.start * 1e3,
                                    (event.end - event.start) * 1e3))
    for (row, phase), heap in bars.items():
        ax.broken_barh(heap, (row - 0.36, 0.72), color=PHASE_COLORS[phase],
                       linewidth=0)
    ax.set_yticks(range(rows), timeline.devices)
    ax.set_ylim(rows - 0.5, -0.5)
    ax.set_xlim(0, (until or timeline.seconds or 1) * 1e3)
    ax.set_xlabel('time / ms')
    seen = {event.phase for event in timeline.events}
    ax.legend(handles=[*(Patch(color=color, label=phase)
                         for phase, color in PHASE_COLORS.items()
                         if phase in seen),
                       Patch(facecolor='w', edgecolor=GRAY, label='idle')],
              loc='upper left', bbox_to_anchor=(1, 1), frameon=False)
    words = f'{timeline.seconds * 1e3:.0f} ms'
    if title:
        words = f'{title}: {words}'
    if rows > 1:
        words += (f', more than one device at work {timeline.overlap:.0%} '
                  'of the time')
    ax.set_title(words, fontsize=10, loc='left')
    return ax


@checked(num_devices=whole, batch_size=whole)
def explore_timeline(num_devices=2, batch_size=16):
    """Choose devices and batch size, see one training step's timeline.

    Four steps are made for each picture, the last of which is recorded; so
    the menu has small batches, which take a moment only.
    """
    most = min(cores() + 2, 8)  # what MXNet can record, see `Timeline`
    whole('num_devices', num_devices, most=most)

    def draw(num_devices, batch_size):
        high = 1.3 + 0.42 * num_devices
        fig, ax = plt.subplots(figsize=(8.6, high))
        fig.subplots_adjust(0.09, 0.5 / high, 0.84, 1 - 0.3 / high)
        return plot_timeline(
            step_timeline(num_devices, batch_size),
            f'{batch_size / num_devices:.3g} examples on each device', ax)

    live_picture(draw, {
        'num_devices': choose([*range(1, most + 1)], num_devices, 'devices'),
        'batch_size': choose([4, 8, 16, 32, 64, 128], batch_size,
                             'batch size')})
