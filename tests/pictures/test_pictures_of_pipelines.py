"""The chart of a pipeline, and the toy."""
import pytest
from d2lps import pictures
from d2lps.pictures.toys import explore_pipeline


def orders(num_stages, num_batches, schedule):
    return [explore_pipeline._order(stage, num_stages, num_batches, schedule)
            for stage in range(num_stages)]


@pytest.mark.parametrize('schedule', explore_pipeline.ORDERS)
@pytest.mark.parametrize('K', [2, 4, 8])
@pytest.mark.parametrize('M', [2, 4, 16])
def test_the_idle_share_is_that_of_the_formula(schedule, K, M):
    slots = pictures.pass_slots(orders(K, M, schedule))
    length = 1 + max(map(max, slots))
    assert 1 - 2 * M / length == pytest.approx((K - 1) / (M + K - 1))
    assert all(len({*some}) == 2 * M for some in slots)


@pytest.mark.parametrize('M', [2, 4, 8])
def test_1f1b_keeps_no_more_than_there_are_stages_behind(M):
    for schedule, kept in (('GPipe', [M] * 4),
                           ('1F1B', [min(M, 4 - k) for k in range(4)])):
        assert [*map(explore_pipeline._most_kept, orders(4, M, schedule))] == kept


def test_a_pass_waits_for_its_neighbour():
    slots = pictures.pass_slots(['FFBB', 'FBFB'])
    assert slots == [[0, 1, 3, 5], [1, 2, 3, 4]]


@pytest.mark.parametrize('bad', [
    [], ['FB', 'F'], ['BF'], ['FB', 'FFBB'], ['FX'], 'FB', None, [1]])
def test_what_is_no_order_is_refused(bad):
    with pytest.raises((TypeError, ValueError), match='FBFB'):
        pictures.pass_slots(bad)


def test_stages_that_wait_for_each_other_are_found():
    with pytest.raises(ValueError, match='forever'):
        pictures.pass_slots(['FBFB', 'FFBB'])


def test_the_chart_says_what_it_shows():
    drawing = pictures.draw_passes(orders(4, 8, '1F1B'))
    assert 'idle: 27%' in drawing.svg()
    assert '4, 3, 2, 1 micro-batches' in drawing.alt


def test_each_control_changes_the_picture(shown):
    pictures.explore_pipeline()
    for control, value in zip(shown[0].children, (3, 5, '1F1B'), strict=True):
        before = shown[-1].svg()
        control.value = value
        assert shown[-1].svg() != before
