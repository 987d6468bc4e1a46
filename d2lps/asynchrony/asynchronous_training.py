"""Real gradients in the order of a virtual clock."""
from functools import partial

from d2lps.asynchrony.clock import Plan, Point
from d2lps.asynchrony.late_gradients import BackupServer, DividingServer
from d2lps.checks import boolean, checked, from_zero, instance_of, integer
from d2lps.engine import devices
from d2lps.kvstore import KVStore, prepare_store
from d2lps.training import (Batches, compute_gradients, evaluate_accuracy,
                            get_params, init_params, load_data)
from d2lps.training.array_checks import learning_rate


def _endless(batch_size, seed):
    train_iter, _ = load_data(batch_size, seed=seed)
    while True:
        yield from train_iter


def _store(plan, params, lr, divide):
    store = KVStore(plan.num_workers, consistency=plan.consistency)
    [device] = devices(1)
    if plan.backups:
        store.servers[:] = [BackupServer(device, plan.num_workers,
                                         plan.backups)]
    elif divide:
        store.servers[:] = [DividingServer(device, plan.num_workers,
                                           plan.consistency)]
    prepare_store(store, params, lr)
    return store


def _no_sum_is_divided(plan, divide, **_):
    if divide and plan.consistency in ('sync', 0):
        raise ValueError('divide is for plans in which each push is an '
                         'update; in one with '
                         f'consistency={plan.consistency!r} no gradient that '
                         'is used is stale')


@checked(_no_sum_is_divided,
         plan=instance_of(Plan, 'a Plan of virtual_clock()'),
         lr=learning_rate, batch_size=integer,
         num_points=partial(integer, most=1000), divide=boolean,
         seed=from_zero)
def follow(plan: Plan, lr: float, batch_size: int = 16, num_points: int = 10,
           divide: bool = False, seed: int = 0
           ) -> tuple[list[Point], KVStore]:
    """Train LeNet on the digits, each pull and push as the plan says.

    Args:
        lr: learning rate of one gradient, which is the mean over
            `batch_size` images. An update that uses n of them adds n steps.
        num_points: how often, on the way, the accuracy is found.
        divide: let the server divide a gradient by its staleness.
        seed: of the first parameters; worker r shuffles the images with
            seed + r.

    Returns the `Point`s, and the store. One thread does it all, so it gives
    the same again, bit for bit, on the same machine; on another one, sums
    may be rounded in another way.
    """
    device_list, params = devices(1), init_params(seed=seed)
    store, keys = _store(plan, params, lr, divide), [*range(len(params))]
    handles = [store.worker(rank) for rank in range(plan.num_workers)]
    copies = [get_params(params, device_list[0]) for _ in handles]
    batches = [_endless(batch_size, seed + rank) for rank in range(
        plan.num_workers)]
    _, test = load_data(batch_size)
    test_iter = Batches(test.images, test.labels, test.num_examples)
    shards = store.servers[0].shards
    points: list[Point] = []
    for time, rank, call, _, gradients in plan.events:
        handle, params = handles[rank], copies[rank]
        if call == 'pull':
            if handle.missing(0):
                raise RuntimeError(f'worker {rank} would wait for '
                                   f'{handle.missing(0)} at {time} s')
            handle.pull(keys, params)
            continue
        X, y = next(batches[rank])
        compute_gradients(X, y, [params], device_list)
        handle.push(keys, [param.grad / batch_size for param in params])
        if gradients * num_points >= (
                len(points) + 1) * plan.events[-1].gradients:
            values = [shards[key].value for key in keys]
            points.append(Point(gradients, time, evaluate_accuracy(
                test_iter, [values], device_list)))
    return points, store
