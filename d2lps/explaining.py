"""One fact about a wrong answer: what would make it right?

`explain` tries changes of what a student's function returned, the simplest
ones first: another order, a factor, a unit, one list less. A change that makes
every failing case right is a fact, and becomes the hint. If no change does,
there is no hint: a wrong hint costs a student more time than a missing one.
`source_facts` and `nothing_returned` read in the source what no result shows.
"""
import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from d2lps.checks import shown

Key: TypeAlias = tuple[object, ...]  # equal in two cases: the same fact
Facts: TypeAlias = dict[Key, str]  # a fact, in the words of one case

MOST_LISTED = 5  # elements of a list in a message
IN_LOOP = ('The `return` is inside the loop, so only its first turn '
           'happens.')
ROUNDING = 1e-12  # what a sum of floats may leave where 0 is right
LARGE = 20_000  # numbers; a larger result is compared, but not changed
MOST = 100_000  # a larger factor is not worth a hint, but for units
ORDINALS = 'first', 'second', 'third', 'fourth'
# By the unit of the right result: factors, and what such a result is.
UNITS: dict[str, dict[float, str]] = {
    'share': {100: 'percent'},
    'seconds': {1e3: 'milliseconds', 1e6: 'microseconds'},
    'milliseconds': {1e-3: 'seconds', 1e3: 'microseconds'},
    'bytes': {8: 'bits', 1e-3: 'kilobytes', 1e-6: 'megabytes',
              1e-9: 'gigabytes'},
    'bytes per second': {8: 'bits per second', 1e-6: 'megabytes per second',
                         1e-9: 'gigabytes per second'},
    'gigabytes per second': {1e9: 'bytes per second', 8: 'gigabits per '
                             'second'}}
# Facts about a size.
SIZES = 'times', 'off', 'inverse', 'sign', 'last', 'mean', 'sum'
# What may cut off digits.
CUTS = '//', 'int', 'round', 'int8', 'uint8', 'int32', 'int64'
# Methods that change their object and return None.
IN_PLACE = 'append', 'extend', 'insert', 'run', 'shuffle', 'sort', 'update'


def same(got: Any, wanted: Any, near: float = 1e-3) -> bool:
    """Are two results equal? Lists and tuples are alike.

    near: the largest relative error of a float; of several floats that can
    cancel, the error is relative to the largest of them. Where 0.0 is wanted,
    the error may be `ROUNDING`. Whole numbers, texts and None must be equal.
    """
    got, wanted = _plain(got), _plain(wanted)
    if isinstance(wanted, Mapping):
        return isinstance(got, Mapping) and got.keys() == wanted.keys() and (
            all(same(got[key], wanted[key], near) for key in wanted))
    if _is_list(wanted):
        if not _is_list(got) or len(got) != len(wanted):
            return False
        if not any(isinstance(number, float) for number in wanted):
            return all(same(*pair, near) for pair in zip(got, wanted))
        try:
            right = np.array(wanted, float)
            largest = np.abs(right[np.isfinite(right)]).max(initial=0)
            return bool(np.allclose(np.array(got, float), right, near,
                                    near * 1e-3 * largest or ROUNDING))
        except (TypeError, ValueError):
            return False
    if isinstance(wanted, float) and isinstance(got, (int, float)):
        return bool(np.isclose(got, wanted, near, 0 if wanted else ROUNDING,
                               equal_nan=True))
    return type(got) is not bool and got == wanted or got is wanted


def _plain(value):
    """A list or a number for an array; all else as it is."""
    value = value.asnumpy() if hasattr(value, 'asnumpy') else value
    value = [*value] if isinstance(value, range) else value
    return value.tolist() if isinstance(
        value, (np.ndarray, np.generic)) else value


