"""Right answers pass all checks; wrong ones are told what is wrong."""
import json

import nbformat
import pytest
from answers import (ROOT, answer_cell, answers_of, each_that_runs, runs,
                     solution, with_answer)

from d2lps.exercises.checking import (EXERCISES, Wrong, check_of, judge_notes,
                                      take_notes)

TASKS = ROOT / 'notebooks' / 'exercises' / 'tasks'
each_exercise = pytest.mark.parametrize('exercise', EXERCISES)
ALL = [answer for exercise in EXERCISES for answer in answers_of(exercise)]


def names_of(notebook):
    """What its cells define up to the answer, the answer included."""
    names = {}
    for cell in notebook.cells:
        if cell.cell_type == 'code':
            exec(cell.source, names)
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


def mistakes(exercise, notebook):
    """What the checks say, those that students see and the hidden ones."""
    said = said_of(exercise, notebook)
    return ([text for _, kind, text in said if kind == 'seen'],
            [text for _, kind, text in said if kind == 'hidden'])


def said_of(exercise, notebook):
    """A list of (part, 'seen' or 'hidden', what the check says)."""
    hidden = json.loads((ROOT / 'teaching' / 'hidden' /
                         f'{exercise}.json').read_text())
    names, said = names_of(notebook), []
    parts = list(parts_of(notebook))
    assert {part for part, _ in parts} == {*hidden}
    for part, function in parts:
        one = check_of(exercise, part)
        for cases, kind in (one.cases, 'seen'), (hidden[part], 'hidden'):
            notes = take_notes(one, names[function], cases)
            try:
                judge_notes(one, notes, cases)
            except Wrong as error:
                said.append((part, kind, str(error)))
    return said


def with_kept(exercise, title):
    """A notebook with the kept answer of this title."""
    [answer] = [answer for answer in answers_of(exercise)
                if answer.title == title]
    return with_answer(solution(exercise), answer.code)


@each_that_runs
def test_the_solution_is_right(exercise):
    assert mistakes(exercise, solution(exercise)) == ([], [])


@each_that_runs
def test_a_task_without_an_answer_is_told_so_by_every_check(exercise):
    task = nbformat.read(TASKS / f'{exercise}.ipynb', 4)
    said = sum(mistakes(exercise, task), [])
    assert len(said) == 2 * len([*parts_of(task)])
    assert all('there is no answer yet' in words for words in said), said


@each_exercise
def test_enough_answers_are_kept(exercise):
    kept = [answer for answer in ALL if answer.exercise == exercise]
    assert sum(answer.says is not None for answer in kept) >= 5
    assert any(answer.says is None for answer in kept)


@pytest.mark.full
@pytest.mark.parametrize(
    'exercise, answer', [runs(one.exercise, one) for one in ALL],
    ids=[f'{one.exercise}: {one.title}' for one in ALL])
def test_an_answer_gets_what_it_deserves(exercise, answer):
    """A wrong one loses points in what nobody has seen, too."""
    notebook = with_answer(solution(exercise), answer.code)
    seen, unseen = mistakes(exercise, notebook)
    if answer.says is None:
        assert (seen, unseen) == ([], [])
    else:
        assert unseen
        assert any(answer.says in text for text in seen + unseen), (
            seen + unseen)


