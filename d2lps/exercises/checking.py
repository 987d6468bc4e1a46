"""What the check cells of all exercises do, for students and in grading.

A check has two halves. `run` calls the student's function and notes the
result in plain numbers; it runs in the same process as the student's code.
`judge` says what is wrong with these notes. When a teacher grades, the notes
leave the student's process. Then `teaching.judging` calls `judge` in a process
of its own, which no student's code can reach.
"""
import inspect
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from d2lps.checks import shown
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
    'hung-ring', 'alpha-beta', 'which-plan-wins', 'rails', 'buckets',
    'bounded-delay', 'server-lost', 'checkpoint', 'bucketed-ddp',
    'sharded-optimizer', 'zero-step', 'choose-a-division', 'mfu',
    'unknown-rings', 'posted-machines')
WITH_TORCH = 'bucketed-ddp', 'sharded-optimizer'
# This environment variable is set while an exercise is graded. It names the
# teacher's file of hidden cases.
CASES = 'D2LPS_CASES'
NOTES = 'application/vnd.d2lps.notes'  # the MIME type of notes in an output
NO_ANSWER = ('there is no answer yet. Write yours in place of the line that '
             'raises NotImplementedError.')
MOST_NOTES = 4_000_000  # characters; right answers need far fewer
TAB_SECONDS = 60  # of a case or a picture in a tab; right ones need 6
SLOWER = 10 if IN_A_TAB else 1  # a tab computes slower, and has only a clock


