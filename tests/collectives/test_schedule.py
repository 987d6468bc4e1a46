"""Plans: proved by counting, run on arrays, and broken on purpose."""
import re
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lps.collectives import schedule as schedule_module
from d2lps.collectives import strategies as sch
from d2lps.collectives.reading import Reader
from d2lps.collectives import Schedule, ScheduleError, Send
from plans import BY_N, BY_TWO, schedules, some_run


# --- every strategy is right -------------------------------------------------

@pytest.mark.parametrize('name', BY_N)
def test_strategies_pass_check(name):
    for n in [*range(1, 10), 16, 31]:
        schedule = BY_N[name](n)
        assert schedule.check() is schedule
        assert schedule.num_devices == n


@pytest.mark.parametrize('name', BY_TWO)
def test_strategies_of_two_numbers_pass_check(name):
    for a in range(1, 6):
        for b in range(1, 6):
            BY_TWO[name](a, b).check()


def test_no_device_is_only_a_leaf_in_the_double_tree():
    for n in range(2, 65):
        inner = {send.dst for r in sch.double_tree(n).rounds
                 for send in r if send.reduce}
        assert inner == set(range(n))


# --- a schedule is data ------------------------------------------------------

def test_reads_as_a_tuple_of_rounds_of_sends():
    rounds = sch.ring(3).rounds
    assert isinstance(rounds, tuple) and len(rounds) == 4
    assert tuple(rounds[0]) == (Send(0, 1, 0, True), Send(1, 2, 1, True),
                                Send(2, 0, 2, True))
    assert rounds[-1][-1] == Send(2, 0, 2, False)
    assert rounds[0][:2] == tuple(rounds[0])[:2]
    cpu = sch.gather_broadcast(2, 'cpu')
    assert tuple(cpu.rounds[1]) == (Send('cpu', 0, 0, False),
                                    Send('cpu', 1, 0, False))
    assert cpu.nodes == (0, 1, 'cpu')


@pytest.mark.parametrize('bad, words', [
    (lambda: sch.ring(0), 'n must be a whole number .*was 0'),
    (lambda: sch.gather_broadcast(4, 4),
     'root must be a device, 0 to 3, .*was 4'),
    (lambda: sch.two_rings(1), 'both_ways must be True or False'),
    (lambda: sch.hierarchical(2, 2, abs), r'across\(num_machines\) must be '),
    (lambda: sch.hierarchical(4, 2, lambda m: sch.ring(2)), 'for 4 machines'),
    (lambda: sch.pipelined(3, 2), 'schedule must be a Schedule'),
    (lambda: list(sch.ring(1024).states()), 'too large to count'),
    (lambda: Schedule([[], [Send(0, 1, 0, True), Send(0, 2, 0, True)]], 2),
     '^in round 2, message 2 goes to device 2; devices are 0 to 1$'),
    (lambda: Schedule([[Send([0, -3], 1, 0, True)]], 3, ['cpu']),
     "message 1 comes from device -3; devices are 0 to 2, and .*: 'cpu'$"),
    (lambda: Schedule([[Send([0, 1], [2, 1], 0, True)]], 3),
     'in round 1, message 1 goes from device 1 to itself'),
    (lambda: Schedule([[Send(0, 1, 5, True)]], 2, weights=[1]),
     'message 1 carries chunk 5; chunks are 0 to 0$'),
    (lambda: Schedule([[Send(0, 'cpu', 0, True)]], 2),
     r"message 1 goes to 'cpu', which is no helper. .*helpers=\['cpu'\]"),
    (lambda: Schedule([[Send(0, 1, 'cpu', True)]], 2, ['cpu']),
     "message 1: chunk must be a whole number, .* was 'cpu'"),
    (lambda: Schedule([], 2, ['cpu', 'cpu']), 'helpers .*different names'),
    (lambda: Schedule([], 2, weights=[np.nan, 1]), 'weights must be'),
    (lambda: Schedule([3], 2), 'round 1 must be a list of Send'),
    (lambda: Schedule([Send(0, 1, 0, True)], 2), r'round 1 .* into \[ \]$'),
    (lambda: Schedule('ring', 2), 'rounds must be a list of rounds'),
    (lambda: Schedule([[(0, 1, 0)]], 2), 'round 1, message 1 must be a Send'),
    (lambda: Schedule([[Send(0.9, 1, 0, True)]], 2), r'src must be .*was 0.9'),
    (lambda: Schedule([[Send(0, 1, 0, 1)]], 2), 'reduce must be True or'),
    (lambda: Schedule([[Send([0, 1], [1, 2, 0], 0, True)]], 3), 'one length'),
    (lambda: sch.ring(2).run([np.ones(1), np.ones(1)], op=3), 'op must be a'),
])
def test_bad_arguments_are_named(bad, words):
    with pytest.raises(ValueError, match=words):
        bad()


