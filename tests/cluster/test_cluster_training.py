"""LeNet over processes: two workers with two devices, two servers.

Chapter 9 trains a whole epoch in this way, and asserts what it learns.
"""
import d2lps
import numpy as onp
import pytest
from d2lps.cluster import Cluster
from trained import BOOK, trained


def steps(batch_size, num_steps, scale, lr):
    """What a worker does; returns the parameters of both its devices."""
    import mxnet as mx
    from d2lps.kvstore import prepare_store, train_batch_store
    pair, params = d2lps.devices(2), d2lps.init_params(scale)
    copies = [d2lps.get_params(params, device) for device in pair]
    store = mx.kv.create('dist_sync')
    prepare_store(store, params, lr)
    batches = d2lps.load_data(batch_size)[0]
    for (X, y), _ in zip(batches, range(num_steps)):
        train_batch_store(X, y, copies, pair, store)
    return [[param.asnumpy() for param in params] for params in copies]


@pytest.mark.full
def test_two_workers_with_two_devices_train_as_one_device_does():
    scale, lr, _ = BOOK
    with Cluster(num_workers=2, num_servers=2) as c:
        # With 3 examples, some device has none.
        for batch_size, num_steps in ((256, 5), (50, 10), (3, 20)):
            [expected] = trained(1, batch_size, *BOOK, steps=num_steps)
            for copies in c.run(steps, batch_size, num_steps, scale, lr):
                for params in copies:
                    for a, b in zip(expected, params):
                        onp.testing.assert_allclose(b, a, rtol=0, atol=1e-4)
