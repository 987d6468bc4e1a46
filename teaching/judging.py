"""Verdicts on an executed notebook, given outside of the student's process."""
import builtins
import json
from collections.abc import Iterator, Mapping, Sequence

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.utils import is_grade

from d2lps.exercises.checking import (NO_ANSWER, NOTES, Case, Check, Wrong,
                                      check_of, judge_notes)
from teaching.executing import HiddenCases, Problem
from teaching.records import Verdict, no_answer

MOST_STOPPED, LETTERS = 3, 100  # remarks on stopped cells; letters of each


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
        check = check_of(exercise, part)
        try:
            notes = _notes(cell, problems, broken, kind == 'hidden')
            if kind == 'hidden':
                _judge_hidden(check, notes, cases[part])
            else:
                judge_notes(check, notes, check.cases)
            if cell.id in problems:  # too late, and then right
                raise Wrong(f'{problems[cell.id].reason}.')
            wrong = None
            output = new_output('stream', name='stdout',
                                text=f'Right: {check.right}\n')
        except Wrong as error:
            wrong = str(error).encode(errors='replace').decode()[:2000]
            output = new_output('error', ename='Wrong', evalue=wrong,
                                traceback=[f'Not yet. {wrong}'])
        cell.outputs = [output]
        verdicts.append(Verdict(part, kind == 'hidden', wrong,
                                float(cell.metadata.nbgrader.points)))
    parts = [verdict.part for verdict in verdicts]
    return sorted(verdicts, key=lambda verdict: parts.index(verdict.part))


def why_stopped(notebook: NotebookNode,
                verdicts: Sequence[Verdict]) -> list[str]:
    """Remarks on probable reasons why points are missing.

    There is no answer, or the student's cells stopped above the checks.
    """
    if no_answer(verdicts):
        return [NO_ANSWER.partition('.')[0]]
    remarks: dict[str, None] = {}  # each once, in their order
    for error in _errors(notebook):
        line = (error.evalue.splitlines() or [''])[0]
        reason = line if ' ' in line else f'{error.ename}: {line}'
        remarks[f'a cell stopped: {reason[:LETTERS]}'] = None
    more = len(remarks) - MOST_STOPPED
    return [*remarks][:MOST_STOPPED] + (
        [f'{more} more cells stopped'] if more > 0 else [])


def _judge_hidden(check: Check, notes: str, cases: Sequence[Case]) -> None:
    """Judge a hidden check, and tell nothing that the student's code says.

    Its error could tell the cases.
    """
    try:
        failed = any('wrong' in case for case in json.loads(notes)['cases'])
    except (ValueError, TypeError, KeyError, RecursionError):
        failed = False  # judge_notes says why these are no notes
    if failed:
        raise Wrong('your function stopped, or returned what is no answer at '
                    'all.')
    judge_notes(check, notes, cases)


def _broken(notebook: NotebookNode) -> str:
    """The error of the student's first cell that stopped above the checks."""
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
    notes = [output.data[NOTES] for output in cell.outputs
             if NOTES in output.get('data', ())]
    if len(notes) == 1:  # also of a check that was stopped: it tells where
        return notes[0]
    if cell.id in problems:
        raise Wrong(f'{problems[cell.id].reason}.')
    if notes:
        raise Wrong('other code than the check has sent a result for it.')
    for output in cell.outputs:
        if output.output_type == 'error' and broken:
            raise Wrong('a cell above stopped, so the check could not run. '
                        f'{broken}')
        if output.output_type == 'error' and not hidden:
            raise Wrong(f'{output.ename}: {output.evalue}'[:500])
        if output.output_type == 'error' and hasattr(builtins, output.ename):
            raise Wrong(f'the check stopped with {output.ename}.')
    raise Wrong('the check did not come to its end, or the outputs of the '
                'notebook were too long.')
