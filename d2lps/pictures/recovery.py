"""Servers that die, or join, on a circle of keys."""
from collections import Counter
from collections.abc import Sequence
from math import cos, pi, sin

from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import INK, TITLE, WORDS, Drawing, Row, color
from d2lps.pictures.widgets import live_picture
from d2lps.recovery import chain, circle, position

SIDE, UNIT, CROSS = 352, 116, 'm-5 -5l10 10m0 -10l-10 10'
EVENTS = {'nothing happens': lambda n: [*range(n)],
          'server 1 dies': lambda n: [0, *range(2, n)],
          'servers 1 and 2 die': lambda n: [0, *range(3, n)],
          'a server joins': lambda n: [*range(n + 1)]}


def _xy(name, radius):
    """The point of a name; the circle begins at the top, clockwise."""
    angle = 2 * pi * position(name)
    return (SIDE / 2 + radius * UNIT * sin(angle),
            SIDE / 2 + 20 - radius * UNIT * cos(angle))


def _draw_circle(title, alt, servers, num_points, chains):
    drawing = Drawing(SIDE, SIDE + 54, alt)
    drawing.text(4, 15, title, TITLE, 'start', bold=True)
    drawing.add(f'<circle cx="{SIDE / 2}" cy="{SIDE / 2 + 20}" r="{UNIT}" '
                'fill="none" stroke="#bbb"/>')
    names = [(f'server {server}, point {k}', server)
             for server in servers for k in range(num_points)]
    half = max(1.5, 4.5 - 0.06 * len(names))
    for name, server in names:
        x, y = _xy(name, 1)
        drawing.add(f'<rect class="point" x="{x - half:.1f}" '
                    f'y="{y - half:.1f}" width="{2 * half:.3g}" '
                    f'height="{2 * half:.3g}" fill="{color(server)}"/>')
    for name, server in names if num_points <= 4 else ():
        drawing.text(*_xy(name, 0.86), server, 13, bold=True,
                     fill=color(server))
    for key, owners in chains.items():
        for k, server in enumerate(owners):
            x, y = _xy(f'key {key}', 1.13 + 0.1 * k)
            drawing.add(f'<circle class="key" cx="{x:.1f}" cy="{y:.1f}" '
                        f'r="3.4" fill="{color(server)}"/>')
    owned = _owned(chains)
    counts = ', '.join(f'{server}: {owned[server]}' for server in servers)
    return drawing.text(4, SIDE + 42, f'keys of server {counts}', WORDS,
                        'start')


def plot_circle(before: Sequence[int], after: Sequence[int], replicas: int,
                num_points: int, num_keys: int = 32) -> Row:
    """The circle with the servers `before`, and with those `after`.

    A square is a point of a server, in its colour. Further out is a dot for
    each key, in the colour of the server that it belongs to, and beyond it
    one for each replica. On the right, an open circle is around each copy
    that a server gets, and a cross marks keys that are lost: all that had
    them died before anything could be copied. Returns a `Row` of both.
    """
    def chains(servers):
        places = circle(servers, num_points)
        return {key: chain(key, places, min(replicas, len(servers)))
                for key in range(num_keys)}

    was, now = chains(before), chains(after)
    lost = [key for key in was if not {*was[key]} & {*after}]
    kept = {key: now[key] for key in now if key not in lost}
    fresh = [(key, k) for key, owners in kept.items()
             for k, server in enumerate(owners) if server not in was[key]]
    title = f'{len(before)} servers, {num_keys} keys'
    left = _draw_circle(title, f'{title} on a circle. {_shares(was)}',
                        before, num_points, was)
    title = (f'{len(after)} servers: {len(fresh)} keys copied, '
             f'{len(lost)} lost')
    right = _draw_circle(title, f'{title}. {_shares(kept)}', after,
                         num_points, kept)
    for key, k in fresh:
        x, y = _xy(f'key {key}', 1.13 + 0.1 * k)
        right.add(f'<circle class="fresh" cx="{x:.1f}" cy="{y:.1f}" r="5.5" '
                  f'fill="none" stroke="{INK}" stroke-width="1.4"/>')
    for key in lost:
        x, y = _xy(f'key {key}', 1.13)
        right.add(f'<path class="lost" d="M{x:.1f} {y:.1f}{CROSS}" '
                  f'stroke="{INK}" stroke-width="2"/>')
    left.text(4, SIDE + 22, "square: a server's point; dots: a key, "
              'its replicas', WORDS, 'start')
    right.text(4, SIDE + 22, 'open circle: a new copy; cross: lost', WORDS,
               'start')
    return Row(left, right)


def _shares(chains):
    """The number of keys of each server, as a text."""
    return ', '.join(f'server {server} has {count} keys'
                     for server, count in sorted(_owned(chains).items())) + '.'


def _owned(chains):
    """A `Counter`: the keys of which each server is the first in the chain."""
    return Counter(owners[0] for owners in chains.values())


def explore_circle() -> None:
    """Choose servers and replicas, lose a server, or let one join."""
    def draw(event, replicas, n, num_points):
        return plot_circle([*range(n)], EVENTS[event](n), replicas,
                           num_points)

    live_picture(draw, dict(
        event=menu([*EVENTS], 'server 1 dies', 'event'),
        replicas=choose([1, 2, 3], 1, 'replicas'),
        n=choose([*range(4, 9)], 4, 'servers'),
        num_points=choose([1, 2, 4, 16, 64], 2, 'points each')))
