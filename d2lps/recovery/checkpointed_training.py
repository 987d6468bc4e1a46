"""A training that continues after the death of a machine."""
import contextlib
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as onp

from d2lps.annotations import Array, Device, PathLike, Store
from d2lps.checks import (checked, either, folder, from_zero, integer,
                          list_of, number)
from d2lps.engine import devices, mx
from d2lps.kvstore.store_training import a_store, share
from d2lps.recovery.checkpoint import Checkpoint
from d2lps.recovery.file import CheckpointError
from d2lps.training import (Batches, compute_gradients, get_params,
                            init_params, load_data)
from d2lps.training.array_checks import learning_rate

np = mx.np
LOSS, SEEN = 8, 9  # keys in the store, after the keys of the eight parameters
MAX_STEP = 2 ** 24  # float32, in which stores add, has no 2 ** 24 + 1
WAIT = 30  # seconds in which the reader can kill a process


class Trained(NamedTuple):
    """A finished training.

    `params` are NumPy arrays, `losses` has a loss for every step from the
    first on, and `steps` is the number of steps of this call.
    """
    params: list[onp.ndarray]
    losses: list[float]
    steps: int


@checked(folder=folder, num_steps=partial(integer, most=MAX_STEP),
         batch_size=integer, lr=learning_rate, every=integer, keep=integer,
         momentum=either(
             partial(number, most=0), partial(number, least=1e-30, most=0.999),
             must='a number from 1e-30 to 0.999, such as 0.9, or 0'),
         seed=from_zero, store=a_store,
         wait_at=list_of(integer, 'a list of steps', least=0))
def train_with_checkpoints(folder: PathLike, num_steps: int,
                           batch_size: int = 256, lr: float = 0.02,
                           momentum: float = 0.9, every: int = 10,
                           keep: int = 3, seed: int = 0,
                           store: Store | None = None,
                           wait_at: Sequence[int] = ()) -> Trained:
    """Train LeNet on the digits; after a death, call it again.

    Each worker calls it: `cluster.run(train_with_checkpoints, folder, 100)`.
    It begins at the newest checkpoint in `folder` that is good for all of
    them, and ends as if nothing had happened: to the last bit with up to two
    workers. With more workers, MXNet's servers add gradients in the order of
    their arrival, so the last digits differ from run to run, also without
    deaths.

    The number of workers can change from one call to the next. All workers
    draw the same minibatches and take their shares, and each has all
    parameters and their momentum. (Other shares are rounded in another way,
    and training magnifies the difference.) The store only adds gradients.
    MXNet's servers could update, too, but nobody could fetch the momentum.

    Args:
        folder: a folder that all workers see. In it, `progress.csv` gets a
            line for each step (step, loss, seconds since 1970). A repeated
            step has another line, after an empty line.
        num_steps: of the whole training, at most 16,777,216.
        every: steps from one checkpoint to the next; the last step has one.
        keep: how many checkpoints stay.
        store: a new store, without keys; by default
            `mx.kv.create('dist_sync')`.
        wait_at: steps after which the training waits, for 30 s at most, to
            be killed. So a death happens there on fast machines, too. There
            is no wait after a repeated step.

    Returns a `Trained`, the same on each worker.

    Raises:
        ValueError: for a bad argument, or one unlike the training's in
            `folder`.
        CheckpointError: if another training is using the folder, or workers
            do not see the same.
        FloatingPointError: if the training diverges; that is not saved.
        OSError: if the folder is full or read-only.
    """
    store = mx.kv.create('dist_sync') if store is None else store
    [device], settings = devices(1), dict(
        batch_size=batch_size, lr=lr, momentum=momentum, seed=seed)
    params = get_params(init_params(seed=seed), device)
    momenta = [np.zeros_like(param) for param in params]
    sgd = mx.optimizer.SGD(learning_rate=lr, momentum=momentum)
    data, _ = load_data(batch_size, seed=seed)
    # NumPy's: MXNet's own generator takes a seed, but tells no state.
    random = onp.random.default_rng(seed)
    losses, first = [], 0

    store.init([*range(LOSS + 1)], [*params, np.zeros(1)])
    with contextlib.ExitStack() as stack:
        checkpoint = stack.enter_context(Checkpoint(folder, keep))
        if store.rank == 0:
            checkpoint.lock()
        newest = newest_for_all(checkpoint, store, params)
        if newest:
            first, state = newest
            _same_training(folder, first, num_steps, state, settings)
            for array, saved in zip(params + momenta,
                                    state['params'] + state['momenta']):
                array[:] = np.array(saved)
            data.epoch, batch = state['position']
            random.bit_generator.state = state['random']
            losses = state['losses'].tolist()
        if store.rank == 0:
            log = stack.enter_context(open(
                checkpoint.folder / 'progress.csv', 'a+', buffering=1,
                encoding='utf-8', errors='replace'))
            log.write('\n' if log.tell() else 'step,loss,time\n')
            log.seek(0)
            log_before = log.read() if wait_at else ''

        minibatches = forever(data, batch if newest else 0)
        for step in range(first + 1, num_steps + 1):
            X, y = next(minibatches)
            shift = random.integers(-1, 2, size=2)  # a pixel to any side
            X = np.roll(X, shift.tolist(), axis=(2, 3))
            losses.append(sum_gradients(X, y, params, device, store))
            for k, arrays in enumerate(zip(params, momenta)):
                weight, velocity = (a.as_nd_ndarray() for a in arrays)
                sgd.update(k, weight, weight.grad, velocity)
            if not math.isfinite(losses[-1] + sum(
                    float(param.sum()) for param in params)):
                raise FloatingPointError(
                    f'the training diverged in step {step}, where the loss '
                    f'was {losses[-1]:g}: try lr={lr / 10:g}')
            if store.rank == 0:
                log.write(f'{step},{losses[-1]:.6f},{time.time():.3f}\n')
            if store.rank == 0 and (step % every == 0 or step == num_steps):
                checkpoint.save(step, dict(
                    settings=settings, params=params, momenta=momenta,
                    position=divmod(step, len(data)),  # epoch, minibatch
                    random=random.bit_generator.state,
                    losses=onp.array(losses)))
            if store.rank == 0 and step in wait_at and (
                    f'\n{step},' not in log_before):
                time.sleep(WAIT)
    return Trained([param.asnumpy() for param in params], losses,
                   num_steps - first)


