"""Exercise: a server says who goes on, and who is too far ahead.

To chapter 16, notebooks/16-asynchrony.ipynb.
"""
import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import index
from typing import Any, TypeAlias

from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Case, Check, Notes, Picture,
                                      Wrong, forbidding)


class Race:
    """What has happened until `now`.

    pushed: how often each worker has. computing: (when it ends, whose).
    waiting, done: workers. most: the greatest lead at the begin of a step.
    """

    def __init__(self, num_workers: int) -> None:
        self.pushed, self.now, self.most = [0] * num_workers, 0.0, 0
        self.computing: list[tuple[float, int]] = []
        self.waiting: set[int] = set()
        self.done: set[int] = set()
        self.events: list[tuple[float, int, str]] = []

    def slowest(self) -> int:
        return min({*range(len(self.pushed))} - self.done,
                   key=self.pushed.__getitem__)

    def ahead(self, rank: int) -> int:
        return self.pushed[rank] - self.pushed[self.slowest()]


# A function of the race, the rank that pushes and whether it is its last push.
# It returns the ranks that go on.
Decide: TypeAlias = Callable[[Race, int, bool], Iterable[int]]


def play(decide: Decide, times: Sequence[Sequence[float]], pushes: int,
         batches: Sequence[int] | None = None) -> Race:
    """Follow a virtual clock until nobody computes, or for so many pushes.

    times: as in the chapter. batches: how many each worker has, or no end.
    """
    race = Race(len(times))

    def begin(rank):
        race.waiting.discard(rank)
        race.most = max(race.most, race.ahead(rank))
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
        pushes: int, batches: Sequence[int] | None = None) -> Notes:
    """Whom the student's server let continue, after each push."""
    ours = Race.__init__, Race.slowest, Race.ahead, play
    with forbidding(*ours):
        gate, said = answer(len(times), bound), []

    def decide(race, rank, last):
        with forbidding(*ours):
            go = gate.push(rank, last)
        try:
            said.append([index(r) for r in go])
        except TypeError:
            raise Wrong(f'`push` returned {shown(go)}. A list of ranks is '
                        'wanted, such as [0, 2], or [] for no '
                        'worker.') from None
        return said[-1]

    play(decide, times, pushes, batches)
    return said


def judge(said: Notes, bound: int, slack: int = 0, **case: Any) -> None:
    """Raise `Wrong` at the first wrong decision.

    slack: so many more or less ahead is forgiven.
    """
    repeated, end = repeat(said), play(repeat(said), **case)
    stuck = '' if end.computing or not end.waiting else (
        f'after {end.now:g} s and {sum(end.pushed)} gradients, all workers '
        'wait for ever.')

    def decide(race, rank, last):
        go = [*repeated(race, rank, last)]
        text = (f'at {race.now:g} s, worker {rank} pushes its gradient number '
                f'{race.pushed[rank]}{", its last" if last else ""}. ')
        for r in go:
            why = _may_not_go(race, r, bound, slack) or (
                'and is in your list twice.' if go.count(r) > 1 else '')
            if why:
                more = f' Later a worker is {end.most} ahead.'
                raise Wrong(f'{text}Worker {r} is told to continue, {why}'
                            + more * (end.most > bound + 1))
        for r in sorted(race.waiting.difference(go)):
            if race.ahead(r) <= bound - slack:
                raise Wrong(text + _waits_in_vain(race, r, rank, bound)
                            + f' Later, {stuck}' * bool(stuck))
        return go

    play(decide, **case)
    if stuck:
        raise Wrong(stuck)


def _may_not_go(race, r, bound, slack):
    """Why worker r must not go on, if so."""
    if r not in race.waiting:
        return ('but it has no batch left.' if r in race.done else
                f'but only {sorted(race.waiting)} wait.')
    return '' if race.ahead(r) <= bound + slack else (
        f'and it is {race.ahead(r)} ahead of the slowest, worker '
        f'{race.slowest()}. The bound is {bound}.')


def _waits_in_vain(race, r, rank, bound):
    """Words about worker r, which may go on when worker `rank` has pushed."""
    text = f'Worker {r} is not told to continue, and it is ' + (
        'the slowest.' if race.ahead(r) == 0 else
        f'only {race.ahead(r)} ahead of the slowest, worker '
        f'{race.slowest()}. The bound is {bound}.')
    if r != rank:
        text += ' It has waited since an earlier push.'
    for d in race.done:
        if race.pushed[r] - race.pushed[d] > bound:
            return (f'{text} Worker {d} has pushed less often, but it has no '
                    'batch left and never pushes again.')
    return text


def judge_figure(said: Notes, bound: int, times: Sequence[Sequence[float]],
                 pushes: int) -> None:
    """Gradients per second, as the chapter's own clock has them."""
    from d2lps.asynchrony.clock import virtual_clock
    end, right = play(repeat(said), times, pushes), virtual_clock(
        times, bound, pushes)
    if sum(end.pushed) == pushes and end.most <= bound and (
            end.now <= right.seconds):
        return
    text = (f'your workers push {sum(end.pushed) / end.now:.2f} gradients per '
            f'second, and a worker is up to {end.most} ahead. Right are '
            f'{right.throughput:.2f} per second, and up to {bound} ahead.')
    try:
        judge(said, bound, times=times, pushes=pushes)
    except Wrong as error:
        raise Wrong(f'{text} The first wrong decision: {error}') from None


def says_figure(said: Notes, bound: int, times: Sequence[Sequence[float]],
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
CHECKS = {
    'rule': Check(
        [{'bound': 2, 'pushes': 24, 'times': SLOW},
         {'bound': 0, 'pushes': 16, 'times': SLOW},
         {'bound': 1, 'pushes': 20, 'times': [[1, 4], [2], [3, 1, 1]]}],
        run, judge, 'no worker is too far ahead, and no worker waits in '
                    'vain.'),
    'last': Check(
        [{'bound': 1, 'pushes': 12, 'times': [[1], [1], [2]],
          'batches': [2, 6, 4]},
         {'bound': 0, 'pushes': 6, 'times': [[3], [1]], 'batches': [2, 4]}],
        run, partial(judge, slack=1),
        'no worker waits for a worker that has no batch left.'),
    'figure': Check([TARGET], run, judge_figure,
                    "your rule is as fast as the chapter's.", says_figure)}
