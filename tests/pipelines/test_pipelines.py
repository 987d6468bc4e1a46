"""Orders of passes through a pipeline: all done, as fast as the papers say."""
import pytest

from d2lps import pipelines
from d2lps.pipelines import Pass

WHOLE = {'F': 1, 'B': 2}
SPLIT = {'F': 1, 'I': 1, 'W': 1}
SIZES = [(2, 2), (2, 6), (4, 4), (4, 8), (4, 12), (8, 32)]


def orders(order, num_stages, num_batches, **chunks):
    return [[*order(stage, num_stages, num_batches, **chunks)]
            for stage in range(num_stages)]


def timed(order, p, m, seconds, transfer=0, **chunks):
    return pipelines.time_passes(orders(order, p, m, **chunks), seconds,
                                 transfer)


@pytest.mark.parametrize('p, m', SIZES)
def test_gpipe_and_1f1b_wait_equally_long(p, m):
    for order in pipelines.gpipe, pipelines.one_f_one_b:
        found = timed(order, p, m, WHOLE)
        assert pipelines.bubble(found) == pytest.approx((p - 1) / m)
        assert pipelines.idle_share(found) == pytest.approx(
            (p - 1) / (m + p - 1))


@pytest.mark.parametrize('chunks', [1, 2, 4])
@pytest.mark.parametrize('p, m', SIZES)
def test_interleaving_divides_the_bubble(p, m, chunks):
    """Narayanan et al. 2021, section 2.2."""
    seconds = {kind: one / chunks for kind, one in WHOLE.items()}
    found = timed(pipelines.interleaved, p, m, seconds, num_chunks=chunks)
    assert pipelines.bubble(found) == pytest.approx((p - 1) / (chunks * m))


@pytest.mark.parametrize('weights', [1, 0.8, 0.5])
@pytest.mark.parametrize('p, m', SIZES)
def test_zero_bubble_waits_as_long_as_its_paper_says(p, m, weights):
    """ZB-H1 of Qi et al. 2024, if 'W' takes no longer than 'I'."""
    seconds = {'F': 1, 'I': 2 - weights, 'W': weights}
    found = timed(pipelines.zero_bubble, p, m, seconds)
    assert pipelines.bubble(found) * 3 * m == pytest.approx(
        (p - 1) * (seconds['F'] + seconds['I'] - seconds['W']))


@pytest.mark.parametrize('order', [pipelines.gpipe, pipelines.one_f_one_b,
                                   pipelines.zero_bubble])
def test_each_pass_is_done_once_and_after_what_it_needs(order):
    found = timed(order, 3, 5, WHOLE | SPLIT, transfer=0.25)
    ends = {(one.stage, one.step.kind, one.step.batch): one.end
            for one in found}
    assert len(ends) == len(found)
    backward = 'I' if order is pipelines.zero_bubble else 'B'
    for stage, step, start, _ in found:
        if step.kind == 'F' and stage:
            assert start >= ends[stage - 1, 'F', step.batch] + 0.25
        if step.kind == backward:
            assert start >= ends[stage, 'F', step.batch]
            if stage < 2:
                assert start >= ends[stage + 1, backward, step.batch] + 0.25
        if step.kind == 'W':
            assert start >= ends[stage, 'I', step.batch]
    for kind in 'FIW' if order is pipelines.zero_bubble else 'FB':
        assert {key for key in ends if key[1] == kind} == {
            (stage, kind, batch) for stage in range(3) for batch in range(5)}


@pytest.mark.parametrize('order, chunks, kept', [
    (pipelines.gpipe, {}, [8, 8, 8, 8]),
    (pipelines.one_f_one_b, {}, [4, 3, 2, 1]),
    (pipelines.zero_bubble, {}, [4, 4, 4, 4]),
    (pipelines.interleaved, {'num_chunks': 2}, [5.5, 4.5, 3.5, 2.5])])
def test_what_stages_keep(order, chunks, kept):
    assert [*map(pipelines.most_kept, orders(order, 4, 8, **chunks))] == kept


