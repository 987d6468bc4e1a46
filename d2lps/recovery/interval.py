"""Intervals between checkpoints, if machines die at random.

All times are in seconds. `interval` is the training from one checkpoint to
the next. `cost` is the time of a checkpoint, while training waits for it.
`between_failures` is the mean time from one death to the next, of any machine:
for n machines it is 1/n of the time for one machine. `restart` is the time
from a death until training runs again, from the last checkpoint.

An overhead is the loss for each second of training: 0.1 makes 110 s of 100 s.
"""
import math
from functools import partial

import numpy as onp

from d2lps.checks import checked, from_zero, integer, number, positive

TIMES = dict(interval=positive, cost=number, between_failures=positive,
             restart=number)


def _ends(interval, cost, between_failures, restart, **_):
    """A rule: training can survive from one checkpoint to the next."""
    needed = interval + cost + restart
    if needed > 5 * between_failures:
        raise ValueError(
            f'interval + cost + restart is {needed:g} s, with a failure every '
            f'{between_failures:g} s: take a smaller interval')


@checked(cost=positive, between_failures=positive)
def best_interval(cost: float, between_failures: float) -> float:
    """Young's interval, which loses least if failures are rare.

    J. W. Young 1974, "A first order approximation to the optimum checkpoint
    interval": the root of 2 * cost * between_failures.
    """
    return math.sqrt(2 * cost * between_failures)


@checked(**TIMES)
def overhead(interval: float, cost: float, between_failures: float,
             restart: float = 0) -> float:
    """The first order, which can be computed by hand.

    Every interval ends with a checkpoint, and every death costs a restart
    and, on the average, half an interval.
    """
    return cost / interval + (interval / 2 + restart) / between_failures


@checked(_ends, **TIMES)
def exact_overhead(interval: float, cost: float, between_failures: float,
                   restart: float = 0) -> float:
    """The expectation, if deaths are equally likely at any moment.

    Deaths happen during checkpoints and restarts, too, and more than once in
    an interval. J. T. Daly 2006, "A higher order estimate of the optimum
    checkpoint interval for restart dumps".
    """
    mean = between_failures
    seconds = (mean * math.exp(restart / mean) *
               math.expm1((interval + cost) / mean))
    return seconds / interval - 1


@checked(_ends, **TIMES, num_intervals=partial(integer, most=100_000),
         seed=from_zero)
def simulated_overhead(interval: float, cost: float, between_failures: float,
                       restart: float = 0, num_intervals: int = 10_000,
                       seed: int = 0) -> float:
    """The overhead of a simulated training with random deaths."""
    random = onp.random.default_rng(seed)
    clock, death = 0.0, random.exponential(between_failures)
    for _ in range(num_intervals):
        end = clock + interval + cost
        while death < end:  # all since the last checkpoint is lost
            end = death + restart + interval + cost
            death += random.exponential(between_failures)
        clock = end
    return clock / (num_intervals * interval) - 1
