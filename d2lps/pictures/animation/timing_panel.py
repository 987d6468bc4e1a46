"""One timing as a picture: machines, cables, and chunks that travel."""
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from d2lps.collectives.simulate import Timing
from d2lps.pictures.animation.layout import BAR, GAP, Places, choose
from d2lps.pictures.animation.playtime import Playing, Stopped
from d2lps.pictures.animation.story import Story, lanes
from d2lps.pictures.drawing import FRAME, INK, Drawing, color, width_of

HEAD, FOOT, TITLE, TICKS = 56, 38, 20, 14  # heights: of a panel, of a box
TEXT = 12  # the smallest words: pixels
# How much narrower and lower messages are, the first that has room.
SHRUNK = [(1, 1), (.8, 1), (.6, 1), (.4, 1), (.4, .8), (.3, .8), (.3, .6)]
INSIDE = 0.12  # how long a path in a box or switch takes, of one on a cable
NARROWEST = 340
ABREAST = 36  # pixels across the cable of a circle that messages may take
DONE, METAL, PAPER = '#00664b', '#e3e6ea', '#fbfbfb'
WIRES = '#93b9d6', '#e6bd72', '#b9bec4'  # fastest first; one kind: the last
# The sum is there. The path has no end yet, for attributes.
TICK = ('<path d="M-3.5 0L-1 3L4 -3.5" fill="none" '
        f'stroke="{DONE}" stroke-width="2.2"')
# Where a send is drawn, and no cable.
SEND_LINE = {'stroke': '#9aa1a8', 'width': 2, 'dashed': True}


