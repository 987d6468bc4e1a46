"""LeNet for 28x28 images, from scratch (LeCun et al. 1998, with ReLUs)."""
import math

import numpy as onp
from mxnet import np, npx

PARAM_SHAPES = ((20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,),
                (800, 128), (128,), (128, 10), (10,))


def init_params(scale='xavier', seed=0):
    """Return LeNet's eight parameters [W1, b1, ..., W4, b4] on `cpu(0)`.

    Args:
        scale: standard deviation of the normal weights (the book takes
            0.01), or 'xavier': uniform in +-sqrt(6 / (fan_in + fan_out))
            (Glorot and Bengio 2010), which learns from the first step on.
        seed: the same seed gives the same weights.

    Raises:
        ValueError: if `scale` is neither a positive number nor 'xavier'.
    """
    if scale != 'xavier' and not (isinstance(scale, (int, float))
                                  and 0 < scale < math.inf):
        raise ValueError("scale must be a positive number such as 0.01, or "
                         f"'xavier'; it was {scale!r}")
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
            value = random.normal(0, scale, shape)
        params.append(np.array(value, dtype='float32'))
    return params


def relu(X):
    # As npx.relu, but with an implementation made for CPUs behind it.
    return npx.activation(X, act_type='relu')


def conv(X, W, b):
    """Convolve X (b, c, h, w) with W (filters, c, k, k), ReLU, halve it."""
    H = npx.convolution(data=X, weight=W, bias=b, kernel=W.shape[2:],
                        num_filter=W.shape[0])
    return npx.pooling(data=relu(H), pool_type='avg', kernel=(2, 2),
                       stride=(2, 2))


def hidden(X, W, b):
    """A dense layer with ReLU; X may still be an image (b, c, h, w)."""
    return relu(np.dot(X.reshape(len(X), -1), W) + b)


def output(X, W, b):
    """The last dense layer: X (b, 128) to ten scores (b, 10)."""
    return np.dot(X, W) + b


LAYERS = (conv, conv, hidden, output)


def forward(X, params, layers):
    """Send X through `layers`; `params` has a W and a b for each."""
    for layer, W, b in zip(layers, params[::2], params[1::2]):
        X = layer(X, W, b)
    return X


def lenet(X, params):
    """Scores (b, 10) for images X (b, 1, 28, 28), where `params` live."""
    return forward(X, params, LAYERS)


def loss(y_hat, y):
    """Softmax and cross-entropy: scores (b, 10), labels (b,) to losses (b,)"""
    return np.negative(npx.pick(npx.log_softmax(y_hat), y))
