"""One timing as a picture: machines, cables, and chunks that travel."""
import numpy as np

from d2lps.pictures.animation.clock import words
from d2lps.pictures.animation.layout import BAR, choose
from d2lps.pictures.animation.story import Story, lanes
from d2lps.pictures.drawing import FRAME, INK, color

HEAD, FOOT, TITLE = 62, 40, 20  # above and below the machines; over a box
WIRES, PAPER, DONE = ('#b9bec4', '#e6bd72', '#9fc9e0'), '#fbfbfb', '#00664b'
WAY = {'stroke': '#9aa1a8', 'width': 2, 'dashed': True}  # no cable: a send
TICKS = 14  # pixels below the chunks for what is complete
INSIDE = 0.12  # how long a way in a box or switch takes, of one on a cable


def rate(bandwidth):
    """Bytes per second in words."""
    factor, unit = next(pair for pair in (
        (1e9, 'GB/s'), (1e6, 'MB/s'), (1e3, 'kB/s'), (1, 'B/s'))
        if bandwidth >= pair[0] or pair[0] == 1)
    return f'{float(f"{bandwidth / factor:.3g}"):,g} {unit}'


def wire(bandwidth, rates):
    """How a cable is drawn: the wider, the faster."""
    return {'stroke': WIRES[min(rates.index(bandwidth), 2)],
            'width': 3 + 6 * (bandwidth / rates[0]) ** 0.5}


