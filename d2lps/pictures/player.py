"""Contributions that each node holds after a round of a schedule."""
from functools import partial

import numpy as np

from d2lps.checks import boolean, checked, from_zero, integer, number, text
from d2lps.collectives import Schedule
from d2lps.collectives.schedule import any_schedule
from d2lps.pictures.drawing import (INK, TITLE, WORDS, Drawing, color,
                                    width_of, wrapped)
from d2lps.pictures.sketch import in_words
from d2lps.pictures.style import GREEN
from d2lps.units import several

BOX = 0.72  # a box's share of its column: arrows are in the gap
NAMES = 20  # where they begin, beside a square in the device's colour
LANE = 7  # pixels between two arrows, where a gap can be so wide
CHECK = 'm-4.5 .5l3 3.5l6 -7.5'
SIGNS = {'arrow': 'added to what was there', 'hollow': 'replaces it',
         'frame': 'changed in this round', 'tick': 'the whole sum'}
WHOLE = '#00694d'  # of a number that is the whole sum


def _small(schedule, number, **_):
    """Refuse what has no such round, or too many boxes to be read."""
    integer('number', number, least=0, most=len(schedule.rounds))
    if len(schedule.nodes) * len(schedule.weights) > 144:
        raise ValueError(f'{schedule!r}: too many nodes x chunks (over 144)')


def _joined_path(shapes, look, kind):
    """Many shapes of one look, as one."""
    return (f'<path class="{kind}" d="{"".join(shapes)}" {look}/>'
            if shapes else '')


def _square(x, y, width, height):
    return f'M{x:.5g} {y:.5g}h{width:.4g}v{height:.4g}h{-width:.4g}z'


def _arrow(x, y1, y2, half=4.5, wide=0.5):
    """An upright arrow from y1 to y2, its head so wide; from its tip on."""
    neck = y2 - 2.2 * half * (1 if y2 > y1 else -1)
    return (f'M{x:.5g} {y2:.5g}L{x - half:.5g} {neck:.5g}H{x - wide:.5g}'
            f'V{y1:.5g}H{x + wide:.5g}V{neck:.5g}H{x + half:.5g}z')


@checked(_small, schedule=any_schedule, number=from_zero, sums=boolean,
         title=partial(text, least=0),
         width=partial(number, least=200, most=2000), signs=boolean)
def plot_holdings(schedule: Schedule, number: int = 0,
                  title: str | None = None, sums: bool = False,
                  width: float | None = None, signs: bool = False) -> Drawing:
    """Contributions after round `number`: a row per node, a box per chunk.

    A bar in a box is the contribution of one device, in its colour; a red
    number says that it is there more than once, a tick that all are there
    once. A filled arrow is a send of this round that was added to what was
    there, a hollow one replaced it; what they changed has a thick frame.
    title: words above, in the place of the plan's name and the round.
    sums: write what a box holds as a number, with 1 from device 0, 2 from
    device 1 and so on. signs: explain them below. Returns a `Drawing`.
    """
    held = list(schedule.states())[number]
    nodes, chunks, devices = held.shape
    names = [f'device {node}' if isinstance(node, int) else str(node)
             for node in schedule.nodes]
    left = NAMES + max(width_of(name, WORDS) for name in names) + 10
    lanes = max([_most(sends) for sends in schedule.rounds], default=1)
    if title is None:
        title = (f'{schedule.name}: after round {number} of '
                 f'{len(schedule.rounds)}')
    width = width or max(  # room for the title in one line
        min(width_of(title, TITLE, True) + 12, 720), left + chunks * min(
            78 + 6 * lanes, max(620 / chunks, 14)) + 8)
    lines = [line for part in title.splitlines()
             for line in wrapped(part, TITLE, width - 8, True)]
    grid = _Grid(left, 10 + 17 * len(lines),
                 min((width - left - 8) / chunks, 150),
                 min(36, max(22, 340 / nodes)), lanes)
    below = _sign_places(width) if signs else []
    bottom = grid.top + grid.row * nodes
    drawing = Drawing(width, bottom + 24 + (
        22 * (1 + below[-1][1]) if below else 0), _holdings_alt_text(
            schedule, held, number, title, names))
    if title:
        drawing.text(4, 6 + 8.5 * len(lines), '\n'.join(lines), TITLE,
                     'start', bold=True)
    _draw_bars(drawing, held, grid, ' fill-opacity=".3"' if sums else '')
    (_write_sums if sums else _draw_ticks)(drawing, held, grid)
    for row, chunk, who in np.argwhere(held > 1).tolist():
        x, y = grid.corner(row, chunk)
        drawing.text(x + grid.wide * (who + 0.5) / devices, y + grid.high / 2,
                     held[row, chunk, who], WORDS, bold=True, fill='#c00',
                     plate=True)
    if number:
        _draw_sends(drawing, schedule.rounds[number - 1], grid)
    for chunk in range(chunks):
        x, _ = grid.middle(0, chunk)
        drawing.text(x, bottom + 10, f'chunk {chunk}' if grid.column > 62
                     else chunk, WORDS)
    for row, name in enumerate(names):
        _, y = grid.middle(row, 0)
        drawing.text(NAMES, y, name, WORDS, 'start')
        if row < devices:
            drawing.add(f'<rect class="key" x="4" y="{y - 5.5:g}" width="11" '
                        f'height="11" fill="{color(row)}"/>')
    for x, line, kind in below:
        _draw_sign(drawing, x, bottom + 34 + 22 * line, kind, sums)
    return drawing


