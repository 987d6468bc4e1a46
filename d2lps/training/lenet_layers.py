"""LeNet for 28x28 images, from scratch (LeCun et al. 1998, with ReLUs)."""
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as onp
from mxnet import np, npx

from d2lps.annotations import Array
from d2lps.checks import checked, either, from_zero, number, one_of, refuse
from d2lps.engine import array, array_list

PARAM_SHAPES = ((20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,),
                (800, 128), (128,), (128, 10), (10,))
PIXELS = 1, 28, 28  # of an image


@checked(scale=either(one_of('xavier'), partial(number, least=1e-30, most=1),
                      must="a positive number of at most 1, such as 0.01, "
                      "or 'xavier'"), seed=from_zero)
def init_params(scale: float | str = 'xavier', seed: int = 0) -> list[Array]:
    """Return LeNet's eight parameters [W1, b1, ..., W4, b4] on `cpu(0)`.

    Args:
        scale: standard deviation of the normal weights, at most 1 (the book
            takes 0.01), or 'xavier': uniform in +-sqrt(6 / (fan_in + fan_out))
            (Glorot and Bengio 2010), which learns from the first step on.
        seed: the same seed gives the same weights.

    Raises:
        ValueError: if `scale` is neither a positive number nor 'xavier'.
    """
    random = onp.random.default_rng(seed)
    params = []
    for shape in PARAM_SHAPES:
        if len(shape) == 1:
            value = onp.zeros(shape)
        elif scale == 'xavier':
            # A filter's inputs and outputs count once for each of its pixels.
            bound = math.sqrt(6 / (math.prod(shape[2:]) * sum(shape[:2])))
            value = random.uniform(-bound, bound, shape)
        else:
            value = random.normal(0, float(scale), shape)
        params.append(np.array(value, dtype='float32'))
    return params


def relu(X: Array) -> Array:
    # As npx.relu, but with an implementation made for CPUs behind it.
    return npx.activation(X, act_type='relu')


def conv(X: Array, W: Array, b: Array) -> Array:
    """Convolve X (b, c, h, w) with W (filters, c, k, k), ReLU, halve it."""
    H = npx.convolution(data=X, weight=W, bias=b, kernel=W.shape[2:],
                        num_filter=W.shape[0])
    return npx.pooling(data=relu(H), pool_type='avg', kernel=(2, 2),
                       stride=(2, 2))


def hidden(X: Array, W: Array, b: Array) -> Array:
    """A dense layer with ReLU; X may still be an image (b, c, h, w)."""
    return relu(np.dot(X.reshape(len(X), -1), W) + b)


def output(X: Array, W: Array, b: Array) -> Array:
    """The last dense layer: X (b, 128) to ten scores (b, 10)."""
    return np.dot(X, W) + b


LAYERS = (conv, conv, hidden, output)


def forward(X: Array, params: Sequence[Array],
            layers: Sequence[Callable[..., Array]]) -> Array:
    """Send X through `layers`; `params` has a W and a b for each."""
    for layer, W, b in zip(layers, params[::2], params[1::2]):
        X = layer(X, W, b)
    return X


def lenet_params(name: str, value: Any) -> list[Array]:
    """A check: the eight parameters of LeNet, or of one shaped as it is."""
    params = array_list(name, value)
    if len(params) != len(PARAM_SHAPES):
        raise ValueError(f'{name} must be the {len(PARAM_SHAPES)} arrays of '
                         f'd2lps.init_params(); it had {len(params)}')
    return params


def images(name: str, value: Any) -> Array:
    """A check: an array (b, 1, 28, 28) of floats."""
    if array(name, value).shape[1:] != PIXELS or (
            onp.dtype(value.dtype).kind != 'f'):
        refuse(name, value, 'an array of floats of shape (b, 1, 28, 28)')
    return value


@checked(X=images, params=lenet_params)
def lenet(X: Array, params: Sequence[Array]) -> Array:
    """Scores (b, 10) for images X (b, 1, 28, 28), where `params` live."""
    return forward(X, params, LAYERS)


def _a_label_each(y_hat, y):
    if y_hat.ndim != 2 or y.shape != y_hat.shape[:1]:
        raise ValueError(f'y must be of shape (b,), and y_hat of shape (b, '
                         f'10); they were of shapes {y.shape} and '
                         f'{y_hat.shape}')


@checked(_a_label_each, y_hat=array, y=array)
def loss(y_hat: Array, y: Array) -> Array:
    """Softmax and cross-entropy: scores (b, 10), labels (b,) to losses (b,).

    The labels must be from 0 to 9: looking at them here would make Python
    wait for the devices, so `compute_gradients` does it.
    """
    return np.negative(npx.pick(npx.log_softmax(y_hat), y))
