"""One timing as a picture: machines, cables, and chunks that travel."""
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from d2lps.annotations import Node
from d2lps.collectives.simulate import Timing
from d2lps.pictures.animation.layout import BAR, GAP, Places, choose
from d2lps.pictures.animation.playtime import Playing, Stopped
from d2lps.pictures.animation.story import Story, lanes
from d2lps.pictures.drawing import FRAME, INK, Drawing, color, width_of
from d2lps.units import with_unit

HEAD, FOOT, TITLE, TICKS = 56, 38, 20, 14  # heights: of a panel, of a box
TEXT = 12  # the smallest words: pixels
# How much narrower and lower messages are, the first that has room.
SHRUNK = [(1, 1), (.8, 1), (.6, 1), (.4, 1), (.4, .8), (.3, .8), (.3, .6)]
INSIDE = 0.12  # how long a path in a box or switch takes, of one on a cable
NARROWEST = 340
ABREAST = 36  # pixels across the cable of a circle that messages may take
DONE, METAL, PAPER = '#00664b', '#e3e6ea', '#fbfbfb'
WIRES = '#93b9d6', '#e6bd72', '#b9bec4'  # fastest first; one kind: the last
# Where a send is drawn, and no cable.
SEND_LINE = {'stroke': '#9aa1a8', 'width': 2, 'dashed': True}


