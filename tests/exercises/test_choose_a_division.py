"""The planner judges; the notebook's figures."""
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from io import StringIO

import pytest
from answers import answer_cell, solution

from d2lps.exercises import choose_a_division as exercise
from d2lps.exercises.checking import Wrong
from d2lps.figures import alt_text
from d2lps.planning import Division, memory, step_time

GPT = exercise.CLUSTERS['two machines'].model


@pytest.fixture(scope='module')
def names():
    found = {}
    for cell in solution('choose-a-division').cells:
        if cell.cell_type == 'code':
            with redirect_stdout(StringIO()):
                exec(cell.source, found)
            if cell is answer_cell(solution('choose-a-division')) or (
                    'def choose' in cell.source):
                return found


def notes(mine, rival=None, part='compute'):
    return {'mine': asdict(mine), 'rival': asdict(rival or mine),
            'part': part}


@pytest.mark.parametrize('d', [
    Division(data=16, zero=2), Division(2, 4, 2, micro_batches=64, zero=1),
    Division(pipeline=8, micro_batches=4, data=2, zero=1),
    Division(4, pipeline=4, micro_batches=64, recompute='full', zero=1)])
def test_the_bytes_of_the_exercise_are_nearly_those_of_the_planner(d):
    *held, kept = exercise._right(GPT, d)
    *planned, activations = memory(GPT, d)
    assert held == pytest.approx(planned)
    words = 4 * GPT.sequence * (GPT.hidden + GPT.vocab)
    assert kept - 1 <= activations <= kept + words + 1


def test_the_figures_of_the_notebook(names):
    text = '\n'.join(cell.source for cell in
                     solution('choose-a-division').cells)
    four = names['bytes_on_gpu'](GPT, Division(16, micro_batches=16, zero=2))
    assert [round(one / 1e9, 1) for one in four] == [25.7, 1.6, 9.6, 14.3]
    assert '25.7, 1.6, 9.6 and 14.3 GB' in text.replace('\n', ' ')
    assert [round(one.model.parameters / 1e9) for one in
            exercise.CLUSTERS.values()] == [13, 30, 8]
    assert exercise.NEAR == 1.12 and '**12%**' in text
    assert exercise.NEAR_OTHER == 1.15 and '15% above the best' in text
    model, gpus, batch, gpu = exercise.CLUSTERS['long sequences']
    first = Division(gpus, micro_batches=batch // gpus, zero=3,
                     recompute='full')
    assert round(memory(model, first).total / 1e9, 1) == 77.5 and (
        '77.5 GB' in text)


def test_the_first_idea_is_good_slow_and_too_large():
    for name, good in (('two machines', True), ('slow network', False),
                       ('long sequences', False)):
        asked = exercise.CLUSTERS[name]
        first = Division(asked.gpus, micro_batches=asked.batch // asked.gpus,
                         zero=3, recompute='none' if good else 'full')
        fits = memory(asked.model, first).total <= asked.most()
        assert fits == (name != 'long sequences')
        with nullcontext() if good else pytest.raises(Wrong):
            exercise.judge_choice(notes(first), cluster=name)


@pytest.mark.parametrize('cluster', exercise.CLUSTERS)
def test_several_kinds_are_near_the_best_and_most_are_not(cluster):
    near = [d for d in exercise._near(cluster, 1) if all(
        d in exercise._near(cluster, network) for network in exercise.RATES)]
    kinds = {exercise._kind(d) for d in near}
    assert 3 <= len(kinds) < 0.7 * len({
        exercise._kind(d) for d in exercise.divisions(
            *exercise.CLUSTERS[cluster])})
    for d in near:
        for network in *exercise.RATES, 0.9, 1.1:
            exercise.judge_choice(notes(d), cluster, network)


def test_the_planner_s_own_best_rows_do_not_solve_all():
    """A student may ask it outside of `choose`, but must look at its rows.

    On the slow network its best row interleaves, which is not allowed.
    """
    passed = []
    for cluster, asked in exercise.CLUSTERS.items():
        best = exercise.best_divisions(*asked).iloc[0]
        sides = {name: int(best[name]) for name in (
            *exercise.SIDES, 'micro_batch', 'interleave', 'zero')}
        mine = Division(**sides, recompute=best.recompute)
        mine = mine.but(micro_batches=asked.batch // mine.batch)
        try:
            exercise.judge_choice(notes(mine), cluster=cluster)
            passed.append(cluster)
        except Wrong:
            pass
    assert passed == ['two machines', 'long sequences']


def test_the_picture_names_both(names):
    text = alt_text(exercise.picture(names['choose']))
    model, _, _, gpu = exercise.CLUSTERS['slow network']
    mine, _, _ = names['choose']('slow network')
    seconds = step_time(model, mine, gpu).seconds
    assert f'slow network, you: {seconds:.1f} s' in text
