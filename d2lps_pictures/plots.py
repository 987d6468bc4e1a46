"""Pictures of what joins devices, and of what it carries when.

Each function draws on `ax`, or on a new figure, and returns the axes.
"""
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap

from d2lps.checks import (a, checked, flag, list_of, number, refuse,
                          whole)
from d2lps.collectives.simulate import Timing
from d2lps.collectives.topology import Topology
from d2lps_pictures.places import positions
from d2lps_pictures.style import CHUNK_COLORS, GREEN, IDLE_TO_BUSY, SKY

AXES = a(Axes, 'axes of matplotlib, such as plt.gca()')
LOAD_COLORS = LinearSegmentedColormap.from_list('load', IDLE_TO_BUSY)


def _load_of_links(topology, load, **_):
    """A share from 0 to 1 for each link; rounding may add a little."""
    if not topology.links:
        refuse('topology', topology, 'one with links')
    for pair, share in (load or {}).items():
        number(f'load[{pair!r}]', share, most=1 + 1e-6)
        if pair not in topology.number:
            raise ValueError(f'load: {topology.name} has no link {pair!r}')


@checked(_load_of_links, topology=a(Topology, 'a Topology: pcie_switch(4)'),
         load=a(dict, 'a dict such as timing.busy()'), ax=AXES, scale=flag,
         device=a(str, 'a text'))
def plot_topology(topology, load=None, ax=None, scale=True, device=''):
    """Nodes on a circle, switches between what they join.

    A link's width shows its bandwidth, its colour its entry in `load`, a
    dict from (src, dst) to the share of its capacity that it carried, from 0
    to 1, such as `Timing.busy()`; links that are not in it count as idle. The
    two links of a cable lie side by side, with triangles that point along.
    scale: explain the colours in a bar beside. device: stands before the
    number of nodes that have one, such as 'GPU '.
    """
    ax = ax or plt.subplots(figsize=(4.5, 3.6))[1]
    at, links = positions(topology), topology.links
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
            label='share of capacity', ticks=[0, 0.5, 1])
    ax.set(title=topology.name, aspect='equal', xlim=(-1.2, 1.2),
           ylim=(-1.2, 1.2))
    ax.axis('off')
    return ax


def shown_ms(timing):
    """The three digits shown; of two with the same ones none is better.

    First, errors of computing are rounded away.
    """
    return float(f'{round(1e12 * timing.seconds) / 1e9:.3g}')


@checked(timings=list_of(a(Timing, 'a Timing'), 'a list of Timings'),
         ax=AXES)
def plot_comparison(timings, ax=None):
    """A bar per `Timing`, in the order given; the best ones are marked."""
    ax = ax or plt.subplots(figsize=(6, 0.8 + 0.27 * len(timings)))[1]
    best = min(map(shown_ms, timings))
    good = [shown_ms(timing) == best for timing in timings]
    rows = range(len(timings))
    ax.set_yticks(rows, [timing.schedule.name for timing in timings])
    bars = ax.barh(rows, [1e3 * timing.seconds for timing in timings],
                   color=[GREEN if g else SKY for g in good])
    labels = [f'{shown_ms(timing):,g}' + ' best' * is_good
              for timing, is_good in zip(timings, good)]
    ax.bar_label(bars, labels, padding=3)
    ax.invert_yaxis()
    ax.margins(x=0.2)
    ax.set(xlabel='time / ms', xticks=[])
    ax.spines[['top', 'right', 'bottom']].set_visible(False)
    return ax


@checked(timing=a(Timing, 'a Timing, which simulate.time returns'),
         ax=AXES, most=whole)
def plot_timing(timing, ax=None, most=24):
    """A row per link: when it carries which send, coloured by chunk.

    A bar is as high as the send is fast: one that has the link for itself
    fills the row, and two that share it are half as high each, one upon the
    other. So the filled part of a row is the link's entry in
    `Timing.busy()`. Latency is white: no byte flows then. With more than
    `most` links, only the busiest are shown.
    """
    busy = timing.busy()
    links = sorted(sorted(busy, key=busy.get)[-most:], key=lambda link: [
        (type(end).__name__, end) for end in link])
    row = {link: k for k, link in enumerate(links)}
    ax = ax or plt.subplots(figsize=(7, 1 + 0.25 * len(links)))[1]
    ax.hlines(np.arange(len(links)) + 0.4, 0, 1e3 * timing.seconds,
              color='0.85', linewidth=0.5)
    last = {}  # of each link and send the bar that may go on
    for start, end, which, rates in timing.rates():
        filled = dict.fromkeys(links, 0.0)
        for k, rate in zip(which.tolist(), rates.tolist()):
            send = timing.events[k].send
            for link in timing.topology.route(*send[:2]):
                if link[:2] not in row:
                    continue
                share = round(0.8 * rate / link.bandwidth, 9)
                low = row[link[:2]] + 0.4 - filled[link[:2]]
                filled[link[:2]] += share
                bar, *was = last.get((link, k), [None])
                if was == [start, low, share]:
                    bar.set_width(1e3 * end - bar.get_x())
                else:
                    bar, = ax.barh(
                        low, 1e3 * (end - start), -share, 1e3 * start,
                        align='edge', edgecolor='white', linewidth=0.5,
                        color=CHUNK_COLORS[send.chunk % len(CHUNK_COLORS)])
                last[link, k] = bar, end, low, share
    ax.set_yticks(range(len(links)), [f'{src} to {dst}' for src, dst in links])
    ax.set_ylim(len(links) - 0.5, -0.5)
    left = f', the busiest {most} links' if len(busy) > most else ''
    ax.set(xlabel='time / ms (a colour for each chunk; height: share of '
           'capacity)', title=f'{timing.schedule.name} on '
           f'{timing.topology.name}: {timing.seconds * 1e3:.3g} ms{left}')
    return ax
