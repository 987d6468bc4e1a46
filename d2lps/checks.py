"""Checks of arguments. Their errors name values that would work.

A check is a function of an argument's name and value. It returns the value
in the form that the code needs, such as an int for NumPy's int64. Or it raises
a ValueError with the name of the argument, its value, and the allowed values.
`checked` puts checks before a function, so its body has none.
"""
import functools
import inspect
import math
import numbers
import operator
import os
import reprlib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeAlias, TypeVar

import numpy as np

P = ParamSpec('P')
T = TypeVar('T')
Check: TypeAlias = Callable[[str, Any], Any]  # of an argument's name and value

BOOL = bool, np.bool_
MOST_SHOWN = 300  # characters of a value in an error
MOST_LISTED = 15  # options that an error lists; of more it names three
MOST_NAME = 1000  # characters of a name that an error may repeat
LARGEST = 1e100  # beyond it, and below 1 / LARGEST, products are no floats


def refuse(name: str, value: object, must: str) -> NoReturn:
    """Raise a ValueError with the allowed values of argument `name`.

    It is shown alone, without an error that is being handled.
    """
    raise ValueError(f'{name} must be {must}; it was {shown(value)}') from None


def shown(value: object) -> str:
    """A value in a few words; an array's numbers would fill the screen."""
    try:
        line = _array_shown(value) or reprlib.repr(value)
    except Exception:  # a foreign object may raise any error
        line = f'an object of type {type(value).__name__}'
    return line if len(line) <= MOST_SHOWN else f'{line[:MOST_SHOWN]}...'


def _array_shown(value):
    """Type, shape and dtype of an array, table or tensor; '' for others."""
    if not getattr(value, 'shape', ()):
        return ''
    kind = f'{type(value).__module__.split(".")[0]} {type(value).__name__}'
    dtype = getattr(value, 'dtype', None)  # a table has none, or several
    if isinstance(dtype, type):
        dtype = np.dtype(dtype)
    return (f'{kind.replace("ndarray", "array")} of shape {value.shape}'
            + (f', dtype {getattr(dtype, "name", dtype)}'
               if dtype is not None else ''))


def as_array(value: Any, dtype: Any = None) -> np.ndarray:
    """The result of `np.asarray` for a value.

    ValueError if it would drop a mask, and for integers too large for floats.
    """
    parts = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise ValueError('it has a mask')
    try:
        return np.asarray(value, dtype)
    except (OverflowError, TypeError) as error:
        raise ValueError(str(error)) from None


def integer(name: str, value: Any, least: int = 1,
            most: int | None = None) -> int:
    """An int from `least` to `most`."""
    try:
        number = None if isinstance(value, BOOL) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or most is not None and number > most:
        limit = (f'of at least {least}' if most is None else
                 f'from {least} to {most:,}')
        refuse(name, value, f'a whole number {limit}, for example '
               f'{name}={max(least, 2 if most is None else min(2, most))}')
    return number


from_zero = functools.partial(integer, least=0)  # a seed, a rank, an index


def _float(value):
    """A number as a float; nan, which is outside all limits, for others."""
    if not isinstance(value, numbers.Real) or isinstance(value, BOOL):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # an int that no float can hold
        return math.inf if value > 0 else -math.inf


def number(name: str, value: object, least: float = 0,
           most: float = LARGEST, example: float = 1) -> float:
    """A float from `least` to `most`."""
    x = _float(value)
    if not least <= x <= most:
        limit = (f'from {least:g} to {most:g}' if most < LARGEST
                 or x > most else f'of at least {least:g}')
        example = min(max(example, least), most)
        refuse(name, value, f'a number {limit}, such as {example:g}')
    return x


def positive(name: str, value: object, example: float = 1,
             least: float = 1 / LARGEST, most: float = LARGEST) -> float:
    """A float above 0, from `least` to `most`."""
    x = _float(value)
    if not least <= x <= most:
        limit = f' from {least:g} to {most:g}' if x > 0 else ''
        example = min(max(example, least), most)
        refuse(name, value, f'a positive number{limit} such as {example:g}')
    return x


