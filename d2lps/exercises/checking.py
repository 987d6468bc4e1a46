"""The check cells of all exercises, for students and in grading.

A check has two halves. `run` calls the student's function and notes the
result in plain numbers; it runs in the same process as the student's code.
`judge` says what is wrong with these notes. When a teacher grades, the notes
leave the student's process. Then `teaching.judging` calls `judge` in a process
of its own, which no student's code can reach.
"""
import dis
import inspect
import json
import os
import re
import signal
import sys
import sysconfig
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from importlib import import_module
from operator import index
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from d2lps.explaining import (IN_LOOP, Facts, Kept, brief, explain,
                              nothing_returned, same, source_facts)
from d2lps.missing import IN_A_TAB, NO_TORCH, NotInstalled, is_hidden

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from d2lps.pictures.drawing import Drawing, Row

Answer: TypeAlias = Callable[..., Any]  # a student's function or class
Case: TypeAlias = dict[str, Any]  # arguments of a check, by name
Picture: TypeAlias = 'Drawing | Row | Figure'
Notes: TypeAlias = Any  # numbers, texts, lists, dictionaries, as JSON has them

EXERCISES = (
    'minibatch', 'learning-rate', 'sum-in-parts', 'accuracy-on-all-devices',
    'predict-then-measure', 'micro-batches', 'fair-race', 'ring-both-ways',
    'tree', 'halving-and-doubling', 'semiring', 'two-pushes', 'where-keys-go',
    'alpha-beta', 'hung-ring', 'which-plan-wins', 'rails', 'buckets',
    'bounded-delay', 'server-lost', 'checkpoint', 'bucketed-ddp',
    'sharded-optimizer', 'zero-step', 'choose-a-division', 'mfu',
    'unknown-rings', 'posted-machines')
WITH_TORCH = 'bucketed-ddp', 'sharded-optimizer'
# This environment variable is set while an exercise is graded. It names the
# teacher's file of hidden cases.
CASES = 'D2LPS_CASES'
NOTES = 'application/vnd.d2lps.notes'  # the MIME type of notes in an output
NEAR = 1e-3  # the relative error that a result may have, if nothing is said
NO_ANSWER = ('there is no answer yet. Write yours in place of the line that '
             'raises NotImplementedError.')
PACKAGE = str(Path(__file__).parents[1]) + os.sep
# Where no code of students is: here, and in Python and its packages.
OURS = (PACKAGE, '<frozen ', sysconfig.get_path('stdlib'),
        sysconfig.get_path('purelib'))
COLUMNS = 88  # of a message; JupyterLab would break longer lines in words
MOST_NOTES = 4_000_000  # characters; right answers need far fewer
TAB_SECONDS = 60  # of a case or a picture in a tab; right ones need 6
SLOWER = 10 if IN_A_TAB else 1  # a tab computes slower, and has only a clock
# Functions and classes of this package that an exercise gives to students.
GIVEN = ('Group', 'Layer', 'carry_out', 'end_of_step', 'log_of',
         'loss_gradient', 'loss_of', 'measure', 'network', 'ping_pong',
         'post_of', 'senders', 'timetable', 'virtual_machine')