class Panel:
    """A timing's picture: its size, and where all that is in it stands.

    name: its title. rates: bandwidths, the highest first, of this and of
    other topologies beside it. layout, positions: as of `animate`.

    All sizes are in pixels. A device's box has the size `box`, and in it a
    row for each device, `row` high. Chunk k is `wide[k]` wide and begins at
    `begin[k]`, from the middle of the box. `direct`: sends are drawn in
    place of cables. `shrunk`, `paths`: see `_paths`.
    """

    def __init__(self, timing: Timing, name: str, rates: Sequence[float],
                 layout: str | None = None, positions: Places | None = None
                 ) -> None:
        self.timing, self.story = timing, Story(timing)
        self.topology, self.plan = timing.topology, timing.schedule
        self.name, self.rates = name, rates
        self.device = 'worker' if 'ethernet' in self.topology.name else 'GPU'
        n, weights = self.plan.num_devices, self.plan.weights
        self.row = 14 if n <= 4 else 11 if n <= 8 else 5
        self.tall = n * self.row
        inner = np.clip(8 * weights.sum() / weights.max(), 60, 130)
        if weights.min() > 0.3 * weights.max():
            inner = np.clip(8 * weights.sum() / weights.min(), 60, 130)
        self.wide = inner * weights / weights.sum()
        self.begin = self.wide.cumsum() - self.wide - inner / 2
        self.box = inner + 8, self.tall + TITLE + TICKS + 2
        self.direct = layout is not None and positions is None
        self.layout = choose(self.topology, self.plan, self.box, layout,
                             positions)
        self.width = max(self.layout.width + 16, NARROWEST,
                         24 + width_of(name, 15, True))
        self.height = HEAD + self.layout.height + FOOT
        self.shrunk, self.paths = self._paths()

    def _paths(self):
        """The pair of `SHRUNK` that fits; points and shares of each message.

        shares: of the message's time that have gone at these points.
        """
        messages = self.story.messages
        routes = [[(m.src, m.dst)] if self.direct else [
            link[:2] for link in self.topology.route(m.src, m.dst)]
            for m in messages]
        cables = {link: self.layout.path(*link)
                  for route in routes for link in route}

        def extent(shrunk, message, link):
            """The width of a message across a cable."""
            wide, high = self._size(message, shrunk)
            x, y = np.abs(cables[link][-1] - cables[link][0])
            return ((wide + 3) * y + (high + 3) * x) / (np.hypot(x, y) or 1)

        # Around a circle those that pass a device are seldom abreast.
        room = ABREAST if self.layout.arcs else np.inf
        for shrunk in SHRUNK:
            offsets, widest = lanes(messages, routes,
                                    partial(extent, shrunk), room)
            if widest <= self.box[0] + GAP:
                break
        # `shrunk` is now the last pair, if there is room for none.
        paths = []
        for k, (message, route) in enumerate(zip(messages, routes)):
            points, times = [self._middle(message.src, message.chunks)], [0]
            for link in route:
                along = np.gradient(cables[link], axis=0).T
                x, y = along / (np.hypot(*along) + 1e-9)
                points += [*cables[link]
                           + offsets[k, link] * np.stack([-y, x], axis=1)]
                times += [INSIDE, *[1 / (len(x) - 1)] * (len(x) - 1)]
            points.append(self._middle(message.dst, message.chunks))
            times = np.cumsum([*times, INSIDE])
            paths.append((points, times / times[-1]))
        return shrunk, paths

    def _rows(self, message):
        """The devices whose contributions are in a message, a row for each."""
        return np.flatnonzero(np.sum(message.held, axis=0)).tolist()

    def _size(self, message, shrunk):
        """Width and height of a message's shape, shrunk by two factors."""
        across, down = shrunk
        return (max(6, self.wide[message.chunks].sum() * across),
                max(8, len(self._rows(message)) * self.row * down))

    def _middle(self, node, chunks):
        """The middle of some chunks in a node's box."""
        x, y = self.layout.at[node]
        return np.array([x + (self.begin + self.wide / 2)[chunks].mean(),
                         y + (TITLE - TICKS) / 2])

    def wire(self, bandwidth: float) -> dict[str, Any]:
        """The look of a cable: the faster, the wider."""
        number = min(self.rates.index(bandwidth), len(WIRES) - 1)
        if len(self.rates) == 1:  # all are alike
            number = -1
        return {'stroke': WIRES[number],
                'width': 3 + 6 * (bandwidth / self.rates[0]) ** 0.5}

    def _label(self, node):
        """A node's name as readers see it."""
        if isinstance(node, int):
            return f'{self.device} {node}'
        pcie = node == 'switch' and self.topology.name.startswith('pcie')
        return 'PCIe switch' if pcie else str(node).replace('cpu', 'CPU')

    def draw(self, drawing: Drawing, clock: Playing | Stopped, x: float,
             y: float, longest: float | None) -> list[float]:
        """Put it into a `Drawing` at (x, y), as it is by the clock.

        longest: seconds that a progress bar of full width stands for, or
        None for a page that has a name and a bar of its own. Returns when
        each device that gets all of the sum has it: seconds, in order.
        """
        if longest is not None:
            drawing.text(x + 8, y + 12, self.name, 15, 'start', True)
            self._progress(drawing, clock, x, y, longest)
        self._rounds(drawing, clock, x, y)
        left = x + (self.width - self.layout.width) / 2 - self.layout.left
        drawing.add(f'<g transform="translate({left:g} '
                    f'{y + HEAD - self.layout.top:g})">')
        for x, y, width, height, name in self.layout.frames:
            drawing.box(x, y, width, height, fill=PAPER, stroke='#999',
                        dashed=True)
            drawing.text(x + 8, y + 11, name, 13, 'start')
        self._cables(drawing)
        for low, high, middle in self.layout.bars.values():
            drawing.box(low, middle - BAR / 2, high - low, BAR, fill=METAL)
        done = {node: self._node(drawing, clock, node)
                for node in self.layout.at if node not in self.layout.bars}
        for message, (points, shares) in zip(self.story.messages, self.paths):
            _copy(drawing, self._sprite(drawing, message), 0, 0, clock.moving(
                points, shares, message.start, message.end), ' data-sends="'
                f'{" ".join(map(str, message.sends))}"')
        drawing.add('<g class="over">')  # names are never covered
        for node in self.layout.at:
            self._name(drawing, clock, node, done.get(node, np.inf))
        drawing.add('</g></g>')
        return sorted(time for time in done.values() if time < np.inf)

    def _cables(self, drawing):
        """A line for each cable, or for each pair that sends."""
        ends = ([(m.src, m.dst) for m in self.story.messages] if self.direct
                else self.topology.number)
        for pair in dict.fromkeys(tuple(sorted(pair, key=str))
                                  for pair in ends):
            style = SEND_LINE
            if not self.direct:  # a cable may go in either direction alone
                link = pair if pair in self.topology.number else pair[::-1]
                style = self.wire(self.topology.links[
                    self.topology.number[link]].bandwidth)
            drawing.line(*self.layout.path(*pair, 25).tolist(), **style)

    def _node(self, drawing, clock, node):
        """A box with a column for each chunk, a row for each device.

        Returns when a device has all of the sum; infinity if it never has.
        """
        (x, y), (wide, high) = self.layout.at[node], self.layout.size(node)
        low, complete = y - high / 2, []
        drawing.box(x - wide / 2, low, wide, high, fill=METAL if (
            node in self.topology.switches) else 'white')
        if not self._holds(node):
            return np.inf
        for chunk, (begin, width) in enumerate(zip(self.begin, self.wide)):
            drawing.add(
                f'<rect x="{x + begin:.4g}" y="{low + TITLE:g}" width='
                f'"{width:.4g}" height="{self.tall}" fill="#f1f1f1" '
                'stroke="white"/>')
            for since, until, counts in self.story.held(node, chunk):
                done = (counts == 1).all()
                _copy(drawing, self._column(drawing, counts, width, done),
                      x + begin, low + TITLE, clock.visible(since, until))
            complete.append(since if done else np.inf)
        return max(complete) if isinstance(node, int) else np.inf

    def _holds(self, node):
        """True if a node's box shows what the node holds."""
        return (node in self.story.place
                and self.layout.size(node)[1] == self.box[1])

    def _name(self, drawing, clock, node, complete):
        """The label of a node, and a tick once it has all of the sum."""
        (x, y), (wide, high) = self.layout.at[node], self.layout.size(node)
        name = self._label(node)
        if not self._holds(node):
            low = y - BAR / 2 + 10 if node in self.layout.bars else y
            drawing.text(x, low, name)  # in a bar, above messages
            return
        left, low = x - wide / 2, y - high / 2
        drawing.text(left + 4, low + 11, name, 13 if len(name) < 7 else
                     TEXT, 'start', True)
        if complete < np.inf:
            circle = (f'<circle r="7.5" fill="white" stroke="{DONE}" '
                      f'stroke-width="1.5"/>{TICK}/>')
            _copy(drawing, drawing.define(circle), left + wide - 1, low - 5,
                  clock.visible(complete))

    def _column(self, drawing, counts, width, complete=False, rows=None,
                high=None):
        """A chunk, with the contributions in it: a shape's name.

        rows: devices with a row of height `high`; without it, all devices.
        """
        out, rows = '', rows or [*range(len(counts))]
        high = high or self.row
        for device in np.flatnonzero(counts).tolist():
            y = rows.index(device) * high
            part = define_part(drawing, device, width, y, high)
            out += f'<use href="#{part}"/>'
            if counts[device] > 1:
                out += (f'<text x="{width / 2:.3g}" y="{y + high - 2:.4g}" '
                        'class="n" fill="#b00">'
                        f'{counts[device]}×</text>')
        if complete:
            tick = drawing.define(
                f'{TICK} transform="scale({min(1.2, width / 9):.3g})"/>')
            out += (f'<use href="#{tick}" x="{width / 2:.3g}" '
                    f'y="{self.tall + TICKS / 2}"/>')
        return drawing.define(out)

    def _sprite(self, drawing, message):
        """The shape of a message, around the middle of its chunks."""
        rows, (wide, high) = self._rows(message), self._size(message,
                                                              self.shrunk)
        widths = self.wide[message.chunks]
        widths = widths * wide / widths.sum()
        left, out = -wide / 2, ''
        for x, width, counts in zip(left + widths.cumsum() - widths, widths,
                                    message.held):
            column = self._column(drawing, counts, width, False, rows,
                                  high / max(1, len(rows)))
            out += (f'<use href="#{column}" x="{x:.4g}" '
                    f'y="{-high / 2:.4g}"/>')
        dash = '' if message.reduce else ' stroke-dasharray="5 3"'
        area = (f'<rect x="{left:.4g}" y="{-high / 2:.4g}" '
                f'width="{wide:.4g}" height="{high:.4g}" ')
        paper = drawing.define(f'{area}fill="white"/>')
        frame = drawing.define(f'{area}fill="none" stroke="{INK}" '
                             f'stroke-width="2"{dash}/>')
        return drawing.define(
            f'<use href="#{paper}"/>{out}<use href="#{frame}"/>')

    def _progress(self, drawing, clock, x, y, longest):
        """A bar with a part for each round."""
        end, low = self.timing.seconds, y + self.height - 22
        scale = (self.width - 16) / (longest or 1)
        area = f'<rect y="{low:g}" height="10" x="'
        drawing.add(f'{area}{x + 8:g}" width="{end * scale:.5g}" '
                    f'fill="#8a97a5"{clock.growing(end)}/>')
        for _, begin, until in self.rounds():
            drawing.add(
                f'{area}{x + 8 + begin * scale:.5g}" fill="none" stroke='
                f'"{FRAME}" width="{(until - begin) * scale:.5g}"/>')

    def rounds(self) -> Iterator[tuple[str, float, float]]:
        """Words for each round, when it begins, and when the next does."""
        end = self.timing.seconds
        begins = [*self.story.rounds, end]
        first = 1  # of the rounds that begin at the same time
        for k, (begin, until) in enumerate(zip(begins, begins[1:]), 1):
            if until - begin > 1e-6 * end:
                name = f'round {k}' if k == first else f'rounds {first} to {k}'
                first = k + 1
                yield f'{name} of {len(begins) - 1}', begin, until

    def _rounds(self, drawing, clock, x, y):
        """The number of the round, or that all is done."""
        def write(text, begin, end, size, bold, fill):
            attributes = clock.visible(begin, end)
            if attributes is not None:
                drawing.add(f'<g{attributes}>').text(
                    x + 8, y + 34, text, size, 'start', bold, fill).add('</g>')

        for name, begin, until in self.rounds():
            write(name, begin, until, 13, False, INK)
        end = self.timing.seconds
        write(f'done: {clock.in_words(end)}', end, None, 20, True, DONE)


def define_part(drawing: Drawing, device: int, width: float, y: float,
                high: float) -> str:
    """The part of a device in a chunk, as a shape: its name.

    y: where it begins, from the chunk's top. All sizes are in pixels.
    """
    more = ''
    if high >= 8 and width >= 8:
        more += drawing.hatch(0, y, width, high, device)
    if high >= TEXT - 1 and width >= TEXT:
        more += (f'<text x="{width / 2:.3g}" y="{y + high / 2 + 4.5:.4g}" '
                 f'class="n">{device}</text>')
    return drawing.define(
        f'<rect y="{y:.4g}" width="{width:.3g}" height="{high:.3g}" '
        f'stroke="white" fill="{color(device)}" stroke-width=".7"/>{more}')


def _copy(drawing, name, x, y, attributes, more=''):
    """Put a copy of a shape at (x, y), unless its attributes are None.

    A stopped clock gives None for what is not there at its moment.
    """
    if attributes is not None:
        place = f' x="{x:.4g}" y="{y:.4g}"' if x or y else ''
        drawing.add(f'<use href="#{name}"{place}{attributes}{more}/>')
