"""Drawings of several machines: processes, keys, and the seven steps."""
from functools import partial
from typing import Any

from d2lps.annotations import Key
from d2lps.checks import checked, integer, one_of, refuse
from d2lps.kvstore.placement import place
from d2lps.kvstore.store_arguments import store_key
from d2lps.pictures.drawing import FRAME, INK, Drawing, width_of
from d2lps.pictures.style import BLUE, RED

up_to_four = partial(integer, most=4)
NUM_KEYS = 8  # of LeNet
PUSH: dict[str, Any] = {'stroke': BLUE}
PULL: dict[str, Any] = {'stroke': RED, 'dashed': True}
apart_or_together = one_of('apart', 'together')


def keyed_sizes(name: str, value: Any) -> dict[Key, int]:
    """A check: a dict from keys to numbers of elements."""
    if not isinstance(value, dict) or not value:
        refuse(name, value, "a dict from keys to sizes, such as {'w': 100}")
    return {store_key(f'a key of {name}', key):
            integer(f'{name}[{key!r}]', size) for key, size in value.items()}


def _middles(number, width, left):
    return [left + width * (k + 0.5) / number for k in range(number)]


@checked(num_workers=up_to_four, num_servers=up_to_four,
         machines=apart_or_together)
def draw_cluster(num_workers: int = 2, num_servers: int = 2,
                 machines: str | None = None) -> Drawing:
    """Workers, servers and the scheduler: who sends what to whom.

    num_workers, num_servers: 1 to 4. The servers have the keys 0 to 7, which
    are too small to be split; see `d2lps.kvstore.place`.
    machines: frames around processes, 'apart' for a machine for each of
    them, 'together' for worker i and server i on one machine.
    """
    m, n = num_workers, num_servers
    keys = [[key for key in range(NUM_KEYS) if place(key, 1, n)[0][0] == k]
            for k in range(n)]
    where = {'apart': ' Each worker and each server is on its own machine.',
             'together': ' Worker i and server i share a machine.', None: ''}
    drawing = Drawing(720, 350, (
        f'{m} workers above, {n} servers below. Arrows lead from each worker '
        'to each server for pushes, and dashed ones back for pulls. '
        + ' '.join(f'Server {k} has {_named(mine)}.'
                   for k, mine in enumerate(keys))
        + ' Thin lines lead from the scheduler to all of them: it only '
        'introduces them to each other.' + where[machines]))
    workers, servers = _middles(m, 560, 4), _middles(n, 560, 4)
    if machines == 'together':
        workers = servers = _middles(max(m, n), 560, 4)
    workers, servers = workers[:m], servers[:n]
    for left, top, width, high in _machines(workers, servers, machines):
        drawing.box(left, top, width, high, dashed=True)
    for xs, near, far, box in ((workers, 26, 8, 138),
                               (servers, 314, 342, 212)):
        drawing.line((xs[0], near), (xs[0], far), (600, far), (600, box),
                     width=1)
        for x in xs[1:]:
            drawing.line((x, near), (x, far), width=1)
    drawing.box(588, 138, 128, 74, 'scheduler\nonly introduces\nthem', 'white')
    for words, y, style in (('push', 244, PUSH), ('pull', 270, PULL)):
        drawing.arrow((610, y), (650, y), **style)
        drawing.text(658, y, words, 13, 'start')
    if machines:
        drawing.box(610, 287, 40, 20, dashed=True)
        drawing.text(658, 297, 'machine', 13, 'start')
    for k, x in enumerate(workers):
        for j, down in enumerate(servers):
            a, b = x + 20 * (j - (n - 1) / 2), down + 20 * (k - (m - 1) / 2)
            drawing.arrow((a - 4, 80), (b - 4, 246), **PUSH)
            drawing.arrow((b + 4, 246), (a + 4, 80), **PULL)
        drawing.box(x - 60, 26, 120, 52, f'worker {k}', k)
    for k, x in enumerate(servers):
        drawing.box(x - 60, 250, 120, 64, f'server {k}\n{_named(keys[k])}',
                    'white')
    return drawing


def _named(keys):
    if len(keys) == NUM_KEYS:
        return f'keys 0 to {NUM_KEYS - 1}'
    return f'key{"s" * (len(keys) != 1)} {", ".join(map(str, keys))}'


def _machines(workers, servers, machines):
    """Frames (x, y, width, height): of a process, or of a column."""
    if machines == 'apart':
        return [(x - 67, top, 134, high) for xs, top, high in (
            (workers, 18, 68), (servers, 242, 80)) for x in xs]
    columns = max(workers, servers, key=len) if machines else []
    return [(x - 67, 18, 134, 304) for x in columns]


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
    """In words: what lies on a server."""
    words = [f'{key!r}' if len(parts) == 1 else f'a part of {key!r}'
             for key, parts in places.items()
             if any(k == server for k, *_ in parts)]
    return f': {", ".join(words)}' if words else ''


def _shortened(words, width, size):
    """As many letters of `words` as there is room for."""
    while width_of(words, size) > width:
        words = words[:-2] + '…'
    return words


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
            f'{k}: {words}' for k, words in enumerate(SEVEN, 1)
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
    for words, y in (('examples, gradients', 402), ('parameters', 422)):
        drawing.arrow((436, y), (480, y), dashed=y > 410, stroke=FRAME)
        drawing.text(490, y, words, 12, 'start', fill=FRAME)
    for number, words in enumerate(SEVEN, 1):
        y, ink = 56 * number - 28, INK if step in (None, number) else '#767676'
        drawing.badge(441, y, number, ink)
        drawing.text(458, y, words, 12, 'start', step == number, ink)
    return drawing
