"""Timings as a picture that plays by itself, and as one that stands still."""
import textwrap
from base64 import b64encode
from collections.abc import Sequence
from functools import partial

import numpy as np

from d2lps.checks import (checked, instance_of, integer, list_of, number,
                          one_of, text)
from d2lps.collectives.simulate import Timing
from d2lps.pictures.animation.layout import Places
from d2lps.pictures.animation.playtime import Looping, Playing, Stopped
from d2lps.pictures.animation.timing_panel import (SEND_LINE, Panel,
                                                   define_part)
from d2lps.pictures.drawing import INK, Drawing, width_of
from d2lps.units import RATES, TIMES, with_unit

WIDEST, BETWEEN = 720, 12
SLOWEST, LONGEST = 4, 24  # seconds: the shortest of all, and the longest
MOST = {'devices': 16, 'nodes': 24, 'chunks': 32, 'chunks at nodes': 256,
        'sends': 600}


def _readable(timings, names, positions, **_):
    """Refuse what would be too small to see, or has no place."""
    for timing in timings:
        plan, place = timing.schedule, timing.topology
        nodes = [*place.nodes, *place.switches]
        counts = (plan.num_devices, len(nodes), len(plan.weights),
                  len(plan.nodes) * len(plan.weights), len(timing.events))
        for (kind, most), count in zip(MOST.items(), counts):
            if count > most:
                raise ValueError(
                    f'timings: {plan.name} on {place.name} has {count:,} '
                    f'{kind}, too many to be seen: at most {most} can be '
                    'animated. Take fewer devices, or plot_comparison')
        lost = [node for node in nodes if node not in (positions or nodes)]
        if lost:
            raise ValueError(f'positions must have every node and switch of '
                             f'{place.name}; {lost[0]!r} is missing')
    if names is not None and len(names) != len(timings):
        raise ValueError(f'names must have {len(timings)} entries, one for '
                         f'each timing; it had {len(names)}')


def _points(name, value):
    """A dict from nodes to points."""
    instance_of(dict, 'a dict from each node to (x, y)')(name, value)
    coordinate = partial(number, least=-1e6, most=1e6)
    return {node: list_of(coordinate, 'a point (x, y)', 2)(
        f'{name}[{node!r}]', point)[:2] for node, point in value.items()}


@checked(_readable, timings=list_of(instance_of(
    Timing, 'a Timing, which simulate.timing returns'), 'Timings'),
    title=instance_of(str, 'a text'), names=list_of(text, 'a list of names'),
    layout=one_of('tree', 'cube'), positions=_points)
def animate(*timings: Timing, title: str = '',
            names: Sequence[str] | None = None, layout: str | None = None,
            positions: Places | None = None) -> 'Animation':
    """Chunks that travel, as fast as the simulator says: an `Animation`.

    timings: from `simulate.timing`; several play side by side on one clock.
    title, names: above all, and above each timing.
    layout: 'tree' or 'cube' draws who sends to whom in place of cables and
        switches.
    positions: (x, y) in pixels of every node and switch, in place of ours.
    Raises ValueError for what would be too small to see.
    """
    return Animation(timings, title, names, layout, positions)