class Wrong(Exception):
    """An answer is wrong; the text tells the student why.

    anywhere: whether this has nothing to do with the numbers of a case.
    """

    def __init__(self, text: str, *, anywhere: bool = False) -> None:
        super().__init__(text)
        self.anywhere = anywhere

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines in place of a traceback of our files."""
        text = str(self)
        if re.match('[a-z]+,? (?!=)', text):  # no name of a value
            text = text[:1].upper() + text[1:]
        return textwrap.wrap(f'Not yet. {text}', COLUMNS)


class WrongForm(Wrong):
    """The answer returned no result: `run` has said so."""


class TimeUp(BaseException):
    """The time limit stops an answer. No `except Exception` catches this."""


class Differs(Wrong):
    """A result is not the right one: `explain` looks for what they share.

    text: what came, and what is right. got: the result. wanted: the right
    one; None if many results are, and the judge of the check tells.
    near: see `same`. values: of the case, under the names that the student
    knows; else the case itself. known: facts that the judge has found, such
    as {('forward',): 'The forward pass alone is counted.'}. place: where it
    goes wrong first, a sentence for a case in which no fact is found.
    unit, summed, averaged: see `explain`.
    """

    def __init__(self, text: str, got: Any, wanted: Any = None,
                 near: float = NEAR, values: Case | None = None,
                 known: Facts | None = None, place: str = '', unit: str = '',
                 summed: str = '', averaged: str = '') -> None:
        super().__init__(text)
        self.place = place
        self.about = {'unit': unit, 'summed': summed, 'averaged': averaged}
        self.got, self.wanted, self.near = got, wanted, near
        self.values, self.known = values, known or {}


class Missing(Wrong):
    """A package is not installed; the text says how to install it."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class Check(NamedTuple):
    """One thing that an answer must do.

    cases: dictionaries of plain values, the arguments of `run` and `judge`.
    run(answer, **case): calls the student's function and returns notes:
        numbers, texts, lists, dictionaries and NumPy arrays. Raises `Wrong`
        if the answer has a wrong form, such as a text in place of a list.
    judge(notes, **case): raises `Wrong` if the notes are not those of a right
        answer. Arrays and tuples of `run` arrive here as lists.
    right: the words that a student reads when the check is passed. They are
        true for every right answer.
    says(notes, **case): one more sentence, with the numbers of this answer,
        made from the notes of the first case.
    case: how a message names a case, such as 'n = {n}'; without it, by all
        its numbers and texts.
    """
    cases: Sequence[Case]
    run: Callable[..., Notes]
    judge: Callable[..., object]
    right: str
    says: Callable[..., str] | None = None
    case: str | None = None


def compare(truth: Callable[..., Any], near: float = NEAR, unit: str = '',
            place: Callable[..., str] | None = None) -> Callable[..., None]:
    """A judge for `Check`: the notes must be what truth(**case) returns.

    near: the largest relative error. unit: see `explain`. place(notes,
    **case): a sentence where no fact is found.
    """
    def judge(notes: Notes, **case: Any) -> None:
        wanted = truth(**case)
        if not same(notes, wanted, near):
            raise Differs(f'you return {brief(notes)}; {brief(wanted)} is '
                          'right', notes, wanted, near, unit=unit,
                          place=place(notes, **case) if place else '')

    return judge


_FACTS: Case = {}  # what `returned` has seen since the notes were begun


def returned(answer: Answer, *arguments: Any) -> Any:
    """The result of a student's function; raises `Wrong` if it is None."""
    result = answer(*arguments)
    if isinstance(result, np.ndarray):
        _FACTS['dtype'] = result.dtype.name
    if result is None:
        raise Wrong(nothing_returned(answer), anywhere=True)
    return result


def module_of(exercise: str) -> ModuleType:
    """The module of an exercise, found by its name, such as 'tree'."""
    if exercise not in EXERCISES:
        raise ValueError(f'exercise must be one of {", ".join(EXERCISES)}; '
                         f'it was {exercise!r}')
    return import_module('d2lps.exercises.' + exercise.replace('-', '_'))


def the_torch() -> ModuleType:
    """The module `torch`; raises `Missing` if there is none.

    D2LPS_WITHOUT=torch hides it, to see what is done without.
    """
    try:
        if is_hidden('torch'):
            raise ImportError
        return import_module('torch')
    except ImportError:
        raise Missing(NO_TORCH) from None


def require_packages(exercise: str) -> None:
    """Raise `Missing` if a package that the exercise needs is missing."""
    if exercise in WITH_TORCH:
        the_torch()


def check_of(exercise: str, part: str) -> Check:
    """The `Check` of one part of an exercise, by name."""
    checks = module_of(exercise).CHECKS
    if part not in checks:
        raise ValueError(f'part must be one of {", ".join(checks)}; it was '
                         f'{part!r}')
    return checks[part]


