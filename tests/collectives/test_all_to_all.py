"""All-to-all: what each device has for each other arrives, by any way."""
import numpy as np
import pytest
from d2lps.collectives import all_to_all, simulate, topology
from d2lps.collectives import Schedule, ScheduleError, Send

UNEVEN = np.random.default_rng(0).integers(0, 9, (8, 8)) * 1e6
RATE = 50e9  # bytes per second


@pytest.mark.parametrize('plan', [
    all_to_all.direct(1), all_to_all.direct(5), all_to_all.direct(UNEVEN),
    all_to_all.by_rail(UNEVEN, 4), all_to_all.by_rail(6, 3),
    all_to_all.by_rail(6, 6), all_to_all.by_rail(6, 1)], ids=repr)
def test_each_device_gets_what_is_meant_for_it(plan):
    assert all_to_all.check(plan) is plan


@pytest.mark.parametrize('make', [
    all_to_all.direct, lambda sizes: all_to_all.by_rail(sizes, 2)])
def test_arrays_arrive(make):
    """Device i fills row i; afterwards column j is filled at device j."""
    arrays = [np.full((4, 4), np.nan) for _ in range(4)]
    for i, array in enumerate(arrays):
        array[i] = 10 * i + np.arange(4)
    make(np.ones((4, 4))).run(arrays)
    for j, array in enumerate(arrays):
        assert (array[:, j] == 10 * np.arange(4) + j).all()


def test_what_does_not_arrive_is_named():
    plan = all_to_all.direct(3)
    cut = Schedule(plan.rounds[:1], 3, weights=plan.weights)
    with pytest.raises(ScheduleError, match='device 2, chunk 2: not the data '
                                            'of device 0, once and alone'):
        all_to_all.check(cut)


def test_sums_are_no_exchange():
    added = Schedule([[Send(0, 1, 1, True)], [Send(1, 0, 2, False)]], 2,
                     weights=[0, 1, 1, 0])
    with pytest.raises(ScheduleError, match='device 1, chunk 1: not the data'):
        all_to_all.check(added)


def test_plans_too_large_to_count_are_checked():
    plan = all_to_all.direct(101)
    assert all_to_all.check(plan) is plan
    with pytest.raises(ScheduleError, match='not the data of'):
        all_to_all.check(Schedule(plan.rounds[1:], 101, weights=plan.weights))


def test_equal_sizes_take_what_a_card_carries():
    """Each device sends and receives 7 parts of 1 MB."""
    plan = all_to_all.direct(8)
    took = simulate.timing(plan, topology.pcie_switch(8, RATE), 64e6)
    assert np.isclose(took.seconds, 7e6 / RATE)


def test_the_fullest_device_decides_without_a_barrier():
    """No plan is faster than the busiest link, and this one comes near."""
    sizes = np.ones((8, 8)) * 1e6
    sizes[:, 0] *= 5  # device 0 has the popular expert
    np.fill_diagonal(sizes, 0)
    hosts = topology.pcie_switch(8, RATE)
    took = simulate.timing(all_to_all.direct(sizes), hosts, sizes.sum(),
                           barrier=False).seconds
    assert np.isclose(took, 35e6 / RATE)


def test_by_rail_sends_fewer_messages_over_the_network():
    """With m machines of d devices: m - 1 for each device, not (m - 1) d."""
    direct, by_rail = all_to_all.direct(32), all_to_all.by_rail(32, 8)

    def across(plan):
        pairs = {(src, dst) for sends in plan.rounds
                 for src, dst in zip(sends.src.tolist(), sends.dst.tolist())
                 if src // 8 != dst // 8}
        return len(pairs)
    assert across(direct) == 32 * 24 and across(by_rail) == 32 * 3
    sent = [sum(plan.weights[sends.chunk[
        sends.src // 8 != sends.dst // 8]].sum() for sends in plan.rounds)
        for plan in (direct, by_rail)]
    assert sent[0] == sent[1] == 32 * 24


@pytest.mark.parametrize('make, argument', [
    (lambda: all_to_all.direct(0), 'sizes'),
    (lambda: all_to_all.direct(np.ones((2, 3))), 'sizes'),
    (lambda: all_to_all.direct(np.zeros((2, 2))), 'sizes'),
    (lambda: all_to_all.direct([[0, -1], [1, 0]]), 'sizes'),
    (lambda: all_to_all.direct('8'), 'sizes'),
    (lambda: all_to_all.check(8), 'schedule must be a Schedule'),
    (lambda: all_to_all.check(Schedule([], 2)),
     '2 devices need 4 chunks, .* it has 1'),
    (lambda: all_to_all.by_rail(8, 3), 'num_devices'),
    (lambda: all_to_all.by_rail(8, 0), 'num_devices')])
def test_bad_arguments_are_named(make, argument):
    with pytest.raises(ValueError, match=argument):
        make()
