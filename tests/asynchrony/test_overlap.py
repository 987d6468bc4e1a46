"""A step's tasks against worked figures, every order there is, and a clock."""

import pytest
from d2lps.asynchrony.overlap import (ORDERS, backward_pass, best_possible,
                                      make_messages, simulate_step)
from hypothesis import given
from hypothesis import strategies as st

SMALL = st.integers(0, 5)


def step(draw_layers, forward):
    return st.lists(st.tuples(SMALL, SMALL, SMALL if forward else st.just(0)),
                    min_size=1, max_size=draw_layers).map(
        lambda layers: [list(column) for column in zip(*layers)])


def seconds(*args, **kwargs):
    return simulate_step(*args, **kwargs)[-1].end


def ends(tasks, what):
    return {task.layers: task.end for task in tasks if task.kind == what}


def by_the_tick(backward, nbytes, order, forward=(), latency=0, pull=False):
    """The same with whole numbers, told by a clock that ticks.

    Bandwidth 1. Each tick, each machine does a unit of what it has begun, or
    begins; nothing is shared with the code that is tested.
    """
    n = len(backward)
    left = {'backward': list(backward), 'forward': list(forward or [0] * n)}
    links = ['push', 'pull'] if pull else ['push']
    for link in links:
        left[link] = [size + latency for size in nbytes]
    arrived = {what: {} for what in ('backward', *links)}  # layer: tick
    busy = dict.fromkeys(links)
    ahead, requested = {}, {}  # pushes before a request; when that is through
    now = 0

    def settle():
        """Note what is done by now, and begin what can be begun."""
        for layer in reversed(range(n)):
            if not left['backward'][layer]:
                arrived['backward'].setdefault(layer, now)
        for link in links:
            if busy[link] is not None and not left[link][busy[link]]:
                arrived[link][busy[link]] = now
                busy[link] = None
        for layer in arrived['push']:
            waiting = arrived['backward'].keys() - arrived['push'].keys()
            ahead.setdefault(layer, waiting)
            if ahead[layer] <= arrived['push'].keys():
                requested.setdefault(layer, now)
        for link, when in zip(links, (arrived['backward'], requested)):
            here = [layer for layer in when if layer not in arrived[link]]
            if order == 'sequential' and len(when) < n:
                here = []
            if busy[link] is None and here:
                busy[link] = min(here, key=lambda layer: (
                    layer if order == 'priority' else when[layer]))

    def computing():
        for layer in reversed(range(n)):
            if left['backward'][layer]:
                return left['backward'], layer
        for layer in range(n):
            if layer not in arrived[links[-1]]:
                return None
            if left['forward'][layer]:
                return left['forward'], layer
        return None
    settle()
    while (len(arrived[links[-1]]) < n or any(left['forward'])):
        work = [(left[link], busy[link]) for link in links
                if busy[link] is not None]
        work += [computing()] if computing() else []
        for amounts, layer in work:
            amounts[layer] -= 1
        now += 1
        settle()
    return now


@given(step(6, True), st.sampled_from(ORDERS), st.integers(0, 2),
       st.booleans())
def test_a_step_takes_what_a_clock_counts(layers, order, latency, pull):
    backward, nbytes, forward = layers
    # Gradients that are ready at the same moment may go in either order.
    backward = [max(1, one) for one in backward]
    nbytes = [max(1, one) for one in nbytes]
    for last in ((), forward):
        assert seconds(backward, nbytes, 1, latency, order, pull=pull,
                       forward=list(last)) == by_the_tick(
            backward, nbytes, order, list(last), latency, pull)


@given(step(6, True), st.integers(0, 3), st.integers(0, 12), st.booleans(),
       st.sampled_from(ORDERS))
def test_no_buckets_beat_the_bound(layers, latency, bucket_size, pull, order):
    backward, nbytes, forward = layers
    for last in [], forward:
        assert seconds(backward, nbytes, 1, latency, order, bucket_size,
                       pull=pull, forward=last) >= best_possible(
            backward, nbytes, 1, latency, pull, last)


@given(step(6, True), st.integers(0, 12), st.integers(1, 4), st.booleans(),
       st.sampled_from(ORDERS))
def test_tasks_are_what_they_say(layers, bucket_size, slice_size, pull, order):
    """All is done once, in its order, and nobody does two things at once."""
    backward, nbytes, forward = layers
    tasks = simulate_step(backward, nbytes, 2, 1, order, bucket_size,
                          slice_size, pull, forward)
    rows = {row: [task for task in tasks if task.kind in row] for row in (
        ('backward', 'forward'), ('push',), ('pull',))}
    assert tasks[-1].end == max(task.end for task in tasks)
    for row in rows.values():
        for one, other in zip(row, row[1:]):
            assert one.end <= other.start
    n = len(nbytes)
    assert [t.layers for t in rows['backward', 'forward']] == [
        (layer,) for layer in (*reversed(range(n)), *range(n))]
    for link in [('push',), ('pull',)][:1 + pull]:
        assert sum(t.nbytes for t in rows[link]) == pytest.approx(sum(nbytes))
        assert {layer for t in rows[link] for layer in t.layers} == {*range(n)}
        for task in rows[link]:
            assert task.nbytes <= slice_size + 1e-9
            assert task.end == pytest.approx(
                task.start + 1 + task.nbytes / 2)
    ready = ends(tasks, 'backward')
    for task in rows['push',]:
        assert task.start >= max(ready[layer,] for layer in task.layers)
    last = ends(tasks, 'pull' if pull else 'push')
    for task in tasks:
        if task.kind == 'forward':
            assert task.start >= max(end for layers, end in last.items()
                                     if task.layers[0] in layers)


def test_buckets_close_when_they_are_full():
    tasks = backward_pass([1] * 6)
    sizes = [4, 30, 5, 10, 10, 20]
    assert [m.layers for m in make_messages(tasks, sizes, 25)] == [
        (4, 5), (1, 2, 3), (0,)]
    assert [m.ready for m in make_messages(tasks, sizes, 25)] == [2, 5, 6]
    assert [m.layers for m in make_messages(tasks, sizes)] == [
        (layer,) for layer in range(5, -1, -1)]
    [one] = make_messages(tasks, sizes, 100)
    assert one == (tuple(range(6)), 79, 6)
    assert make_messages(tasks, sizes, 100, 20) == [
        (tuple(range(6)), 79 / 4, 6)] * 4


def test_the_toy_of_the_chapter_by_hand():
    backward = [12, 12, 10, 10, 8, 4, 2, 2]
    nbytes = [1, 1, 2, 2, 4, 10, 30, 10]
    forward = [one / 2 for one in backward]
    assert seconds(backward, nbytes, 1, order='sequential') == 120
    assert seconds(backward, nbytes, 1) == 62
    at_half = {order: seconds(backward, nbytes, 0.5, order=order,
                              forward=forward) for order in ORDERS}
    assert at_half == {'sequential': 210, 'fifo': 152, 'priority': 124}
    assert best_possible(backward, nbytes, 0.5, forward=forward) == 123


@pytest.mark.parametrize('change, words', [
    (dict(nbytes=[1]), 'nbytes must have a number for each of the 2'),
    (dict(slice_size=1e-9), 'slice_size is 1e-09: that makes more than 1000')])
def test_what_does_not_fit_is_said(change, words):
    with pytest.raises(ValueError, match=words):
        simulate_step(**dict(backward=[1, 1], nbytes=[1, 1], bandwidth=1)
                      | change)