def check(exercise: str, part: str, answer: Answer) -> None:
    """Say whether a student's function is right; if not, raise `Wrong`.

    exercise, part: names. answer: the student's function.
    While a teacher grades, this only takes notes: see above.
    """
    chosen = check_of(exercise, part)
    require_packages(exercise)
    notes = take_notes(chosen, answer, chosen.cases)
    if os.environ.get(CASES):
        hand_over(notes)
        return
    told = _TOLD.setdefault(exercise, {})
    told.pop(part, None)
    try:
        judge_notes(chosen, notes, chosen.cases)
    except Wrong as error:
        told[part] = str(error)
        first = next(name for name in module_of(exercise).CHECKS
                     if told.get(name) == told[part])
        if first != part:
            raise Wrong(f'This is as in `{first}`.') from None
        raise
    text = chosen.right
    if chosen.says:
        first = json.loads(notes)['cases'][0]['notes']
        text += f' {chosen.says(first, **chosen.cases[0])}'
    print(f'Right: {text}')


_TOLD: dict[str, dict[str, str]] = {}  # exercise, part: the last message


def hidden(exercise: str, part: str, answer: Answer) -> None:
    """Check cases that students do not see; works only while one grades."""
    chosen = check_of(exercise, part)
    require_packages(exercise)
    if os.environ.get(CASES):
        with open(os.environ[CASES], encoding='utf-8') as file:
            cases = json.load(file)[part]
        hand_over(take_notes(chosen, answer, cases))
    elif os.environ.get('NBGRADER_EXECUTION'):
        raise Wrong('hidden checks run only with: make grade')
    else:
        print('Nothing runs here. Other cases are checked when your teacher '
              'grades.')


def picture(exercise: str, *answers: Answer) -> 'Picture | None':
    """Draw the student's own result; draw nothing while a teacher grades.

    answers: the functions that the exercise's `picture` asks for.
    If there is nothing to draw, a line says why, and the checks below run.
    """
    if os.environ.get(CASES):
        return None
    require_packages(exercise)
    try:
        with _ended_in_tab():
            return module_of(exercise).picture(*answers)
    except NotInstalled as error:
        print(f'No picture here. {error}')
        return None
    except Exception as error:
        print(f'No picture yet: {_reason(error)}')
        return None


def scalar(returned: Any) -> Any:
    """A Python number for a NumPy array without dimensions; else the same."""
    return returned.item() if isinstance(
        returned, np.ndarray) and returned.ndim == 0 else returned


def number(returned: Any, wanted: str = 'a number is right') -> float:
    """The result of a student's function, as a number.

    Raises `Wrong` if it is none; wanted: words of the message. True is no
    number, and a text is none, either.
    """
    returned = scalar(returned)
    if not isinstance(returned, (bool, np.bool_, str, bytes)):
        try:
            return float(returned)
        except (OverflowError, TypeError, ValueError):
            pass
    raise Wrong(f'you return {brief(returned)}; {wanted}.', anywhere=True)


def numbers(returned: Any, count: int, wanted: str) -> list[float]:
    """The finite numbers that a student's function returned, so many.

    Raises `Wrong` for anything else; wanted: its words about what is right.
    """
    try:
        if not isinstance(returned, (str, bytes, dict)):
            values = np.array([*returned], float)
            if values.shape == (count,) and np.isfinite(values).all():
                return values.tolist()
    except (OverflowError, TypeError, ValueError):
        pass
    raise Wrong(f'you return {brief(returned)}; {wanted}', anywhere=True)


def whole_numbers(returned: Any, depth: int, wanted: str) -> list:
    """A list of whole numbers, or of such lists, that a student returned.

    depth: 1 for a list of numbers, 2 for a list of lists. Raises `Wrong` for
    anything else; wanted: its words about what is right.
    """
    def plain(value, depth):
        if not depth:
            return index(value)
        if isinstance(value, (str, bytes, dict)):
            raise TypeError
        return [plain(part, depth - 1) for part in value]

    try:
        return plain(returned, depth)
    except TypeError:
        raise Wrong(f'you return {brief(returned)}; {wanted}',
                    anywhere=True) from None


@contextmanager
def unchanged(**arguments: Any) -> Iterator[None]:
    """Raise `Wrong` if the code inside `with` changes one of these values."""
    before = deepcopy(arguments)
    yield
    for name, value in arguments.items():
        if not same(value, before[name], 0):
            raise Wrong(f'your function has changed `{name}`. It belongs to '
                        'the caller: change a copy.', anywhere=True)


