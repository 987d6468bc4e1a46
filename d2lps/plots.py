"""Pictures: every figure of the notebooks in one call and one style.

Each function draws on `ax`, or on a new figure, and returns the axes.
"""
from collections import defaultdict

import numpy as np
from d2l import mxnet as d2l
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib_inline import backend_inline

from d2lps.plan import COLORS as CHUNK_COLORS
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


def plot_topology(topology, load=None, ax=None):
    """Nodes on a circle, switches between what they join.

    A link's width shows its bandwidth, its colour its entry in `load`, a
    dict from (src, dst) to a number, such as `Timing.busy()`. Of a pair of
    links, the one towards a node is drawn to the right of its direction.
    """
    ax = ax or plt.subplots(figsize=(5, 5))[1]
    at = _places(topology)
    top = max(link.bandwidth for link in topology.links)
    scale = plt.Normalize(0, max(load.values(), default=1) if load else 1)
    for link in topology.links:
        ends = np.array([at[link.src], at[link.dst]])
        along = ends[1] - ends[0]
        aside = np.array([along[1], -along[0]]) / (np.hypot(*along) + 1e-9)
        color = '0.6' if load is None else plt.cm.viridis_r(
            scale(load.get((link.src, link.dst), 0)))
        ax.plot(*(ends + 0.018 * aside).T, color=color, zorder=1,
                linewidth=1 + 4 * link.bandwidth / top)
    for node, (x, y) in at.items():
        switch = node in topology.switches
        ax.text(x, y, str(node), ha='center', va='center', fontsize=9,
                bbox={'boxstyle': 'square' if switch else 'round',
                      'facecolor': '0.9' if switch else 'white'})
    if load is not None:
        ax.figure.colorbar(plt.cm.ScalarMappable(scale, 'viridis_r'), ax=ax,
                           shrink=0.6, label='load')
    ax.set(title=topology.name, aspect='equal', xlim=(-1.2, 1.2),
           ylim=(-1.2, 1.2))
    ax.axis('off')
    return ax


def _places(topology):
    """A point for every node and switch, a dict from name to (x, y)."""
    turn = 2 * np.pi * np.arange(len(topology.nodes)) / len(topology.nodes)
    at = {node: np.array([np.sin(a), np.cos(a)])
          for node, a in zip(topology.nodes, turn)}
    at.update((switch, np.zeros(2)) for switch in topology.switches)
    near = defaultdict(set)
    for link in topology.links:
        near[link.src].add(link.dst)
        near[link.dst].add(link.src)
    for _ in range(50):  # each switch moves to the middle of its neighbours
        for switch in topology.switches:
            at[switch] = np.mean([at[other] for other in near[switch]], axis=0)
    return at


def plot_timing(timing, ax=None, most=24):
    """A row per link: when it carries which send, coloured by chunk.

    Sends of one round that share a link share its row. With more than
    `most` links in use, only the busiest are shown.
    """
    busy = timing.busy()
    rows = sorted(sorted(busy, key=busy.get)[-most:], key=str)
    ax = ax or plt.subplots(figsize=(7, 1 + 0.25 * len(rows)))[1]
    bars = defaultdict(list)  # (link, round) -> events
    routes = {}
    for event in timing.events:
        pair = event.send[:2]
        if pair not in routes:
            routes[pair] = timing.topology.route(*pair)
        for link in routes[pair]:
            bars[link[:2], event.round].append(event)
    for (link, _), events in bars.items():
        if link in rows:
            height = 0.8 / len(events)
            for k, event in enumerate(events):
                ax.barh(rows.index(link) - 0.4 + (k + 0.5) * height,
                        1e3 * (event.end - event.start), height,
                        left=1e3 * event.start, edgecolor='white',
                        linewidth=0.5,
                        color=CHUNK_COLORS[event.send.chunk % len(CHUNK_COLORS)])
    ax.set_yticks(range(len(rows)), [f'{a} to {b}' for a, b in rows])
    ax.invert_yaxis()
    left = f', the busiest {most} links' if len(busy) > most else ''
    ax.set(xlabel='time (ms)', title=f'{timing.schedule.name} on '
           f'{timing.topology.name}: {timing.seconds * 1e3:.3g} ms{left}')
    return ax


def plot_schedule(schedule, ax=None):
    """A line per node, a column per round, an arrow per send.

    An arrow is solid where the chunk is added, dashed where it replaces.
    """
    nodes, rounds = schedule.nodes, schedule.rounds
    ax = ax or plt.subplots(figsize=(1 + 0.7 * len(rounds),
                                     1 + 0.35 * len(nodes)))[1]
    ax.hlines(range(len(nodes)), 0, len(rounds), color='0.8', zorder=0)
    for k, sends in enumerate(rounds):
        for src, dst, chunk, reduce in zip(*sends.columns()):
            ax.annotate('', (k + 0.85, dst), (k + 0.15, src), arrowprops={
                'arrowstyle': '->', 'linestyle': '-' if reduce else '--',
                'color': CHUNK_COLORS[chunk % len(CHUNK_COLORS)], 'linewidth': 1.6})
    ax.set_yticks(range(len(nodes)), nodes)
    ax.set_xticks(np.arange(len(rounds)) + 0.5, range(1, len(rounds) + 1))
    ax.invert_yaxis()
    ax.set(xlabel='round', title=schedule.name)
    ax.spines[:].set_visible(False)
    chunks = range(min(len(schedule.weights), len(CHUNK_COLORS)))
    ax.legend([Line2D([], [], color=CHUNK_COLORS[c]) for c in chunks],
              [f'chunk {c}' for c in chunks], loc='center left', fontsize=8,
              bbox_to_anchor=(1, 0.5), frameon=False)
    return ax
