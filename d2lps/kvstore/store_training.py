"""Training through a key-value store, whichever it is."""
from collections.abc import Callable, Sequence
from typing import Any

from d2lps.annotations import Array, Device, Store
from d2lps.checks import checked, list_of, refuse
from d2lps.engine import array, array_list, device_list, mx
from d2lps.training import compute_gradients
from d2lps.training.array_checks import (finite, learning_rate, one_label_each,
                                 params_on_each)

CALLS = 'init', 'push', 'pull', 'set_optimizer'


def a_store(name: str, value: Any) -> Store:
    """A check: something with the calls of a store."""
    if not all(callable(getattr(value, call, None)) for call in CALLS):
        refuse(name, value, "a KVStore() or mx.kv.create('local')")
    return value


@checked(store=a_store, params=array_list, lr=learning_rate)
def prepare_store(store: Store, params: Sequence[Array], lr: float) -> None:
    """Give a new store the parameters, and SGD to do at each push.

    All workers call it; worker 0's parameters count. Raises ValueError if
    `store` is not a store, or not new.
    """
    try:
        store.init(list(range(len(params))), params)
    except (ValueError, mx.MXNetError) as error:
        raise ValueError('store must be new, without keys of an earlier '
                         f'training: {error}') from None
    store.set_optimizer(mx.optimizer.SGD(learning_rate=lr))


def share(n: int, store: Store) -> slice:
    """The examples of n that are for this worker, as a slice."""
    start = n * store.rank // store.num_workers
    return slice(start, n * (store.rank + 1) // store.num_workers)


def _fitting(X, y, device_params, devices, store):
    one_label_each(X, y)
    params_on_each(devices, device_params=device_params)


@checked(_fitting, X=finite, y=array, devices=device_list, store=a_store,
         device_params=list_of(array_list, 'a list of lists of parameters'))
def train_batch_store(X: Array, y: Array,
                      device_params: Sequence[Sequence[Array]],
                      devices: Sequence[Device], store: Store) -> list[Array]:
    """One step, by all workers, with the same X and y, through a store.

    Returns the losses of this worker's share, one array a device.
    """
    scale: float
    mine, losses, scale = share(len(X), store), [], 0
    if len(X[mine]):  # otherwise there are more workers than examples
        losses = compute_gradients(X[mine], y[mine], device_params, devices)
        scale = 1 / len(X)
    keys = list(range(len(device_params[0])))
    copies = [list(same) for same in zip(*device_params)]
    store.push(keys, [[param.grad * scale for param in same]
                      for same in copies])
    store.pull(keys, out=copies)
    return losses


@checked(store=a_store)
def store_step(store: Store) -> Callable[..., list[Array]]:
    """A step for `d2lps.train` that sums and updates in a new store.

    Each worker calls `train(..., step=store_step(store))` with the same
    arguments but its own handle of the store. The store has the parameters
    and the learning rate from the first step on, so it serves one training;
    the step raises ValueError if another one begins with it.
    """
    first: list = []

    def step(X, y, device_params, devices, lr):
        if not first:
            prepare_store(store, device_params[0], lr)
            first.extend([device_params, lr])
        if first[0] is not device_params or first[1] != lr:
            raise ValueError(
                'store has been used for a training already and goes on with '
                'its parameters and learning rate; make a new one, for '
                'example step=store_step(KVStore())')
        return train_batch_store(X, y, device_params, devices, store)
    return step
