"""Parameters after some steps on k devices, for several test files."""
import functools

from d2lps import (devices, get_params, init_params, load_data, train_batch)


def numbers(params):
    return [param.asnumpy() for param in params]


@functools.cache
def trained(k, batch_size, scale, lr, dtype, steps=10):
    """Each device's parameters after some steps on `k` devices."""
    start = [param.astype(dtype) for param in init_params(scale)]
    device_params = [get_params(start, device) for device in devices(k)]
    for (X, y), _ in zip(load_data(batch_size)[0], range(steps)):
        train_batch(X.astype(dtype), y, device_params, devices(k), lr)
    return [numbers(params) for params in device_params]


# The digits have many black pixels: all of them are at the same place of a
# ReLU, and when that is its corner a rounding error changes the gradient.
# So float32 is compared at the book's start, and the start that learns at
# once in float64: there, nothing that differs is due to rounding.
BOOK, XAVIER = (0.01, 0.2, 'float32'), ('xavier', 0.1, 'float64')
