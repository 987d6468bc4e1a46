"""How often to save: by hand, by Young, by Daly, and simulated."""
import math

import numpy as onp
import pytest
from d2lps.recovery import (best_interval, exact_overhead, overhead,
                            simulated_overhead)
from scipy import integrate, optimize


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


GRID = [(interval, cost, restart) for interval in (20, 140, 1000)
        for cost in (0, 10) for restart in (0, 300)]


@pytest.mark.parametrize('interval, cost, restart', GRID)
def test_the_expectation_is_what_is_simulated(interval, cost, restart):
    """Within four standard errors of 20 simulations."""
    found = [simulated_overhead(interval, cost, 1000, restart,
                                num_intervals=1000, seed=seed)
             for seed in range(20)]
    error = onp.std(found, ddof=1) / math.sqrt(len(found))
    assert exact_overhead(interval, cost, 1000, restart) == pytest.approx(
        onp.mean(found), abs=4 * error)


@pytest.mark.parametrize('interval, cost, restart', GRID)
def test_the_expectation_by_first_principles(interval, cost, restart):
    """Until one attempt succeeds, each that fails costs what it lived.

    The time of death is exponential; integrated here, not in closed form.
    """
    mean, attempt = 1000, interval + cost

    def dead_before(seconds):
        density = lambda t: math.exp(-t / mean) / mean  # noqa: E731
        chance, _ = integrate.quad(density, 0, seconds)
        lived, _ = integrate.quad(lambda t: t * density(t), 0, seconds)
        return chance, lived
    # From now on, and from a death on, which adds a restart: two equations.
    chance, lived = dead_before(attempt)
    chance_after, lived_after = dead_before(attempt + restart)
    after = ((lived_after + (1 - chance_after) * (attempt + restart))
             / (1 - chance_after))
    seconds = lived + (1 - chance) * attempt + chance * after
    assert exact_overhead(interval, cost, mean, restart) == pytest.approx(
        seconds / interval - 1)


@pytest.mark.parametrize('minutes, best', [(24 * 60, 117), (6 * 60, 57),
                                           (15, 9.1)])
def test_the_least_expectation_is_where_daly_found_it(minutes, best):
    """Figures 3 to 5 of his paper: checkpoints of 5, restarts of 10 min."""
    found = optimize.minimize_scalar(
        lambda interval: exact_overhead(interval, 5, minutes, 10),
        bounds=(1, 5 * best), method='bounded')
    assert found.x == pytest.approx(best, rel=0.01)


def test_the_first_order_is_near_where_failures_are_rare():
    for mean, tolerance in (1e4, 0.03), (1e6, 0.003):
        interval = best_interval(2, mean)
        assert overhead(interval, 2, mean, 5) == pytest.approx(
            exact_overhead(interval, 2, mean, 5), rel=tolerance)


def test_youngs_interval_loses_least_in_the_simulation():
    """No other of a wide choice is better by more than chance."""
    cost, mean = 2, 1000
    young = best_interval(cost, mean)

    def lost(interval):  # as many deaths whatever the interval is
        return onp.mean([simulated_overhead(
            interval, cost, mean, num_intervals=round(2e5 / interval),
            seed=seed) for seed in range(20)])
    factors = [1 / 4, 1 / 2, 1, 2, 4]
    losses = [lost(young * factor) for factor in factors]
    assert min(losses) == losses[2]
    # A factor of two costs a quarter more, and four, 2 1/8 times as much.
    for loss, times in zip(losses, (2.125, 1.25, 1, 1.25, 2.125)):
        assert loss / losses[2] == pytest.approx(times, rel=0.1)


def test_the_same_seed_is_the_same_simulation():
    one, two, other = (simulated_overhead(100, 2, 1000, seed=seed)
                       for seed in (3, 3, 4))
    assert one == two != other


@pytest.mark.parametrize('function', [exact_overhead, simulated_overhead])
def test_what_never_ends_is_refused(function):
    with pytest.raises(ValueError, match='^interval .* must be smaller'):
        function(10_000, 1, 1000)