@pytest.mark.parametrize('make', [
    lambda: sch.ring(100_001), lambda: sch.sharded(4097),
    lambda: sch.hierarchical(1024, 64), lambda: sch.parameter_server(
        10 ** 5, 10 ** 5), lambda: sch.pipelined(sch.ring(1024), 1000)])
def test_what_memory_would_not_hold_is_refused_before_it_is_made(make):
    tracemalloc.start()
    with pytest.raises(ValueError, match='whole number from 1|must be smalle'):
        make()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500e6


def test_a_schedule_does_not_change_with_the_arrays_it_was_made_from():
    src, dst, whole = np.array([0, 1]), np.array([1, 0]), np.array([0, 1, 0])
    plan = Schedule([[Send(src, dst, whole[:2], np.array([True, True]))],
                     [Send(src, dst, whole[1:], False)]], 2).check()
    before = [tuple(sends) for sends in plan.rounds]
    for array in src, dst, whole:
        array[:] = 1 - array
    assert [tuple(sends) for sends in plan.rounds] == before
    with pytest.raises(ValueError, match='read-only'):
        plan.rounds[0].chunk[0] = 1


@pytest.mark.full
def test_half_a_billion_sends_need_little_memory():
    plan = sch.ring(16_384)
    owners = {id(column if column.base is None else column.base)
              for sends in plan.rounds for column in (
                  sends.src, sends.dst, sends.chunk, sends.reduce)}
    assert len(owners) == 5  # reduce is all True, and then all False
    assert plan.rounds[20_000][7] == Send(7, 8, (7 - 20_000) % 16_384, False)
    assert plan.rounds[-1][-2:] == (Send(16_382, 16_383, 1, False),
                                    Send(16_383, 0, 2, False))


# --- who holds what ----------------------------------------------------------

def recount(schedule):
    """Like `states`, but in plain Python: a list of dicts of Counters."""
    held = {(i, c): Counter([i]) for i in range(schedule.num_devices)
            for c in range(len(schedule.weights))}
    history = [held]
    for sends in schedule.rounds:
        new = {place: Counter(held[place]) for place in held}
        for reduce in False, True:
            for send in sends:
                if send.reduce is reduce:
                    place = send.dst, send.chunk
                    had = new.get(place, Counter()) if reduce else Counter()
                    had.update(held.get((send.src, send.chunk), Counter()))
                    new[place] = had
        held = new
        history.append(held)
    return history


@given(schedules())
def test_states_agree_with_plain_counting(schedule):
    for state, held in zip(schedule.states(), recount(schedule), strict=True):
        for k, node in enumerate(schedule.nodes):
            for chunk in range(len(schedule.weights)):
                count = held.get((node, chunk), {})
                assert state[k, chunk].tolist() == [
                    count.get(i, 0) for i in range(schedule.num_devices)]


def deliver(held, sends, op):
    """Carry out the sends of a round on `held`, {(node, chunk): array}."""
    values = [held[send.src, send.chunk] for send in sends]
    for send, value in zip(sends, values):
        slot = send.dst, send.chunk
        reduces = send.reduce and slot in held
        held[slot] = op(held[slot], value) if reduces else value


def run_plainly(schedule, arrays, op=np.add):
    """What `Schedule.run` does with NumPy arrays, in few lines."""
    cuts, held = schedule.cuts(arrays[0].size), {}
    for node, array in enumerate(arrays):
        for chunk, part in enumerate(np.split(array.flatten(), cuts[1:-1])):
            held[node, chunk] = part
    for sends in schedule.rounds:
        deliver(held, sends, op)
    for node, array in enumerate(arrays):
        parts = [held[node, chunk] for chunk in range(len(cuts) - 1)]
        array[...] = np.concatenate(parts).reshape(array.shape)


# --- every mistake is found --------------------------------------------------

def sum_goes_wrong(schedule):
    """Does `run` refuse, or give anything but the sum?"""
    random = np.random.default_rng(1)
    arrays = list(random.integers(0, 2 ** 40, (schedule.num_devices, 2 * len(
        schedule.weights))))
    total = sum(arrays)
    again = [array.copy() for array in arrays]
    try:
        schedule.run(arrays)
    except ScheduleError:
        return True
    run_plainly(schedule, again)
    assert np.array_equal(arrays, again)
    return any((array != total).any() for array in arrays)


# Sends without an element; that of one field may be a list, or all are arrays.
NOTHING = (Send([], 0, 0, True), Send(0, [], 0, False), Send(0, 1, 0, []),
           Send(*np.empty((4, 0), int)))


