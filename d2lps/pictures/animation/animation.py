"""Timings as a picture that plays by itself, and as one that stands still."""
import textwrap

import numpy as np

from d2lps.checks import a, checked, list_of, one_of, text, whole
from d2lps.collectives.simulate import Timing
from d2lps.pictures.animation.clock import Playing, Stopped, words
from d2lps.pictures.animation.panel import WAY, Panel, rate, wire
from d2lps.pictures.drawing import Drawing

WIDEST, BETWEEN = 1120, 26
MOST = {'devices': 16, 'nodes': 24, 'chunks': 32, 'boxes of chunks': 256,
        'messages': 500}


def _readable(timings, names, **_):
    """Refuse what would be too small to see."""
    for timing in timings:
        plan, place = timing.schedule, timing.topology
        counts = (plan.num_devices, len(place.nodes) + len(place.switches),
                  len(plan.weights), len(plan.nodes) * len(plan.weights),
                  len(timing.events))
        for (what, most), count in zip(MOST.items(), counts):
            if count > most:
                raise ValueError(
                    f'timings: {plan.name} on {place.name} has {count:,} '
                    f'{what}, too many to be seen; at most {most} can be '
                    'animated. Take fewer devices, or plot_comparison')
    if names is not None and len(names) != len(timings):
        raise ValueError(f'names must have {len(timings)} entries, one for '
                         f'each timing; it had {len(names)}')


@checked(_readable, timings=list_of(a(
    Timing, 'a Timing, which simulate.time returns'), 'Timings'),
    title=a(str, 'a text'), names=list_of(text, 'a list of names'),
    device=text, layout=one_of('circle', 'tree', 'cube'),
    positions=a(dict, 'a dict from node to (x, y)'))
def animate(*timings, title='', names=None, device=None, layout=None,
            positions=None):
    """Chunks that travel, as fast as the simulator says: an `Animation`.

    timings: from `simulate.time`; several play side by side on one clock.
    title, names: above all, and above each timing.
    device: what devices are called, such as 'GPU' (the default) or 'worker'.
    layout: 'circle', 'tree' or 'cube' shows who sends to whom in place of
        the cables; None shows the cables of the topology.
    positions: pixels (x, y) of every node and switch, in place of ours.
    Raises ValueError for what would be too small to see.
    """
    return Animation(timings, title, names, device, layout, positions)


class Animation(Drawing):
    """A picture that plays two times and then shows the end.

    It needs no kernel and no script: in a notebook that was run elsewhere,
    on a web page, in a README.
    """

    def __init__(self, timings, title, names, device, layout, positions):
        self.timings, self.title = timings, title
        self.seconds = max(timing.seconds for timing in timings)
        self.panels = [
            Panel(timing, 'abcdefgh'[k % 8] * (1 + k // 8),
                  names[k] if names else timing.schedule.name,
                  device or _device(timing), layout, positions)
            for k, timing in enumerate(timings)]
        rounds = max(len(panel.plan.rounds) for panel in self.panels)
        self.clock = Playing(self.seconds, rounds)
        row = sum(panel.width + BETWEEN for panel in self.panels) - BETWEEN
        self.stacked = row > WIDEST
        width, height = self._measure(self.panels, self.stacked)
        width = max(width, 140 + 10.5 * len(title))
        super().__init__(width, height + self._top() + self._foot(width),
                         self._words())
        _frame(self, self.title, self.clock, self.panels, self.stacked)
        self.add(self.clock.style())

    @staticmethod
    def _measure(panels, stacked):
        wide = [panel.width for panel in panels]
        high = [panel.height for panel in panels]
        if stacked:
            return max(wide) + 16, sum(high) + BETWEEN * (len(panels) - 1)
        return sum(wide) + BETWEEN * (len(panels) - 1) + 16, max(high)

    def _top(self):
        return 40 if self.title else 6

    def _foot(self, width):
        lines, rates = _said(self.panels, width)
        return 18 * (len(lines) + len(rates)) + 26

    def _words(self):
        parts = [
            f'{panel.name}, {panel.plan.num_devices} {panel.device}s on '
            f'{panel.topology.name}, in {len(panel.plan.rounds)} rounds: '
            f'done after {words(panel.story.seconds)}'
            for panel in self.panels]
        return (f'Animation{": " * bool(self.title)}{self.title}. Chunks '
                'travel along cables from box to box, and each box fills '
                f'with the parts of all devices. {". ".join(parts)}.')

    @checked(moments=whole)
    def still(self, moments=4):
        """A `Drawing` of key moments: start, middles of rounds, end."""
        middles = sorted({
            (begin + end) / 2 for panel in self.panels
            for begin, end in zip(panel.story.rounds, [
                *panel.story.rounds[1:], panel.story.seconds])})
        chosen = np.linspace(0, len(middles) - 1, max(moments - 2, 0))
        times = [0.0, *(middles[round(k)] for k in chosen if middles),
                 self.seconds][-moments:]
        width, height = self._measure(self.panels, True)
        drawing = Drawing((width + 10) * len(times),
                          height + self._top() + self._foot(width),
                          f'{len(times)} moments side by side. {self.alt}')
        for k, now in enumerate(times):
            drawing.add(f'<g transform="translate({k * (width + 10):g} 0)">')
            _frame(drawing, self.title * (not k),
                   Stopped(self.seconds, now), self.panels, True, width)
            drawing.add('</g>')
        return drawing


def _device(timing):
    """What devices are called, if nobody says."""
    helpers = timing.schedule.nodes[timing.schedule.num_devices:]
    return 'worker' if any('server' in str(node) for node in helpers
                           ) else 'GPU'


def _frame(drawing, title, clock, panels, stacked, width=None):
    """Title, clock, panels and legend."""
    width = width or drawing.width
    if not hasattr(drawing, 'defined'):
        drawing.defined = set()
    if title:
        drawing.text(12, 22, title, 17, 'start', True)
    clock.counter(drawing, width - 14, 22, 24)
    x, y = 8, 40 if title else 6
    longest = max(panel.story.seconds for panel in panels)
    for panel in panels:
        panel.draw(drawing, clock, x + stacked * (
            width - 16 - panel.width) / 2, y, longest)
        if stacked:
            y += panel.height + BETWEEN
        else:
            x += panel.width + BETWEEN
    _legend(drawing, panels, width)


def _said(panels, width):
    """What the legend says: lines, and cables by their bandwidth."""
    said = ('\u2713 The sum of all is there. A message with a full frame is '
            'added to what is there, one with a dashed frame replaces it.')
    rates = {rate: panel for panel in panels for rate in panel.rates()}
    return textwrap.wrap(said, int(width / 6.6)), rates


def _legend(drawing, panels, width):
    lines, rates = _said(panels, width)
    n = max(panel.plan.num_devices for panel in panels)
    y = drawing.height - 18 * (len(lines) + len(rates)) - 14
    for k in range(n):
        drawing.box(12 + 18 * k, y - 7, 18, 14, str(k), k, 10, stroke='white')
    drawing.text(20 + 18 * n, y, f'what each {panels[0].device} brought, '
                 'in a column for each chunk', 11.5, 'start')
    for bandwidth, panel in rates.items():
        y += 18
        if panel.direct:
            drawing.line((12, y), (46, y), **WAY)
        else:
            drawing.line((12, y), (46, y), **wire(bandwidth, panel.rates()))
        drawing.text(54, y, 'who sends to whom, over cables' * panel.direct
                     + 'a cable' * (not panel.direct)
                     + f' of {rate(bandwidth)} each way', 11.5, 'start')
    for line in lines:
        y += 18
        drawing.text(12, y, line, 11.5, 'start')
