"""Drawings of several machines: processes, keys, and the seven steps."""
from functools import partial
from typing import Any

from d2lps.annotations import Key
from d2lps.checks import boolean, checked, integer, refuse
from d2lps.kvstore.placement import place
from d2lps.kvstore.store_arguments import store_key
from d2lps.pictures.drawing import FRAME, INK, Drawing, width_of
from d2lps.pictures.style import BLUE, RED

NUM_KEYS = 8  # of LeNet
PUSH: dict[str, Any] = {'stroke': BLUE}
PULL: dict[str, Any] = {'stroke': RED, 'dashed': True}


def keyed_sizes(name: str, value: Any) -> dict[Key, int]:
    """A check: a dict from keys to numbers of elements."""
    if not isinstance(value, dict) or not value:
        refuse(name, value, "a dict from keys to sizes, such as {'w': 100}")
    return {store_key(f'a key of {name}', key):
            integer(f'{name}[{key!r}]', size) for key, size in value.items()}


def _middles(number, width, left):
    return [left + width * (k + 0.5) / number for k in range(number)]


@checked(num_workers=partial(integer, least=2, most=4), together=boolean)
def draw_cluster(num_workers: int = 2, together: bool = False) -> Drawing:
    """Workers, two servers and the scheduler, with arrows for messages.

    num_workers: 2 to 4. The servers have the keys 0 to 7, which are too
    small to be split; see `d2lps.kvstore.place`.
    together: draw a frame around each machine, on which worker i and server
    i run.
    """
    keys = [[key for key in range(NUM_KEYS) if place(key, 1, 2)[0][0] == k]
            for k in range(2)]
    names = [f'key{"s" * (len(own) > 1)} {", ".join(map(str, own))}'
             for own in keys]
    drawing = Drawing(720, 350, (
        f'{num_workers} workers above, 2 servers below. Arrows lead from each '
        'worker to each server for pushes, and dashed ones back for pulls. '
        + ' '.join(f'Server {k} has {name}.' for k, name in enumerate(names))
        + ' Thin lines lead from the scheduler to all of them: it only '
        'introduces them to each other.'
        + ' Worker i and server i share a machine.' * together))
    workers = _middles(num_workers, 560, 4)
    servers = workers[:2] if together else _middles(2, 560, 4)
    for x in workers if together else ():
        drawing.box(x - 67, 18, 134, 304, dashed=True)
    for xs, near, far, box in ((workers, 26, 8, 138),
                               (servers, 314, 342, 212)):
        drawing.line((xs[0], near), (xs[0], far), (600, far), (600, box),
                     width=1)
        for x in xs[1:]:
            drawing.line((x, near), (x, far), width=1)
    drawing.box(588, 138, 128, 74, 'scheduler\nonly introduces\nthem', 'white')
    for label, y, style in (('push', 244, PUSH), ('pull', 270, PULL)):
        drawing.arrow((610, y), (650, y), **style)
        drawing.text(658, y, label, 13, 'start')
    if together:
        drawing.box(610, 287, 40, 20, dashed=True)
        drawing.text(658, 297, 'machine', 13, 'start')
    for k, x in enumerate(workers):
        for j, down in enumerate(servers):
            a, b = x + 20 * (j - 0.5), down + 20 * (k - (num_workers - 1) / 2)
            drawing.arrow((a - 4, 80), (b - 4, 246), **PUSH)
            drawing.arrow((b + 4, 246), (a + 4, 80), **PULL)
        drawing.box(x - 60, 26, 120, 52, f'worker {k}', k)
    for k, x in enumerate(servers):
        drawing.box(x - 60, 250, 120, 64, f'server {k}\n{names[k]}', 'white')
    return drawing


@checked(sizes=keyed_sizes, num_servers=partial(integer, most=8),
         split_from=integer)
def draw_keys(sizes: dict[Key, int], num_servers: int,
              split_from: int = 1_000_000) -> Drawing:
    """Keys of a store, as long as they are large, and the servers' parts.

    sizes: a dict from up to 12 keys to numbers of elements; num_servers: up
    to 8. A key of `split_from` elements or more is cut into a part for each
    server; see `d2lps.kvstore.place`.
    """
    if len(sizes) > 12:
        raise ValueError('sizes must have at most 12 keys, or the drawing is '
                         f'too full; it had {len(sizes)}')
    places = {key: place(key, size, num_servers, split_from)
              for key, size in sizes.items()}
    filled = [sum(end - start for parts in places.values()
                  for server, start, end in parts if server == k)
              for k in range(num_servers)]
    high = max(len(sizes) * 34, num_servers * 46) + 30
    drawing = Drawing(720, high, (
        'Boxes for keys, as wide as they are large, and lines to their '
        'servers. ' + ' '.join(
            f'Server {k} has {elements:,} elements{_contents(places, k)}.'
            for k, elements in enumerate(filled))))
    scale = 160 / max(1, sum(sizes.values()))
    drawing.text(130, 12, 'keys', 13, 'start', bold=True)
    drawing.text(362, 12, 'servers', 13, 'start', bold=True)
    ys = dict(zip(sizes, _middles(len(sizes), high - 30, 26)))
    rows = _middles(num_servers, high - 30, 26)
    x = [366.0] * num_servers
    for k, (key, size) in enumerate(sizes.items()):
        y, long = ys[key], max(3, size * scale)
        for server, start, end in places[key]:
            drawing.line((130 + long, y), (300, y), (362, rows[server]),
                         width=1)
            part = max(3, (end - start) * scale)
            drawing.box(x[server], rows[server] - 11, part, 22, fill=k)
            x[server] += part
        drawing.box(130, y - 11, long, 22, fill=k)
        drawing.text(124, y, _shortened(f'{key!r}: {size:,}', 120, 12),
                     12, 'end')
    for k, y in enumerate(rows):
        drawing.box(362, y - 16, 184, 32, fill='none')
        drawing.text(556, y, f'server {k}\n{filled[k]:,} elements', 12,
                     'start')
    return drawing


