"""LeNet from scratch against Gluon's, and where its parameters start."""
import math

import numpy as onp
import pytest
from mxnet import autograd, gluon, np

import d2lps
from d2lps import init_params, loss
from d2lps.training import lenet
from d2lps.training.lenet_layers import PARAM_SHAPES


@pytest.fixture
def batch():
    train_iter, _ = d2lps.load_data(32)
    return next(iter(train_iter))


def test_params_have_the_shapes_of_the_book():
    params = init_params()
    assert tuple(param.shape for param in params) == PARAM_SHAPES
    assert PARAM_SHAPES == ((20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,),
                            (800, 128), (128,), (128, 10), (10,))
    assert sum(param.size for param in params) == 129_068
    assert {str(param.dtype) for param in params} == {'float32'}


def test_xavier_weights_fill_their_bounds():
    fans = (9 + 180, 500 + 1250, 800 + 128, 128 + 10)
    for W, fan in zip(init_params()[::2], fans):
        bound = math.sqrt(6 / fan)
        assert 0.9 * bound < abs(W.asnumpy()).max() <= bound
        assert W.asnumpy().std() == pytest.approx(bound / 3 ** 0.5, rel=0.1)


def test_scale_is_the_standard_deviation_of_the_weights():
    for W in init_params(0.01)[::2]:
        assert W.asnumpy().std() == pytest.approx(0.01, rel=0.15)
        assert abs(W.asnumpy().mean()) < 0.003


def test_loss_is_cross_entropy_of_softmax_by_example():
    scores = onp.array([[1., 2., 3.], [0., 0., 0.]])
    expected = onp.log(onp.exp(scores).sum(1)) - scores[[0, 1], [2, 1]]
    found = loss(np.array(scores), np.array([2, 1], dtype='int32'))
    assert found.asnumpy() == pytest.approx(expected, abs=1e-6)


def gluon_lenet(X, params):
    """Gluon's LeNet with the weights that are ours."""
    net = gluon.nn.Sequential()
    net.add(gluon.nn.Conv2D(20, 3, activation='relu'),
            gluon.nn.AvgPool2D(2, 2),
            gluon.nn.Conv2D(50, 5, activation='relu'),
            gluon.nn.AvgPool2D(2, 2),
            gluon.nn.Dense(128, activation='relu'), gluon.nn.Dense(10))
    net.initialize()
    net(X)  # Gluon learns the shapes from the first batch
    for theirs, ours in zip(net.collect_params().values(), params):
        theirs.set_data(ours.T if ours.ndim == 2 else ours)
    return net


def test_scores_loss_and_gradients_equal_those_of_gluon(batch):
    X, y = batch
    params = d2lps.get_params(init_params(), X.ctx)
    net = gluon_lenet(X, params)
    with autograd.record():
        scores = lenet(X, params)
        l = loss(scores, y)
    l.backward()
    with autograd.record():
        their_scores = net(X)
        their_l = loss(their_scores, y)
    their_l.backward()
    onp.testing.assert_allclose(scores.asnumpy(), their_scores.asnumpy(),
                                atol=1e-5)
    onp.testing.assert_allclose(l.asnumpy(), their_l.asnumpy(), atol=1e-5)
    theirs = list(net.collect_params().values())
    assert len(theirs) == len(params) == 8
    for param, their in zip(params, theirs):
        gradient = their.grad().asnumpy()
        assert abs(gradient).max() > 0.01
        onp.testing.assert_allclose(
            param.grad.asnumpy(),
            gradient.T if param.ndim == 2 else gradient, atol=1e-4)
