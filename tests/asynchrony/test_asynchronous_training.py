"""Real gradients in virtual time: the plan is followed, and repeats."""
import numpy as onp
import pytest
from d2lps import devices, get_params, init_params, load_data
from d2lps.asynchrony import follow, step_times, virtual_clock
from d2lps.asynchrony.late_gradients import BackupServer, DividingServer
from d2lps.training import compute_gradients
from mxnet import np
from trained import numbers

KEYS = [*range(8)]
PLANS = {
    'sync': ('one straggler', 'sync', 0), 'bound 0': ('one straggler', 0, 0),
    'bound 2': ('heavy tail', 2, 0), 'async': ('heavy tail', 'async', 0),
    'backup': ('heavy tail', 'sync', 1)}


def plan_of(name, num_gradients=18):
    kind, consistency, backups = PLANS[name]
    return virtual_clock(step_times(kind, 3, 50), consistency, num_gradients,
                         backups)


def values(store):
    return numbers([store.servers[0].shards[key].value for key in KEYS])


def followed(plan, **how):
    return follow(plan, lr=0.1, batch_size=4, num_points=2, **how)


@pytest.fixture(scope='module')
def results():
    return {name: followed(plan_of(name)) for name in PLANS}


def test_a_second_run_is_equal_bit_for_bit(results):
    points, store = followed(plan_of('async'))
    expected, first = results['async']
    assert points == expected
    assert all(map(onp.array_equal, values(store), values(first)))


def test_bound_0_is_sync_bit_for_bit(results):
    (points, store), (others, other) = results['sync'], results['bound 0']
    assert points == others
    assert all(map(onp.array_equal, values(store), values(other)))
    assert plan_of('sync').events == plan_of('bound 0').events


@pytest.mark.parametrize('name', PLANS)
def test_the_store_counts_what_the_plan_says(name, results):
    plan, store = plan_of(name), results[name][1]
    [server] = store.servers
    shard, last = server.shards[0], plan.events[-1]
    assert shard.updates == last.updates
    if name == 'backup':
        late = [event for event in plan.events if event.call == 'late']
        assert late and server.dropped == 8 * len(late)
    elif plan.consistency not in ('sync', 0):
        assert server.staleness == {
            missed: 8 * count for missed, count in plan.staleness.items()}


def test_points_are_spread_over_the_gradients(results):
    points, _ = results['async']
    assert [point.gradients for point in points] == [9, 18]
    assert points[-1].seconds == plan_of('async').seconds
    assert all(0 <= point.accuracy <= 1 for point in points)


def by_hand(plan, lr, batch_size, divide=False):
    """The same from all versions of the parameters, without a store."""
    [device] = devices(1)
    versions, open_round = [numbers(init_params())], []
    own, batches = {}, [iter(load_data(batch_size, seed=rank)[0])
                        for rank in range(plan.num_workers)]
    for event in plan.events:
        if event.call == 'pull':
            own[event.rank] = event.updates
            continue
        seen = own[event.rank]
        params = get_params([np.array(v) for v in versions[seen]], device)
        compute_gradients(*next(batches[event.rank]), [params], [device])
        missed = len(versions) - 1 - seen
        step = lr / batch_size / (max(1, missed) if divide else 1)
        if event.call == 'push':
            open_round.append([step * param.grad.asnumpy()
                               for param in params])
        if event.updates == len(versions):  # this push has made an update
            versions.append([v - sum(steps) for v, steps in zip(
                versions[-1], zip(*open_round))])
            open_round = []
    return versions[-1]


@pytest.mark.parametrize('name', [*PLANS, 'divided'])
def test_parameters_are_those_worked_out_without_a_store(name, results):
    divide = name == 'divided'
    plan = plan_of('async' if divide else name)
    store = (followed(plan, divide=True) if divide else results[name])[1]
    for a, b in zip(by_hand(plan, 0.1, 4, divide), values(store)):
        onp.testing.assert_allclose(b, a, rtol=0, atol=1e-5)


def test_an_old_gradient_is_divided_by_its_staleness():
    server = DividingServer(devices(1)[0], 2, 'async')
    server.updater = lambda key, summed, stored: stored.__iadd__(summed)
    server.init(0, np.zeros(1))
    sizes = []
    for rank in (0, 0, 0, 0, 1, 1):  # nobody pulls
        before = float(server.shards[0].value)
        server.push(0, rank, np.full(1, 60.0))
        sizes.append(float(server.shards[0].value) - before)
    assert sizes == [60, 60, 30, 20, 15, 12]
    server.pull(0, 1)
    server.push(0, 1, np.full(1, 60.0))
    assert float(server.shards[0].value) == sum(sizes) + 60


def test_a_backup_server_takes_the_first_and_drops_the_late():
    server = BackupServer(devices(1)[0], 3, backups=1)
    server.init('w', np.zeros(1))
    server.push('w', 2, np.full(1, 1.0))
    assert server.missing('w', 2) == [0, 1] and not server.missing('w', 0)
    server.push('w', 0, np.full(1, 10.0))
    assert server.missing('w', 2) == server.missing('w', 1) == []
    server.push('w', 1, np.full(1, 100.0))  # of the round before
    assert [server.pull('w', r).tolist() for r in range(3)] == [[11]] * 3
    assert server.dropped == 1
    for rank in 1, 2:
        server.push('w', rank, np.full(1, 1000.0))
    assert server.pull('w', 1).tolist() == [2000]


@pytest.mark.parametrize('call, message', [
    (lambda: followed(plan_of('sync'), divide=True), '^divide is for plans'),
    (lambda: follow('plan', 0.1), '^plan must be a Plan'),
    (lambda: BackupServer(devices(1)[0], 2, 1).push('x', 0, np.ones(1)),
     "^key 'x' is not on this server"),
    (lambda: DividingServer(devices(1)[0], 2, 1).push('x', 0, np.ones(1)),
     "^key 'x' is not on this server")])
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
