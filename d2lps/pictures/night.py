"""Drawings for a dark page: the same shapes in other colours."""
import re
from colorsys import hls_to_rgb, rgb_to_hls

from d2lps.annotations import PathLike
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.style import rgb

NAMES = {'white': '#ffffff', 'black': '#000000'}
GROUND = 0.09  # how light the ground is that was white
COLOR = re.compile(r'#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b|\b(?:white|black)\b')
# Where a colour may stand; not in words, nor in an address such as url(#p1).
PLACE = re.compile(r'((?:fill|stroke|stop-color|color)(?:=")|'
                   r'(?:fill|stroke|color):)([^";}]+)')


def dark(color: str) -> str:
    """Greys and pale colours become their opposite, others light enough."""
    red, green, blue = (part / 255 for part in rgb(NAMES.get(color, color)))
    hue, light, full = rgb_to_hls(red, green, blue)
    if max(red, green, blue) - min(red, green, blue) < 0.12:
        light = GROUND + (0.93 - GROUND) * (1 - light)
    elif light > 0.75:  # the ground of words, which become light
        light = 1.05 - light
    else:
        light = max(light, 0.42)
    return '#' + ''.join(f'{round(255 * part):02x}'
                         for part in hls_to_rgb(hue, light, full))


def night(svg: str) -> str:
    """An SVG picture as it is on a dark page."""
    return PLACE.sub(lambda match: match[1] + COLOR.sub(
        lambda color: dark(color[0]), match[2]), svg)


def save_both(drawing: Drawing, path: PathLike) -> None:
    """Write PATH.svg and PATH-dark.svg."""
    drawing.save(f'{path}.svg')
    with open(f'{path}-dark.svg', 'w') as file:
        file.write(night(drawing.svg()))
