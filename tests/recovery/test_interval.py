"""How often to save: by hand, by Young, by Daly, and simulated."""
import math

import numpy as onp
import pytest
from d2lps.recovery import (best_interval, exact_overhead, overhead,
                            simulated_overhead)
from scipy import optimize


def test_worked_by_hand():
    # A checkpoint of 2 s, a death every 10,000 s: 200 s. Then 50 deaths in
    # 500,000 s cost 100 s and a restart of 20 s each, and checkpoints 5,000.
    assert best_interval(2, 10_000) == 200
    lost = 500_000 / 200 * 2 + 50 * (100 + 20)
    assert overhead(200, 2, 10_000, restart=20) == pytest.approx(
        lost / 500_000) == pytest.approx(0.022)


@pytest.mark.parametrize('cost, mean', [(2, 1e4), (0.01, 60), (300, 86400)])
def test_youngs_interval_is_the_least_of_the_first_order(cost, mean):
    found = optimize.minimize_scalar(
        lambda interval: overhead(interval, cost, mean, 5),
        bounds=(cost, mean), method='bounded', options={'xatol': 1e-6 * mean})
    assert best_interval(cost, mean) == pytest.approx(found.x, rel=1e-3)
    assert overhead(best_interval(cost, mean), cost, mean) == pytest.approx(
        math.sqrt(2 * cost / mean))


@pytest.mark.parametrize('interval, cost, restart', [
    (20, 0, 0), (140, 10, 300), (1000, 10, 300)])
def test_the_expectation_is_what_is_simulated(interval, cost, restart):
    """Within four standard errors of 20 simulations."""
    found = [simulated_overhead(interval, cost, 1000, restart,
                                num_intervals=1000, seed=seed)
             for seed in range(20)]
    error = onp.std(found, ddof=1) / math.sqrt(len(found))
    assert exact_overhead(interval, cost, 1000, restart) == pytest.approx(
        onp.mean(found), abs=4 * error)


@pytest.mark.parametrize('minutes, best', [(24 * 60, 117), (6 * 60, 57),
                                           (15, 9.1)])
def test_the_least_expectation_is_where_daly_found_it(minutes, best):
    """Figures 3 to 5 of his paper: checkpoints of 5, restarts of 10 min."""
    found = optimize.minimize_scalar(
        lambda interval: exact_overhead(interval, 5, minutes, 10),
        bounds=(1, 5 * best), method='bounded')
    assert found.x == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize('function', [exact_overhead, simulated_overhead])
def test_what_never_ends_is_refused(function):
    for call in (10_000, 1, 1000), (4000, 1, 1000, 2000):
        with pytest.raises(ValueError, match='^interval .* take a smaller'):
            function(*call)