def functions_of(module: ModuleType) -> list[Callable[..., Any]]:
    """The functions that a module defines itself, for `without`."""
    return [value for value in vars(module).values()
            if inspect.isfunction(inspect.unwrap(value))
            and inspect.unwrap(value).__module__ == module.__name__]


def without(answer: Answer, *functions: Callable[..., Any]) -> None:
    """Raise `Wrong` if an answer uses one of these functions, or a module or
    a function of `d2lps.exercises` that is not in `GIVEN`.

    Names are read in the code of the answer, and of what it calls in its
    notebook. An answer that hides a name passes.
    """
    private = {function.__name__ for function in functions
               if function.__name__.startswith('_')}
    for place in _codes(answer):
        for name, value in _reads(*place):
            hidden = value is None and name in private  # sys.modules[m]._right
            if hidden or _judges(value) or any(
                    value is function for function in functions):
                raise _used(name)


def _used(name):
    of = '' if name.startswith('d2lps') else ' of d2lps'
    return Wrong(f'`{name}`{of} is used. Write yours without it.',
                 anywhere=True)


def _judges(value):
    """Whether a value is part of the checks, and not given to students."""
    home = (value.__name__ if inspect.ismodule(value) else
            getattr(value, '__module__', None) if callable(value) else '')
    return str(home).startswith('d2lps.exercises') and getattr(
        value, '__name__', '') not in GIVEN


def _reads(code, inside, outside):
    """Each name or attribute that code reads, with its value.

    inside, outside: values of the function's own names, which are added here,
    and of its globals. The value is None if it cannot be known: of attributes,
    only those of modules can.
    """
    value = module = None
    for step in dis.get_instructions(code):
        kind, name = step.opname, step.argval
        if kind.count('_FAST') == 2:  # two in one, from Python 3.13 on
            if kind.startswith('STORE'):
                inside[name[0]] = value
            kind, name = 'LOAD_FAST', name[1]
        if kind == 'IMPORT_NAME':
            module, value = map(_module, (name, name.split('.')[0]))
            yield name, module
            continue
        if kind in ('STORE_FAST', 'STORE_DEREF', 'STORE_NAME'):
            inside[name] = value
            continue
        if kind in ('EXTENDED_ARG', 'SWAP', 'POP_TOP'):  # inside an import
            continue
        if kind == 'IMPORT_FROM':  # `import a.b as c` has one for b, too
            value = getattr(module, name, module)
        elif kind == 'LOAD_GLOBAL':
            value = outside.get(name)
        elif kind == 'LOAD_NAME':
            value = inside.get(name, outside.get(name))
        elif kind in ('LOAD_ATTR', 'LOAD_METHOD'):
            is_module = inspect.ismodule(value)
            value = getattr(value, name, None) if is_module else None
        elif kind.startswith(('LOAD_FAST', 'LOAD_DEREF')):
            value = inside.get(name)
        else:
            value = None
            continue
        yield name, value


def _module(name):
    """A module of d2lps by name; None for all others."""
    try:
        return import_module(name) if name.startswith('d2lps') else None
    except ImportError:  # the answer's own call will say so
        return None


def _codes(answer):
    """The code of a function or class and of what it calls.

    Each with a dict for its own names, and its globals, as `_reads` takes it.
    """
    todo, seen = [answer], set()
    while todo:
        value = todo.pop()
        if inspect.isclass(value):
            todo += filter(inspect.isfunction, vars(value).values())
        if not inspect.isfunction(value) or value in seen or (
                value.__module__ or '').startswith('d2lps'):
            continue
        seen.add(value)
        codes, inside = [value.__code__], {}
        for code in codes:
            yield code, inside, value.__globals__
            codes += filter(inspect.iscode, code.co_consts)
            todo += [value.__globals__.get(name) for name in code.co_names]


@contextmanager
def in_time(seconds: float, text_of: Callable[[], str]) -> Iterator[None]:
    """Raise `Wrong` if the code inside `with` computes for too long.

    seconds: of processor time. text_of(): the text of `Wrong`.
    Without signals, as in a browser tab, only Python code is ended, and before
    Python 3.12 nothing is.
    """
    if not hasattr(signal, 'setitimer'):
        with _ended_loops(seconds, text_of):
            yield
        return
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stops: list[TimeUp] = []

    def stop(*_):
        stops[:] = [TimeUp()]
        raise stops[0]

    before = signal.signal(signal.SIGVTALRM, stop)
    # Again and again: an answer with `except:` in a loop goes on.
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.1)
    try:
        yield
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)  # it may end right here
    except TimeUp:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    if stops:
        raise Wrong(text_of())


