"""Verdicts on an executed notebook, given outside of the student's process."""
import builtins
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.utils import is_grade

from d2lps.exercises.checking import (NO_ANSWER, NOTES, Case, Check, Wrong,
                                      check_of, judge_notes)
from teaching.executing import HiddenCases, Problem

MOST_STOPPED, WORDS = 3, 100  # remarks on stopped cells; letters of each


class Verdict(NamedTuple):
    """part, hidden (True or False), wrong (None, or why in words), points.

    by_hand: the points that a teacher gave in their place, or None.
    """
    part: str
    hidden: bool
    wrong: str | None
    points: float
    by_hand: float | None = None


def judge(exercise: str, notebook: NotebookNode, cases: HiddenCases,
          problems: Mapping[str, Problem]) -> list[Verdict]:
    """One verdict for each check cell, part by part.

    The outputs of these cells become what nbgrader counts: an error or none.
    problems: from the id of a cell to why it has no outputs.
    """
    verdicts, broken = [], _broken(notebook)
    for cell in notebook.cells:
        if not is_grade(cell):
            continue
        kind, part = cell.metadata.nbgrader.grade_id.split('-', 1)
        one = check_of(exercise, part)
        try:
            notes = _notes(cell, problems, broken, kind == 'hidden')
            if kind == 'hidden':
                _judge_hidden(one, notes, cases[part])
            else:
                judge_notes(one, notes, one.cases)
            if cell.id in problems:  # too late, and then right
                raise Wrong(f'{problems[cell.id].words}.')
            wrong = None
            output = new_output('stream', name='stdout',
                                text=f'Right: {one.right}\n')
        except Wrong as error:
            wrong = str(error).encode(errors='replace').decode()[:2000]
            output = new_output('error', ename='Wrong', evalue=wrong,
                                traceback=[f'Not yet. {wrong}'])
        cell.outputs = [output]
        verdicts.append(Verdict(part, kind == 'hidden', wrong,
                                float(cell.metadata.nbgrader.points)))
    parts = [one.part for one in verdicts]
    return sorted(verdicts, key=lambda one: parts.index(one.part))


def no_answer(verdicts: Sequence[Verdict]) -> bool:
    """Did no check find an answer?"""
    visible = [one for one in verdicts if not one.hidden]
    return bool(visible) and all(NO_ANSWER in (one.wrong or '')
                                 for one in visible) and all(
        one.wrong and one.by_hand is None for one in verdicts)


def why_stopped(notebook: NotebookNode,
                verdicts: Sequence[Verdict]) -> list[str]:
    """Remarks on probable reasons why points are missing.

    There is no answer, or the student's cells stopped above the checks.
    """
    if no_answer(verdicts):
        return [NO_ANSWER.partition('.')[0]]
    found: dict[str, None] = {}  # in their order
    for error in _errors(notebook):
        lines = error.evalue.splitlines() or ['']
        words = lines[0] if ' ' in lines[0] else f'{error.ename}: {lines[0]}'
        found[f'a cell stopped: {words[:WORDS]}'] = None
    more = len(found) - MOST_STOPPED
    return [*found][:MOST_STOPPED] + (
        [f'{more} more cells stopped'] if more > 0 else [])


def _judge_hidden(one: Check, notes: str, cases: Sequence[Case]) -> None:
    """What a student's code says could tell the cases: only ours is told."""
    try:
        told = json.loads(notes)['cases']
        failed = any('wrong' in one for one in told)
    except (ValueError, TypeError, KeyError, RecursionError):
        failed = False  # judge_notes says what that is
    if failed:
        raise Wrong('your function stopped, or returned what is no answer at '
                    'all.')
    judge_notes(one, notes, cases)


def _broken(notebook: NotebookNode) -> str:
    """What stopped a cell of the student's before the checks, in words."""
    for error in _errors(notebook):
        return f'{error.ename}: {error.evalue}'[:500]
    return ''


def _errors(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """The errors of the student's cells above the checks."""
    for cell in notebook.cells:
        if is_grade(cell):
            return
        yield from (output for output in cell.get('outputs', ())
                    if output.output_type == 'error')


def _notes(cell: NotebookNode, problems: Mapping[str, Problem], broken: str,
           hidden: bool) -> str:
    """The notes that a check cell handed over; raises `Wrong` if none."""
    found = [output.data[NOTES] for output in cell.outputs
             if NOTES in output.get('data', ())]
    if len(found) == 1:  # also of a check that was stopped: it tells where
        return found[0]
    if cell.id in problems:
        raise Wrong(f'{problems[cell.id].words}.')
    if found:
        raise Wrong('something else than the check spoke for it.')
    for output in cell.outputs:
        if output.output_type == 'error' and broken:
            raise Wrong('a cell above stopped, so the check could not run. '
                        f'{broken}')
        if output.output_type == 'error' and not hidden:
            raise Wrong(f'{output.ename}: {output.evalue}'[:500])
        if output.output_type == 'error' and hasattr(builtins, output.ename):
            raise Wrong(f'the check stopped with {output.ename}.')
    raise Wrong('the check did not come to its end, or the notebook had shown '
                'so much that it was no longer listened to.')
