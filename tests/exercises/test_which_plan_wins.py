"""What is called right is chapter 11's model; measuring leaves nothing."""
import math
import os

import numpy as np
import pytest
from answers import answer_cell, solution

import d2lps
from d2lps.collectives import strategies
from d2lps.exercises import measuring, which_plan_wins
from d2lps.exercises.checking import CASES
from d2lps.exercises.which_plan_wins import PLANS, costs, crossing, line_of
from d2lps.figures import alt_text

LINKS = {'alpha_us': 180, 'MB_per_s': 11.8, 'overhead_us': 45}


@pytest.fixture(scope='module')
def predict():
    names = {}
    exec('from collections import Counter\n'
         + answer_cell(solution('which-plan-wins')).source, names)
    return names['predict']


@pytest.mark.parametrize('name', PLANS)
def test_the_solution_counts_what_the_simulator_takes(predict, name):
    latencies, overheads, arrays = costs(name, 8).sum(axis=0)
    assert predict(PLANS[name](8), 4_000, 2, 10, 3) == pytest.approx(
        2 * latencies + 3 * overheads + 400 * arrays)


def test_the_figures_of_the_notebook():
    seconds = []
    for name in 'ring', 'recursive_doubling':
        start, slope = line_of(name, 4, **LINKS)
        seconds.append(start + slope * 4_000_000)
    assert [round(one * 1e3) for one in seconds] == [510, 678]
    assert round(crossing('recursive_doubling', 'ring', 4, **LINKS)) == 16_992
    start, slope = line_of('gather_broadcast', 3, alpha_us=100, MB_per_s=10,
                           overhead_us=50)
    assert start + slope * 1000 == pytest.approx(700e-6)


@pytest.mark.parametrize('first, second, n', [
    ('recursive_doubling', 'ring', 4), ('ring', 'recursive_doubling', 4),
    ('sharded', 'ring', 12), ('ring', 'ring', 5)])
def test_the_crossing_is_where_the_second_begins_to_win(first, second, n):
    found = crossing(first, second, n, **LINKS)
    sizes = np.geomspace(1, 1e9, 500)
    one, two = (start + slope * sizes for start, slope in
                (line_of(name, n, **LINKS) for name in (first, second)))
    faster = two < one
    if math.isinf(found):
        assert not faster[-1]
    else:
        assert (faster == (sizes > found)).all()


def test_while_a_teacher_grades_nothing_is_started(monkeypatch):
    monkeypatch.setenv(CASES, 'some.json')
    monkeypatch.setattr(d2lps, 'Cluster', None)
    assert measuring.measure(None, None, None) is None


def test_without_processes_it_says_so(monkeypatch, capsys, predict):
    def none(*_, **__):
        raise OSError('no Unix sockets')
    monkeypatch.setattr(d2lps, 'network_problem', lambda: 'no')
    monkeypatch.setattr(d2lps, 'Cluster', none)
    plans = strategies.ring(4), strategies.tree(4)
    assert measuring.measure(predict, *plans) is None
    assert 'Nothing was measured' in capsys.readouterr().out
    with pytest.raises(ValueError, match='must be for 4 workers'):
        measuring.measure(predict, strategies.ring(3), plans[1])
    monkeypatch.delattr(os, 'fork')
    assert measuring.measure(predict, *plans) is None
    assert 'A cluster forks its processes' in capsys.readouterr().out


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs processes')
def test_it_predicts_first_and_then_measures(monkeypatch, capsys):
    """From memory to memory: fast, and possible on every Unix."""
    monkeypatch.setattr(d2lps, 'network_problem', lambda: 'no')
    monkeypatch.setattr(measuring, 'LARGEST', 2_000_000)
    plans = strategies.sharded(4), strategies.ring(4)

    def predict(plan, nbytes, alpha, bandwidth, overhead):
        return len(plan.rounds) * alpha + nbytes / bandwidth

    found = measuring.measure(predict, *plans)
    said = capsys.readouterr().out
    assert said.index('alpha') < said.index('predicted') < said.index(
        'measured')
    assert found.seconds.shape == (2, len(found.nbytes))
    assert (found.seconds > 0).all()
    drawn = which_plan_wins.picture(predict, lambda *_: math.inf, found)
    assert 'ring(4), measured' in alt_text(drawn)
