"""The earliest end that the judge knows, against all ways and the chapter."""
from itertools import product

import pytest
from d2lps import simulate_step

from d2lps.exercises.buckets import (MANY, TOY, UNLIKE, _link, earliest,
                                     end_of_step)

MADE_UP = [{**MANY, 'n': n, 'seed': n} for n in (1, 2, 7, 10)]


def all_ways(n):
    """Every list of buckets of neighbours, the last layer first."""
    for cuts in product([False, True], repeat=n - 1):
        buckets = [[n - 1]]
        for layer, cut in zip(reversed(range(n - 1)), cuts):
            if cut:
                buckets.append([])
            buckets[-1].append(layer)
        yield buckets


@pytest.mark.parametrize('case', [UNLIKE, TOY, *MADE_UP])
def test_no_way_ends_earlier(case):
    link = _link(**case)
    least = min(end_of_step(way, *link) for way in all_ways(len(link[0])))
    assert least == pytest.approx(earliest(*link))


@pytest.mark.parametrize('case', [UNLIKE, TOY])
def test_the_end_of_a_step_is_that_of_the_chapter(case):
    link = _link(**case)
    for size in range(0, 61, 12):
        tasks = simulate_step(*link, bucket_size=size * 1e6)
        buckets = [task.layers for task in tasks if task.kind == 'push']
        assert end_of_step(buckets, *link) == pytest.approx(tasks[-1].end)
