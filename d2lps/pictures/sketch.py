"""A schedule in one drawing: a line per node, an arrow per send."""
from itertools import groupby
from math import hypot
from typing import TYPE_CHECKING

from d2lps.pictures.drawing import Drawing, color, width_of
from d2lps.units import several

if TYPE_CHECKING:
    from d2lps.collectives import Schedule
    from d2lps.collectives.sends import Round

MOST, HIGHEST = 720, 900  # pixels: as wide as a page
GAP, EDGE = 12, 16  # pixels: between rounds, and inside one
NEAR, FAR = 10, 42  # between two arrows
DIGIT = 8  # how wide one is
GROUND = '#f3f3f3'
NAMED = 6  # the alternative text names the ends of that many messages


def draw(schedule: 'Schedule') -> Drawing | None:
    """The `Drawing` of a `Schedule`; None if it is too large to be read.

    Nodes are lines, time goes to the right, and each round is a field. An
    arrow begins with a dot, and has a place of its own, so that none hides
    another; it is dashed where it replaces. Those of a chunk stand side by
    side, below its number.
    """
    nodes, numbered = schedule.nodes, len(schedule.weights) > 1
    rounds = [_arrows(sends) for sends in schedule.rounds]
    if len(nodes) > 16 or sum(map(len, rounds)) > 256:
        return None
    left = 20 + max(width_of(name, 12) for name in [*nodes, 'chunk'])
    pitch = _pitch(rounds, MOST - left)
    wide = [_width(arrows, pitch) for arrows in rounds]
    rows = _wrapped(wide, MOST - left)
    top = 28 + 20 * numbered  # of a field: its name, and chunks
    lane = 26 if len(nodes) <= 8 else 20
    high = top + lane * len(nodes) + GAP
    if left + max(wide, default=0) > MOST or high * len(rows) > HIGHEST:
        return None
    width = max(8 + width_of(schedule.name, 13), left + 250,
                *(left + x + wide[k] for row in rows for k, x in row))
    drawing = Drawing(width + 2, 54 + high * len(rows),
                      _alt_text(schedule))
    drawing.text(8, 13, schedule.name, 13, 'start', bold=True)
    for number, row in enumerate(rows):
        y = [28 + high * number + top + lane * (k + 0.5)
             for k in range(len(nodes))]
        for name, height in zip(nodes, y):
            drawing.text(left - 10, height, name, 12, 'end')
        if numbered:
            drawing.text(left - 10, y[0] - 24, 'chunk', 12, 'end')
        for k, x in row:
            field = left + x, 28 + high * number, wide[k], high - GAP
            drawing.box(*field, fill=GROUND, stroke='none')
            drawing.text(left + x + wide[k] / 2, field[1] + 14,
                         f'round {k + 1}', 12, bold=True)
            _lines(drawing, field, y)
            _round(drawing, field, y, rounds[k], pitch, numbered)
    _legend(drawing, left, drawing.height - 14)
    return drawing


def in_words(sends: 'Round') -> str:
    """The numbers of messages of a round that are added, and that replace."""
    added = int(sends.reduce.sum())
    counts = {'added': added, 'replacing': len(sends) - added}
    return ', '.join(f'{several(count, "message")} {change}'
                     for change, count in counts.items() if count)


def _alt_text(schedule):
    chunks = len(schedule.weights)
    text = (f'{schedule.name}: a line for each of '
             f'{several(len(schedule.nodes), "node")}, an arrow for each '
             'message' + f', {chunks} chunks' * (chunks > 1) + '.')
    for number, sends in enumerate(schedule.rounds, 1):
        pairs = ', '.join(f'{send.src} to {send.dst}' for send in sends[:])
        text += f' Round {number}: {in_words(sends)}' + (
            f': {pairs}.' if len(sends) <= NAMED else '.')
    return text


def _arrows(sends):
    """(chunk, node it comes from, node it goes to, is it added), in order."""
    src, dst, chunk, added = sends.columns()
    return sorted(zip(chunk, src, dst, added))


def _chunks(arrows):
    """(chunk, how many arrows it has)"""
    return [(chunk, len([*group])) for chunk, group in groupby(
        arrows, lambda arrow: arrow[0])]


def _between(arrows):
    """The extra distance between chunks, where they are groups."""
    return 0.5 * (len(_chunks(arrows)) < len(arrows))


def _places(arrows):
    """From the first arrow to the last."""
    return len(arrows) - 1 + _between(arrows) * (len(_chunks(arrows)) - 1)


def _width(arrows, pitch):
    return max(_places(arrows) * pitch + 2 * EDGE, 76)


def _pitch(rounds, room):
    """As far apart as they can be if all rounds are in one row.

    Or else as near as numbers of chunks can be, and arrows.
    """
    numbers = [(chunk, number) for arrows in rounds
               for chunk, number in _chunks(arrows)]
    least = max([NEAR, *((DIGIT * len(str(chunk)) + 4) / number
                         for chunk, number in numbers)])
    for pitch in range(FAR, int(least), -1):
        if sum(_width(arrows, pitch) + GAP for arrows in rounds) <= room:
            return pitch
    return least


def _wrapped(wide, room):
    """Rows of rounds, each with where it begins."""
    rows, x = [[]], 0
    for k, width in enumerate(wide):
        if rows[-1] and x + width > room:
            rows, x = [*rows, []], 0
        rows[-1].append((k, x))
        x += width + GAP
    return [row for row in rows if row] or [[]]


def _lines(drawing, field, y):
    for height in y:
        drawing.line((field[0], height), (field[0] + field[2], height),
                     stroke='#b5b5b5', width=1)


def _round(drawing, field, y, arrows, pitch, numbered):
    """The arrows of a round, and the numbers of their chunks."""
    x = field[0] + (field[2] - _places(arrows) * pitch) / 2
    rest = iter(arrows)
    for chunk, number in _chunks(arrows):
        if numbered:
            drawing.text(x + (number - 1) * pitch / 2, y[0] - 24, chunk, 12)
        for _ in range(number):
            _, src, dst, added = next(rest)
            _arrow(drawing, (x, y[src]), (x, y[dst]), color(chunk), added)
            x += pitch
        x += pitch * _between(arrows)


def _arrow(drawing, start, end, ink, added):
    """From a dot to a slim head, over the lines that it crosses."""
    (x, y), (x2, y2) = start, end
    head = 10 / hypot(x2 - x, y2 - y)
    dx, dy = head * (x2 - x), head * (y2 - y)
    drawing.line((x + dx / 2, y + dy / 2), (x2 - dx, y2 - dy),
                 stroke=GROUND, width=6)
    drawing.line((x, y), (x2 - 0.9 * dx, y2 - 0.9 * dy), stroke=ink, width=2,
                 dashed=not added)
    drawing.add(f'<path d="M{x2:g} {y2:g}L{x2 - dx - dy / 2.8:g} '
                f'{y2 - dy + dx / 2.8:g}L{x2 - dx + dy / 2.8:g} '
                f'{y2 - dy - dx / 2.8:g}z" fill="{ink}"/>')
    drawing.add(f'<circle cx="{x:g}" cy="{y:g}" r="3.5" fill="{ink}"/>')


def _legend(drawing, x, y):
    for added, label in ((True, 'is added'), (False, 'replaces')):
        _arrow(drawing, (x + 4, y), (x + 44, y), '#555', added)
        drawing.text(x + 54, y, label, 12, 'start', fill='#555')
        x += 125


def html(schedule: 'Schedule') -> str | None:
    """The drawing as an image; None as for `draw`."""
    drawing = draw(schedule)
    return drawing._repr_html_() if drawing else None
