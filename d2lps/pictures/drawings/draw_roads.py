"""A map: towns on a circle, and roads with their lengths."""
from collections.abc import Sequence
from math import cos, pi, sin

from d2lps.checks import checked, integer, list_of, refuse, text
from d2lps.pictures.drawing import INK, Drawing


def _road(name, value):
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        refuse(name, value, 'a road: two towns and a length, as (0, 1, 7)')
    return tuple(integer(name, number, least=0) for number in value)


def _between_towns(towns, roads):
    for k, (i, j, _) in enumerate(roads):
        if max(i, j) >= len(towns):
            refuse(f'roads[{k}]', roads[k], f'below {len(towns)}, a town each')


@checked(_between_towns, towns=list_of(text), roads=list_of(_road))
def draw_roads(towns: Sequence[str], roads: Sequence[tuple[int, int, float]]
              ) -> Drawing:
    """towns: their names. roads: (from, to, length), towns by number."""
    picture = Drawing(560, 320, (
        f'{len(towns)} towns on a circle and {len(roads)} roads: ' + ', '.join(
            f'{towns[i]} to {towns[j]} {length}' for i, j, length in roads)))
    angles = [2 * pi * k / len(towns) - pi / 2 for k in range(len(towns))]
    places = [(280 + 220 * cos(t), 160 + 125 * sin(t)) for t in angles]
    for i, j, length in roads:
        picture.line(places[i], places[j], stroke=INK, width=2)
        x, y = [(a + b) / 2 for a, b in zip(places[i], places[j])]
        picture.box(x - 13, y - 10, 26, 20, length, 'white', 12, stroke='none')
    for (x, y), town in zip(places, towns):
        picture.box(x - 32, y - 15, 64, 30, town)
    return picture