class Panel:
    """A timing's picture.

    name: its title. device: what a device is called. rates: bandwidths, the
    highest first, of this and of other topologies beside it.
    """

    def __init__(self, timing: Timing, name: str, device: str,
                 rates: Sequence[float], layout: str | None,
                 positions: Places | None) -> None:
        self.timing, self.story = timing, Story(timing)
        self.topology, self.plan = timing.topology, timing.schedule
        self.name, self.device = name, device
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
        self.rates = rates
        self._make_paths()

    def _make_paths(self):
        """Of each message points, and the share of its time at each."""
        messages = self.story.messages
        routes = [[(m.src, m.dst)] if self.direct else [
            link[:2] for link in self.topology.route(m.src, m.dst)]
            for m in messages]
        paths = {link: self.layout.path(*link)
                for route in routes for link in route}

        def extent(shrunk, message, link):
            """How wide a message is across a cable."""
            wide, high = self._size(message, shrunk)
            x, y = np.abs(paths[link][-1] - paths[link][0])
            return ((wide + 3) * y + (high + 3) * x) / (np.hypot(x, y) or 1)

        # Around a circle those that pass a device are seldom abreast.
        room = ABREAST if self.layout.arcs else np.inf
        for shrunk in SHRUNK:
            offsets, widest = lanes(messages, routes,
                                    partial(extent, shrunk), room)
            if widest <= self.box[0] + GAP:
                break
        self.shrunk = shrunk  # the last one, if there is room for none
        self.paths = []
        for k, (message, route) in enumerate(zip(messages, routes)):
            points, times = [self._middle(message.src, message.chunks)], [0]
            for link in route:
                along = np.gradient(paths[link], axis=0).T
                x, y = along / (np.hypot(*along) + 1e-9)
                points += [*paths[link]
                           + offsets[k, link] * np.stack([-y, x], axis=1)]
                times += [INSIDE, *[1 / (len(x) - 1)] * (len(x) - 1)]
            points.append(self._middle(message.dst, message.chunks))
            times = np.cumsum([*times, INSIDE])
            self.paths.append((points, times / times[-1]))

    def _rows(self, message):
        """Whose parts are in a message: a row of it for each."""
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
        """How a cable is drawn: the wider, the faster."""
        number = min(self.rates.index(bandwidth), len(WIRES) - 1)
        if len(self.rates) == 1:  # all are alike
            number = -1
        return {'stroke': WIRES[number],
                'width': 3 + 6 * (bandwidth / self.rates[0]) ** 0.5}

    def label(self, node: Node) -> str:
        """A node's name as readers see it."""
        if isinstance(node, int):
            return f'{self.device} {node}'
        pcie = node == 'switch' and self.topology.name.startswith('pcie')
        return 'PCIe switch' if pcie else str(node).replace('cpu', 'CPU')

    def draw(self, drawing: Drawing, clock: Playing | Stopped, x: float,
             y: float, longest: float | None) -> None:
        """Put it into a `Drawing` at (x, y), as it is by the clock.

        longest: seconds that a progress bar of full width stands for, or
        None for a page that has a name and a bar of its own.
        """
        self.drawing, self.clock = drawing, clock
        if longest is not None:
            drawing.text(x + 8, y + 12, self.name, 15, 'start', True)
            self._progress(x, y, longest)
        self._rounds(x, y)
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
        ticks = {node: self._node(node) for node in self.layout.at
                 if node not in self.layout.bars}
        for message, (points, shares) in zip(self.story.messages, self.paths):
            self._use(self._sprite(message), 0, 0, clock.moving(
                points, shares, message.start, message.end), ' data-sends="'
                f'{" ".join(map(str, message.sends))}"')
        self.complete = sorted(time for time in ticks.values()
                               if time < np.inf)
        drawing.add('<g class="over">')  # names are never covered
        for node, (x, y) in self.layout.at.items():
            self._name(node, x, y, ticks.get(node, np.inf))
        drawing.add('</g></g>')

    def _cables(self, drawing):
        """A line for each cable, or for each pair that sends."""
        ends = ([(m.src, m.dst) for m in self.story.messages] if self.direct
                else self.topology.number)
        for one, other in dict.fromkeys(tuple(sorted(pair, key=str))
                                        for pair in ends):
            style = SEND_LINE if self.direct else self.wire(
                self.topology.links[self._number(one, other)].bandwidth)
            drawing.line(*self.layout.path(one, other, 25).tolist(), **style)

    def _number(self, one, other):
        """The number of a link between two nodes, in either direction."""
        number = self.topology.number
        return number[(one, other) if (one, other) in number else
                      (other, one)]

    def _node(self, node):
        """A box with a column for each chunk, a row for each device.

        Returns when a device has all of the sum.
        """
        (x, y), (wide, high) = self.layout.at[node], self.layout.size(node)
        low, complete = y - high / 2, []
        self.drawing.box(x - wide / 2, low, wide, high, fill=METAL if (
            node in self.topology.switches) else 'white')
        if not self._holds(node):
            return np.inf
        for chunk, (begin, width) in enumerate(zip(self.begin, self.wide)):
            self.drawing.add(
                f'<rect x="{x + begin:.4g}" y="{low + TITLE:g}" width='
                f'"{width:.4g}" height="{self.tall}" fill="#f1f1f1" '
                'stroke="white"/>')
            for since, until, counts in self.story.held(node, chunk):
                done = (counts == 1).all()
                self._use(self._column(counts, width, done), x + begin,
                          low + TITLE, self.clock.visible(since, until))
            complete.append(since if done else np.inf)
        return max(complete) if isinstance(node, int) else np.inf

    def _holds(self, node):
        """Whether a node's box shows what it holds."""
        return (node in self.story.place
                and self.layout.size(node)[1] == self.box[1])

    def _name(self, node, x, y, complete):
        """What a node is called, and from when on it has all of the sum."""
        name, (wide, high) = self.label(node), self.layout.size(node)
        if not self._holds(node):
            low = y - BAR / 2 + 10 if node in self.layout.bars else y
            self.drawing.text(x, low, name)  # in a bar, above messages
            return
        left, low = x - wide / 2, y - high / 2
        self.drawing.text(left + 4, low + 11, name, 13 if len(name) < 7 else
                          TEXT, 'start', True)
        if complete < np.inf:
            self._use(self._tick(), left + wide - 1, low - 5,
                      self.clock.visible(complete))

    def _use(self, name, x, y, attributes, more=''):
        """Put a copy of a shape at (x, y), if the clock has it there."""
        if attributes is not None:
            place = f' x="{x:.4g}" y="{y:.4g}"' if x or y else ''
            self.drawing.add(f'<use href="#{name}"{place}{attributes}{more}/>')

    def _define(self, shape):
        """Add a shape to be copied, once; returns its name."""
        known = self.drawing.defined
        if shape not in known:
            name = known[shape] = f's{len(known)}'
            self.drawing.add(f'<defs><g id="{name}">{shape}</g></defs>')
        return known[shape]

    def _tick(self, width=0):
        """That the sum is there: below a chunk, or in a circle."""
        path = ('<path d="M-3.5 0L-1 3L4 -3.5" fill="none" '
                f'stroke="{DONE}" stroke-width="2.2"')
        if width:
            return self._define(
                f'{path} transform="scale({min(1.2, width / 9):.3g})"/>')
        return self._define(f'<circle r="7.5" fill="white" stroke="{DONE}" '
                            f'stroke-width="1.5"/>{path}/>')

    def part(self, device: int, width: float, y: float, high: float) -> str:
        """The part of one device in a chunk: the name of a shape."""
        out = ''
        if high >= 8 and width >= 8:
            out += self.drawing.hatch(0, y, width, high, device)
        if high >= TEXT - 1 and width >= TEXT:
            out += (f'<text x="{width / 2:.3g}" y="{y + high / 2 + 4.5:.4g}" '
                    f'class="n">{device}</text>')
        return self._define(
            f'<rect y="{y:.4g}" width="{width:.3g}" height="{high:.3g}" '
            f'stroke="white" fill="{color(device)}" stroke-width=".7"/>{out}')

    def _column(self, counts, width, complete=False, rows=None, high=None):
        """A chunk of a width, with what of whom is in it.

        rows: for whom there is a row, of a height; else for every device.
        """
        out, rows = '', rows or [*range(len(counts))]
        high = high or self.row
        for device in np.flatnonzero(counts).tolist():
            y = rows.index(device) * high
            out += f'<use href="#{self.part(device, width, y, high)}"/>'
            if counts[device] > 1:
                out += (f'<text x="{width / 2:.3g}" y="{y + high - 2:.4g}" '
                        'class="n" fill="#b00">'
                        f'{counts[device]}×</text>')
        if complete:
            out += (f'<use href="#{self._tick(width)}" x="{width / 2:.3g}" '
                    f'y="{self.tall + TICKS / 2}"/>')
        return self._define(out)

    def _sprite(self, message):
        """The shape of a message, in the middle of what it carries."""
        rows, (wide, high) = self._rows(message), self._size(message,
                                                              self.shrunk)
        widths = self.wide[message.chunks]
        widths = widths * wide / widths.sum()
        left, out = -wide / 2, ''
        for x, width, counts in zip(left + widths.cumsum() - widths, widths,
                                    message.held):
            column = self._column(counts, width, False, rows,
                                  high / max(1, len(rows)))
            out += (f'<use href="#{column}" x="{x:.4g}" '
                    f'y="{-high / 2:.4g}"/>')
        dash = '' if message.reduce else ' stroke-dasharray="5 3"'
        area = (f'<rect x="{left:.4g}" y="{-high / 2:.4g}" '
                f'width="{wide:.4g}" height="{high:.4g}" ')
        paper = self._define(f'{area}fill="white"/>')
        frame = self._define(f'{area}fill="none" stroke="{INK}" '
                             f'stroke-width="2"{dash}/>')
        return self._define(
            f'<use href="#{paper}"/>{out}<use href="#{frame}"/>')

    def _progress(self, x, y, longest):
        """A bar with a part for each round."""
        end, low = self.timing.seconds, y + self.height - 22
        scale = (self.width - 16) / (longest or 1)
        area = f'<rect y="{low:g}" height="10" x="'
        self.drawing.add(f'{area}{x + 8:g}" width="{end * scale:.5g}" '
                         f'fill="#8a97a5"{self.clock.growing(end)}/>')
        for _, begin, until in self.rounds():
            self.drawing.add(
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

    def _rounds(self, x, y):
        """Which round it is, or that all is done."""
        for name, begin, until in self.rounds():
            self._say(x, y, name, begin, until)
        end = self.timing.seconds
        self._say(x, y, f'done: {with_unit(end, self.clock.unit)}', end, None,
                  20)

    def _say(self, x, y, text, begin, end, size=13):
        attributes = self.clock.visible(begin, end)
        if attributes is not None:
            self.drawing.add(f'<g{attributes}>').text(
                x + 8, y + 34, text, size, 'start', size > 13,
                DONE if size > 13 else INK).add('</g>')
