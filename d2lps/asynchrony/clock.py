"""A virtual clock: which worker computes or waits, and in what order.

The times of the workers' steps are given. The clock plays the pulls and pushes
that follow from them. The result is a plan. It can be drawn, or followed with
real gradients (`d2lps.asynchrony.asynchronous_training`). Times are only added
and compared, so the plan is the same on every machine.
"""
import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from d2lps.checks import (checked, from_zero, list_of, number, one_of,
                          positive, integer)
from d2lps.kvstore.store_arguments import how_consistent, up_to_1000

MAX_STEPS = 1_000_000  # of all workers; more would take too long


def _not_too_many(num_workers, num_steps, **_):
    if num_workers * num_steps > MAX_STEPS:
        raise ValueError('num_steps must be at most '
                         f'{MAX_STEPS // num_workers:,} for {num_workers:,} '
                         f'workers; it was {num_steps:,}')


KINDS = 'equal', 'one straggler', 'a new straggler each step', 'heavy tail'


@checked(_not_too_many, kind=one_of(*KINDS), num_workers=up_to_1000,
         num_steps=partial(integer, most=100_000),
         slowdown=partial(number, least=1, most=1e6, example=5),
         seed=from_zero)
def step_times(kind: str, num_workers: int = 4, num_steps: int = 1000,
               slowdown: float = 5, seed: int = 0) -> np.ndarray:
    """Virtual seconds of each worker's steps, (num_workers, num_steps).

    kind: 'equal', all 1; 'one straggler', the last worker takes `slowdown`;
        'a new straggler each step', drawn anew; 'heavy tail', 1 / sqrt(u)
        with u uniform in (0, 1]: Pareto's law with exponent 2, of mean 2 and
        with no variance.
    """
    random = np.random.default_rng(seed)
    times = np.ones((num_workers, num_steps))
    if kind == 'one straggler':
        times[-1] = slowdown
    elif kind == 'a new straggler each step':
        unlucky = random.integers(num_workers, size=num_steps)
        times[unlucky, np.arange(num_steps)] = slowdown
    elif kind == 'heavy tail':
        # IEEE 754 fixes the results of square roots and divisions, too.
        times = 1 / np.sqrt(1 - random.random(times.shape))
    return times


class StoreCall(NamedTuple):
    """At `time`, worker `rank` has done `call`: 'pull', 'push' or 'late'.

    A late push is dropped. `updates` counts the updates of the parameters
    until then, and `gradients` the pushes that were used in these updates.
    """
    time: float
    rank: int
    call: str
    updates: int
    gradients: int


class Point(NamedTuple):
    """Test accuracy after a number of gradients and virtual seconds."""
    gradients: int
    seconds: float
    accuracy: float


class Step(NamedTuple):
    """Worker `rank` computes from `start` to `end`, then waits until `next`.

    `staleness`: how many updates it has not seen; None if it was dropped.
    """
    rank: int
    start: float
    end: float
    next: float
    staleness: int | None


@dataclass(frozen=True)
class Plan:
    """A result of `virtual_clock`: its arguments, and the `events`."""
    num_workers: int
    consistency: int | Literal['sync', 'async']
    backups: int
    events: tuple[StoreCall, ...]

    @property
    def seconds(self) -> float:
        """Virtual seconds until the last push."""
        return self.events[-1].time

    @property
    def throughput(self) -> float:
        """Gradients used per virtual second."""
        return self.events[-1].gradients / self.seconds

    @property
    def steps(self) -> list[Step]:
        """All `Step`s; at the end, some are not finished."""
        steps = []
        pulls: dict[int, StoreCall] = {}
        pushes: dict[int, StoreCall] = {}
        for event in (*self.events, *(
                StoreCall(self.seconds, rank, 'pull', 0, 0)
                for rank in range(self.num_workers))):
            rank = event.rank
            if event.call != 'pull':
                pushes[rank] = event
                continue
            if rank in pulls:
                pull, push = pulls.pop(rank), pushes.pop(rank, event)
                steps.append(Step(rank, pull.time, push.time, event.time,
                                  self._staleness(pull, push)))
            pulls[rank] = event
        return steps

    def _staleness(self, pull, push):
        if push.call == 'push':
            together = self.consistency in ('sync', 0)
            return 0 if together else push.updates - 1 - pull.updates

    @property
    def staleness(self) -> Counter[int]:
        """For each number of missed updates, the number of such gradients."""
        return Counter(step.staleness for step in self.steps
                       if step.staleness is not None)

    @property
    def waiting(self) -> list[float]:
        """The share of its time that each worker has waited."""
        waited = [0.0] * self.num_workers
        for step in self.steps:
            waited[step.rank] += step.next - step.end
        return [seconds / self.seconds for seconds in waited]


