"""What an op does: workers compare it, since its name does not tell.

Two lambdas have one name, and so have two functions of two cells.
"""
import dis
import functools
import hashlib
import sys
import types

import numpy as np

PLAIN = bool, int, float, complex, str, bytes, type(None), np.generic


def meaning(op, seen=None):
    """A text that tells ops apart which do different things.

    Equal ops have the same one in all processes.

    What can be imported is told by its name. What matters of another
    function: its code, with constants and names, its defaults, the functions
    that it calls, and the numbers and texts that it closes over. What does
    not matter, because it may differ between workers that do the same: where
    a function was written, and objects that change, such as a list for notes
    or a counter.

    seen: the functions that the text has already, which may call each other.
    """
    tell = functools.partial(meaning, seen={} if seen is None else seen)
    if isinstance(op, PLAIN):
        return f'{type(op).__name__} {op!r}'
    if isinstance(op, (tuple, frozenset)):
        parts = [*map(tell, op)]
        if isinstance(op, frozenset):  # in another order in each process
            parts.sort()
        return hashlib.sha256('\0'.join(parts).encode()).hexdigest()
    if isinstance(op, types.CodeType):
        return _code(op)
    if isinstance(op, functools.partial):
        return tell(('partial', op.func, op.args,
                     *sorted(op.keywords.items())))
    if isinstance(op, types.MethodType):
        return tell(('method', op.__func__, op.__self__))
    name = getattr(op, '__qualname__', getattr(op, '__name__', ''))
    if isinstance(op, types.FunctionType) and not _is_imported(op, name):
        return _function(op, name, tell)
    if name:
        return f'{getattr(op, "__module__", "")} {name}'
    functions = [one for one in getattr(op, '__dict__', {}).values()
                 if isinstance(one, types.FunctionType)]
    call = type(op).__call__ if callable(op) else None
    return tell((type(op).__qualname__, call, *functions))


@functools.lru_cache(1000)
def _code(code):
    return meaning((code.co_code, code.co_consts, code.co_names,
                    code.co_argcount, code.co_kwonlyargcount, code.co_flags))


def _is_imported(op, name):
    module = sys.modules.get(op.__module__)
    return op.__module__ != '__main__' and getattr(module, name, None) is op


def _function(op, name, tell):
    seen = tell.keywords['seen']
    if op in seen:
        return f'function {seen[op]}'
    seen[op] = len(seen)
    changing = _rebound(op.__code__)
    closed = [_content(cell) for variable, cell in zip(
        op.__code__.co_freevars, op.__closure__ or ())
        if variable not in changing]
    called = [one for one in map(op.__globals__.get, op.__code__.co_names)
              if isinstance(one, types.FunctionType)]
    return tell((name.split('.')[-1], op.__code__, op.__defaults__,
                 *sorted((op.__kwdefaults__ or {}).items()), *closed, *called))


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None


@functools.lru_cache(1000)
def _rebound(code):
    """Variables of an outer function that it changes, such as a counter."""
    inner = [one for one in code.co_consts
             if isinstance(one, types.CodeType)]
    return {step.argval for step in dis.get_instructions(code)
            if step.opname == 'STORE_DEREF'}.union(*map(_rebound, inner))