def boolean(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, BOOL):
        refuse(name, value, 'True or False')
    return bool(value)


def text(name: str, value: object, example: str = 'name',
         least: int = 1) -> str:
    """A str of `least` characters or more, which can be written somewhere."""
    if not isinstance(value, str) or len(value) < least:
        refuse(name, value, f'a text such as {example!r}')
    if any('\ud800' <= letter <= '\udfff' for letter in value):
        refuse(name, value, 'a text without surrogates (halves of characters)')
    return value


def writable(line: str) -> str:
    """The text with '?' for each surrogate, which UTF-8 cannot encode."""
    return line.encode(errors='replace').decode()


def folder(name: str, value: object) -> Path:
    """A `Path`; a ~ is the reader's own folder."""
    try:
        if isinstance(value, (str, Path)) and str(value):
            path = Path(value).expanduser()
            parts = os.fsencode(path).split(b'/')
            # Linux has room for so many bytes in a name.
            if b'\0' not in b''.join(parts) and max(map(len, parts)) < 256:
                return path
    # No user has the name after the ~, or the text has a surrogate.
    except (RuntimeError, UnicodeError):
        pass
    refuse(name, value, "a folder, such as '~/data', with no name in it that "
           'is longer than 255 bytes')


def function(name: str, value: T) -> T:
    """Anything that can be called."""
    if not callable(value):
        refuse(name, value, 'a function')
    return value


def one_of(*options: T) -> Callable[[str, Any], T]:
    """A check that the argument is one of these."""
    def check(name, value):
        for option in options:
            if type(value) is type(option) and value == option:
                return value
        if len(options) <= MOST_LISTED:
            refuse(name, value, any_of(options))
        names = {str(option): option for option in options}
        near = [names[near_name] for near_name in get_close_matches(
            value[:MOST_NAME] if isinstance(value, str) else '', names)]
        refuse(name, value, f'one of {len(options)} values, such as '
               + any_of(near or options[:3]))
    return check


def any_of(options: Iterable[object]) -> str:
    """Options in words: "'sync', 'async' or 1"."""
    *most, last = map(repr, options)
    return f'{", ".join(most)} or {last}' if most else last


def instance_of(kind: type | tuple[type, ...], must: str) -> Check:
    """A check for the type; `must` names the type, with an example."""
    def check(name, value):
        if not isinstance(value, kind):
            refuse(name, value, must)
        return value
    return check


def list_of(check: Check, must: str = 'a list',
            least: int = 1) -> Callable[[str, Any], list]:
    """A check for a list or tuple of at least `least`; it returns a list."""
    def check_all(name, value):
        if not isinstance(value, (list, tuple)):
            refuse(name, value, must)
        if len(value) < least:
            raise ValueError(f'{name} is too short: it must be {must}, '
                             f'of {least} or more; it had {len(value)}')
        return [check(f'{name}[{k}]', entry) for k, entry in enumerate(value)]
    return check_all


def either(*checks: Check, must: str) -> Check:
    """A check that passes if one of `checks` passes; `must` names all."""
    def check_any(name, value):
        for check in checks:
            try:
                return check(name, value)
            except ValueError:
                pass
        refuse(name, value, must)
    return check_any


def checked(rule: Callable[..., object] | None = None, **checks: Check
            ) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Check a function's arguments before each call.

    checks: a check for each argument, by name. An argument whose default is
    None may be None.
    rule: a function of all arguments, by name, called after the checks: it
    raises ValueError if they contradict each other.
    """
    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        parameters = signature.parameters
        if checks.keys() - parameters.keys():
            raise TypeError(f'{function.__name__} has no arguments '
                            f'{checks.keys() - parameters.keys()}')

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                bound = None
            if bound is None:  # Python says it better, and once
                return function(*args, **kwargs)
            bound.apply_defaults()
            values = bound.arguments
            for name, check in checks.items():
                if values[name] is not None or (
                        parameters[name].default is not None):
                    values[name] = check(name, values[name])
            if rule:
                rule(**values)
            return function(*bound.args, **bound.kwargs)
        return call
    return decorate