@contextmanager
def _ended_loops(seconds, text_of):
    """`in_time` without signals: a look at the clock in each round and call.

    Rounds of loops and calls of functions, as in a recursion without a loop.
    """
    if sys.version_info < (3, 12):
        yield
        return
    # Of the clock: a browser tells no processor time.
    end, watch = time.monotonic() + seconds, sys.monitoring
    tool = 3 if watch.get_tool(3) is None else 4  # one inside another
    events = watch.events.JUMP, watch.events.PY_START
    ours = {function.__code__.co_filename
            for function in (contextmanager, check)}
    stops: list[TimeUp] = []

    def look(code, *_):
        # What tidies up afterwards must not be ended.
        if time.monotonic() > end and code.co_filename not in ours:
            stops[:] = [TimeUp()]
            raise stops[0]

    watch.use_tool_id(tool, 'd2lps')
    for event in events:
        watch.register_callback(tool, event, look)
    watch.set_events(tool, sum(events))
    try:
        yield
    except TimeUp as error:
        if error not in stops:  # that of another limit, around this one
            raise
    finally:
        watch.set_events(tool, 0)
        for event in events:
            watch.register_callback(tool, event, None)
        watch.free_tool_id(tool)
    if stops:
        raise Wrong(text_of())


def _ended_in_tab() -> AbstractContextManager:
    """A limit where a student cannot interrupt: in a browser tab."""
    return in_time(TAB_SECONDS, lambda: (
        f'your function has computed for {TAB_SECONDS} s, so it was stopped. '
        'Is there a loop that does not end?')) if IN_A_TAB else nullcontext()


def take_notes(chosen: Check, answer: Answer, cases: Sequence[Case]) -> str:
    """Run the cases until one fails; return all notes as a JSON text."""
    notes: list[Notes] = []
    kept = Kept(answer)
    _FACTS.clear()
    for case in cases:
        anywhere = is_form = False
        try:
            if _judges(answer):
                raise _used(answer.__name__)
            without(answer)
            with _ended_in_tab():
                taken = chosen.run(answer, **deepcopy(case))
            notes.append(json.dumps({'notes': taken}, default=_plain))
            continue
        except KeyboardInterrupt as error:
            if not os.environ.get(CASES):  # here it is the student's Ctrl-C
                raise
            wrong = ('your function did not end in time, so it was '
                     f'stopped{student_line(error)}')
        except Exception as error:
            wrong = _reason(error)
            anywhere = getattr(error, 'anywhere', wrong == NO_ANSWER)
            is_form = isinstance(error, Wrong)
        notes.append(_failed(wrong, anywhere, is_form))
        break
    source = source_facts(answer) | _FACTS | {'kept': kept.grown()}
    return _all_notes(notes, source)


def _failed(wrong, anywhere, is_form=False):
    """The notes of a case without a result, a JSON text."""
    return json.dumps({'wrong': wrong, 'anywhere': anywhere, 'form': is_form})


def _all_notes(notes, source):
    """The notes of all cases, JSON texts, in one such text."""
    return f'{{"cases": [{", ".join(notes)}], "source": {json.dumps(source)}}}'


def _reason(error):
    """Words for a student: why there is no result."""
    if isinstance(error, NotImplementedError):
        return NO_ANSWER
    if isinstance(error, Wrong):
        return str(error)
    text = f'{type(error).__name__}: {error}'
    if _is_ours(error):
        return f'your answer could not be read ({text}).'
    return f'your function stopped with {text}{student_line(error)}'


def _is_ours(error):
    """Whether no line of the student is in the traceback of an error.

    A call with arguments that the answer does not take has no such line.
    """
    if re.match(r'\S+\(\) (takes|missing|got) ', str(error)):
        return False
    return all(frame.filename.startswith(OURS)
               for frame in traceback.extract_tb(error.__traceback__))


