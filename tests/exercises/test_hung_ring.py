"""What ranks say of a hang fits what happened, in many plans."""
import random

import pytest

from d2lps.collectives import strategies
from d2lps.exercises import hung_ring

PLANS = ('ring', 'bidirectional_ring', 'tree', 'double_tree', 'sharded',
         'recursive_doubling', 'halving_doubling', 'gather_broadcast')


def rounds_begun(plan, stops):
    """Of each rank the last round, found round by round."""
    begun = [0] * plan.num_devices
    for _ in range(len(plan.rounds) * plan.num_devices):
        for rank, k in enumerate(begun):
            there = not k or all(begun[send.src] >= k for send in
                                 plan.rounds[k - 1] if send.dst == rank)
            if there and k < len(plan.rounds) and stops.get(rank) != k + 1:
                begun[rank] += 1
    return begun


@pytest.mark.parametrize('name', PLANS)
def test_some_of_those_that_stopped_are_guilty_and_nobody_else(name):
    chance = random.Random(name)
    for _ in range(5):
        plan = getattr(strategies, name)(chance.randint(2, 9))
        stops = {rank: chance.randint(1, len(plan.rounds)) for rank in
                 chance.sample(range(plan.num_devices), chance.randint(1, 2))}
        said = hung_ring.carry_out(plan, stops)
        guilty, begun = (hung_ring._culprits(plan, said),
                         rounds_begun(plan, stops))
        assert bool(said) == bool(guilty)
        for rank in guilty:
            assert begun[rank] + 1 == stops[rank]
        for rank, (src, k) in said.items():
            assert begun[rank] == k > begun[src]
        certain = [k for k, _ in hung_ring._certain(plan, said)]
        assert all(few <= k for few, k in zip(certain, begun))
        heard = {*said} | {src for src, _ in said.values()}
        if name == 'ring' and len(heard) == plan.num_devices:
            assert certain == begun


def test_a_cut_cable_stops_both_sides():
    said = hung_ring.carry_out(strategies.recursive_doubling(4), {},
                               [(0, 1, 1), (1, 0, 1)])
    assert said[0] == (1, 1) and said[1] == (0, 1)


def test_the_picture_names_the_culprit_and_who_waits_for_whom():
    figure = hung_ring.picture(
        lambda plan, said: [3],
        lambda plan, said: rounds_begun(plan, {3: 4}))
    ring, _ = figure.axes
    names = [label.get_text() for label in ring.get_yticklabels()]
    assert [k for k, name in enumerate(names) if 'culprit' in name] == [3]
    arrows = {(arrow.xyann, arrow.xy) for arrow in ring.texts}
    assert ((4, 4), (3, 3)) in arrows and len(arrows) == 7
