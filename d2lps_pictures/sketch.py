"""A schedule in one drawing: a line per node, a stroke per send."""
import numpy as np

from d2lps_pictures.drawing import Drawing, color, width_of


def draw(schedule):
    """The `Drawing` of a `Schedule`; None if it is too large to be read.

    Strokes go from left to right, with a dot where they arrive; they are
    dashed where they replace. Dots at one node lie side by side, or one
    would hide the others.
    """
    nodes, rounds = len(schedule.nodes), len(schedule.rounds)
    if nodes > 16 or rounds > 32 or sum(map(len, schedule.rounds)) > 1000:
        return None
    right = 80 + 60 * rounds
    width = max(right, width_of(schedule.name, 12)) + 16
    drawing = Drawing(width, 46 + 24 * nodes, repr(schedule))
    drawing.text(8, 12, schedule.name, 12, 'start')
    y = [46 + 24 * k for k in range(nodes)]
    for name, height in zip(schedule.nodes, y):
        drawing.text(8, height, name, 12, 'start')
        drawing.line((72, height), (right + 8, height), stroke='#ccc', width=1)
    for number, sends in enumerate(schedule.rounds, 1):
        left = 20 + 60 * number
        drawing.text(left, 30, f'round {number}', 10, 'start', fill='#666')
        earlier = np.tril(sends.dst[:, None] == sends.dst, -1).sum(axis=1)
        ends = left + 48 - earlier * min(6, 36 / (1 + earlier.max()))
        for src, dst, chunk, reduce, end in zip(*sends.columns(), ends):
            drawing.line((left, y[src]), (end, y[dst]), stroke=color(chunk),
                         width=2, dashed=not reduce)
            drawing.add(f'<circle cx="{end:g}" cy="{y[dst]}" r="3" '
                        f'fill="{color(chunk)}"/>')
    return drawing


def html(schedule):
    """The drawing as an image; None as for `draw`."""
    drawing = draw(schedule)
    return drawing and drawing._repr_html_()
