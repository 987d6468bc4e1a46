"""Training through a key-value store, whichever it is."""
from d2lps.engine import mx
from d2lps.training import compute_gradients


def prepare_store(store, params, lr):
    """Give a new store the parameters, and SGD to do at each push.

    All workers call it; worker 0's parameters count.

    Raises:
        ValueError: if `store` is not a store, or not new.
    """
    if not hasattr(store, 'push'):
        raise ValueError("store must be a KVStore() or mx.kv.create('local');"
                         f' it was {store!r}')
    store.set_optimizer(mx.optimizer.SGD(learning_rate=lr))
    store.init(list(range(len(params))), params)


def train_batch_store(X, y, device_params, devices, store):
    """One step through a store, which `prepare_store` has prepared.

    All workers call it with the same X and y, and each takes its share.
    Returns the losses of this share, one array a device.
    """
    start, end = (len(X) * rank // store.num_workers
                  for rank in (store.rank, store.rank + 1))
    losses, weight = [], 0
    if start < end:  # otherwise there are more workers than examples
        losses, weight = compute_gradients(
            X[start:end], y[start:end], device_params, devices), 1 / len(X)
    keys = list(range(len(device_params[0])))
    store.push(keys, [[param.grad * weight for param in copies]
                      for copies in zip(*device_params)])
    store.pull(keys, out=[list(copies) for copies in zip(*device_params)])
    return losses


def store_step(store):
    """A step for `d2lps.train` that sums and updates in a new store.

    Each worker calls `train(..., step=store_step(store))` with the same
    arguments but its own handle of the store.
    """
    prepared = []

    def step(X, y, device_params, devices, lr):
        if not prepared:
            prepare_store(store, device_params[0], lr)
            prepared.append(True)
        return train_batch_store(X, y, device_params, devices, store)
    return step
