"""Pictures of what joins devices, and of what it carries when."""
from collections.abc import Sequence
from functools import partial
from math import hypot
from typing import TYPE_CHECKING

from d2lps.annotations import Node
from d2lps.checks import (boolean, checked, instance_of, list_of,
                          number, positive, refuse, text)
from d2lps.collectives.simulate import Timing
from d2lps.collectives.topology import Topology
from d2lps.figures import describe
from d2lps.pictures.animation.layout import still_layout
from d2lps.pictures.drawing import (TITLE, WORDS, Drawing, color, width_of,
                                    wrapped)
from d2lps.pictures.rows import LETTERS, draw_bars, row_axes
from d2lps.pictures.style import GREEN, IDLE_TO_BUSY, SKY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_SCALE = 'share of capacity: 0'
TEXT = partial(text, least=0)
MOST_LINKS = 24  # rows of a timing


def load_color(share: float) -> str:
    """The colour of a link that carried a share of its capacity."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex
    mixture = LinearSegmentedColormap.from_list('', IDLE_TO_BUSY)
    return to_hex(mixture(float(share)))


def _load_of_links(topology, load, **_):
    """A share from 0 to 1 for each link; rounding may add a little."""
    if not topology.links:
        refuse('topology', topology, 'one with links')
    for pair, share in (load or {}).items():
        number(f'load[{pair!r}]', share, most=1 + 1e-6)
        if pair not in topology.number:
            raise ValueError(f'load: {topology.name} has no link {pair!r}')


@checked(_load_of_links,
         topology=instance_of(Topology, 'a Topology: pcie_switch(4)'),
         load=instance_of(dict, 'a dict such as timing.busy()'), scale=boolean,
         device=instance_of(str, 'a text'), title=TEXT,
         width=partial(number, least=200, most=2000))
def plot_topology(topology: Topology,
                  load: dict[tuple[Node, Node], float] | None = None,
                  scale: bool = True, device: str = '',
                  title: str | None = None, width: float = 352) -> Drawing:
    """Machines side by side, or nodes on a circle around their switches.

    A link's width shows its bandwidth, its colour its entry in `load`, a
    dict from (src, dst) to the share of its capacity that it carried, from 0
    to 1, such as `Timing.busy()`; links that are not in it count as idle. The
    two links of a cable lie side by side, with triangles that point along.
    scale: explain the colours in a bar below. device: stands before the
    number of nodes that have one, such as 'GPU ', and 'cpu' is written 'CPU'
    then. title: the topology's name if there is none.
    """
    links, fastest = topology.links, max(
        link.bandwidth for link in topology.links)
    title = topology.name if title is None else title
    lines = wrapped(title, TITLE, width - 8, True) if title else []
    top, layout = 8 + 17 * len(lines), still_layout(topology)
    cpu = 'CPU' if device else 'cpu'
    names = {node: f'{device}{node}' if isinstance(node, int)
             else str(node).replace('cpu', cpu) for node in layout.at}
    half = 2 if layout.frames else 8 + max(
        width_of(name, WORDS) for name in names.values()) / 2
    high, scaled = 0.72 * width, load is not None and scale
    drawing = Drawing(width, top + high + 36 + 26 * scaled,
                      _topology_alt_text(topology, load, title, names))
    if title:
        drawing.text(4, 6 + 8.5 * len(lines), '\n'.join(lines), TITLE,
                     'start', bold=True)
    along, down = (long / (extent or 1) for long, extent in (
        (width - 2 * half, layout.width), (high, layout.height)))

    def place(x, y):
        return (width / 2 + along * (x - layout.left - layout.width / 2),
                top + 16 + down * (y - layout.top))

    for x, y, wide, tall, name in layout.frames:
        left, low = place(x, y)
        drawing.box(left, low, along * wide, down * tall, dashed=True)
        drawing.text(left + 6, low + 11, name, WORDS, 'start')
    heads = []
    busy = {link: (load or {}).get(link[:2], 0) for link in links}
    for link in sorted(links, key=lambda link: busy[link]):  # busy ones on top
        ink = '#999999' if load is None else load_color(busy[link])
        (x1, y1), (x2, y2) = (place(*end) for end in layout.ends(link))
        long = hypot(x2 - x1, y2 - y1) or 1
        dx, dy = (x2 - x1) / long, (y2 - y1) / long
        away = 4.5  # beside the link the other way
        x1, y1, x2, y2 = (x1 - away * dy, y1 + away * dx,
                          x2 - away * dy, y2 + away * dx)
        wide = 1.5 + 3 * link.bandwidth / fastest
        path = f'd="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"'
        drawing.add(f'<path {path} stroke="white" stroke-width="{wide + 3:g}"'
                    f'/><path class="link" {path} stroke="{ink}" '
                    f'stroke-width="{wide:.3g}"/>')
        x, y = 0.35 * x1 + 0.65 * x2, 0.35 * y1 + 0.65 * y2
        heads.append(
            f'<path class="head" d="M{x + 9 * dx:.1f} {y + 9 * dy:.1f}'
            f'L{x - 6 * dy:.1f} {y + 6 * dx:.1f}L{x + 6 * dy:.1f} '
            f'{y - 6 * dx:.1f}z" fill="{ink}" stroke="white"/>')
    drawing.add(''.join(heads))
    for node, middle in layout.at.items():
        (x, y), wide = place(*middle), width_of(names[node], WORDS)
        wide = along * layout.room(node, (wide + 10) / along)
        drawing.box(x - wide / 2, y - 11, wide, 22, names[node],
                    '#e4e4e4' if node in topology.switches else 'white',
                    WORDS)
    if scaled:
        y, x = drawing.height - 16, width_of(SHOWN_SCALE, WORDS) + 14
        drawing.text(x - 6, y, SHOWN_SCALE, WORDS, 'end')
        for k in range(40):
            drawing.add(f'<rect class="scale" x="{x + 3 * k:g}" y="{y - 6:g}"'
                        f' width="3.3" height="12" '
                        f'fill="{load_color(k / 39)}"/>')
        drawing.text(x + 127, y, '1', WORDS, 'start')
    return drawing


def _topology_alt_text(topology, load, title, names):
    nodes = [names[node] for node in topology.nodes]
    text = f'{title or topology.name}: {", ".join(nodes)}'
    if topology.switches:
        text += ', joined by ' + ', '.join(map(str, topology.switches))
    text += f'; {len(topology.links)} links, one for each direction.'
    if load:
        busiest = max(load.values())
        pairs = [f'{src} to {dst}' for (src, dst), share in load.items()
                 if share > 0.999 * busiest > 0]
        text += (f' Busiest, {busiest:.0%} of what they can carry: '
                 f'{_some(pairs)}.' if pairs else ' None is busy.')
    return text


def _some(names, most=6):
    """The first of many, and how many more there are."""
    more = len(names) - most
    return ', '.join(names[:most]) + (f' and {more} more' if more > 0 else '')


def shown_ms(timing: Timing) -> float:
    """The three digits shown; of two with the same ones none is better.

    First, errors of computing are rounded away.
    """
    return float(f'{round(1e12 * timing.seconds) / 1e9:.3g}')


@checked(timings=list_of(instance_of(Timing, 'a Timing'), 'a list of Timings'),
         title=TEXT, target=positive)
def plot_comparison(timings: Sequence[Timing], title: str = '',
                    target: float | None = None, ax: 'Axes | None' = None
                   ) -> 'Axes':
    """A bar per `Timing`, in the order given; the best ones are marked.

    target: a dashed line, in seconds; what misses it is not marked.
    title: words above. ax: the `Axes` to draw in; without it, those of a new
    figure.
    """
    best = min(map(shown_ms, timings))
    reached = not target or best <= float(f'{1e3 * target:.3g}')
    good = [reached and shown_ms(timing) == best for timing in timings]
    labels = [f'{shown_ms(timing):,g}' + ' best' * is_good
              for timing, is_good in zip(timings, good)]
    names = [timing.schedule.name for timing in timings]
    lengths = [1e3 * timing.seconds for timing in timings]
    longest = max([*lengths, 1e3 * (target or 0)]) or 1
    ax = row_axes(names, longest, ax=ax, title=title, xlabel='time / ms',
                  width=6.4, legend=False)
    ax.barh(range(len(names)), lengths, 0.72, color=[
        GREEN if is_good else SKY for is_good in good])
    wide = 96 * ax.figure.get_figwidth() * ax.get_position().width
    rooms = [width_of(label, LETTERS) + 8 for label in labels]
    until = longest / max(1 - max(rooms) / wide, 0.3)
    ax.set(xlim=(0, until), ylim=(len(names) - 0.5, -0.5))
    line = 1e3 * target if target else until
    for row, (length, room) in enumerate(zip(lengths, rooms)):
        beside = target and length < line < length + room / wide * until
        ax.annotate(labels[row], (line if beside else length, row), (4, 0),
                    textcoords='offset points', va='center')
    if target:
        ax.axvline(line, color='gray', linestyle='--')
    parts = '; '.join(map('{}: {}'.format, names, labels))
    describe(ax, f'{title or "Bars"}, time in ms. {parts}.')
    return ax


@checked(timing=instance_of(Timing, 'a Timing, which simulate.timing returns'),
         title=TEXT, until=positive)
def plot_timing(timing: Timing, title: str | None = None,
                until: float | None = None, ax: 'Axes | None' = None
               ) -> 'Axes':
    """A row per link: when it carries which send, coloured by chunk.

    A bar is as high as the send is fast: one that has the link for itself
    fills the row, and two that share it are half as high each, one upon the
    other. So the filled part of a row is the link's entry in
    `Timing.busy()`. Latency is white: no byte flows then. Links of one
    direction stand together. Of more than 24 links, the busiest are shown.
    title: text above; without it, the plan, the topology and the time.
    until: end of the time axis in seconds, to compare two pictures. ax: the
    `Axes` to draw in; without it, those of a new figure.
    """
    busy = timing.busy()
    busiest = sorted(busy, key=lambda link: busy[link])[-MOST_LINKS:]
    n = sum(isinstance(node, int) for node in timing.topology.nodes)

    def direction(link):
        """A key for sorting: links that go the same way around are equal."""
        kinds = [type(end).__name__ for end in link]
        return kinds, (link[1] - link[0]) % n if kinds == ['int'] * 2 else 0

    links = sorted(busiest, key=lambda link: (direction(link), link))
    if title is None:
        title = (f'{timing.schedule.name} on {timing.topology.name}: '
                 f'{timing.seconds * 1e3:.3g} ms')
    if len(busy) > MOST_LINKS:
        title = ', '.join(filter(None, (
            title, f'the busiest {MOST_LINKS} links')))
    names = [f'{src} to {dst}' for src, dst in links]
    ax = row_axes(names, 1e3 * (until or timing.seconds or 1), ax=ax,
                  title=title, row_height=0.27, legend=False, xlabel=(
                      'time / ms (a colour for each chunk; height: share of '
                      'capacity)'))
    for row in range(len(names)):
        ax.axhline(row + 0.4, color='gray', linewidth=0.8, alpha=0.3)
    for (ink, share), spans in _bars(timing, links).items():
        draw_bars(ax, spans, ink, height=share)
    describe(ax, _timing_alt_text(title, names, [
        busy[link] for link in links]))
    return ax


def _bars(timing, links):
    """{(colour, height): bars (start, end, middle)}, in ms and rows."""
    row = {link: k for k, link in enumerate(links)}
    last, bars = {}, {}  # of each link and send the bar that may go on
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
                    bar[1] = 1e3 * end
                else:
                    bar = [1e3 * start, 1e3 * end, low - share / 2]
                    bars.setdefault((color(send.chunk), share), []).append(
                        bar)
                last[link, k] = bar, end, low, share
    return bars


def _timing_alt_text(title, names, shares):
    parts = [f'{name} {share:.0%}' for name, share in zip(names, shares)]
    return (f'{title}. A row for each link, filled by what it carries: '
            f'{_some(parts, 12)}.')