@st.composite
def broken(draw):
    """A schedule with one send dropped, doubled, moved, or changed.

    Beside those that are left, there may be some that send nothing.
    """
    schedule = draw(schedules().filter(lambda s: s.rounds))
    rounds = list(map(list, schedule.rounds))
    r = draw(st.integers(0, len(rounds) - 1))
    k = draw(st.integers(0, len(rounds[r]) - 1))
    how = draw(st.sampled_from(['drop', 'double', 'move', 'move', 'turn',
                                'flip', 'aim', 'swap']))
    send = rounds[r][k]
    if how == 'double':
        rounds[r].append(send)
    elif how == 'drop':
        del rounds[r][k]
    elif how == 'move':
        del rounds[r][k]
        rounds[draw(st.integers(0, len(rounds) - 1))].append(send)
    elif how == 'turn':
        rounds[r][k] = Send(send.dst, send.src, *send[2:])
    elif how == 'flip':
        rounds[r][k] = send._replace(reduce=not send.reduce)
    elif how == 'aim':
        others = [n for n in schedule.nodes if n != send.src]
        rounds[r][k] = send._replace(dst=draw(st.sampled_from(others)))
    elif how == 'swap':
        other = draw(st.integers(0, len(rounds) - 1))
        rounds[r], rounds[other] = rounds[other], rounds[r]
    for k in draw(st.lists(st.integers(0, len(rounds) - 1), max_size=2)):
        rounds[k] = [draw(st.sampled_from(NOTHING)), *rounds[k]]
    return how, Schedule(rounds, schedule.num_devices,
                         schedule.nodes[schedule.num_devices:],
                         schedule.weights, schedule.name)


def verdict(schedule):
    """Does `check` find it right?"""
    try:
        return schedule.check() is schedule
    except ScheduleError:
        return False


def test_large_schedules_are_checked_with_random_numbers(monkeypatch):
    schedule = sch.ring(1024)
    assert verdict(schedule)
    rounds = [[Send(r.src, r.dst, r.chunk, r.reduce)] for r in schedule.rounds]
    rounds[700] = [Send(*(field[:-1] for field in rounds[700][0]))]
    with pytest.raises(ScheduleError, match=r'ring: in the end, device \d+, '
                       r'chunk 323: not the sum'):
        Schedule(rounds, 1024, name='ring').check()

    @given(broken())
    def compare(case):
        _, schedule = case
        exact = verdict(schedule)
        with monkeypatch.context() as patch:
            patch.setattr(schedule_module, 'MOST_COUNTS', 0)
            assert verdict(schedule) == exact
    compare()


@pytest.mark.parametrize('most', [0, schedule_module.MOST_COUNTS])
def test_a_part_that_is_counted_2_to_the_64_times_more_is_found(
        monkeypatch, most):
    """Two helpers double it; integers of 64 bits would be at 0 again."""
    monkeypatch.setattr(schedule_module, 'MOST_COUNTS', most)
    doubling = 64 * [[Send('a', 'b', 0, False)], [Send('b', 'a', 0, True)]]
    plan = Schedule([[Send(0, 'a', 0, False)], *doubling,
                     [Send('a', 0, 0, True)], [Send(1, 0, 0, True)],
                     [Send(0, 1, 0, False)]], 2, ['a', 'b'])
    with pytest.raises(ScheduleError):
        plan.check()


@given(broken())
def test_check_finds_every_mistake_and_no_others(case):
    how, schedule = case
    try:
        schedule.check()
    except ScheduleError:
        assert sum_goes_wrong(schedule)
    else:
        assert how != 'double'
        # A lone machine's trip to the CPU or to a server is not needed.
        assert how != 'drop' or re.match(
            r"gather_broadcast\(1, 'cpu'\)|hierarchical\(1,.*server|"
            r'parameter_server\(1,', schedule.name)
        assert not sum_goes_wrong(schedule)
        once = Counter(range(schedule.num_devices))
        assert all(held == once for (node, _), held in recount(
            schedule)[-1].items() if node in range(schedule.num_devices))


@pytest.mark.parametrize('rounds, message', [
    ([[Send(0, 1, 0, True)]],
     'test: in the end, device 0, chunk 0: nothing arrived'),
    ([[Send(0, 1, 0, True)] * 2, [Send(1, 0, 0, False)]],
     'after round 1, device 1, chunk 0: the contribution of device 0 is '
     'counted 2 '),
    ([[Send('cpu', 1, 0, True)]],
     'in round 1, cpu sends chunk 0, of which it has nothing yet'),
    ([[Send(0, 'cpu', 0, True)], [Send('cpu', [0, 1], 0, False)]],
     'after round 2, device 0, chunk 0: the contribution of device 1 is '
     'missing'),
    ([[Send([0, 0, 1], 'cpu', 0, True)], [Send('cpu', [0, 1], 0, False)]],
     'after round 1, cpu, chunk 0: the contribution of device 0 is counted '
     '2 times'),
])
def test_messages(rounds, message):
    schedule = Schedule(rounds, 2, ['cpu'], name='test')
    with pytest.raises(ScheduleError, match=re.escape(message)):
        schedule.check()