class _Grid:
    """Places of the boxes: a row for each node, a column for each chunk.

    left, top: where they begin. column, row: how wide and how high they are,
    with the gaps, in which there is room for `lanes` arrows.
    """

    def __init__(self, left: float, top: float, column: float, row: float,
                 lanes: int) -> None:
        self.left, self.top, self.column, self.row = left, top, column, row
        self.high = 0.72 * row
        self.wide = max(0.4 * column, min(BOX * column,
                                          column - LANE * (lanes + 1)))

    def corner(self, row, chunk):
        """The upper left corner of a box."""
        return (self.left + self.column * chunk,
                self.top + self.row * (row + 0.5) - self.high / 2)

    def middle(self, row, chunk):
        return (self.left + self.column * chunk + self.wide / 2,
                self.top + self.row * (row + 0.5))

    def box(self, row, chunk, part=0, parts=1):
        """The outline of a box, or of one of its parts, side by side."""
        x, y = self.corner(row, chunk)
        return _square(x + self.wide * part / parts, y, self.wide / parts,
                       self.high)


def _draw_bars(drawing, held, grid, faint):
    """All boxes, and in each a bar for each device that is in it."""
    nodes, chunks, devices = held.shape
    boxes = [grid.box(row, chunk) for row, chunk in np.ndindex(nodes, chunks)]
    drawing.add(_joined_path(boxes, 'fill="#f5f5f5" stroke="#ccc"', 'boxes'))
    bars = {}
    for row, chunk, who in np.argwhere(held).tolist():
        bars.setdefault(who, []).append(grid.box(row, chunk, who, devices))
    edge = 'stroke="white" stroke-width=".5"' if devices <= 8 else ''
    for who, shapes in bars.items():
        drawing.add(_joined_path(shapes, f'fill="{color(who)}"{faint} {edge}',
                                 f'bars of-{who}'))


def _draw_ticks(drawing, held, grid):
    """A tick in each box that has all contributions once."""
    whole = np.argwhere((held == 1).all(axis=2)).tolist()
    middles = [(x + grid.wide / 2, y + grid.high / 2) for x, y in (
        grid.corner(row, chunk) for row, chunk in whole)]
    discs = [_circle(x, y, min(9, grid.high / 2)) for x, y in middles]
    drawing.add(_joined_path(discs, 'fill="white"', 'discs'))
    drawing.add(_joined_path(
        [f'M{x:.5g} {y:.5g}{CHECK}' for x, y in middles],
        f'fill="none" stroke="{GREEN}" stroke-width="2.4"', 'ticks'))


def _most(sends):
    """The largest number of messages of a round that have the same chunk."""
    return int(np.bincount(sends.chunk).max(initial=0))