def test_stages_that_wait_for_each_other_are_found():
    F, B = (lambda batch: Pass('F', batch)), (lambda batch: Pass('B', batch))
    with pytest.raises(ValueError, match='forever'):
        pipelines.time_passes([[F(0), B(0), F(1), B(1)],
                               [F(0), F(1), B(0), B(1)]], WHOLE)


def test_orders_can_be_read_again_and_a_readers_own_may_yield():
    order = pipelines.gpipe(0, 4, 8)
    assert [pipelines.most_kept(order) for _ in range(2)] == [8, 8]
    assert pipelines.most_kept(iter(order)) == 8


def test_interleaved_with_one_model_chunk_is_1f1b():
    assert orders(pipelines.interleaved, 4, 6, num_chunks=1) == (
        orders(pipelines.one_f_one_b, 4, 6))


@pytest.mark.parametrize('order, found', [
    ('F0 F0 B0 F1 B1', r"orders\[0\] .* has Pass.*'F', batch=0.* 2 times"),
    ('F0 B0 F1', r"orders\[0\] has no Pass\(kind='B', batch=1"),
    ('F0 B0 B1', r"orders\[0\] has no Pass\(kind='F', batch=1"),
    ('F0 B0 F1 B1 W1', r"orders\[0\] has Pass\(kind='B', batch=1"),
    ('F0 B0 F1 B1 X1', r"orders\[0\]\[4\].kind must be 'F', 'B', 'I' or 'W'")])
def test_an_order_with_a_mistake_is_not_timed(order, found):
    """Though no stage waits for what is missing, or is there twice."""
    mine = [Pass(kind, int(batch)) for kind, batch in order.split()]
    others = [*pipelines.gpipe(0, 1, 2)]
    if 'W' in order:
        mine, others = mine + [Pass('I', 1)], others[:-1] + [
            Pass('I', 1), Pass('W', 1)]
    with pytest.raises(ValueError, match=found):
        pipelines.time_passes([mine, others], WHOLE | SPLIT)


@pytest.mark.parametrize('step, field', [
    (Pass('F', 0.5), 'batch'), (Pass('F', 0, -1), 'chunk')])
def test_a_pass_that_cannot_be_is_not_timed(step, field):
    with pytest.raises(ValueError, match=rf'\[0\].{field} must be a whole'):
        pipelines.time_passes([[step]], WHOLE)


def test_some_micro_batches_may_have_their_gradients_in_two_steps():
    order = [*pipelines.gpipe(0, 1, 2)][:-1] + [Pass('I', 1), Pass('W', 1)]
    assert pipelines.time_passes([order, order], WHOLE | SPLIT)[-1].end == 9


@pytest.mark.parametrize('call, says', [
    (lambda: [*pipelines.gpipe(2, 2, 4)], 'stage must be at most 1'),
    (lambda: [*pipelines.interleaved(0, 4, 6)], 'multiple of num_stages'),
    (lambda: pipelines.time_passes(['FB'], WHOLE), 'a list of passes'),
    (lambda: timed(pipelines.gpipe, 2, 2, {'F': 1}), 'seconds must have B'),
    (lambda: pipelines.time_passes([[Pass('F', 0), Pass('I', 0)]], SPLIT),
     r"orders\[0\] has no Pass\(kind='W'.* each stage must have F, I, W"),
    (lambda: timed(pipelines.gpipe, 2, 2, {'X': 1}), 'kinds of passes'),
    (lambda: pipelines.bubble([]), 'timed is too short'),
    (lambda: pipelines.idle_share([]), 'timed is too short'),
    (lambda: pipelines.most_kept([]), 'order is too short'),
    (lambda: pipelines.most_kept(pipelines.gpipe(0, 1, 2)[::-1]),
     "order has Pass.*batch=1.* before it no forward pass"),
    (lambda: pipelines.bubble(pipelines.gpipe(0, 4, 8)),
     r'timed\[0\] must be a Timed, as from time_passes'),
    (lambda: pipelines.bubble(timed(pipelines.gpipe, 2, 2, {'F': 0, 'B': 0})),
     'all of them take 0 seconds')])
def test_a_bad_call_says_what_is_wrong(call, says):
    with pytest.raises(ValueError, match=says):
        call()
