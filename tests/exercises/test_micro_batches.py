"""The judge of orders agrees with the chapter's picture and with a search."""
from itertools import permutations, product

import pytest

from d2lps.exercises import micro_batches
from d2lps.figures import alt_text
from d2lps.pictures.toys import explore_pipeline


def orders_of(K, M, schedule):
    """The orders of the toy, with the micro-batches."""
    orders = []
    for device in range(K):
        text = explore_pipeline._order(device, K, M, schedule)
        orders.append([[kind, text[:k].count(kind)]
                       for k, kind in enumerate(text)])
    return orders


@pytest.mark.parametrize('schedule', explore_pipeline.ORDERS)
@pytest.mark.parametrize('K, M', [(1, 1), (4, 8), (5, 3)])
def test_times_are_those_of_the_toy(K, M, schedule):
    orders = orders_of(K, M, schedule)
    begins, done = micro_batches.timetable(orders)
    slots = explore_pipeline.pass_slots([''.join(kind for kind, _ in order)
                                 for order in orders])
    assert done == [2 * M] * K
    assert slots == [[begins[d, kind, m] for kind, m in order]
                     for d, order in enumerate(orders)]
    assert max(begins.values()) + 1 == 2 * (M + K - 1)
    kept = [max(micro_batches.held(order)) for order in orders]
    assert kept == [min(M, K - d) if schedule == '1F1B' else M
                    for d in range(K)]


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
            with pytest.raises(micro_batches.Wrong, match='waits for the ot'):
                micro_batches.judge_order(
                    {'orders': orders, 'shared': False}, K, M)
    assert min(ends) == 2 * (M + K - 1) and max(ends) == 2 * K * M
    assert stopped


@pytest.mark.parametrize('change, title', [
    (lambda passes: passes, '22 slots; 73% of them are busy'),
    (lambda passes: passes[:-1], '1 pass is missing on device 0'),
    (lambda passes: passes + passes[-3:],
     '3 passes are done again by device 0'),
    (lambda passes: passes[::-1], 'no device can begin')])
def test_the_picture_says_which_passes_are_wrong(change, title):
    orders = [change([tuple(one) for one in order])
              for order in orders_of(4, 8, '1F1B')]
    figure = micro_batches.picture(lambda K, M: orders)
    assert title in alt_text(figure)
    assert title in figure.axes[0].get_title('left')