def forever(data: Batches, batch: int) -> Iterator[tuple[Array, Array]]:
    """The minibatches of `data` from number `batch` of an epoch on."""
    while True:
        yield from itertools.islice(data, batch, None)
        batch = 0


def sum_gradients(X: Array, y: Array, params: Sequence[Array], device: Device,
                  store: Store) -> float:
    """Compute the gradients of the mean loss over X, and return this loss.

    Each worker computes its share of X.
    """
    mine, weight, loss = share(len(X), store), 0.0, np.zeros(1)
    if len(X[mine]):  # otherwise there are more workers than examples
        [losses] = compute_gradients(X[mine], y[mine], [params], [device])
        weight, loss = 1 / len(X), losses.sum().reshape(1)
    arrays = [*(param.grad for param in params), loss]
    keys = [*range(len(arrays))]
    store.push(keys, [array * weight for array in arrays])
    store.pull(keys, out=arrays)
    return float(loss[0])


def newest_for_all(checkpoint: Checkpoint, store: Store,
                   params: Sequence[Array]) -> tuple[int, dict] | None:
    """(step, state) of the newest checkpoint good for all workers, or None.

    Each worker pushes the step and the checksum of the newest checkpoint
    that it can read. If the rows differ, all try the oldest of these steps.
    """
    store.init(SEEN, np.zeros((store.num_workers, 2)))
    at_most = MAX_STEP
    while True:
        newest = checkpoint.load(like=params, at_most=at_most)
        table = np.zeros((store.num_workers, 2))
        row = [-1, 0]
        if newest:  # 24 bits of its checksum fit float32
            row = [newest[0], int(checkpoint.checksum[:6], 16)]
        table[store.rank] = np.array(row)
        store.push(SEEN, table)
        store.pull(SEEN, out=table)
        rows = table.asnumpy().astype(int).tolist()
        if rows.count(rows[0]) == len(rows):
            return newest
        at_most = min(step for step, _ in rows)
        if at_most < 0 or all(step == at_most for step, _ in rows):
            steps = ', '.join(
                f'worker {rank} step {step} ({code:06x}…)' if step >= 0 else
                f'worker {rank} none' for rank, (step, code) in
                enumerate(rows))
            raise CheckpointError(
                f'the workers see different checkpoints in '
                f'{checkpoint.folder}: {steps}. They need one folder')


def _same_training(folder, step, num_steps, state, settings):
    if state.get('settings') != settings:
        raise ValueError(
            f'folder {str(folder)!r} has a training with '
            f'{state.get("settings")}, not with {settings}: call it with '
            'those, or take another folder')
    if step > num_steps:
        raise ValueError(f'num_steps must be at least {step}, the step of '
                         f'the newest checkpoint; it was {num_steps}')
