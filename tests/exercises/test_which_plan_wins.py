"""What is called right is chapter 11's model; measuring leaves nothing."""
import math
import os

import numpy as np
import pytest

import d2lps
from d2lps.collectives import simulate, strategies, topology
from d2lps.exercises import measuring, which_plan_wins
from d2lps.exercises.checking import CASES
from d2lps.exercises.which_plan_wins import PLANS, _crossing, _line, _seconds
from d2lps.figures import alt_text

ALPHA, BETA, OVERHEAD = 180e-6, 11.8e6, 45e-6
LINKS = {'alpha_us': 180, 'MB_per_s': 11.8, 'overhead_us': 45}


@pytest.mark.parametrize('name', [name for name in PLANS if name != 'uneven'])
def test_without_overhead_the_simulator_says_the_same(name):
    plan = PLANS[name](8)
    for nbytes in 0, 1_000, 4_000_000:
        simulated = [simulate.time(plan, topology.ethernet(
            plan.nodes, BETA, latency=(ALPHA - o) / 2), nbytes,
            overhead=o).seconds for o in (0, OVERHEAD)]
        assert _seconds(plan, nbytes, ALPHA, BETA, 0) == pytest.approx(
            simulated[0])
        # With it, bytes flow there while later messages are handled.
        assert simulated[1] < (1 + 1e-9) * _seconds(plan, nbytes, ALPHA, BETA,
                                                    OVERHEAD)


def test_the_figures_of_the_notebook():
    ring, doubling = (_seconds(PLANS[name](4), 4_000_000, ALPHA, BETA,
                               OVERHEAD)
                      for name in ('ring', 'recursive_doubling'))
    assert (round(ring * 1e3), round(doubling * 1e3)) == (510, 678)
    assert round(_crossing('recursive_doubling', 'ring', 4, LINKS)) == 16_992
    assert _seconds(strategies.gather_broadcast(3), 1000, 100e-6, 10e6,
                    50e-6) == pytest.approx(700e-6)


@pytest.mark.parametrize('first, second, n', [
    ('recursive_doubling', 'ring', 4), ('ring', 'recursive_doubling', 4),
    ('sharded', 'ring', 12), ('ring', 'ring', 5)])
def test_the_crossing_is_where_the_second_begins_to_win(first, second, n):
    found = _crossing(first, second, n, LINKS)
    sizes = np.geomspace(1, 1e9, 500)
    one, two = (start + slope * sizes for start, slope in
                (_line(name, n, LINKS) for name in (first, second)))
    faster = two < one
    if math.isinf(found):
        assert not faster[-1]
    else:
        assert (faster == (sizes > found)).all()


def test_while_a_teacher_grades_nothing_is_started(monkeypatch):
    monkeypatch.setenv(CASES, 'some.json')
    monkeypatch.setattr(d2lps, 'Cluster', None)
    assert measuring.measure(None, None, None) is None


def test_without_processes_it_says_so(monkeypatch, capsys):
    def none(*_, **__):
        raise OSError('no Unix sockets')
    monkeypatch.setattr(d2lps, 'network_problem', lambda: 'no')
    monkeypatch.setattr(d2lps, 'Cluster', none)
    plans = strategies.ring(4), strategies.tree(4)
    assert measuring.measure(_seconds, *plans) is None
    assert 'Nothing was measured' in capsys.readouterr().out
    with pytest.raises(ValueError, match='must be for 4 workers'):
        measuring.measure(_seconds, strategies.ring(3), plans[1])


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
