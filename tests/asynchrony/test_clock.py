"""The virtual clock against formulas, recursions and a slower simulation."""
import math

import numpy as np
import pytest
from d2lps.asynchrony.clock import KINDS, step_times, virtual_clock
from hypothesis import given
from hypothesis import strategies as st

STRAGGLER = [[1], [1], [1], [5]]
TIMES = st.integers(1, 5).flatmap(lambda n: st.lists(
    st.lists(st.integers(1, 9) | st.floats(0.1, 9), min_size=1, max_size=6),
    min_size=n, max_size=n))


def ends(plan, kinds=('push', 'late')):
    """The times at which each worker has pushed."""
    return [[event.time for event in plan.events
             if event.rank == rank and event.call in kinds]
            for rank in range(plan.num_workers)]


def seconds(times, rank, number):
    return times[rank][number % len(times[rank])]


@given(times=TIMES, bound=st.integers(0, 5) | st.just('async'))
def test_pushes_come_when_the_recursion_says(times, bound):
    """Round c begins when one's own last one has ended, and all of c-k-1."""
    plan = virtual_clock(times, bound, num_gradients=40)
    n, k, found = len(times), bound, ends(plan)
    most = max(map(len, found))
    expected = [[] for _ in times]
    for number in range(most):
        for rank in range(n):
            start = expected[rank][-1] if number else 0.0
            if k != 'async' and number > k:
                start = max(start, *(row[number - k - 1] for row in expected))
            expected[rank].append(start + seconds(times, rank, number))
    for rank in range(n):  # equal, not only close
        assert found[rank] == expected[rank][:len(found[rank])]
        assert all(t >= plan.seconds for t in
                   expected[rank][len(found[rank]):])


@given(times=TIMES, data=st.data())
def test_backup_workers_as_simulated_round_by_round(times, data):
    n = len(times)
    backups = data.draw(st.integers(0, n - 1))
    plan = virtual_clock(times, 'sync', 30, backups)
    begun = [(0.0, 0)] * n  # when, and in which round; None: it waits
    done, now, round_, late = [0] * n, 0.0, 0, 0
    while round_ * (n - backups) < 30:
        ready = [(begun[r][0] + seconds(times, r, done[r]), r)
                 for r in range(n) if begun[r]]
        now, rank = min(ready)
        done[rank] += 1
        if begun[rank][1] < round_:
            late += 1
            begun[rank] = now, round_
            continue
        begun[rank] = None
        if begun.count(None) == n - backups:
            round_ += 1
            begun = [one or (now, round_) for one in begun]
    assert plan.seconds == now
    assert plan.events[-1].gradients == round_ * (n - backups)
    assert plan.events[-1].updates == round_
    assert sum(event.call == 'late' for event in plan.events) == late
    assert set(plan.staleness) == {0}


def sooner(times, consistency, num_gradients, **how):
    """How much sooner than 'sync' it has used so many gradients."""
    return (virtual_clock(times, 'sync', num_gradients).seconds
            / virtual_clock(times, consistency, num_gradients, **how).seconds)


def test_a_straggler_for_ever_as_worked_by_hand():
    # Sync: 4 gradients each 5 s. Async: 3.2 each second. Bound 4: by 5 s 16,
    # as async; then 4 each 5 s.
    assert sooner(STRAGGLER, 'async', 16) == 4
    assert sooner(STRAGGLER, 4, 16) == 4
    assert sooner(STRAGGLER, 4, 24) >= 2 > sooner(STRAGGLER, 4, 40)
    assert 3.9 < sooner(STRAGGLER, 'async', 4000) <= 4
    assert 1 < sooner(STRAGGLER, 4, 4000) < 1.01
    assert sooner(STRAGGLER, 'sync', 4000, backups=1) > 3.7


def test_a_straggler_that_changes_is_overtaken_with_bound_4():
    times = step_times('a new straggler each step', 4, 2500)
    assert sooner(times, 'async', 2000) > 2.3
    assert sooner(times, 4, 2000) > 2
    assert sooner(times, 0, 2000) == 1
    gains = [sooner(times, k, 2000) for k in (0, 1, 2, 4, 8, 'async')]
    assert gains == sorted(gains)


def test_a_heavy_tail_is_the_law_it_says():
    times = step_times('heavy tail', 4, 100_000, seed=3)
    for x in 2, 5, 20:
        assert math.isclose((times > x).mean(), x ** -2, rel_tol=0.1)
    assert times.min() >= 1 and math.isclose(times.mean(), 2, rel_tol=0.02)
    # The mean of the largest of four: 4! * gamma(1/2) / gamma(4 + 1/2).
    largest = 24 * math.gamma(0.5) / math.gamma(4.5)
    assert math.isclose(times.max(axis=0).mean(), largest, rel_tol=0.03)


def test_step_times_are_what_they_are_called():
    assert (step_times('equal', 3, 5) == 1).all()
    assert step_times('one straggler', 3, 2, 7).tolist() == [
        [1, 1], [1, 1], [7, 7]]
    turns = step_times('a new straggler each step', 4, 1000, 5)
    assert (np.sort(turns, axis=0) == [[1], [1], [1], [5]]).all()
    assert ((turns == 5).sum(axis=1) > 200).all()
    for kind in KINDS:
        again = [step_times(kind, 3, 20, seed=seed) for seed in (1, 1, 2)]
        assert (again[0] == again[1]).all()
        assert (again[0] != again[2]).any() == (kind not in (
            'equal', 'one straggler'))


def test_staleness_as_worked_by_hand():
    # Two others push in each second, so a fast worker misses 2; the slow
    # one misses the 15 of 5 seconds, and each of the others one more then.
    plan = virtual_clock(STRAGGLER, 'async', 3200)
    assert {*plan.staleness} <= {0, 1, 2, 3, 15}
    assert plan.staleness[15] == 200 and plan.staleness[3] == 3 * 199
    assert virtual_clock([[1]] * 4, 'async', 4).staleness == {
        0: 1, 1: 1, 2: 1, 3: 1}
    assert sum(plan.staleness.values()) == 3200
    assert {*virtual_clock(STRAGGLER, 0, 40).staleness} == {0}


def test_waiting_as_worked_by_hand():
    plan = virtual_clock(STRAGGLER, 'sync', 40)
    assert plan.waiting == [0.8, 0.8, 0.8, 0]
    assert virtual_clock(STRAGGLER, 'async', 40).waiting == [0] * 4
    steps = virtual_clock([[1], [2]], 1, 6).steps
    assert [step[:4] for step in steps if step.rank == 0][:3] == [
        (0, 0, 1, 1), (0, 1, 2, 2), (0, 2, 3, 4)]


@pytest.mark.parametrize('more, message', [
    (dict(times=[]), '^times is too short'),
    (dict(times=[[1], [0]]), r'^times\[1\]\[0\] must be a positive'),
    (dict(consistency='eventual'), '^consistency must be'),
    (dict(backups=1), '^backups goes with'),
    (dict(backups=2, consistency='sync'), '^backups goes with'),
    (dict(num_gradients=500_001), '^num_gradients must be at most 500,000')])
def test_a_wrong_argument_is_named(more, message):
    with pytest.raises(ValueError, match=message):
        virtual_clock(**{**dict(times=[[1], [2]], consistency='async'),
                         **more})
