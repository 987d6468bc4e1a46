"""Things to play with: controls, and a picture that follows them."""
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from d2lps.pictures.controls import Control, clamp_steps
from d2lps.pictures.drawing import Picture

_collecting: ContextVar['list[Toy] | None'] = ContextVar(
    'collecting', default=None)


class Toy(NamedTuple):
    """The arguments of `live_picture`."""
    draw: Callable[..., Picture]
    controls: dict[str, Control]


@contextmanager
def collected_toys() -> Iterator[list[Toy]]:
    """Toys that are called inside are not shown, but come into a list.

        with collected_toys() as toys:
            explore_keys()
        [toy] = toys
        toy.draw(num_servers=3, split_from=100)  # a picture
        toy.controls['num_servers'].options  # [('1', 1), ('2', 2), ...]
    """
    toys: list[Toy] = []
    token = _collecting.set(toys)
    try:
        yield toys
    finally:
        _collecting.reset(token)


def live_picture(draw: Callable[..., Picture], controls: dict[str, Control]
                ) -> None:
    """Show `controls` above a picture that follows them.

    controls: a dict of `Control`s by name. draw: called with their values by
    name, returns a `Drawing`, a figure of Matplotlib, or a `Row` of them.

    The picture is an output of the cell, not part of a widget, so it is still
    there when the notebook is read without a kernel.
    """
    clamp_steps(controls)
    toys = _collecting.get()
    if toys is not None:
        toys.append(Toy(draw, controls))
    else:
        from d2lps.pictures.board import LivePicture  # needs ipywidgets
        LivePicture(draw, controls)
