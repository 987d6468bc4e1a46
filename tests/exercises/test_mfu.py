"""The formula is held against published runs; the notebook's figures."""
import numpy as np
import pytest
from answers import ROOT, answer_cell, solution

from d2lps.exercises import mfu as exercise
from d2lps.figures import alt_text
from d2lps.planning import compare_runs, read_runs
from d2lps.planning.published import run_of

NUMBERS = {'parameters': 1e9, 'layers': 16, 'hidden': 2048, 'sequence': 2048,
           'tokens_per_second': 40_000, 'gpus': 2, 'peak': 312e12}


def model_of(case):
    return exercise._model(**{
        name: value for name, value in case.items() if name not in (
            'run', 'published', 'seed', 'seconds', 'sequences')})


@pytest.fixture
def names():
    found = {}
    exec(answer_cell(solution('mfu')).source, found)
    return found


def test_the_figures_of_the_notebook(names):
    text = ' '.join(cell.source.replace('\n', ' ')
                    for cell in solution('mfu').cells)
    assert round(names['mfu_of'](*NUMBERS.values()), 3) == 0.436
    assert 'the result is 0.436' in text
    shares = [exercise.run_mfu(names['mfu_of'], **case)
              for case in exercise.PUBLISHED]
    assert f'from {min(shares):.1%} to {max(shares):.1%}' in text


def test_five_runs_have_the_published_share():
    for case in exercise.PUBLISHED:
        assert exercise._share(**model_of(case)) == pytest.approx(
            case['published'], rel=0.006)


def test_the_formula_is_near_the_published_share_of_all_runs():
    runs = read_runs(ROOT / 'notebooks/results/20-published-runs.csv')
    table = compare_runs(runs)
    for (_, row), published, seconds in zip(
            runs.iterrows(), table['published MFU'], table.published):
        model, d, gpu = run_of(row)
        assert exercise._share(
            model.parameters, model.layers, model.hidden, model.sequence,
            d.batch * model.sequence / seconds, d.gpus, gpu.peak
        ) == pytest.approx(published, rel=0.02)


def test_runs_of_the_table_are_those_of_the_exercise():
    runs = read_runs(ROOT / 'notebooks/results/20-published-runs.csv')
    runs = runs.set_index('run')
    for case, name in zip(exercise.PUBLISHED, (
            'GPT 22B, selective', 'GPT 175B, selective',
            'GPT 530B, selective', 'GPT 1000B, selective',
            'MPT 70B, 64 H100')):
        model, d, gpu = run_of(runs.loc[name])
        found = model_of(case)
        assert found['parameters'] == pytest.approx(model.parameters, rel=0.01)
        for key, value in (('layers', model.layers), ('gpus', d.gpus),
                           ('hidden', model.hidden), ('peak', gpu.peak),
                           ('sequence', model.sequence)):
            assert found[key] == value
        if runs.unit[name] == 'seconds':
            assert case['tokens_per_second'] == pytest.approx(
                d.batch * model.sequence / runs.published[name], rel=1e-4)


@pytest.mark.parametrize('case', exercise.LOGS, ids=[
    case['run'] for case in exercise.LOGS])
def test_wrong_ways_to_read_a_log_are_more_than_the_tolerance_away(case):
    many, took = np.transpose(exercise._steps(
        *(case[name] for name in ('seed', 'seconds', 'sequences'))))
    rates = many / took
    right = np.median(rates)
    assert np.median(rates[2:]) == pytest.approx(right, rel=2e-3)
    for wrong in (rates.mean(), rates[2:].mean(), many.sum() / took.sum(),
                  many[2:].sum() / took[2:].sum()):
        assert abs(wrong / right - 1) > 0.02


def test_the_picture_has_both_figures(names):
    text = alt_text(exercise.picture(names['mfu_of']))
    assert text.count('GPT 530B, 280 A100 0.56') == 2