def judge_notes(chosen: Check, notes: str, cases: Sequence[Case]) -> None:
    """Raise `Wrong` unless the notes, a JSON text, are right for all cases.

    It tells the first case that fails. Its hint fits all cases that do.
    The student's code may have changed the process that made the notes, so
    notes that cannot be judged are wrong.
    """
    judged: list[tuple[Case, Wrong | None]] = []
    source: Case = {}
    try:
        noted = json.loads(notes)
        source = dict(noted['source'])
        for taken, case in zip(noted['cases'], cases):
            judged.append((case, _fault_of(chosen, taken, case)))
            if 'wrong' in taken:
                break
        if len(judged) < len(cases) and not any(wrong for _, wrong in judged):
            raise ValueError('cases are missing')
    except Exception as error:  # `run` did not make these notes
        if not any(wrong for _, wrong in judged):
            raise Wrong(
                'what your function returned could not be read '
                f'({type(error).__name__}: {str(error):.80}).') from None
    for case, fault in judged:
        if fault:
            text = f'{str(fault).rstrip(".")}.'
            if hint := _hint(chosen, judged, source):
                text += f' {hint}'
            raise Wrong(text if fault.anywhere else
                        f'{_start(chosen, case)}{text}')


def _fault_of(chosen, taken, case):
    """The fault of the notes of a case, or None."""
    if 'wrong' in taken:
        kind = WrongForm if taken['form'] else Wrong
        return kind(str(taken['wrong']), anywhere=bool(taken['anywhere']))
    try:
        chosen.judge(taken['notes'], **case)
    except Wrong as fault:
        return fault
    return None


def _hint(chosen, judged, source):
    """A fact about all cases in which the result differs, or ''."""
    try:
        return _fact(chosen, judged, source)
    except Exception:  # notes that no answer makes
        return ''


def _fact(chosen, judged, source):
    faults = [(case, fault) for case, fault in judged if fault]
    kept, before = source.get('kept') or ('', False)
    if str(kept).isidentifier() and (before or not judged[0][1]):
        return (f'`{kept}` keeps what earlier calls put into it. Make it '
                'inside the function, or in `__init__`.')
    if isinstance(faults[0][1], WrongForm) and source.get('loop'):
        return IN_LOOP
    if not isinstance(faults[0][1], Differs):
        return ''
    cases, failing = zip(*((case, fault) for case, fault in faults
                           if isinstance(fault, Differs)))

    def right(changed, k):
        if failing[k].wanted is not None:
            return same(changed, failing[k].wanted, failing[k].near)
        chosen.judge(changed, **cases[k])
        return True

    first = failing[0]
    return explain(
        [fault.got for fault in failing],
        [fault.wanted for fault in failing],
        [case if fault.values is None else fault.values
         for case, fault in zip(cases, failing)], right,
        known=[fault.known for fault in failing], source=source,
        others=len(judged) - len(faults), **first.about) or first.place


def hand_over(notes: str) -> None:
    """Put notes into the output of a graded notebook's cell."""
    from IPython.display import display
    if len(notes) > MOST_NOTES:
        notes = _all_notes([_failed('your function returned far too many '
                                    'numbers.', anywhere=True)], {})
    display({NOTES: notes}, raw=True)


def student_line(error: BaseException) -> str:
    """Words about the last line of the student's code in a traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if 'd2lps' not in frame.filename and frame.line]
    own = [frame for frame in frames if 'ipykernel' in frame.filename or
           frame.filename.startswith('<')]
    if not own:
        return '.'
    return f', in line {own[-1].lineno} of its cell: `{own[-1].line}`'


def _start(chosen, case):
    """The beginning of a message: which case it is.

    Without a form of the check's own: its numbers and texts. A seed tells a
    student nothing.
    """
    text = chosen.case.format(**case) if chosen.case is not None else (
        ', '.join(f'{name} = {value}' for name, value in case.items()
                  if name != 'seed' and isinstance(value, (int, float, str))))
    return f'{text}: ' if text else ''


def _plain(value):
    """Make NumPy arrays and numbers plain, for JSON."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise Wrong(f'your function returned a {type(value).__name__} where '
                'plain numbers were expected.')