@pytest.mark.full
@pytest.mark.parametrize('exercise, title, parts', [
    runs('bucketed-ddp', 'closed when it is exactly full', {'buckets'}),
    runs('bucketed-ddp', 'the counters are not set back', {'steps'}),
    runs('bucketed-ddp', 'the sum, not the mean', {'mean', 'steps'}),
    runs('bucketed-ddp', 'all is sent in finish', {'overlap', 'steps'}),
    runs('bucketed-ddp', 'unused layers are not thought of', {'steps'}),
    runs('sharded-optimizer', 'all of the momentum on every worker',
         {'kept'}),
    runs('sharded-optimizer', 'no zeros at the end', {'uneven'}),
    runs('sharded-optimizer', 'all numbers are gathered from everybody',
         {'calls'}),
    ('zero-step', 'the sum, not the mean', {'params', 'uneven'}),
    ('zero-step', 'what was gathered on the way forward is kept', {'held'}),
    ('zero-step', 'zeros at the end are forgotten', {'uneven'}),
    ('zero-step', 'whole gradients are kept, though they were summed',
     {'held'}),
    ('minibatch', 'the learning rate stays', {'rate'}),
    ('minibatch', 'nothing is returned', {'steps'}),
    ('minibatch', 'X is shuffled, y is not', {'steps'}),
    ('learning-rate', 'the minibatch does not grow', {'runs'}),
    ('learning-rate', 'chosen by the test set', {'sets', 'rates'}),
    ('learning-rate', 'all models are tested, too', {'sets'}),
    ('learning-rate', 'trained again to be tested', {'runs'}),
    ('learning-rate', 'of equal rates the first', {'rates'}),
    ('sum-in-parts', 'the mean', {'sum'}),
    ('sum-in-parts', 'everything on device 0', {'time'}),
    ('accuracy-on-all-devices', 'in percent', {'accuracy'}),
    ('accuracy-on-all-devices', 'all on device 0', {'time'}),
    ('predict-then-measure', 'images shared without a rest',
     {'compute', 'work'}),
    ('predict-then-measure', 'nothing goes back', {'allreduce'}),
    ('predict-then-measure', 'one call for each array', {'python'}),
    ('predict-then-measure', 'Python needs no core', {'work'}),
    ('predict-then-measure', 'all is added', {'step'}),
    ('micro-batches', "GPipe's order", {'kept'}),
    ('micro-batches', 'one forward pass too few at the start', {'slots'}),
    ('micro-batches', 'forward before backward in the middle, too',
     {'kept'}),
    ('fair-race', 'always the same order', {'drift'}),
    ('fair-race', 'the median of all, the cold one among them', {'drift'}),
    ('fair-race', 'how many times as long as the first', {'cold'}),
    ('fair-race', 'all repeats of one, then all of the next',
     {'phase', 'drift'}),
    ('fair-race', 'the slowest and the fastest are left out',
     {'spikes', 'fast', 'phase'}),
    ('ring-both-ways', 'the slower direction gets more', {'uneven'}),
    ('tree', 'only up', {'sum', 'time'}),
    ('tree', 'the way down starts at the leaves', {'sum'}),
    ('halving-and-doubling', 'a ring', {'rounds'}),
    ('halving-and-doubling', 'only the halving', {'sum', 'bytes'}),
    ('buckets', 'one bucket for all', {'time', 'many'}),
    ('buckets', 'gradients of no bytes are left out', {'once', 'time'}),
    ('bounded-delay', 'workers that are done still count', {'last'}),
    ('bounded-delay', 'one more than the bound', {'rule', 'figure'}),
    ('bounded-delay', 'compared with the mean', {'rule', 'figure'}),
    ('server-lost', 'a server that is behind is left so', {'copies'}),
    ('server-lost', 'the list of lost keys is not returned',
     {'copies', 'again'}),
    ('two-pushes', 'the mean', {'rounds'}),
    ('two-pushes', 'nobody ever waits', {'wait'}),
    ('two-pushes', "the worker's own array waits", {'arrays'}),
    ('two-pushes', 'all rounds are kept', {'memory'}),
    ('where-keys-go', 'the places in the whole row', {'whole'}),
    ('where-keys-go', 'rounded down, and the last server gets what is left',
     {'even'}),
    ('hung-ring', 'the same round is an excuse', {'odd'}),
    ('hung-ring', 'reports that are not in the plan are thrown away',
     {'odd'}),
    ('hung-ring', 'the one who is blamed in the earliest round',
     {'several', 'odd'}),
    ('hung-ring', 'through the rounds from the first to the last', {'begun'}),
    ('alpha-beta', 'weights, but of the means', {'late'}),
    ('alpha-beta', 'medians, but no weights', {'clean', 'late'}),
    ('alpha-beta', 'the chunks are forgotten', {'crossover'}),
    ('which-plan-wins', 'each send pays a latency', {'rounds'}),
    ('which-plan-wins', 'only what is sent', {'bytes'}),
    ('which-plan-wins', 'the first message costs an overhead, too',
     {'messages'}),
    ('which-plan-wins', 'the crossing, whoever is faster behind it',
     {'crossover'}),
    ('rails', 'totals are added on the way back', {'sum'}),
    ('rails', 'all tell their own of a chunk in the last round', {'sum'}),
    ('rails', 'everything to the next machine on the rail, no chunks',
     {'cards'}),
    ('rails', 'everybody in a machine gets all of everybody', {'inside'}),
    ('rails', 'a ring inside each machine, too', {'rounds'}),
    ('checkpoint', 'the momenta are forgotten', {'whole'}),
    ('checkpoint', 'old ones are never removed', {'again'}),
    ('checkpoint', 'the step comes back as a text', {'whole'}),
    ('checkpoint', 'an empty state in place of no checkpoint', {'whole'}),
    ('checkpoint', 'the parameters are rounded', {'whole'}),
    ('checkpoint', 'a disk without a checkpoint is not thought of', {'whole'}),
    ('semiring', 'a large number in place of infinity', {'product'}),
    ('semiring', 'A is overwritten in the end', {'product'}),
    ('semiring', 'device 0 does everything', {'shares'}),
    ('halving-and-doubling', 'one device alone gets no plan', {'sum'}),
    ('minibatch', 'slices are one too short', {'steps'}),
    ('accuracy-on-all-devices', 'the last image of the last part is lost',
     {'accuracy'}),
    ('accuracy-on-all-devices', 'one label too few for each device',
     {'accuracy'})])
def test_one_slip_costs_one_part(exercise, title, parts):
    notebook = with_kept(exercise, title)
    assert {part for part, *_ in said_of(exercise, notebook)} == parts


@pytest.mark.parametrize('exercise, title, parts', [
    ('tree', 'works for powers of two only', {'time'}),
    ('micro-batches', 'there are always more micro-batches than devices',
     {'slots', 'kept'}),
    ('server-lost', 'two replicas, however many are wanted', {'again'}),
    ('hung-ring', 'one chain is followed, from the first report', {'one'}),
    ('alpha-beta', 'a line through two sizes only', {'clean', 'late'})])
def test_what_is_right_for_some_sizes_has_points(exercise, title, parts):
    """The visible checks of these parts at least."""
    notebook = with_kept(exercise, title)
    assert not parts & {part for part, kind, _ in said_of(exercise, notebook)
                        if kind == 'seen'}
