"""Colours, the same in all notebooks."""
from typing import Any

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GRAY = (
    '#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7', '#56B4E9',
    '#BBBBBB')
INK = '#222'
# One per chunk, or per key, over and over.
CHUNK_COLORS = BLUE, ORANGE, GREEN, RED, PURPLE, SKY, '#000000', '#B8A800'
IDLE_TO_BUSY = '#E0E0E0', ORANGE, '#6B1A00'  # links; between them, mixtures


def ink_on(color: Any) -> str:
    """White or black, whichever is read more easily upon a colour.

    color: any that Matplotlib knows.
    """
    from matplotlib.colors import to_rgb
    red, green, blue = (255 * part for part in to_rgb(color))
    return 'white' if 0.3 * red + 0.59 * green + 0.11 * blue < 100 else INK
