"""The judge of orders agrees with the lesson and with a search."""
from itertools import permutations, product

import pytest

from d2lps import pipelines
from d2lps.exercises import micro_batches
from d2lps.figures import alt_text


def orders_of(make, K, M):
    """An order of the lesson, as a student returns it."""
    return [[(step.kind, step.batch) for step in make(device, K, M)]
            for device in range(K)]


@pytest.mark.parametrize('make', [pipelines.gpipe, pipelines.one_f_one_b])
@pytest.mark.parametrize('K, M', [(1, 1), (4, 8), (5, 3)])
def test_times_are_those_of_the_lesson(make, K, M):
    begins, done = micro_batches.timetable(orders_of(make, K, M))
    timed = pipelines.time_passes([[*make(device, K, M)]
                                   for device in range(K)], {'F': 1, 'B': 1})
    assert done == [2 * M] * K
    assert begins == {(one.stage, one.step.kind, one.step.batch): one.start
                      for one in timed}
    assert micro_batches.slots_of_1f1b(K, M) == 2 * (M + K - 1)


@pytest.mark.parametrize('K, M', [(2, 2), (3, 2), (2, 3)])
def test_no_order_is_faster_and_whoever_stops_waits_for_a_neighbour(K, M):
    """All orders with micro-batches in their order on every device."""
    texts = [text for text in {*permutations('F' * M + 'B' * M)} if all(
        text[:k].count('F') >= text[:k].count('B') for k in range(2 * M))]
    ends, stopped = [], 0
    for some in product(texts, repeat=K):
        orders = [[[kind, text[:k].count(kind)]
                   for k, kind in enumerate(text)] for text in some]
        begins, _ = micro_batches.timetable(orders)
        if len(begins) == 2 * K * M:
            ends.append(1 + max(begins.values()))
        else:
            stopped += 1
            with pytest.raises(micro_batches.Wrong, match='waits for'):
                micro_batches.judge_order(orders, K, M)
    assert min(ends) == 2 * (M + K - 1) and max(ends) == 2 * K * M
    assert stopped


@pytest.mark.parametrize('change, title', [
    (lambda passes: passes, '22 slots; 73% of them are busy'),
    (lambda passes: passes[:-1], "device 0 has ('B', 7) 0 times in its list"),
    (lambda passes: passes[::-1], 'no device can continue')])
def test_the_picture_says_what_is_wrong(change, title):
    orders = [*map(change, orders_of(pipelines.one_f_one_b, 4, 8))]
    figure = micro_batches.picture(lambda K, M: orders)
    assert title in alt_text(figure)
    assert title in figure.axes[0].get_title('left')
