"""Exercise: a server says who goes on, and who is too far ahead.

To chapter 16, notebooks/16-asynchrony.ipynb.
"""
import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import index
from typing import Any, TypeAlias

from d2lps.exercises.checking import (Answer, Case, Check, Differs, Picture,
                                      Wrong, returned)
from d2lps.explaining import brief


class Race:
    """The state of all workers at the time `now`.

    pushed: how often each worker has. computing: (when it ends, whose).
    waiting, done: workers. most: the greatest lead at the begin of a step.
    """

    def __init__(self, num_workers: int) -> None:
        self.pushed, self.now, self.most = [0] * num_workers, 0.0, 0
        self.computing: list[tuple[float, int]] = []
        self.waiting: set[int] = set()
        self.done: set[int] = set()
        self.events: list[tuple[float, int, str]] = []


def _slowest(race):
    """The worker with the fewest pushes that is not done."""
    return min({*range(len(race.pushed))} - race.done,
               key=race.pushed.__getitem__)


def _ahead(race, rank):
    return race.pushed[rank] - race.pushed[_slowest(race)]


# A function of the race, the rank that pushes and whether it is its last push.
# It returns the ranks that go on.
Decide: TypeAlias = Callable[[Race, int, bool], Iterable[int]]
# After each push, the ranks that go on.
Replies: TypeAlias = Sequence[Sequence[int]]


def play(decide: Decide, times: Sequence[Sequence[float]], pushes: int,
         batches: Sequence[int] | None = None) -> Race:
    """Follow a virtual clock until nobody computes, or for so many pushes.

    times: as in the chapter. batches: how many each worker has, or no end.
    """
    race = Race(len(times))

    def begin(rank):
        race.waiting.discard(rank)
        race.most = max(race.most, _ahead(race, rank))
        race.events.append((race.now, rank, 'pull'))
        seconds = times[rank][race.pushed[rank] % len(times[rank])]
        heapq.heappush(race.computing, (race.now + seconds, rank))

    for rank in range(len(times)):
        begin(rank)
    while race.computing and sum(race.pushed) < pushes:
        race.now, rank = heapq.heappop(race.computing)
        race.pushed[rank] += 1
        race.events.append((race.now, rank, 'push'))
        last = race.pushed[rank] == batches[rank] if batches else False
        (race.done if last else race.waiting).add(rank)
        for other in sorted({*decide(race, rank, last)} & race.waiting):
            begin(other)
    return race


def repeat(said: Iterable[Sequence[int]]) -> Decide:
    """Decide as the student's server did."""
    said = iter(said)
    return lambda race, rank, last: next(said, ())


def run(answer: Answer, times: Sequence[Sequence[float]], bound: int,
        pushes: int, batches: Sequence[int] | None = None) -> Replies:
    """Whom the student's server let continue, after each push."""
    gate, said = answer(len(times), bound), []

    def decide(race, rank, last):
        go = returned(gate.push, rank, last)
        try:
            said.append([index(r) for r in go])
        except TypeError:
            raise Wrong(f'`push` returned {brief(go)}; a list of workers is '
                        'right.', anywhere=True) from None
        return said[-1]

    play(decide, times, pushes, batches)
    return said


def judge(said: Replies, bound: int, slack: int = 0, **case: Any) -> None:
    """Raise `Wrong` at the first wrong decision.

    slack: so many more or less ahead is forgiven.
    """
    repeated = repeat(said)

    def decide(race, rank, last):
        go = [*repeated(race, rank, last)]
        right = [r for r in sorted(race.waiting) if _ahead(race, r) <= bound]
        for r in sorted({*go} | race.waiting):
            why = _why(race, r, rank, go.count(r), bound, slack)
            if why:
                raise Differs(
                    f'with {race.pushed} pushes, push({rank}, {last}) returns '
                    f'{brief(go)}; {brief(right)} is right', go, right,
                    known={('why',): f'Worker {r} {why}.'})
        return go

    end = play(decide, **case)
    if end.waiting and not end.computing:
        raise Wrong(f'after {sum(end.pushed)} pushes, all workers wait for '
                    'ever.')


