"""Colours and the kind of picture, the same in all notebooks."""
from contextlib import suppress

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GRAY = (
    '#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7', '#56B4E9',
    '#BBBBBB')
# One per chunk, or per key, over and over.
CHUNK_COLORS = BLUE, ORANGE, GREEN, RED, PURPLE, SKY, '#000000', '#B8A800'
IDLE_TO_BUSY = '#E0E0E0', ORANGE, '#6B1A00'  # links; between them, mixtures


def rgb(color: str) -> list[int]:
    """Red, green and blue of '#0072B2' or of '#222', from 0 to 255."""
    digits = color[1:] if len(color) == 7 else ''.join(
        2 * digit for digit in color[1:])
    return [int(digits[k:k + 2], 16) for k in (0, 2, 4)]


def use_png_display() -> None:
    """Show what Matplotlib draws, also for d2l, as sharp PNGs.

    d2l takes SVG, which JupyterLab does not show in a notebook that was run
    on another machine: a reader would see no picture before running it.
    """
    from matplotlib_inline import backend_inline
    backend_inline.set_matplotlib_formats('retina')
    with suppress(ImportError):  # d2l needs MXNet
        from d2l import mxnet as d2l
        d2l.use_svg_display = use_png_display
