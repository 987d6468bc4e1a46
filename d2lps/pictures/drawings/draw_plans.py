"""Cables between devices in a circle, and who sends sums to whom."""
from collections.abc import Sequence
from functools import partial
from math import cos, pi, sin
from typing import TypeAlias

import numpy as np

from d2lps.checks import checked, integer, list_of, refuse
from d2lps.collectives import Schedule, limits
from d2lps.collectives.schedule import any_schedule
from d2lps.collectives.strategies import ring_over_cables
from d2lps.pictures.drawing import Drawing, Picture, Row
from d2lps.pictures.positions import tree_places
from d2lps.pictures.style import BLUE, GRAY, GREEN, ORANGE, PURPLE, RED, SKY
from d2lps.units import several

Ring: TypeAlias = tuple[Sequence[int], int]  # order, cables per hop
RING_COLORS = BLUE, ORANGE, PURPLE, GREEN, RED, SKY


def refuse_rings(cables: np.ndarray, rings: Sequence[Ring], cable: str
                 ) -> None:
    """Raise ValueError for rings over cables that are not there.

    cable: the noun for a cable. Rings do not share cables.
    """
    left = cables.copy()
    for k, (order, count) in enumerate(rings):
        if len({*order}) < len(order):
            refuse(f'rings[{k}][0]', order, 'different devices')
        for i, j in pairs_of(order):
            if max(i, j) >= len(left) or left[i, j] < count:
                raise ValueError(
                    f'rings: one takes {several(count, cable)} from device '
                    f'{i} to {j}, which are not there or already taken; '
                    'draw those of topology.rings_of')
            left[[i, j], [j, i]] -= count


def pairs_of(order: Sequence[int]) -> set[tuple[int, int]]:
    """The hops of a ring, lower device first; that of two devices has one."""
    return {(min(hop), max(hop)) for hop in zip(order, [*order[1:], order[0]])}


def _readable(cables, rings):
    """Refuse more than is readable, and rings over cables that are not."""
    integer('devices in cables', len(cables), most=16)
    integer('cables between two devices', cables.max(), least=0, most=16)
    integer('rings in a picture', len(rings), least=0, most=len(RING_COLORS))
    refuse_rings(cables, rings, 'cable')


@checked(_readable, cables=limits.matrix, rings=list_of(
    ring_over_cables, 'a list of rings, as from rings_of', least=0))
def draw_cables(cables: np.ndarray,
                rings: Sequence[Ring] = ()) -> Drawing:
    """Devices on a circle, a line for each cable that joins two of them.

    cables: a symmetric matrix, how many cables join devices i and j.
    rings: (order, cables per hop) of `rings_of`; the cables of each have a
    colour of their own, all other cables are gray.
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
    taken: dict[tuple[int, int], list[str]] = {}
    for (order, count), color in zip(rings, RING_COLORS):
        for pair in pairs_of(order):
            taken[pair] = taken.get(pair, []) + count * [color]
    for i in range(n):
        for j in range(i):
            colors = taken.get((j, i), [])
            _cables(drawing, at[i], at[j],
                    colors + [GRAY] * (cables[i, j] - len(colors)))
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


def _ring_text(order):
    return ' - '.join(map(str, [*order, order[0]]))


def _cables(drawing, start, end, colors):
    """Lines side by side, one for each cable."""
    (x, y), (x2, y2) = start, end
    length = ((x2 - x) ** 2 + (y2 - y) ** 2) ** 0.5
    for k, color in enumerate(colors):
        aside = 7 * (k - (len(colors) - 1) / 2) / length
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
