"""Pictures: every figure of the notebooks in one call and one style.

Each function draws on `ax`, or on a new figure, and returns the axes.
"""
from collections import defaultdict

import numpy as np
from d2l import mxnet as d2l
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Patch
from matplotlib_inline import backend_inline

from d2lps.sketch import COLORS as CHUNK_COLORS
from d2lps.timeline import PHASES

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GRAY = (
    '#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7', '#56B4E9',
    '#BBBBBB')
LOAD_COLORS = LinearSegmentedColormap.from_list(
    'load', ['0.88', ORANGE, '#6B1A00'])  # idle to busy all the time
PHASE_COLORS = dict(zip(PHASES, (SKY, BLUE, ORANGE, RED, GREEN, GRAY)))


def use_png_display():
    """Show pictures as sharp PNGs, those that d2l draws as well.

    d2l takes SVG, which JupyterLab does not show in a notebook that was run
    on another machine: a reader would see no picture before running it.
    """
    backend_inline.set_matplotlib_formats('retina')
    d2l.use_svg_display = use_png_display


def plot_timeline(timeline, title=None, ax=None, until=None):
    """Draw a `Timeline`: a row for each device, a bar for each operation.

    title: words above; how much the devices overlapped is added.
    until: end of the time axis in seconds, to compare two pictures.
    """
    rows = len(timeline.devices)
    ax = ax or plt.subplots(figsize=(8, 1.3 + 0.42 * rows),
                            layout='constrained')[1]
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
    both = f', more than one device at work {timeline.overlap:.0%} of the time'
    ax.set_title(f'{title}: ' * bool(title) + f'{timeline.seconds * 1e3:.0f} '
                 'ms' + both * (rows > 1), fontsize=10, loc='left')
    return ax


def plot_topology(topology, load=None, ax=None, scale=True, device=''):
    """Nodes on a circle, switches between what they join.

    A link's width shows its bandwidth, its colour its entry in `load`, a
    dict from (src, dst) to a share from 0 to 1, such as `Timing.busy()`. The
    two links of a cable lie side by side, with triangles that point along.
    scale: explain the colours in a bar beside. device: stands before the
    number of nodes that have one, such as 'GPU '.
    """
    ax = ax or plt.subplots(figsize=(4.5, 3.6))[1]
    at, links = _places(topology), topology.links
    ends = np.array([[at[link.src], at[link.dst]] for link in links])
    along = ends[:, 1:] - ends[:, :1]
    along /= np.linalg.norm(along, axis=2, keepdims=True) + 1e-9
    aside = along[..., ::-1] * [1, -1]
    ends += 0.03 * aside
    heads = 0.4 * ends[:, :1] + 0.6 * ends[:, 1:] + np.concatenate(
        [0.08 * along, 0.05 * aside, -0.05 * aside], axis=1)
    colors = '0.6' if load is None else LOAD_COLORS(
        [load.get(link[:2], 0) for link in links])
    width = np.array([link.bandwidth for link in links])
    ax.add_collection(LineCollection(
        ends, linewidths=1 + 2.5 * width / width.max(), color=colors))
    ax.add_collection(PolyCollection(heads, color=colors))
    for node, (x, y) in at.items():
        label = f'{device}{node}' if isinstance(node, int) else str(node)
        ax.text(x, y, label, ha='center', va='center', fontsize=9, bbox={
            'boxstyle': 'round',
            'facecolor': '0.9' if node in topology.switches else 'white'})
    if load is not None and scale:
        ax.figure.colorbar(
            plt.cm.ScalarMappable(cmap=LOAD_COLORS), ax=ax, shrink=0.6,
            label='share of the time in use', ticks=[0, 0.5, 1])
    ax.set(title=topology.name, aspect='equal', xlim=(-1.2, 1.2),
           ylim=(-1.2, 1.2))
    ax.axis('off')
    return ax


def plot_comparison(timings, ax=None):
    """A bar per `Timing`, in the order given; the best ones are marked."""
    ax = ax or plt.subplots(figsize=(6, 0.8 + 0.27 * len(timings)))[1]
    best = min(timing.seconds for timing in timings) * (1 + 1e-9)
    good = [timing.seconds <= best for timing in timings]
    bars = ax.barh([timing.schedule.name for timing in timings],
                   [1e3 * timing.seconds for timing in timings],
                   color=[GREEN if g else SKY for g in good])
    ax.bar_label(bars, [f'{float(f"{1e3 * t.seconds:.3g}"):,g}' + ' best' * g
                        for t, g in zip(timings, good)], padding=3)
    ax.invert_yaxis()
    ax.margins(x=0.2)
    ax.set(xlabel='time / ms', xticks=[])
    ax.spines[['top', 'right', 'bottom']].set_visible(False)
    return ax


def _places(topology):
    """A point for every node and switch, a dict from name to (x, y)."""
    turn = 2 * np.pi * np.arange(len(topology.nodes)) / len(topology.nodes)
    at = dict(zip(topology.nodes, np.stack([np.sin(turn), np.cos(turn)], 1)))
    at.update((switch, np.zeros(2)) for switch in topology.switches)
    near = {switch: {end for link in topology.links if switch in link[:2]
                     for end in link[:2]} for switch in topology.switches}
    for _ in range(50 * (len(topology.switches) > 0)):
        for switch in topology.switches:  # to the middle of its neighbours
            at[switch] = np.mean([at[other] for other in near[switch]], axis=0)
    return at


def plot_timing(timing, ax=None, most=24):
    """A row per link: when it carries which send, coloured by chunk.

    Sends of one round that share a link share its row. With more than
    `most` links in use, only the busiest are shown.
    """
    busy = timing.busy()
    rows = sorted(sorted(busy, key=busy.get)[-most:], key=lambda link: [
        (isinstance(end, str), end) for end in link])
    ax = ax or plt.subplots(figsize=(7, 1 + 0.25 * len(rows)))[1]
    bars = defaultdict(list)  # (link, round) -> events
    for event in timing.events:
        for link in timing.topology.route(*event.send[:2]):
            bars[link[:2], event.round].append(event)
    for (link, _), events in bars.items():
        height = 0.8 / len(events)
        for k, event in enumerate(events if link in rows else ()):
            ax.barh(rows.index(link) - 0.4 + (k + 0.5) * height,
                    1e3 * (event.end - event.start), height,
                    left=1e3 * event.start, edgecolor='white', linewidth=0.5,
                    color=CHUNK_COLORS[event.send.chunk % len(CHUNK_COLORS)])
    ax.set_yticks(range(len(rows)), [f'{a} to {b}' for a, b in rows])
    ax.invert_yaxis()
    left = f', the busiest {most} links' if len(busy) > most else ''
    ax.set(xlabel='time / ms (a colour for each chunk)',
           title=f'{timing.schedule.name} on {timing.topology.name}: '
                 f'{timing.seconds * 1e3:.3g} ms{left}')
    return ax
