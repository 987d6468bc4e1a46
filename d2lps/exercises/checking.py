"""What the check cells of all exercises do, here and when they are graded.

A check has two halves. `run` calls the student's function and notes what came
out, in plain numbers; it runs beside the student's code. `judge` says what is
wrong with that. When a teacher grades, the notes leave the student's process,
and `teaching.judging` calls `judge`, where no student's code can reach it.
"""
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

import numpy as np

from d2lps.missing import NO_TORCH, is_hidden

EXERCISES = (
    'minibatch', 'learning-rate', 'sum-in-parts', 'accuracy-on-all-devices',
    'predict-then-measure', 'micro-batches', 'fair-race', 'ring-both-ways',
    'tree', 'halving-and-doubling', 'semiring', 'two-pushes', 'where-keys-go',
    'hung-ring', 'alpha-beta', 'which-plan-wins', 'rails', 'buckets',
    'bounded-delay', 'server-lost', 'checkpoint', 'bucketed-ddp',
    'sharded-optimizer', 'zero-step')
WITH_TORCH = 'bucketed-ddp', 'sharded-optimizer'
# A file of a teacher's, with cases that are in no notebook: there while an
# exercise is graded.
CASES = 'D2LPS_CASES'
NOTES = 'application/vnd.d2lps.notes'  # how notes leave a graded notebook
NO_ANSWER = ('there is no answer yet. Write yours in place of the line that '
             'raises NotImplementedError.')
MOST_NOTES = 4_000_000  # characters: more is no answer of any exercise


class Wrong(Exception):
    """An answer is wrong; the text says why, to a student."""

    def _render_traceback_(self):
        """IPython shows this: what is in our files would only distract."""
        return [f'Not yet. {self}']


class Missing(Wrong):
    """An exercise needs what is not installed; the text says how to get it."""

    def _render_traceback_(self):
        return [str(self)]


class Check(NamedTuple):
    """One thing that an answer must do.

    cases: dictionaries of plain values, the arguments of `run` and `judge`.
    run(answer, **case): calls the student's function. Returns its notes:
        numbers, texts, lists, dictionaries and NumPy arrays. May raise
        `Wrong` for what is no answer at all.
    judge(notes, **case): raises `Wrong` if the notes are not those of a right
        answer. Gets lists where `run` gave arrays or tuples.
    right: what was seen to be right, in words.
    """
    cases: list
    run: Callable
    judge: Callable
    right: str


def module_of(exercise):
    """The module of an exercise, found by its name, such as 'tree'."""
    if exercise not in EXERCISES:
        raise ValueError(f'exercise must be one of {", ".join(EXERCISES)}; '
                         f'it was {exercise!r}')
    return import_module('d2lps.exercises.' + exercise.replace('-', '_'))


def the_torch():
    """The module `torch`; raises `Missing` if there is none.

    D2LPS_WITHOUT=torch hides it, to see what is done without.
    """
    try:
        if is_hidden('torch'):
            raise ImportError
        return import_module('torch')
    except ImportError:
        raise Missing(NO_TORCH) from None


def need(exercise):
    """Raise `Missing` if something is not here that an exercise needs."""
    if exercise in WITH_TORCH:
        the_torch()


def check_of(exercise, part):
    """The `Check` that a cell of an exercise names."""
    checks = module_of(exercise).CHECKS
    if part not in checks:
        raise ValueError(f'part must be one of {", ".join(checks)}; it was '
                         f'{part!r}')
    return checks[part]


def check(exercise, part, answer):
    """Say whether a student's function is right, and if not, why.

    exercise, part: names. answer: the function.
    Raises `Wrong`. While a teacher grades, only notes are taken: see above.
    """
    one = check_of(exercise, part)
    need(exercise)
    notes = take_notes(one, answer, one.cases)
    if os.environ.get(CASES):
        hand_over(notes)
    else:
        judge_notes(one, notes, one.cases)
        print(f'Right: {one.right}')


def hidden(exercise, part, answer):
    """The same on cases that no student has seen; only while one grades."""
    one = check_of(exercise, part)
    need(exercise)
    if os.environ.get(CASES):
        with open(os.environ[CASES]) as file:
            cases = json.load(file)[part]
        hand_over(take_notes(one, answer, cases))
    elif os.environ.get('NBGRADER_EXECUTION'):
        raise Wrong('hidden checks run only with: make grade')
    else:
        print('Nothing runs here. Other cases are checked when your teacher '
              'grades.')


