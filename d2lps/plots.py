"""Pictures: every figure of the notebooks in one call and one style."""
from d2l import mxnet as d2l
from matplotlib import pyplot as plt
from matplotlib.patches import Patch
from matplotlib_inline import backend_inline

from d2lps.timeline import PHASES

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK = (
    '#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7', '#56B4E9',
    '#F0E442', '#000000')
PHASE_COLORS = dict(zip(PHASES, (SKY, BLUE, ORANGE, RED, GREEN)))


def use_png_display():
    """Show pictures as sharp PNGs, those that d2l draws as well.

    d2l takes SVG, which JupyterLab does not show in a notebook that was run
    on another machine: a reader would see no picture before running it.
    """
    backend_inline.set_matplotlib_formats('retina')
    d2l.use_svg_display = use_png_display


def plot_timeline(timeline, title=None, ax=None, until=None):
    """Draw a `Timeline`: a row for each device, a bar for each operation.

    Args:
        title: words above; how much the devices overlapped is added.
        ax: matplotlib axes; by default a new figure is made.
        until: end of the time axis in seconds, to compare two pictures.
    """
    rows = len(timeline.devices)
    if ax is None:
        _, ax = plt.subplots(figsize=(8, 1.3 + 0.42 * rows),
                             layout='constrained')
    for event in timeline.events:
        row = timeline.devices.index(event.device)
        ax.broken_barh([(event.start * 1e3, (event.end - event.start) * 1e3)],
                       (row - 0.36, 0.72), color=PHASE_COLORS[event.phase],
                       linewidth=0)
    ax.set_yticks(range(rows), timeline.devices)
    ax.set_ylim(rows - 0.5, -0.5)
    ax.set_xlim(0, (until or timeline.seconds) * 1e3)
    ax.set_xlabel('time / ms')
    seen = {event.phase for event in timeline.events}
    ax.legend(handles=[Patch(color=PHASE_COLORS[phase], label=phase)
                       for phase in PHASES if phase in seen],
              loc='upper left', bbox_to_anchor=(1, 1), frameon=False)
    words = [f'{timeline.seconds * 1e3:.0f} ms']
    if rows > 1:
        words.append(f'more than one device at work '
                     f'{timeline.overlap:.0%} of the time')
    ax.set_title(f'{title}: ' * bool(title) + ', '.join(words), fontsize=10,
                 loc='left')
    return ax