class Wrong(Exception):
    """An answer is wrong; the text tells the student why."""

    def _render_traceback_(self) -> list[str]:
        """IPython shows this line in place of a traceback of our files."""
        return [f'Not yet. {self}']


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
    """
    cases: Sequence[Case]
    run: Callable[..., Notes]
    judge: Callable[..., object]
    right: str
    says: Callable[..., str] | None = None


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


def need(exercise: str) -> None:
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
    need(exercise)
    notes = take_notes(chosen, answer, chosen.cases)
    if os.environ.get(CASES):
        hand_over(notes)
    else:
        judge_notes(chosen, notes, chosen.cases)
        words = chosen.right
        if chosen.says:
            first = json.loads(notes)[0]['notes']
            words += f' {chosen.says(first, **chosen.cases[0])}'
        print(f'Right: {words}')


def hidden(exercise: str, part: str, answer: Answer) -> None:
    """Check cases that students do not see; works only while one grades."""
    chosen = check_of(exercise, part)
    need(exercise)
    if os.environ.get(CASES):
        with open(os.environ[CASES]) as file:
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
    need(exercise)
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


def number(returned: Any, wanted: str, what: str = 'your function returned'
           ) -> float:
    """What a student's function returned, as a number.

    Raises `Wrong` if it is none; wanted, what: words of the message. True is
    no number, and a text is none, either.
    """
    returned = scalar(returned)
    if not isinstance(returned, (bool, np.bool_, str, bytes)):
        try:
            return float(returned)
        except (TypeError, ValueError):
            pass
    raise Wrong(f'{what} {shown(returned)}. {wanted}')


def functions_of(module: ModuleType) -> list[Callable[..., Any]]:
    """The functions that a module defines itself, for `forbidding`."""
    return [one for one in vars(module).values()
            if inspect.isfunction(inspect.unwrap(one))
            and inspect.unwrap(one).__module__ == module.__name__]


@contextmanager
def forbidding(*functions: Callable[..., Any]) -> Iterator[None]:
    """Raise `Wrong` if the code inside `with` calls one of these functions.

    Also if it tries to switch this watch off, or catches our error. It does
    not see other threads, and nothing that was computed before.
    """
    forbidden = {_place(inspect.unwrap(function).__code__)
                 for function in functions}
    before, caught = sys.getprofile(), []

    def look(frame, event, called):
        if event == 'call' and _place(frame.f_code) in forbidden:
            name = frame.f_code.co_name
            caught.append(f'a function of {frame.f_globals["__name__"]}'
                          if name.startswith('_') else f'{name} of d2lps')
        elif event == 'c_call' and (
                called in (sys.setprofile, sys.getprofile)) and (
                frame.f_code is not forbidding.__wrapped__.__code__):
            caught.append(f'sys.{called.__name__}')
        if caught:
            raise Wrong(f'{caught[0]} was called. Write yours without it.')

    sys.setprofile(look)
    try:
        yield
    finally:
        if sys.getprofile() is not look and not caught:  # by ctypes, say
            caught.append('a function that ends the watch')
        sys.setprofile(before)
    if caught:  # and the student's code went on after our error
        raise Wrong(f'{caught[0]} was called. Write yours without it.')


def _place(code):
    """Where a function was written: a copy of it is known by that."""
    return code.co_filename, code.co_firstlineno


@contextmanager
def in_time(seconds: float, words: Callable[[], str]) -> Iterator[None]:
    """Raise `Wrong` if the code inside `with` computes for too long.

    seconds: of processor time. words: gives the text of `Wrong`.
    Without signals, as in a browser tab, only Python code is ended, and before
    Python 3.12 nothing is.
    """
    if not hasattr(signal, 'setitimer'):
        with _ended_loops(seconds, words):
            yield
        return
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_):
        raise Wrong(words())

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _ended_loops(seconds, words):
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
    ours = {one.__code__.co_filename for one in (contextmanager, check)}

    def look(code, *_):
        # What tidies up afterwards must not be ended.
        if time.monotonic() > end and code.co_filename not in ours:
            raise Wrong(words())

    watch.use_tool_id(tool, 'd2lps')
    for event in events:
        watch.register_callback(tool, event, look)
    watch.set_events(tool, sum(events))
    try:
        yield
    finally:
        watch.set_events(tool, 0)
        for event in events:
            watch.register_callback(tool, event, None)
        watch.free_tool_id(tool)


def _ended_in_tab() -> AbstractContextManager:
    """A limit where a student cannot interrupt: in a browser tab."""
    return in_time(TAB_SECONDS, lambda: (
        f'your function has computed for {TAB_SECONDS} s, so it was stopped. '
        'Is there a loop that does not end?')) if IN_A_TAB else nullcontext()


def call_twice(answer: Answer, note: Callable[[Any], Notes],
               *values: Any) -> Notes:
    """Call answer(*values) twice; return what `note` makes of the result.

    Raises `Wrong` if the results differ: a list that lives outside of the
    function may grow from call to call.
    """
    names = getattr(getattr(answer, '__code__', None), 'co_names', ())
    outside = {name: len(answer.__globals__[name]) for name in names
               if isinstance(answer.__globals__.get(name), list)}
    try:
        first, again = (note(answer(*values)) for _ in range(2))
    except ValueError:
        for name, length in outside.items():
            if len(answer.__globals__[name]) > length:
                raise Wrong(f'the list `{name}`, which is outside your '
                            'function, grows in each call. Make it inside.'
                            ) from None
        raise
    if json.dumps(first, default=_plain) != json.dumps(again, default=_plain):
        raise Wrong('a second call returns something else than the first '
                    'call. Do you keep a list outside your function?')
    return first


def take_notes(chosen: Check, answer: Answer, cases: Sequence[Case]) -> str:
    """Run the cases until one fails; return all notes as a JSON text."""
    notes = []
    for case in cases:
        try:
            with _ended_in_tab():
                taken = chosen.run(answer, **case)
            notes.append(json.dumps({'notes': taken}, default=_plain))
            continue
        except KeyboardInterrupt as error:
            if not os.environ.get(CASES):  # here it is the student's Ctrl-C
                raise
            wrong = ('your function did not end in time, so it was '
                     f'stopped{student_line(error)}')
        except Exception as error:
            wrong = _reason(error)
        notes.append(json.dumps({'wrong': wrong}))
        break
    return f'[{", ".join(notes)}]'


def _reason(error):
    """Words for a student: why there is no result."""
    if isinstance(error, NotImplementedError):
        return NO_ANSWER
    if isinstance(error, Wrong):
        return str(error)
    return (f'your function stopped with {type(error).__name__}: {error}'
            f'{student_line(error)}')


def judge_notes(chosen: Check, notes: str, cases: Sequence[Case]) -> None:
    """Raise `Wrong` unless the notes, a JSON text, are right for all cases.

    The student's code may have changed the process that made the notes, so
    notes that cannot be judged are wrong.
    """
    try:
        taken = json.loads(notes)
        for k, case in enumerate(cases):
            if 'wrong' in taken[k]:
                raise Wrong(f'{_words(case, lists=True)}{taken[k]["wrong"]}')
            try:
                chosen.judge(taken[k]['notes'], **case)
            except Wrong as error:
                raise Wrong(f'{_words(case)}{error}') from None
    except Wrong:
        raise
    except Exception as error:  # `run` did not make these notes
        raise Wrong('what your function returned could not be judged '
                    f'({type(error).__name__}). Does it return what the '
                    'exercise asks for?') from None


def hand_over(notes: str) -> None:
    """Put notes into the output of a graded notebook's cell."""
    from IPython.display import display
    if len(notes) > MOST_NOTES:
        notes = json.dumps([{'wrong': 'your function returned far too many '
                                      'numbers.'}])
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


def _words(case, lists=False):
    """The beginning of a message: the plain values of a case.

    lists: whether short lists are named, too. A seed tells a student nothing.
    """
    words = [f'{name} = {value}' for name, value in case.items()
             if name != 'seed' and (
                 isinstance(value, (int, float, str)) or lists and
                 isinstance(value, (list, tuple)) and len(str(value)) <= 60)]
    return f'With {", ".join(words)}: ' if words else ''


def _plain(value):
    """Make NumPy arrays and numbers plain, for JSON."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise Wrong(f'your function returned a {type(value).__name__} where '
                'plain numbers were expected.')