def _is_list(value: Any) -> TypeGuard[list | tuple]:
    return isinstance(value, (list, tuple))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def brief(value: Any) -> str:
    """A value in a few words: of many numbers, how many are left out."""
    value = _plain(value)
    if len(_shape(value)) > 1 and np.size(value) > 2 * MOST_LISTED:
        return f'numbers of shape {_shape(value)}'
    if _is_list(value):
        some = [brief(entry) for entry in value[:MOST_LISTED]]
        if len(value) > MOST_LISTED:
            some.append(f'… {len(value) - MOST_LISTED} more')
        return f'[{", ".join(some)}]'
    if not _is_number(value):
        return shown(value)
    if isinstance(value, int):
        return f'{value:,}' if abs(value) < 1e18 else shown(value)
    return f'{value:,.5g}' if abs(value) < 1e5 else f'{value:,.7g}'


def explain(got: Sequence[Any], wanted: Sequence[Any],
            case: Sequence[Mapping[str, Any]],
            right: Callable[[Any, int], bool] | None = None, *,
            others: int = 0, unit: str = '', summed: str = '',
            averaged: str = '', known: Sequence[Facts] = (),
            source: Mapping[str, Any] | None = None) -> str:
    """A sentence with the simplest fact that fits all failing cases, or ''.

    got, wanted, case: of each failing case what the function returned, what
        is right (None if many results are), and its values by name.
    right(changed, k): is a changed result of the k-th case right? Without it,
        results are compared with `wanted`.
    others: how many cases are right. If there are some, a size that is wrong
        in one case only, such as 2 times too large, is taken for chance.
    unit: of the right result, one of `UNITS`; seconds that are a thousand
        times too large are then said to be milliseconds.
    summed: the name of the value that says how many were added up, such as
        'num_workers'. A result that is so many times too small is the mean.
    averaged: the same name, if the mean is right and the sum is not.
    known: of each case, facts that the caller has found, before all others.
    source: what `source_facts` says of the function; 'dtype', that of the
        arrays that it returns.
    """
    source = source or {}
    if not got:
        return ''
    if source.get('loop'):
        return IN_LOOP
    if right is None:
        def right(changed: Any, k: int) -> bool:
            return same(changed, wanted[k])
    fits: Facts = {}
    for k, (result, truth, values) in enumerate(
            zip(got, wanted, case, strict=True)):
        result, truth = _plain(result), _plain(truth)
        here = dict(known[k]) if known else {}
        if np.size(_flat(result)) <= LARGE:
            here |= {key: sentence for key, sentence, changed in _changes(
                result, truth, values, unit, summed, averaged)
                if key not in here and _holds(right, changed, k)}
        fits = here if not k else {
            key: sentence for key, sentence in fits.items() if key in here}
    for key in known[0] if known else ():
        if key in fits:
            return fits[key]
    for cuts in source.get('cuts'), source.get('dtype'):
        if cuts in CUTS and all(map(_cut_off, got, wanted)):
            return f'`{cuts}` cuts off the digits after the point.'
    # A whole number may be anything, in a single case.
    for digits in range(len(got) == 1, 4):
        if all(_is_rounded(*pair, digits) for pair in zip(got, wanted)):
            return 'Yours is rounded to ' + (
                'a whole number.' if not digits else '1 digit after the '
                'point.' if digits == 1 else f'{digits} digits after the '
                'point.')
    if others and len(got) == 1:
        fits = {key: sentence for key, sentence in fits.items()
                if key[0] not in SIZES}
    return next(iter(fits.values()), '')


def _holds(right, changed, k):
    try:
        return right(changed, k)
    except Exception:  # it is no result at all
        return False


def _flat(value):
    """All that is in a list of lists, in a list."""
    if not _is_list(value):
        return [value]
    return [entry for part in value for entry in _flat(part)]


def _each(change, value):
    """The same list, with each of its numbers changed."""
    if _is_list(value):
        return [_each(change, entry) for entry in value]
    return change(value) if _is_number(value) else value


