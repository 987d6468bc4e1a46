"""A schedule in one drawing: a line per node, a stroke per send."""
from base64 import b64encode
from html import escape

import numpy as np

from d2lps_pictures.style import CHUNK_COLORS


def svg(schedule):
    """Draw a `Schedule` as SVG, a text; None if it is too large to be read.

    Strokes go from left to right, with a dot where they arrive; they are
    dashed where they replace. Dots at one node lie side by side, or one
    would hide the others.
    """
    nodes, rounds = len(schedule.nodes), len(schedule.rounds)
    if nodes > 16 or rounds > 32 or sum(map(len, schedule.rounds)) > 1000:
        return None
    x = [80 + 60 * k for k in range(rounds + 1)]
    y = [46 + 24 * k for k in range(nodes)]
    out = [f'<text x="8" y="16">{escape(schedule.name)}</text>']
    for name, height in zip(schedule.nodes, y):
        out += [f'<text x="8" y="{height + 4}">{escape(str(name))}</text>',
                f'<path d="M72 {height}H{x[-1] + 8}" stroke="#ccc"/>']
    for number, (left, sends) in enumerate(zip(x, schedule.rounds), 1):
        out.append(f'<text x="{left}" y="34" font-size="10" fill="#666">'
                   f'round {number}</text>')
        earlier = np.tril(sends.dst[:, None] == sends.dst, -1).sum(axis=1)
        ends = left + 48 - earlier * min(6, 36 / (1 + earlier.max()))
        for src, dst, chunk, reduce, end in zip(*sends.columns(), ends):
            color = CHUNK_COLORS[chunk % len(CHUNK_COLORS)]
            dash = '' if reduce else 'stroke-dasharray="4 3"'
            out.append(
                f'<path d="M{left} {y[src]}L{end:g} {y[dst]}" stroke="{color}"'
                f' stroke-width="2" {dash}/><circle cx="{end:g}" '
                f'cy="{y[dst]}" r="3" fill="{color}"/>')
    return ('<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" '
            f'font-size="12" width="{x[-1] + 16}" height="{y[-1] + 16}">'
            f'{"".join(out)}</svg>')


def html(schedule):
    """The drawing as an image, which JupyterLab trusts; None as for `svg`."""
    drawn = svg(schedule)
    return drawn and (f'<img alt="{escape(repr(schedule))}" '
                      'src="data:image/svg+xml;base64,'
                      f'{b64encode(drawn.encode()).decode()}">')
