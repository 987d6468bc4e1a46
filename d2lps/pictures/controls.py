"""Controls above a picture, described without widgets.

A notebook makes widgets of them, see `d2lps.pictures.board`; the book, which
has no kernel, makes controls of its own.
"""
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

# A notebook that was not run shows this in the place of controls.
NOT_RUN = 'Run this cell, and controls appear here.'


@dataclass
class Control:
    """One control, as a reader sees it.

    kind: 'slider', 'menu', 'checkbox', or 'steps': a slider from 0 on with
    buttons for back, forward and play.
    options: [(words, value), ...] in their order; value: the chosen one.
    most: of 'steps', a function of all values by name: the last one now, or
    None if the last one does not change.
    """
    kind: str
    label: str
    options: list[tuple[str, Any]]
    value: Any
    most: Callable[..., int | None] | None = None


def in_words(value: object) -> str:
    """A value as a control shows it: 1,000 or sharded."""
    if isinstance(value, (int, float)):
        return f'{value:,}'.removesuffix('.0')
    return str(value)


def _pairs(options):
    """[(words, value), ...] of a dict by words, or of values, or as it is."""
    if isinstance(options, dict):
        return [*options.items()]
    return [option if isinstance(option, tuple) else (in_words(option), option)
            for option in options]


def choose(options: Iterable[float] | dict[str, Any], value: Any, label: str
          ) -> Control:
    """A slider over numbers, to which `value` is added; it begins there.

    options: numbers, or a dict {words: value}, which stays as it is.
    """
    if not isinstance(options, dict):
        options = sorted({*options, value})
    return Control('slider', label, _pairs(options), value)


def menu(options: Iterable[Any] | dict[str, Any], value: Any, label: str
        ) -> Control:
    """A menu of values, of (words, value), or of a dict {words: value}."""
    return Control('menu', label, _pairs(options), value)


def checkbox(value: bool, label: str) -> Control:
    """A box with a tick, or without."""
    return Control('checkbox', label, [('no', False), ('yes', True)], value)


def steps(most: int | Callable[..., int | None], value: int, label: str
         ) -> Control:
    """Steps from 0 to `most`, to go through one by one.

    most: a number, or a function of the values of all controls by name.
    """
    if callable(most):
        return Control('steps', label, _pairs(range(1)), value, most)
    return Control('steps', label, _pairs(range(most + 1)), value)


def values_of(controls: dict[str, Control]) -> dict[str, Any]:
    """The value of each of a dict of controls, by name."""
    return {name: control.value for name, control in controls.items()}


def clamp_steps(controls: dict[str, Control]) -> None:
    """Let 'steps' end where they do with the values of all controls."""
    for control in controls.values():
        if control.most:
            most = control.most(**values_of(controls))
            if most is not None:
                control.options = _pairs(range(most + 1))
            control.value = min(control.value, len(control.options) - 1)
