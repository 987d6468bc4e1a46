"""Right answers pass all checks; wrong ones are told what is wrong."""
import json
import linecache

import nbformat
import pytest
from answers import (ROOT, answer_cell, answers_of, each_that_runs, runs,
                     solution, with_answer)

from d2lps.exercises import buckets
from d2lps.exercises.checking import (EXERCISES, Wrong, check_of, judge_notes,
                                      take_notes)

TASKS = ROOT / 'notebooks' / 'exercises' / 'tasks'
ALL = [answer for exercise in EXERCISES for answer in answers_of(exercise)]


def names_of(notebook):
    """What its cells define up to the answer, the answer included.

    As in IPython, the source of a function can be read.
    """
    names = {}
    for cell in notebook.cells:
        if cell.cell_type == 'code':
            name = f'<cell {abs(hash(cell.source))}>'
            linecache.cache[name] = (
                len(cell.source), None, cell.source.splitlines(True), name)
            exec(compile(cell.source, name, 'exec'), names)
            if cell is answer_cell(notebook):
                return names


def parts_of(notebook):
    """Of each check cell: the part, and the name of the function."""
    for cell in notebook.cells:
        if cell.source.startswith('check('):
            yield eval(cell.source, {}, Names(
                check=lambda _, part, answer: (part, answer)))


class Names(dict):
    """A name stands for itself."""
    def __missing__(self, name):
        return name


def said_of(exercise, notebook):
    """What the checks say of an answer: (part, 'seen' or 'hidden', words)."""
    hidden = json.loads((ROOT / 'teaching' / 'hidden' /
                         f'{exercise}.json').read_text())
    names, said = names_of(notebook), []
    for part, function in parts_of(notebook):
        check = check_of(exercise, part)
        for kind, cases in ('seen', check.cases), ('hidden', hidden[part]):
            notes = take_notes(check, names[function], cases)
            try:
                judge_notes(check, notes, cases)
            except Wrong as error:
                said.append((part, kind, str(error)))
    return said


@each_that_runs
def test_the_solution_is_right(exercise):
    assert said_of(exercise, solution(exercise)) == []


@each_that_runs
def test_a_task_without_an_answer_is_told_so_by_every_check(exercise):
    task = nbformat.read(TASKS / f'{exercise}.ipynb', 4)
    said = said_of(exercise, task)
    assert len(said) == 2 * len([*parts_of(task)])
    assert all('there is no answer yet' in words for *_, words in said), said


@pytest.mark.full
@pytest.mark.parametrize(
    'exercise, answer', [runs(one.exercise, one) for one in ALL],
    ids=[f'{one.exercise}: {one.title}' for one in ALL])
def test_an_answer_loses_the_parts_that_it_should(
        exercise, answer, monkeypatch):
    """A wrong one loses points in the hidden checks, too."""
    monkeypatch.setattr(buckets, 'MOST_SECONDS', 1)  # for endless answers
    said = said_of(exercise, with_answer(solution(exercise), answer.code))
    assert {part for part, *_ in said} == answer.loses, said
    if answer.loses:
        assert any(kind == 'hidden' for _, kind, _ in said)
    # Its mistake is what the title says, not a name that is gone.
    for error in 'AttributeError', 'ImportError', 'NameError':
        assert error in answer.title or not any(
            error in message for *_, message in said), said