class Animation(Drawing):
    """A picture that plays two times and then shows the end.

    It needs no kernel and no script: in a notebook that was run elsewhere,
    on a web page, in a README. Its arguments are those of `animate`.
    """

    def __init__(self, timings: Sequence[Timing], title: str,
                 names: Sequence[str] | None, layout: str | None,
                 positions: Places | None) -> None:
        self.timings, self.title = timings, title
        self.seconds = max(timing.seconds for timing in timings)
        rates = sorted({rate for timing in timings for rate in
                        timing.topology.bandwidth[:-1].tolist()})[::-1]
        self.panels = [Panel(
            timing, names[k] if names else timing.schedule.name, rates,
            layout, positions) for k, timing in enumerate(timings)]
        super().__init__(1, 1, self._alt_text())  # its size comes below
        rounds = max(len(timing.schedule.rounds) for timing in timings)
        shortest = min(timing.seconds for timing in timings)
        self.clock = Playing(self.seconds, min(LONGEST, max(
            min(12, 5 + 0.5 * rounds),
            SLOWEST * self.seconds / (shortest or self.seconds or 1))))
        self._draw(self, [self.clock])

    def _alt_text(self):
        done = '. '.join(
            f'{panel.name}, {panel.plan.num_devices} {panel.device}s on '
            f'{panel.topology.name}: {len(panel.plan.rounds)} rounds, done '
            f'after {with_unit(panel.timing.seconds, TIMES)}'
            for panel in self.panels)
        return (f'Chunks travel along cables{": " * bool(self.title)}'
                f'{self.title}. The box of each device fills with the '
                f'contributions of all others. {done}.')

    def _repr_html_(self):
        # A browser plays it when it is first painted, which may be long
        # before a reader sees it; in a closed <details> it has to wait. The
        # comment makes it another image, or both would have one timeline. It
        # lies over the first one, in a notebook that is not trusted, too.
        data = b64encode(f'{self.svg()}<!-- again -->'.encode()).decode()
        return ('<div style="position:relative">'
                f'{super()._repr_html_()}<details><summary>Play it once more'
                '</summary><img alt="The same once more" style="max-width:'
                '100%;position:absolute;top:0;left:0" '
                f'src="data:image/svg+xml;base64,{data}"></details></div>')

    @checked(moments=integer)
    def still(self, moments: int = 4) -> Drawing:
        """A `Drawing` of key moments: start, late in some rounds, end."""
        late = sorted({
            0.3 * begin + 0.7 * end for panel in self.panels
            for begin, end in zip(panel.story.rounds, [
                *panel.story.rounds[1:], panel.timing.seconds])})
        chosen = np.linspace(0, len(late) - 1, max(0, moments - 2))
        times = [0.0, *(late[round(k)] for k in chosen if late),
                 self.seconds][-moments:]
        drawing = Drawing(1, 1, f'{len(times)} moments side by side. '
                                f'{self.alt}')
        self._draw(drawing, [Stopped(self.seconds, now) for now in times])
        return drawing

    def looping(self) -> Drawing:
        """A `Drawing` that plays over and over, for a page of its own."""
        drawing = Drawing(1, 1, self.alt)
        self._draw(drawing, [Looping(self.seconds, self.clock.real_seconds)])
        return drawing

    def _draw(self, drawing, clocks):
        """All panels once for each clock, in rows, with a legend below.

        This also sets the drawing's size.
        """
        panel = self.panels[0]  # all have the same cables and words
        wide = [panel.width + BETWEEN for panel in self.panels]
        high = [panel.height + BETWEEN for panel in self.panels]
        stack = sum(wide) > WIDEST
        wide, high = (max(wide), sum(high)) if stack else (
            sum(wide), max(high))
        columns = max(1, min(len(clocks), int(WIDEST / wide)))
        top = 36 if self.title else 4
        n = max(panel.plan.num_devices for panel in self.panels)
        brought = self._boxes_explained()
        after = 12 + (24 * n + 8) * (n <= 4)  # else it is a line of its own
        kind = ('who sends to whom, over cables' if panel.direct
                else 'a cable')
        speeds = [f'{kind} of {with_unit(bandwidth, RATES)} each way'
                  for bandwidth in panel.rates]
        least = max(24 * n, after + width_of(brought, 13),
                    *(54 + width_of(line, 13) for line in speeds),
                    12 + width_of(self.title, 17, True)) + 12
        # The clock is beside the title, or a single panel's name.
        beside = (width_of(self.title, 17, True) if len(self.panels) > 1
                  else width_of(panel.name, 15, True))
        full = max(least, wide * columns, 150 + beside)
        side_by_side = len(clocks) == 1 < len(self.panels) and not stack
        if side_by_side:
            least = max([least, *(panel.width for panel in self.panels)])
        low = top + high * -(-len(clocks) // columns)
        legend = textwrap.wrap(
            '✓ The sum of all is there. A message with a full frame is added '
            'to what is there, one with a dashed frame replaces it.',
            int((least if side_by_side else full) / 6.9))
        drawing.width = full
        drawing.height = low + 24 + 20 * (
            (n > 4) + len(legend) + len(panel.rates))
        drawing.add('<style>.n{font:bold 12px sans-serif;text-anchor:middle;'
                    f'fill:{INK}}}'
                    '.n,.over text{paint-order:stroke;stroke:white;'
                    'stroke-width:3px;stroke-linejoin:round}'
                    '</style>')
        if self.title:
            drawing.text(12, 20, self.title, 17, 'start', True)
        for k, clock in enumerate(clocks):
            x, y = k % columns * wide, top + k // columns * high
            above = self.title and len(clocks) == 1 < len(self.panels)
            right = full if len(clocks) == 1 else x + wide
            drawing.add('<g class="when">')
            clock.counter(drawing, right - 14, 20 if above else y + 14, 22)
            drawing.add('</g>')
            for number, panel in enumerate(self.panels):
                space = (wide - panel.width) / 2 if stack else BETWEEN / 2
                drawing.add(f'<g class="panel{number}">')
                panel.draw(drawing, clock, x + space, y, self.seconds)
                drawing.add('</g>')
                x += (panel.width + BETWEEN) * (not stack)
                y += (panel.height + BETWEEN) * stack
        drawing.add('<g class="signs">')
        for k in range(n):
            drawing.add(f'<use href="#{define_part(drawing, k, 24, 0, 16)}" '
                        f'x="{12 + 24 * k}" y="{low - 8:g}"/>')
        low += 20 * (n > 4)
        drawing.text(after, low, brought, 13, 'start')
        for bandwidth, line in zip(panel.rates, speeds):
            low += 20
            drawing.line((12, low), (46, low), **(
                SEND_LINE if panel.direct else panel.wire(bandwidth)))
            drawing.text(54, low, line, 13, 'start')
        for line in legend:
            low += 20
            drawing.text(12, low, line, 13, 'start')
        drawing.add('</g>')
        if side_by_side:
            drawing.add(self._stacked(drawing, least))
        if isinstance(clocks[0], Playing):
            drawing.add(clocks[0].style())

    def _boxes_explained(self):
        """The legend's line on rows and columns of boxes."""
        weights = [panel.plan.weights.tolist() for panel in self.panels]
        line = f'rows: what each {self.panels[0].device} brought'
        if max(map(len, weights)) > 1:
            line += '; columns: chunks'
        if any(len({*sizes}) > 1 for sizes in weights):
            line += ', the wider the larger'
        return line

    def _stacked(self, drawing, width):
        """The rules that put panels below each other, on a narrow page.

        A page has to switch them on, and to give the image their size.
        """
        x, y, rules = 0, 28, f'.when{{{_by(width - drawing.width, 28)}}}'
        for number, panel in enumerate(self.panels):
            rules += f'.panel{number}{{{_by(-x, y)}}}'
            x, y = x + panel.width + BETWEEN, y + panel.height + BETWEEN
        y -= max(panel.height for panel in self.panels) + BETWEEN
        rules += f'.signs{{{_by(0, y)}}}'
        return (f'<style media="not all" data-size="{width:g} '
                f'{drawing.height + y:g}">{rules}</style>')


def _by(x, y):
    return f'transform:translate({x:g}px,{y:g}px)'