def _contents(places, server):
    """The keys on a server, as a text."""
    parts_here = [f'{key!r}' if len(parts) == 1 else f'a part of {key!r}'
             for key, parts in places.items()
             if any(k == server for k, *_ in parts)]
    return f': {", ".join(parts_here)}' if parts_here else ''


def _shortened(text, width, size):
    """As many letters of `text` as there is room for."""
    while width_of(text, size) > width:
        text = text[:-2] + '…'
    return text


SEVEN = (
    'Each machine reads its examples;\neach of its GPUs works on half.',
    'The gradients of a machine are\nsummed on one of its GPUs.',
    'The sum goes to the CPU.',
    'The CPUs send it to the server,\nwhich sums over the machines.',
    'The server updates the parameters\nand sends them to the CPUs.',
    'Each CPU sends them to one GPU.',
    'That GPU sends them to all GPUs.')
FAINT, MACHINES = '#c8c8c8', (4, 216)  # colour; where the machines begin


def _arrows(left):
    """The arrows of each part for a machine at x = left, as points."""
    cpu, first, second = left + 102, left + 44, left + 160
    return {
        1: [((cpu - 20, 390), (first + 10, 334)),
            ((cpu + 20, 390), (second - 10, 334))],
        2: [((second - 34, 290), (first + 34, 290))],
        3: [((first - 10, 274), (cpu - 42, 196))],
        4: [((cpu - 18, 155), (cpu - 18, 106))],
        5: [((cpu + 18, 106), (cpu + 18, 155))],
        6: [((cpu - 20, 202), (first + 30, 274))],
        7: [((first + 34, 318), (second - 34, 318))]}


@checked(step=partial(integer, most=7))
def draw_seven_steps(step: int | None = None) -> Drawing:
    """A training step over two machines of two GPUs, with a central server.

    step: 1 to 7 to light up one of its parts; None shows all alike.
    """
    drawing = Drawing(720, 436, (
        'A server, on one cable to a switch; below, two machines, each with '
        'a CPU, two GPUs and examples. Arrows with numbers: ' + ' '.join(
            f'{k}: {text}' for k, text in enumerate(SEVEN, 1)
            if step in (None, k)).replace('\n', ' ')))
    drawing.box(132, 4, 160, 32, 'server', 'white', 14)
    drawing.box(70, 84, 284, 22, 'switch', 'white')
    drawing.text(254, 61, "the server's only cable", 12, 'start')

    def draw(number, ways):
        ink = INK if step in (None, number) else FAINT
        for (x1, y1), (x2, y2) in ways:
            drawing.arrow((x1, y1), (x2, y2), stroke=ink, dashed=number > 4,
                          width=2 + 2 * (step == number))
            drawing.badge((x1 + x2) / 2, (y1 + y2) / 2, number, ink)
    draw(4, [((194, 84), (194, 37))])
    draw(5, [((230, 37), (230, 84))])
    for machine, left in enumerate(MACHINES):
        drawing.box(left, 134, 204, 296, fill='white', dashed=True)
        drawing.text(left + 10, 148, f'machine {machine}', 12, 'start')
        drawing.box(left + 62, 156, 80, 44, 'CPU', 'white')
        for gpu in range(2):
            drawing.box(left + 12 + 116 * gpu, 276, 64, 56, f'GPU {gpu}', gpu)
        drawing.box(left + 62, 392, 80, 30, 'examples', 'white')
        for number, ways in _arrows(left).items():
            draw(number, ways)
    for text, y in (('examples, gradients', 402), ('parameters', 422)):
        drawing.arrow((436, y), (480, y), dashed=y > 410, stroke=FRAME)
        drawing.text(490, y, text, 12, 'start', fill=FRAME)
    for number, text in enumerate(SEVEN, 1):
        y, ink = 56 * number - 28, INK if step in (None, number) else '#767676'
        drawing.badge(441, y, number, ink)
        drawing.text(458, y, text, 12, 'start', step == number, ink)
    return drawing