def _changes(got: Any, wanted: Any, case: Mapping[str, Any],
             *about: str) -> Iterator[tuple[Key, str, Any]]:
    """(key, words, changed result): all that is tried, the simplest first."""
    yield from _other_forms(got, wanted)
    if any(map(_is_number, _flat(got))):
        yield from _other_sizes(got, wanted, case, *about)
    if _is_list(got):
        yield from _other_orders(got, wanted, case)


def _other_forms(got, wanted):
    """Lists too many, lists too few, and parts of a result."""
    if isinstance(got, str):
        for kind in int, float:
            try:
                yield ('text',), 'Yours is a text, not a number.', kind(got)
            except ValueError:
                pass
    if not _is_list(got) or _is_list(wanted):
        yield ('wrapped',), 'Put yours into a list: [ ].', [got]
    if _is_list(got):
        for k, entry in enumerate(got[:4]):
            yield (('one of', k), 'Yours is inside one list too many.'
                   if len(got) == 1 else f'The {ORDINALS[k]} of your '
                   f'{len(got)} results alone is right.', entry)
        if got and all(map(_is_list, got)):
            yield (('joined',), 'Its lists belong into one list.',
                   [entry for part in got for entry in part])
    if _is_list(wanted) and len(wanted) <= 4:
        for k, entry in enumerate(wanted):
            if same(got, entry):
                yield (('part', k), f'Yours is the {ORDINALS[k]} of the '
                       f'{len(wanted)} wanted results alone.', wanted)
    shape, mine = _shape(wanted), _shape(got)
    if len(mine) == 2 and shape == mine[::-1]:
        yield (('transposed',), 'Rows and columns are interchanged.',
               np.transpose(got).tolist())
    if shape and mine and shape != mine:
        if np.prod(shape) == np.prod(mine):
            yield (('shape',), f'Its shape is {mine}, and {shape} is wanted.',
                   np.reshape(got, shape).tolist())


def _shape(value):
    """The shape of a list of numbers; () for all else."""
    try:
        return np.shape(np.array(value, float)) if _is_list(value) else ()
    except (OverflowError, TypeError, ValueError):
        return ()


def _other_sizes(got, wanted, case, unit, summed, averaged):
    """Another sign, factor or unit; too large or too small by something."""
    def times(factor):
        return _each(lambda number: number * factor, got)

    values = {name: value for name, value in case.items()
              if _is_number(value) and value > 1}
    if summed in values:
        yield (('mean',), 'Yours is the mean; the sum is wanted.',
               times(values[summed]))
    if averaged in values:
        yield (('sum',), 'Yours is the sum; the mean is wanted.',
               times(1 / values[averaged]))
    for factor, name in UNITS.get(unit, {}).items():
        right = 'a share of 1 is' if unit == 'share' else f'{unit} are'
        yield (('unit', factor), f'Yours is in {name}; {right} wanted.',
               times(1 / factor))
    for name, value in values.items():
        # Another name with this value would be as good.
        if [*values.values()].count(value) == 1:
            number = brief(value)
            for word, factor in ('large', 1 / value), ('small', value):
                yield (('times', name, word), f'Yours is {number} times too '
                       f'{word}, and `{name}` is {number}.', times(factor))
    ratio = _ratio(got, wanted)
    for word, factor in ('large', ratio), ('small', 1 / ratio if ratio else 0):
        if 1.5 <= factor <= MOST and abs(factor - round(factor)) < 3e-3:
            factor = round(factor)
            yield (('times', factor, word),
                   f'Yours is {factor:,} times too {word}.',
                   times(1 / factor if word == 'large' else factor))
    for name, value in case.items():
        if _is_number(value) and 0 < value < 1:
            yield (('times', name, 'times'), 'Yours is the right one times '
                   f'`{name}`, {value:g}.', times(1 / value))
            yield (('times', name, 'by'), 'Yours is the right one divided by '
                   f'`{name}`, {value:g}.', times(value))
    yield ('sign',), 'Its sign is wrong.', times(-1)
    if _is_number(got) and got:
        yield ('inverse',), '1 divided by your result is right.', 1 / got
    if all(isinstance(number, int) for number in _flat(got)
           if _is_number(number)):
        which = 'Each number is' if _is_list(got) else 'Yours is'
        for word, step in ('large', -1), ('small', 1):
            yield (('off', step), f'{which} 1 too {word}.',
                   _each(lambda number, step=step: number + step, got))
    if _is_number(got):
        for name, value in values.items():
            number = brief(value)
            for word, step in ('large', -value), ('small', value):
                yield (('off', name, word), f'Yours is {number} too {word}, '
                       f'and `{name}` is {number}.', got + step)