def _why(race, r, rank, often, bound, slack):
    """A fact about worker r, if it is wrong that it is `often` in the list."""
    if r not in race.waiting:
        return ('has no batch left' if r in race.done else
                'computes already' if 0 <= r < len(race.pushed) else
                'does not exist')
    if often > 1:
        return f'is in your list {often} times'
    ahead, slowest = _ahead(race, r), _slowest(race)
    if ahead <= bound + slack if often else ahead > bound - slack:
        return ''
    why = f'is {ahead} ahead of worker {slowest}' if ahead else (
        'is the slowest')
    if often:
        return why
    if r != rank:
        why = f'has waited since an earlier push and {why}'
    for d in race.done:
        if race.pushed[d] < race.pushed[slowest]:
            return f'{why}: worker {d} is done'
    return why


def judge_figure(said: Replies, bound: int, times: Sequence[Sequence[float]],
                 pushes: int) -> None:
    """Gradients per second, as the chapter's own clock has them."""
    from d2lps.asynchrony.clock import virtual_clock
    end, right = play(repeat(said), times, pushes), virtual_clock(
        times, bound, pushes)
    if sum(end.pushed) < pushes or end.now > right.seconds or (
            end.most > bound):
        raise Wrong(
            f'your workers push {sum(end.pushed) / end.now:.2f} gradients per '
            f'second, and one is up to {end.most} ahead; '
            f'{right.throughput:.2f} and at most {bound} are right.')


def says_figure(said: Replies, bound: int, times: Sequence[Sequence[float]],
                pushes: int) -> str:
    from d2lps.asynchrony.clock import virtual_clock
    race, all_wait = play(repeat(said), times, pushes), virtual_clock(
        times, 0, pushes)
    return (f'Your workers push {sum(race.pushed) / race.now:.2f} gradients '
            'per second. If all workers wait for all others, it is '
            f'{all_wait.throughput:.2f}.')


def picture(answer: Answer) -> Picture:
    """Draw who computes and who waits."""
    from d2lps.asynchrony.clock import Plan, StoreCall
    from d2lps.pictures import Row, plot_plan
    race = play(repeat(run(answer, **TARGET)), TURNS, TARGET['pushes'])
    plan = Plan(4, 2, 0, tuple(StoreCall(*event, k, k) for k, event in
                               enumerate(race.events)))
    return Row(plot_plan(plan, until=40, title=(
        f'bound 2: {sum(race.pushed)} gradients, '
        f'{sum(race.pushed) / race.now:.2f} per second; at most {race.most} '
        'ahead')))


SLOW = [[1], [1], [1], [5]]
TURNS = [[5, 1, 1, 1, 1], [1, 1, 5, 1, 1], [1, 1, 1, 5, 5], [1, 5, 1, 1, 1]]
TARGET: Case = {'bound': 2, 'pushes': 200, 'times': TURNS}
CASE = 'bound = {bound}'
CHECKS = {
    'rule': Check(
        [{'bound': 2, 'pushes': 24, 'times': SLOW},
         {'bound': 0, 'pushes': 16, 'times': SLOW},
         {'bound': 1, 'pushes': 20, 'times': [[1, 4], [2], [3, 1, 1]]}],
        run, judge, 'no worker is too far ahead, and no worker waits in '
                    'vain.', case=CASE),
    'last': Check(
        [{'bound': 1, 'pushes': 12, 'times': [[1], [1], [2]],
          'batches': [2, 6, 4]},
         {'bound': 0, 'pushes': 6, 'times': [[3], [1]], 'batches': [2, 4]}],
        run, partial(judge, slack=1),
        'no worker waits for a worker that has no batch left.', case=CASE),
    'figure': Check([TARGET], run, judge_figure,
                    "your rule is as fast as the chapter's.", says_figure,
                    CASE)}