def picture(exercise, *answers):
    """Draw the student's own result; not while a teacher grades.

    answers: the functions that the exercise's `picture` asks for.
    """
    if not os.environ.get(CASES):
        need(exercise)
        return module_of(exercise).picture(*answers)


def scalar(returned):
    """The same, but NumPy's array of no dimension as a number of Python's."""
    return returned.item() if isinstance(
        returned, np.ndarray) and returned.ndim == 0 else returned


@contextmanager
def without(*functions):
    """Raise `Wrong` if what runs inside calls one of these functions."""
    forbidden = {inspect.unwrap(function).__code__ for function in functions}
    before = sys.getprofile()

    def look(frame, event, _):
        if event == 'call' and frame.f_code in forbidden:
            raise Wrong(f'{frame.f_code.co_name} of d2lps was called. Write '
                        'yours without it.')

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)


def twice(answer, note, *values):
    """What `note` notes of answer(*values), if a second call gives the same.

    Raises `Wrong` if it does not: then something stays from call to call.
    """
    names = getattr(getattr(answer, '__code__', None), 'co_names', ())
    outside = {name: len(answer.__globals__[name]) for name in names
               if isinstance(answer.__globals__.get(name), list)}
    try:
        first, again = (note(answer(*values)) for _ in range(2))
    except ValueError:
        for name, length in outside.items():
            if len(answer.__globals__[name]) > length:
                raise Wrong(f'the list `{name}`, which lives outside of your '
                            'function, grows in each call. Make it inside.'
                            ) from None
        raise
    if json.dumps(first, default=_plain) != json.dumps(again, default=_plain):
        raise Wrong('a second call returns something else than the first. '
                    'Does a list live outside of your function?')
    return first


def take_notes(one, answer, cases):
    """Run a check's cases until one fails: a JSON text that tells all."""
    notes = []
    for case in cases:
        try:
            notes.append(json.dumps({'notes': one.run(answer, **case)},
                                    default=_plain))
            continue
        except NotImplementedError:
            wrong = NO_ANSWER
        except Wrong as error:
            wrong = str(error)
        except KeyboardInterrupt as error:
            if not os.environ.get(CASES):  # here it is the student's Ctrl-C
                raise
            wrong = ('your function did not end in time: it was stopped'
                     f'{where(error)}')
        except Exception as error:
            wrong = ('your function stopped with '
                     f'{type(error).__name__}: {error}{where(error)}')
        notes.append(json.dumps({'wrong': wrong}))
        break
    return f'[{", ".join(notes)}]'


def judge_notes(one, notes, cases):
    """Raise `Wrong` unless the notes, a JSON text, are right for all cases.

    The notes may come from a process that a student's code has changed:
    whatever cannot be judged is wrong.
    """
    try:
        notes = json.loads(notes)
        for k, case in enumerate(cases):
            if 'wrong' in notes[k]:
                raise Wrong(f'{_words(case, lists=True)}{notes[k]["wrong"]}')
            try:
                one.judge(notes[k]['notes'], **case)
            except Wrong as error:
                raise Wrong(f'{_words(case)}{error}') from None
    except Wrong:
        raise
    except Exception as error:  # the notes are not what `run` makes
        raise Wrong('what your function returned could not be judged '
                    f'({type(error).__name__}). Does it return what the '
                    'exercise asks for?') from None


def hand_over(notes):
    """Put notes into the output of a graded notebook's cell."""
    from IPython.display import display
    if len(notes) > MOST_NOTES:
        notes = json.dumps([{'wrong': 'your function returned far too much.'}])
    display({NOTES: notes}, raw=True)


def where(error):
    """The student's line that failed: the last that is in no file of ours."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if 'd2lps' not in frame.filename and frame.line]
    own = [frame for frame in frames if 'ipykernel' in frame.filename or
           frame.filename.startswith('<')]
    if not own:
        return '.'
    return f', in line {own[-1].lineno} of its cell: `{own[-1].line}`'


def _words(case, lists=False):
    """The plain values of a case, and its short lists if these are wanted,
    to begin a message with."""
    words = [f'{name} = {value}' for name, value in case.items()
             if isinstance(value, (int, float, str)) or lists and
             isinstance(value, (list, tuple)) and len(str(value)) <= 60]
    return f'With {", ".join(words)}: ' if words else ''


def _plain(value):
    """For JSON: NumPy's arrays and numbers."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise Wrong(f'your function returned a {type(value).__name__} where '
                'plain numbers were expected.')
