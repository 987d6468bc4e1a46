"""How many rings there are is certain; a search that never ends is stopped."""
import json
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from answers import ROOT

from d2lps.exercises import unknown_rings
from d2lps.exercises.checking import Wrong
from d2lps.exercises.unknown_rings import rings_left

HIDDEN = json.loads(
    (ROOT / 'teaching' / 'hidden' / 'unknown-rings.json').read_text())
CASES = [case for part, check in unknown_rings.CHECKS.items()
         for case in [*check.cases, *HIDDEN[part]]]


def counted(cables):
    """The most rings, by trying all lists of rings; and the first rings."""
    n = len(cables)
    orders = [(0, *rest) for rest in permutations(range(1, n))
              if rest[0] < rest[-1]]
    hops = [[*zip(order, order[1:] + order[:1])] for order in orders]
    rings = [k for k in range(len(orders))
             if all(cables[a][b] for a, b in hops[k])]

    @cache
    def most(first, left):
        best = 0
        for place, k in enumerate(rings[first:], first):
            rest = np.array(left).reshape(n, n)
            for a, b in hops[k]:
                rest[[a, b], [b, a]] -= 1
            if (rest >= 0).all():
                best = max(best, 1 + most(place, tuple(rest.ravel())))
        return best

    return (most(0, tuple(np.ravel(cables).tolist())),
            [[*orders[k]] for k in rings[:4]])


def without(cables, order):
    """The cables that a ring leaves."""
    left = np.array(cables)
    for a, b in zip(order, order[1:] + order[:1]):
        left[[a, b], [b, a]] -= 1
    return left.tolist()


@pytest.mark.parametrize('case', {case['table'] + str(case['cables']): case
                                  for case in CASES}.values(),
                         ids=lambda case: case['table'])
def test_no_other_search_finds_more(case):
    """Also in what is left after a first ring, which a hint speaks of."""
    most, first = counted(case['cables'])
    assert len(rings_left(case['cables'])) == most
    for order in first:
        rest = len(rings_left(case['cables'], [order]))
        assert rest == counted(without(case['cables'], order))[0]


def test_seen_and_hidden_are_machines_on_which_the_first_ring_is_too_dear():
    for cases in unknown_rings.CHECKS['most'].cases, HIDDEN['most']:
        dear = 0
        for case in cases:
            most, [first, *_] = counted(case['cables'])
            dear += 1 + counted(without(case['cables'], first))[0] < most
        assert dear >= 1


def test_a_search_without_end_is_stopped(monkeypatch):
    def forever(cables):
        while True:
            pass

    monkeypatch.setattr(unknown_rings, 'MOST_SECONDS', 0.2)
    with pytest.raises(Wrong, match='stopped'):
        unknown_rings.run(forever, **unknown_rings.THREE)


def test_the_student_may_use_up_the_table_and_find_other_rings_each_time():
    luck = np.random.default_rng(0)

    def shuffled(cables):
        cables[:] = 0
        return [luck.permutation(3) for _ in range(2)]

    found = unknown_rings.run(shuffled, **unknown_rings.THREE)
    unknown_rings.judge_most(found, **unknown_rings.THREE)
