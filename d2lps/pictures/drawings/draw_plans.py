"""Cables between devices in a circle, and who sends sums to whom."""
from collections.abc import Sequence
from functools import partial
from math import cos, pi, sin

import numpy as np

from d2lps.checks import checked, instance_of, integer, list_of
from d2lps.collectives import Schedule, limits
from d2lps.collectives.schedule import any_schedule
from d2lps.pictures.drawing import Drawing, Picture, Row
from d2lps.pictures.positions import tree_places
from d2lps.pictures.style import BLUE, GRAY, GREEN, ORANGE, PURPLE, RED, SKY

RING_COLORS = BLUE, ORANGE, PURPLE, GREEN, RED, SKY


def _readable(cables, rings):
    """Refuse more devices than are readable, and rings over no cables."""
    integer('devices in cables', len(cables), most=16)
    integer('cables between two devices', cables.max(), least=0, most=16)
    integer('rings in a picture', len(rings), least=0, most=len(RING_COLORS))
    pairs = [hop for order, _ in rings for hop in _hops(order)]
    if any(not 0 <= i < len(cables) for hop in pairs for i in hop):
        raise ValueError('rings: lists of devices, each with how many cables')


@checked(_readable, cables=limits.matrix, rings=list_of(
    instance_of(tuple, 'a tuple: a list of devices, and cables per hop'),
    least=0))
def draw_cables(cables: np.ndarray,
                rings: Sequence[tuple[Sequence[int], int]] = ()) -> Drawing:
    """Devices on a circle, a line for each cable that joins two of them.

    cables: a symmetric matrix, how many cables join devices i and j.
    rings: (order, cables per hop) of `rings_of`; each has a colour of its
    own, all other cables are gray.
    """
    n = len(cables)
    drawing = Drawing(360, 320 + 24 * len(rings), (
        f'{n} devices on a circle, and the cables between them: '
        + ', '.join(f'{i}-{j}' + (f' ({cables[i, j]} times)'
                                  if cables[i, j] > 1 else '')
                    for i in range(n) for j in range(i) if cables[i, j])
        + '.' + ''.join(f' A ring over {count} per hop: {_ring_text(order)}.'
                        for order, count in rings)))
    at = [(180 + 130 * sin(2 * pi * i / n), 160 - 130 * cos(2 * pi * i / n))
          for i in range(n)]
    colors = {frozenset(hop): color for (order, _), color in zip(
        rings, RING_COLORS) for hop in _hops(order)}
    for i in range(n):
        for j in range(i):
            _cables(drawing, at[i], at[j], cables[i, j],
                    colors.get(frozenset((i, j)), GRAY))
    for i, (x, y) in enumerate(at):
        drawing.box(x - 15, y - 13, 30, 26, str(i), size=15)
    for k, ((order, _), color) in enumerate(zip(rings, RING_COLORS)):
        drawing.box(20, 325 + 24 * k, 40, 10, fill=color, stroke='none')
        drawing.text(70, 330 + 24 * k, _ring_text(order), 15, 'start', True)
    return drawing


def _readable_trees(plans, chunks):
    for plan in plans:
        integer('devices in a tree', plan.num_devices, most=64)


@checked(_readable_trees, plans=list_of(any_schedule,
                                        'a list of Schedules'),
         chunks=list_of(partial(integer, least=0), 'a list of chunks'))
def draw_sums(plans: Sequence[Schedule], chunks: Sequence[int] = (0,)
             ) -> Picture:
    """Trees of the sends of sums: a picture for each plan and chunk.

    The device that ends with the total is on top. Raises ValueError for a
    plan in which a device sends its sum twice, or more than one ends with a
    total: that is no tree.
    """
    trees = [(plan, chunk, *_tree(plan, chunk))
             for plan in plans for chunk in chunks]
    deepest = max(depth for *_, places in trees
                  for _, depth in places.values())
    high = 70 + 44 * deepest
    drawings = [_sums(plan, chunk, parents, places, high)
                for plan, chunk, parents, places in trees]
    return Row(*drawings) if len(drawings) > 1 else drawings[0]


def _sums(plan, chunk, parents, places, height):
    drawing = Drawing(320, height, f'Sums of chunk {chunk} in {plan.name}: '
                      + ', '.join(f'{low} sends to {high}'
                                  for low, high in parents.items()) + '.')
    drawing.text(160, 14, f'{plan.name}: sums of chunk {chunk}')
    wide = 320 / (1 + max(x for x, _ in places.values()))
    at = {i: (wide * (0.5 + x), 44 + 44 * depth)
          for i, (x, depth) in places.items()}
    for low, high in parents.items():
        (x, y), (x2, y2) = at[low], at[high]
        drawing.arrow((x, y), (x + 0.55 * (x2 - x), y - 0.55 * (y - y2)))
        drawing.line((x, y), (x2, y2))
    for i, (x, y) in at.items():
        drawing.box(x - 14, y - 12, 28, 24, str(i), size=14)
    return drawing


def _hops(order):
    return list(zip(order, [*order[1:], order[0]]))


def _ring_text(order):
    return ' - '.join(map(str, [*order, order[0]]))


def _cables(drawing, start, end, count, color):
    """As many lines side by side as there are cables."""
    (x, y), (x2, y2) = start, end
    length = ((x2 - x) ** 2 + (y2 - y) ** 2) ** 0.5
    for k in range(count):
        aside = 7 * (k - (count - 1) / 2) / length
        dx, dy = aside * (y - y2), aside * (x2 - x)
        drawing.line((x + dx, y + dy), (x2 + dx, y2 + dy), stroke=color,
                     width=3)


def _tree(plan, chunk):
    """{device: the device that gets its sum}, and places of all devices."""
    sends = [(send.src, send.dst) for sends in plan.rounds for send in sends
             if send.reduce and send.chunk == chunk]
    parents, n = dict(sends), plan.num_devices
    places = tree_places(parents, range(n))
    if not len(sends) == len(parents) == n - 1 or len(places) < n:
        raise ValueError(f'plans: the sums of chunk {chunk} in {plan.name} '
                         'do not go along a tree')
    return parents, places