class Panel:
    """A timing's picture; `draw` puts it into a `Drawing`.

    name: its title. device: what a device is called. key: makes the names
    of its shapes its own.
    """

    def __init__(self, timing, key, name, device, layout, positions):
        self.story, self.key, self.name = Story(timing), key, name
        self.topology, self.device = timing.topology, device
        plan = self.plan = timing.schedule
        n = plan.num_devices
        self.row = 13 if n <= 4 else 8 if n <= 8 else 5
        weights = plan.weights / max(plan.weights.min(), 0.05
                                     * plan.weights.max())
        inner = float(np.clip(8 * weights.sum(), 66, 140))
        self.wide = inner * weights / weights.sum()
        self.left = np.r_[0, self.wide.cumsum()] - inner / 2
        self.box = inner + 12, n * self.row + TITLE + TICKS + 2
        self.layout = choose(timing.topology, plan, self.box, layout,
                             positions)
        self.direct = layout is not None
        self.width = max(self.layout.width, 470)
        self.height = HEAD + self.layout.height + FOOT
        self._roads()

    def _roads(self):
        """The way of each message: points, with its place beside others."""
        messages, self.scale = self.story.messages, min(
            0.75, BAR / self.row / self.plan.num_devices)
        links = [[(m.src, m.dst)] if self.direct else [
            link[:2] for link in self.topology.route(m.src, m.dst)]
            for m in messages]

        def extent(message, link):
            (x, y), *_, (a, b) = self.layout.way(*link)
            far = np.hypot(a - x, b - y) or 1
            wide = self.wide[message.chunks].sum() * self.scale + 3
            high = self.plan.num_devices * self.row * self.scale + 3
            return (wide * abs(b - y) + high * abs(a - x)) / far

        offsets, widest = lanes(messages, links, extent)
        if widest > self.layout.spread:
            self.scale *= self.layout.spread / widest
            offsets, _ = lanes(messages, links, extent)
        self.roads = []
        for k, (message, route) in enumerate(zip(messages, links)):
            points = [self._middle(message.src, message.chunks)]
            times = []
            for link in route:
                way = self.layout.way(*link)
                along = np.gradient(way, axis=0)
                right = np.stack([-along[:, 1], along[:, 0]], axis=1)
                right /= np.hypot(*right.T)[:, None] + 1e-9
                times += [INSIDE, *np.full(len(way) - 1, 1 / (len(way) - 1))]
                points += [*(way + offsets[k, link] * right)]
            points.append(self._middle(message.dst, message.chunks))
            share = np.cumsum([0, *times, INSIDE])
            self.roads.append((points, share / share[-1]))

    def _middle(self, node, chunks):
        """The middle of some chunks in a node's box."""
        x, y = self.layout.at[node]
        return np.array([
            x + np.mean(self.left[chunks] + self.wide[chunks] / 2),
            y + (TITLE - TICKS) / 2])

    def label(self, node):
        """A node's name as readers see it."""
        if isinstance(node, int):
            return f'{self.device} {node}'
        pcie = node == 'switch' and self.topology.name.startswith('pcie')
        return 'PCIe switch' if pcie else str(node).replace('cpu', 'CPU')

    def draw(self, drawing, clock, x, y, longest, rounds=True):
        """Put it at (x, y). longest: seconds that all bars stand for."""
        self.drawing, self.clock = drawing, clock
        drawing.text(x + self.width / 2, y + 14, self.name, 15, bold=True)
        self._progress(x, y, longest)
        left = x + (self.width - self.layout.width) / 2
        a, b = self.layout.origin
        drawing.add(f'<g transform="translate({left - a:g} '
                    f'{y + HEAD - b:g})">')
        for frame in self.layout.frames:
            *where, name = frame
            drawing.box(*where, fill=PAPER, stroke='#999', dashed=True)
            drawing.text(where[0] + 8, where[1] + 11, name, 12, 'start')
        self._cables()
        for node in self.layout.at:
            if node not in self.layout.bars:
                self._node(node)
        self._messages()
        for switch, (low, high, middle) in self.layout.bars.items():
            drawing.box(low, middle - 20, high - low, 40, self.label(switch),
                        '#e3e6ea', 13)
        drawing.add('</g>')

    def _cables(self):
        rates = self.rates()
        for src, dst in self.layout.roads:
            ends = self.layout.way(src, dst).tolist()
            if self.direct:
                self.drawing.line(*ends, **WAY)
                continue
            link = self.topology.number.get((src, dst),
                                            self.topology.number.get(
                                                (dst, src)))
            self.drawing.line(*ends, **wire(
                self.topology.bandwidth[link], rates))

    def rates(self):
        """The bandwidths of the topology, the widest first."""
        return sorted({*self.topology.bandwidth[:-1].tolist()}, reverse=True)

    def _node(self, node):
        """A box with a column for each chunk, a row for each device."""
        x, y = self.layout.at[node]
        wide, high = self.layout.size(node)
        if high != self.box[1] or node not in self.story.place:
            self.drawing.box(x - wide / 2, y - high / 2, wide, high,
                             self.label(node), '#e3e6ea' if node in
                             self.topology.switches else 'white')
            return
        place = self.story.place[node]
        self.drawing.box(x - wide / 2, y - high / 2, wide, high, fill='white')
        name = self.label(node)
        self.drawing.text(x - wide / 2 + 6, y - high / 2 + 11, name,
                          13 if len(name) < 7 else 11, 'start', True)
        top = y - high / 2 + TITLE
        tall = self.plan.num_devices * self.row
        for chunk, (left, width) in enumerate(zip(self.left, self.wide)):
            self.drawing.add(
                f'<rect x="{x + left:.4g}" y="{top:g}" width="{width:.4g}" '
                f'height="{tall}" fill="#f1f1f1" stroke="white"/>')
            for (begin, end, times), who in self.story.parts(
                    place, chunk).items():
                self._put(self._part(who, width), x + left, top,
                          self.clock.visible(begin, end))
                if times > 1:
                    self._often(x + left + width / 2, top, who, times,
                                self.clock.visible(begin, end))
            for span in self.story.complete(place, chunk):
                self._put(self._tick(width), x + left + width / 2,
                          top + tall + TICKS / 2, self.clock.visible(*span))
        if place < self.plan.num_devices:
            for span in self.story.complete(place):
                self._put(self._tick(), x + wide / 2 - 11,
                          y - high / 2 + 11, self.clock.visible(*span))

    def _put(self, name, x, y, attribute):
        if attribute is not None:
            self.drawing.add(f'<use href="#{name}" x="{x:.4g}" y="{y:.4g}"'
                             f'{attribute}/>')

    def _often(self, x, top, who, times, attribute):
        if attribute is not None:
            self.drawing.add(f'<g{attribute}>')
            for device in who:
                self.drawing.text(x, top + (device + 0.5) * self.row,
                                  f'{times}×', 10, bold=True, fill='#b00',
                                  halo=True)
            self.drawing.add('</g>')

    def _part(self, who, width):
        """The shape of some devices' parts in a chunk; returns its name."""
        name = f'{self.key}c{width:.3g}-' + '-'.join(map(str, who))
        rows = [f'<use href="#{self._row(k, width)}"/>' for k in who]
        return self._define(name, ''.join(rows))

    def _row(self, device, width):
        y = device * self.row
        out = (f'<rect y="{y}" width="{width:.3g}" height="{self.row}" '
               f'fill="{color(device)}" stroke="white" stroke-width=".7"/>')
        if self.row >= 8 and width >= 8:
            out += self.drawing.hatch(0, y, width, self.row, device)
        if self.row >= 10 and width >= 10:
            out += (f'<text x="{width / 2:.3g}" y="{y + self.row - 3}" '
                    'font-size="10" text-anchor="middle" paint-order="stroke" '
                    'stroke="white" stroke-width="3" font-weight="bold">'
                    f'{device}</text>')
        return self._define(f'{self.key}r{width:.3g}-{device}', out)

    def _tick(self, width=None):
        """That the sum is there: for a chunk of a width, or in a circle."""
        path = ('<path d="M-3.5 0L-1 3L4 -3.5" fill="none" '
                f'stroke="{DONE}" stroke-width="2.2"/>')
        if width is None:
            return self._define('tick', (
                f'<circle r="7.5" fill="white" stroke="{DONE}" '
                f'stroke-width="1.5"/>{path}'))
        small = min(1.2, width / 9)
        return self._define(f'tick{small:.3g}', (
            f'<g transform="scale({small:.3g})">{path}</g>'))

    def _define(self, name, shape):
        """Add a shape to copy once, under a name; returns the name."""
        if name not in self.drawing.defined:
            self.drawing.defined.add(name)
            self.drawing.add(f'<defs><g id="{name}">{shape}</g></defs>')
        return name

    def _messages(self):
        for message, road in zip(self.story.messages, self.roads):
            attribute = self.clock.moving(*road, message.start, message.end)
            if attribute is None:
                continue
            name = self._sprite(message)
            sends = ' '.join(map(str, message.sends))
            self.drawing.add(f'<use href="#{name}" data-sends="{sends}"'
                             f'{attribute}/>')

    def _sprite(self, message):
        """The shape of a message; returns its name."""
        wide, tall = self.wide[message.chunks], (
            self.plan.num_devices * self.row)
        parts = [self._part(np.flatnonzero(counts).tolist(), width)
                 for width, counts in zip(wide, message.held)]
        name = '_'.join([f'{self.key}m{message.reduce:d}', *parts])
        left, whole = -wide.sum() / 2, wide.sum()
        at = left + np.r_[0, wide.cumsum()]
        out = ''.join(f'<use href="#{part}" x="{x:.4g}" y="{-tall / 2}"/>'
                      for part, x in zip(parts, at))
        if (message.held == 1).all() and whole >= 13:
            out += f'<use href="#{self._tick()}"/>'
        dash = '' if message.reduce else ' stroke-dasharray="6 4"'
        area = (f'<rect x="{left:.4g}" y="{-tall / 2}" width="{whole:.4g}" '
                f'height="{tall}" ')
        return self._define(name, (
            f'<g transform="scale({self.scale:.3g})">{area}fill="white"/>{out}'
            f'{area}fill="none" stroke="{INK}" stroke-width="3"{dash}/></g>'))

    def _progress(self, x, y, longest):
        """A bar with a part for each round; then, large, that it is done."""
        story, full = self.story, self.width - 24
        end, n = story.seconds, len(story.rounds)
        low, share = y + self.height - 14, full / (longest or 1)
        for k, begin in enumerate(story.rounds):
            until = story.rounds[k + 1] if k + 1 < n else end
            at = x + 12 + begin * share
            self.drawing.add(
                f'<rect x="{at:.5g}" y="{low - 10}" width='
                f'"{(until - begin) * share:.5g}" height="10" fill="white" '
                f'stroke="{FRAME}"/>')
            attribute = self.clock.growing(begin, until)
            if attribute is not None:
                self.drawing.add(
                    f'<rect x="{at:.5g}" y="{low - 10}" width='
                    f'"{(until - begin) * share:.5g}" height="10" '
                    f'fill="#8a97a5" stroke="{FRAME}"{attribute}/>')
            self._say(x, y, f'round {k + 1} of {n}', begin, until)
        self._say(x, y, f'done: {words(end, longest)}', end, None, True)

    def _say(self, x, y, text, begin, end, big=False):
        attribute = self.clock.visible(begin, end)
        if attribute is not None:
            self.drawing.add(f'<g{attribute}>').text(
                x + self.width / 2, y + 42, text, 22 if big else 14,
                bold=big, fill=DONE if big else INK).add('</g>')