def _ratio(got, wanted):
    """By which factor two results differ; 0.0 if this is not clear."""
    try:
        mine, right = (np.array(_flat(result), float)
                       for result in (got, wanted))
    except (TypeError, ValueError):
        return 0.0
    if mine.shape != right.shape or not (
            np.isfinite(mine) & np.isfinite(right)).all() or not right.any():
        return 0.0
    largest = np.abs(right).argmax()
    return float(mine[largest] / right[largest])


def _other_orders(got, wanted, case):
    """Reversed, swapped, shifted; too few or too many at an end."""
    got = [*got]
    if len(got) > 1:
        yield (('reversed',), 'Yours is right in the opposite order.',
               got[::-1])
        for word, turned in (('early', got[-1:] + got[:-1]),
                             ('late', got[1:] + got[:1])):
            yield ('shifted', word), f'All stand one place too {word}.', turned
    if 3 <= len(got) <= 4:
        for order in permutations(range(len(got))):
            which = ', '.join(ORDINALS[k] for k in order)
            yield (('order', order), 'Your results are right in another '
                   f'order: {which}.', [got[k] for k in order])
    if got and all(map(_is_list, got)):
        inner = [[*group] for group in got]
        yield (('reversed', 'inside'), 'Each of its lists is right in the '
               'opposite order.', [group[::-1] for group in inner])
        if all(len(group) > 1 for group in inner):
            yield (('swapped',), 'The first two of each group are swapped.',
                   [[group[1], group[0], *group[2:]] for group in inner])
        for word, step in ('large', -1), ('small', 1):
            if all(group and type(group[-1]) is int for group in inner):
                yield (('last', word), 'The last number of each group is 1 '
                       f'too {word}.', [[*group[:-1], group[-1] + step]
                                        for group in inner])
    if not _is_list(wanted) or not got:
        return
    missing, n = len(wanted) - len(got), len(wanted)
    if missing > 0:
        for word, rest in (('last', wanted[:-missing]),
                           ('first', wanted[missing:])):
            if same(got, rest):
                many = f'{word} {missing} of {n} are' if missing > 1 else (
                    f'{word} of {n} is')
                why = next((f' {n} is no multiple of `{name}`, {value}.'
                            for name, value in case.items()
                            if type(value) is int and value > 1
                            and n % value == missing), '')
                yield ('missing', word), f'The {many} missing.{why}', wanted
    elif missing < 0 and same(got[:n], wanted):
        first = f'first {n} are' if n != 1 else 'first is'
        yield (('too many',), f'The {first} right, and {-missing} too many '
               'follow.', wanted)


def _cut_off(got: Any, wanted: Any) -> bool:
    """Is `got` the right result without the digits after its point?"""
    mine, right = _flat(_plain(got)), _flat(_plain(wanted))
    return len(mine) == len(right) and not same(got, wanted) and all(
        _is_number(number) and _is_number(other)
        and np.isfinite([number, other]).all() and number == np.floor(other)
        for number, other in zip(mine, right))