# --- run ---------------------------------------------------------------------

@given(st.data())
def test_run_is_numpys_reduction(data):
    schedule, op, rows, want = data.draw(some_run())
    arrays = [np.array(row) for row in rows]
    if data.draw(st.booleans()):  # with gaps between the elements
        arrays = [np.repeat(row[..., None], 2, -1)[..., 0] for row in rows]
    for _ in range(2):  # the second time with the buffers of the first
        for array, row in zip(arrays, rows):
            array[...] = row
        schedule.run(arrays, op=op)
        for array in arrays:
            np.testing.assert_array_equal(array, want)
    again = [np.array(row) for row in rows]
    run_plainly(schedule, again, op)
    np.testing.assert_array_equal(again, arrays)


@pytest.mark.parametrize('dtype', ['int64', 'bool'])
def test_run_cuts_nothing_off(dtype):
    """A result that the arrays cannot hold is refused, and never rounded."""
    arrays = [np.array([1, 1, 0, 0]).astype(dtype) for _ in range(4)]
    with pytest.raises(ValueError, match='op returned float[0-9]* for two arr'
                       f'ays of {dtype}.*: convert the arrays to float'):
        sch.ring(4).run(arrays, op=np.hypot)
    floats = [np.ones(4) for _ in range(4)]
    sch.ring(4).run(floats, op=np.hypot)  # as the message says
    np.testing.assert_allclose(floats, 2)


@pytest.mark.parametrize('arrays, words', [
    ([np.ones(2)], 'needs 2'),
    ([np.ones(2), np.ones(3)],
     r'arrays\[1\] is numpy.ndarray of shape \(3,\)'),
    ([np.ones(2), np.ones(2, int)], 'dtype int64'),
    ([np.ones(2)] * 2, 'twice'),
    ([np.ones(2), np.broadcast_to(1.0, 2)], 'read-only'),
    (np.ones((2, 3)), 'in a list'),
    ([np.matrix([1, 2]), np.matrix([1, 2])], r'arrays\[0\] is a matrix')])
def test_run_refuses_arrays_that_do_not_fit(arrays, words):
    with pytest.raises(ValueError, match=words):
        sch.ring(2).run(arrays)


VIEWED = np.arange(12.0)


@pytest.mark.parametrize('arrays', [
    [VIEWED[0:6], VIEWED[5:11]],
    [np.zeros(6), np.lib.stride_tricks.as_strided(VIEWED, (6,), (0,))],
])
def test_run_refuses_arrays_that_share_memory(arrays):
    before = VIEWED.copy()
    with pytest.raises(ValueError, match=r'arrays\[.\] shares memory'):
        sch.ring(2).run(arrays)
    assert (VIEWED == before).all()


def test_one_schedule_in_several_threads():
    n = 5
    schedule = sch.ring(n)

    def sums(seed):
        random = np.random.default_rng(seed)
        for _ in range(10):
            rows = random.integers(0, 1000, (n, 200_003))
            arrays = [row.copy() for row in rows]
            schedule.run(arrays)
            yield all((array == rows.sum(axis=0)).all() for array in arrays)

    with ThreadPoolExecutor(4) as pool:
        right = list(pool.map(lambda seed: list(sums(seed)), range(4)))
    assert right == [[True] * 10] * 4
    assert len(schedule.executor.buffers) == 1


@pytest.mark.parametrize('op', [np.dot, lambda a, b: None])
def test_run_refuses_what_does_not_work_element_by_element(op):
    with pytest.raises(ValueError, match='op must work element by element'):
        sch.ring(2).run([np.ones(6), np.ones(6)], op=op)


def test_run_refuses_a_senseless_schedule_before_it_changes_anything():
    plan = Schedule([[Send(0, 1, 0, False)], [Send('cpu', 0, 0, True)]], 2,
                    ['cpu'])
    arrays = [np.zeros(2), np.ones(2)]
    with pytest.raises(ScheduleError, match='nothing yet'):
        plan.run(arrays)
    assert arrays[1].all()


# --- read-only arrays are read once ------------------------------------------

def fixed(*numbers):
    array = np.array(numbers)
    array.flags.writeable = False
    return array


def test_a_ring_reads_each_of_its_arrays_once(monkeypatch):
    """However many rounds share it: two orders, and a window per device."""
    read = []

    def reads(self, value, *rest, real=Reader._read):
        read.append(value)
        return real(self, value, *rest)
    monkeypatch.setattr(Reader, '_read', reads)
    plan = sch.ring(50)
    assert sum(isinstance(value, np.ndarray) for value in read) == 52
    first, last = plan.rounds[0], plan.rounds[-1]
    assert first.src is last.src and first.dst is last.dst
