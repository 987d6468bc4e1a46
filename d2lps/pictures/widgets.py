"""Things to play with: controls, and a picture that follows them."""
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from d2lps.checks import checked, function, refuse
from d2lps.pictures.controls import Control, limit

# What a notebook shows in the place of controls when it was not run.
NOT_RUN = 'Run this cell, and controls appear here.'
_catching = ContextVar('catching', default=None)


class Toy(NamedTuple):
    """What `live_picture` was given: see there."""
    draw: Callable
    controls: dict


@contextmanager
def caught():
    """Toys that are called inside are not shown, but come into a list.

        with caught() as toys:
            explore_keys()
        [toy] = toys
        toy.draw(num_servers=3, split_from=100)  # a Drawing
        toy.controls['num_servers'].options  # [('1', 1), ('2', 2), ...]
    """
    toys = []
    token = _catching.set(toys)
    try:
        yield toys
    finally:
        _catching.reset(token)


def _controls(name, value):
    """A dict of `Control`s by name."""
    if not isinstance(value, dict) or not all(
            isinstance(one, Control) for one in value.values()):
        refuse(name, value, 'a dict of controls by name, such as '
                            "{'n': choose([1, 2, 4], 2, 'devices')}")
    return value


@checked(draw=function, controls=_controls)
def live_picture(draw, controls):
    """Show `controls` above a picture that follows them.

    controls: a dict of `Control`s by name. draw: called with their values by
    name, returns a `Drawing`, or what else shows itself.

    The picture is an output of the cell, not part of a widget, so it is still
    there when the notebook is read without a kernel.
    """
    limit(controls)
    toys = _catching.get()
    if toys is not None:
        toys.append(Toy(draw, controls))
    else:
        from d2lps.pictures.board import LivePicture  # needs ipywidgets
        LivePicture(draw, controls)