def nothing_returned(function: Callable[..., Any]) -> str:
    """A reason from its source why a called function returned None."""
    name = getattr(function, '__name__', 'your function')
    bodies, values = _bodies(function), _values(function)
    if not bodies:
        return f'`{name}` returned None.'
    for value in values:
        if isinstance(value, ast.Call) and isinstance(
                value.func, ast.Attribute) and value.func.attr in IN_PLACE:
            return (f'`{name}` returned None: `{ast.unparse(value.func)}` '
                    'returns nothing, it works in place.')
    if values:
        return f'`{name}` returned None. Not each of its ways has a `return`.'
    prints = any(getattr(call.func, 'id', '') == 'print'
                 for call in _own(bodies[0], ast.Call))
    return (f'`{name}` returned None. ' + (
        'It prints its result: return it.' if prints else
        'It has no `return` with a value.'))


def returns(function: Callable[..., Any]) -> bool:
    """Has a function's source a `return` with a value? True if unknown."""
    return bool(_values(function) or not _bodies(function))


def _values(function):
    """Values behind `return` in a function's source, but for None."""
    return [line.value for body in _bodies(function)[:1]
            for line in _own(body, ast.Return)
            if line.value and getattr(line.value, 'value', line) is not None]


def _is_rounded(got, wanted, digits):
    """Is a result the right one, rounded to so many digits?"""
    got, wanted = _plain(got), _plain(wanted)
    return _is_number(got) and isinstance(wanted, float) and (
        got == round(wanted, digits) and not same(got, wanted, 1e-9))


def source_facts(function: Callable[..., Any]) -> dict[str, Any]:
    """Facts that only the source of a function or class shows.

    'loop': whether a `return` ends a loop in its first turn.
    'cuts': one of `CUTS` that is there.
    """
    facts: dict[str, Any] = {}
    for body in _bodies(function):
        for loop in _own(body, (ast.For, ast.While)):
            if any(isinstance(node, ast.Return) for node in loop.body) and (
                    not any(isinstance(node, (ast.Continue, ast.Break))
                            for node in ast.walk(loop))):
                facts['loop'] = True
        if any(isinstance(node.op, ast.FloorDiv)
               for node in _own(body, (ast.BinOp, ast.AugAssign))):
            facts.setdefault('cuts', '//')
        for call in _own(body, ast.Call):
            if getattr(call.func, 'id', '') in ('int', 'round'):
                facts.setdefault('cuts', call.func.id)
    return facts


def _bodies(function):
    """The function in its source, or the methods of a class; [] if unknown."""
    if inspect.isclass(function):
        return [body for node in vars(function).values()
                if inspect.isfunction(node) for body in _bodies(node)]
    try:
        source = textwrap.dedent(inspect.getsource(function))
        return [node for node in ast.parse(source).body
                if isinstance(node, ast.FunctionDef)]
    except (OSError, TypeError, SyntaxError, ValueError):
        return []


def _own(body, kind):
    """Parts of a function's source, without those of functions inside it."""
    todo = [*body.body]
    while todo:
        node = todo.pop(0)
        if isinstance(node, kind):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)


class Kept:
    """Lists that a function keeps from call to call: do they grow?

    Its default values, what a class has outside of its methods, and lists
    and dictionaries outside that a function names.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        code = getattr(function, '__code__', None)
        outside = getattr(function, '__globals__', {})
        named: dict[str, Any] = {
            name: outside.get(name) for name in
            (code.co_names if code else ())}
        if inspect.isclass(function):
            named |= vars(function)
        defaults = getattr(function, '__defaults__', None) or ()
        if code and defaults:
            count = code.co_argcount
            named |= zip(code.co_varnames[count - len(defaults):count],
                         defaults)
        self.before = {name: (value, len(value)) for name, value in
                       named.items() if isinstance(value, (list, dict, set))}
        self.is_class = inspect.isclass(function)

    def grown(self) -> tuple[str, bool]:
        """The name of a list that is longer than at the beginning, or ''.

        And whether this is a fault in any case: it belongs to a class, or
        there was something in it at the beginning, from earlier calls.
        """
        return next((
            (name, self.is_class or length > 0)
            for name, (value, length) in self.before.items()
            if len(value) > length), ('', False))