def _circle(x, y, r=9):
    return (f'M{x:.5g} {y:.5g}m{-r} 0a{r} {r} 0 1 0 {2 * r} 0'
            f'a{r} {r} 0 1 0 {-2 * r} 0')


def _write_sums(drawing, held, grid):
    """A number in each box for what it holds; device k brings k + 1."""
    sums = held @ np.arange(1, held.shape[-1] + 1)
    full = (held == 1).all(axis=2)
    for (row, chunk), value in np.ndenumerate(sums):
        x, y = grid.corner(row, chunk)
        if value:
            drawing.text(x + grid.wide / 2, y + grid.high / 2, value, 13,
                         bold=bool(full[row, chunk]),
                         fill=WHOLE if full[row, chunk] else INK)


def _draw_sends(drawing, sends, grid):
    """A round's arrows, each in a lane of its own, and what they changed."""
    src, dst, chunk = (part.tolist() for part in (
        sends.src, sends.dst, sends.chunk))
    drawing.add(_joined_path(
        [grid.box(row, k) for row, k in zip(dst, chunk)],
        f'fill="none" stroke="{INK}" stroke-width="2.2"', 'frames'))
    lane = (grid.column - grid.wide) / (_most(sends) + 1)
    half = min(4.5, max(0.45 * lane, 2))
    used, arrows, dots = {}, {}, []
    for begin, end, k, adds in zip(src, dst, chunk, sends.reduce.tolist()):
        used[k] = used.get(k, 0) + 1
        x = grid.corner(begin, k)[0] + grid.wide + lane * used[k]
        y, y2 = (grid.corner(row, k)[1] + grid.high / 2
                 for row in (begin, end))
        dots.append(_circle(x, y, min(2.5, half)))
        arrows.setdefault(adds, []).append(
            _arrow(x, y, y2, half, 0.5 * adds))
    for adds, shapes in arrows.items():  # white around them, first
        look = f'fill="{INK if adds else "white"}" stroke="{INK}"'
        drawing.add(_joined_path(shapes, 'fill="white" stroke="white" '
                                 'stroke-width="4"', 'halos'))
        drawing.add(_joined_path(shapes, look, 'adds' if adds else 'replaces'))
    drawing.add(_joined_path(dots, f'fill="{INK}"', 'dots'))


def _sign_places(width):
    """(x, line, kind) of each sign below, in lines that are not too wide."""
    places, x, line = [], 10, 0
    for kind, label in SIGNS.items():
        wide = 26 + width_of(label, WORDS) + 16
        if places and x + wide > width:
            x, line = 10, line + 1
        places.append((x, line, kind))
        x += wide
    return places


def _draw_sign(drawing, x, y, kind, sums):
    if kind in ('arrow', 'hollow'):
        fill = INK if kind == 'arrow' else 'white'
        arrow = _arrow(x + 8, y - 8, y + 9, wide=0.5 * (kind == 'arrow'))
        drawing.add(f'<path d="{_circle(x + 8, y - 8, 2.5)}" fill="{INK}"/>'
                    f'<path d="{arrow}" fill="{fill}" stroke="{INK}"/>')
    elif kind == 'frame':
        drawing.add(f'<path d="{_square(x, y - 6, 18, 12)}" fill="#f5f5f5" '
                    f'stroke="{INK}" stroke-width="2.2"/>')
    elif sums:
        drawing.text(x + 8, y, '10', 13, bold=True, fill=WHOLE)
    else:
        drawing.add(f'<path d="M{x + 8:.5g} {y:.5g}{CHECK}" fill="none" '
                    f'stroke="{GREEN}" stroke-width="2.4"/>')
    drawing.text(x + 24, y, SIGNS[kind], WORDS, 'start')


def _holdings_alt_text(schedule, held, number, title, names):
    full = (held == 1).all(axis=2).sum(axis=1)
    parts = [f'{name} has {several((row > 0).sum(), "contribution")}, '
            f'{several(done, "whole sum")}'
            for name, row, done in zip(names, held, full)]
    round_ = ''
    if number:
        round_ = f' In this round: {in_words(schedule.rounds[number - 1])}.'
    title = title.replace('\n', ' ') or schedule.name
    return f'{title}. {"; ".join(parts)}.{round_}'
