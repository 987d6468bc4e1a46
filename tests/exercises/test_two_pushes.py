"""What the judge expects is what chapter 8's own server does."""
import mxnet as mx
import pytest

from d2lps.kvstore import Server
from d2lps.exercises.two_pushes import calls_of, parts_of, pulls_of


def chapters(num_workers, calls):
    """What chapter 8's server says to each pull; None if it is to wait."""
    server, found = Server(mx.cpu(), num_workers), []
    for key, rank, *value in calls:
        if key not in server.shards:
            server.init(key, mx.np.zeros(2, 'float64'))
        if value:
            server.push(key, rank, mx.np.full(2, value[0], 'float64'))
        elif server.missing(key, rank) or not server.shards[key].round:
            found.append(None)
        else:
            found.append(server.pull(key, rank).tolist())
    return found


@pytest.mark.parametrize('seed', [0, 1, 4])
def test_the_chapters_server_gets_what_the_judge_expects(seed):
    for order in ({'early': True}, {'ahead': False}, {'rounds': 1, 'keys': [
            'v', 'w', 'x']}, {'rounds': 2, 'keys': [0, 1], 'early': True}):
        n, order = 1 + seed % 5, {'seed': seed, **order}
        right = [pull.right and [sum(push.value for push in pull.right)] * 2
                 for pull in pulls_of(n, **order)]
        assert chapters(n, calls_of(n, **order)) == right


def test_parts_are_found_in_a_sum():
    pushes = pulls_of(3, seed=1)[-1].before
    assert [push.value for push in pushes] == [3 ** k for k in range(9)]
    assert parts_of(1 + 2 * 27 + 81, pushes) == {
        pushes[0]: 1, pushes[3]: 2, pushes[4]: 1}
    assert parts_of(0.5, pushes) is None
    few = [push._replace(value=value) for push, value in zip(
        pushes, [2, 3, 20])]
    assert parts_of(24, few) == {few[2]: 1, few[0]: 2}
    assert parts_of(24, few, most=1) is None
    assert parts_of(float('nan'), pushes) is None