def _arguments_fit(times, consistency, backups, num_gradients):
    up_to_1000('the number of rows in times', len(times))
    if len(times) * num_gradients > MAX_STEPS:
        raise ValueError(
            f'num_gradients must be at most {MAX_STEPS // len(times):,} for '
            f'{len(times):,} workers; it was {num_gradients:,}')
    if backups and (consistency not in ('sync', 0) or backups >= len(times)):
        raise ValueError(
            "backups goes with consistency='sync' and must be fewer than the "
            f'{len(times)} workers of times; it was {backups}, with '
            f'consistency={consistency!r}')


def table(name: str, value: Any) -> list[list[float]]:
    """A check: a row of positive numbers for each worker."""
    if isinstance(value, np.ndarray) and value.size <= MAX_STEPS:
        value = value.tolist()
    return list_of(list_of(positive, 'a list of positive numbers'), (
        'a table of seconds such as [[1], [1], [5]]'))(name, value)


@checked(_arguments_fit, times=table, consistency=how_consistent,
         num_gradients=partial(integer, most=1_000_000), backups=from_zero)
def virtual_clock(times: np.ndarray | Sequence[Sequence[float]],
                  consistency: int | Literal['sync', 'async'] = 'sync',
                  num_gradients: int = 100, backups: int = 0) -> Plan:
    """Play until `num_gradients` have been used; return the `Plan`.

    Args:
        times: seconds of the steps, a row for each worker, as `step_times`
            makes it. After the last step of its row, a worker begins the
            row again.
        consistency: 'sync', 'async' or a bound, as in `d2lps.KVStore`.
        num_gradients: an update uses the gradient of one worker; with
            'sync', it uses the gradients of all workers.
        backups: with 'sync', an update uses the gradients of all but this
            number of workers; later ones are dropped (Chen et al. 2016).

    Pushes and pulls take no time. At one moment, ranks come in order.
    """
    n = len(times)
    if consistency == 'sync':
        bound: float = 0
    elif consistency == 'async':
        bound = np.inf
    else:
        bound = consistency
    pushed, seen = [0] * n, [0] * n  # counts of pushes; updates last seen
    idle: set[int] = set(range(n))
    computing: list[tuple[float, int]] = []  # (when it ends, rank)
    in_update: set[int] = set()
    events: list[StoreCall] = []
    now, updates, gradients = 0.0, 0, 0

    def must_wait(rank: int) -> bool:
        if bound == 0:
            return rank in in_update
        return pushed[rank] - min(pushed) > bound

    while gradients < num_gradients:
        for rank in sorted(idle):
            if not must_wait(rank):
                idle.remove(rank)
                seen[rank] = updates
                seconds = times[rank][pushed[rank] % len(times[rank])]
                heapq.heappush(computing, (now + seconds, rank))
                events.append(StoreCall(now, rank, 'pull', updates, gradients))
        now, rank = heapq.heappop(computing)  # the first to end pushes next
        pushed[rank] += 1
        idle.add(rank)
        late = bound == 0 and seen[rank] < updates
        if not late:
            in_update.add(rank)
            if bound or len(in_update) == n - backups:
                updates += 1
                gradients += len(in_update)
                in_update.clear()
        events.append(StoreCall(now, rank, 'late' if late else 'push',
                                updates, gradients))
    return Plan(n, consistency, backups, tuple(events))
