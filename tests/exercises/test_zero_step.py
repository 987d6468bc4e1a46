"""Gradients are right, and what is held is found, but not what is copied."""
import numpy as np
import pytest

from d2lps.exercises import numpygroup, zero_step
from d2lps.exercises.checking import Wrong, check
from d2lps.exercises.zero_step import loss_gradient

LAYERS = [4, 5, 3, 2]


def loss(params, X, y):
    """The mean loss, worked out without `Layer`."""
    sizes = [(a + 1) * b for a, b in zip(LAYERS, LAYERS[1:])]
    parts = np.split(params, np.cumsum(sizes)[:-1])
    for k, (w, a, b) in enumerate(zip(parts, LAYERS, LAYERS[1:])):
        X = np.c_[X, np.ones(len(X))] @ w.reshape(a + 1, b)
        X = X.clip(min=0) if k < len(parts) - 1 else X
    return ((X - y) ** 2).sum() / 2 / len(X)


def test_the_right_answer_takes_the_slopes_of_the_loss():
    X, y = zero_step.batch(LAYERS, 0, 0)
    flat, h = np.concatenate(zero_step.parameters(LAYERS)), 1e-6
    slopes = [(loss(flat + h * one, X, y) - loss(flat - h * one, X, y)) / 2 / h
              for one in np.eye(flat.size)]
    [[worker]] = zero_step.run(zero_step._right, 1, LAYERS, lr=1)
    found = flat - np.concatenate(worker['shards'])
    assert np.allclose(found, slopes, atol=1e-7)
    assert (abs(found) > 1e-3).mean() > 0.5


@pytest.mark.parametrize('n', [1, 2, 5])
def test_what_the_calls_give(n):
    def work(worker):
        given = np.arange(2. * n) * (worker.rank + 1)
        part = worker.reduce_scatter(given)
        every = worker.all_gather(part)
        given[:] = part[:] = -1  # what was sent is sent
        return every

    for every in numpygroup.Group(n).run(work):
        assert every.tolist() == (np.arange(2 * n) * n * (n + 1) / 2).tolist()


@pytest.mark.parametrize('call', [
    lambda w: w.all_gather(np.ones(2 + w.rank)),
    lambda w: w.all_gather(np.ones((2, 2))),
    lambda w: w.all_gather(np.arange(2)), lambda w: w.all_gather([1.]),
    lambda w: w.reduce_scatter(np.ones(5))])
def test_what_no_library_would_take_is_refused(call):
    with pytest.raises(Wrong, match='rank 0 calls'):
        numpygroup.Group(3).run(call)


@pytest.mark.parametrize('keep, there', [
    (lambda whole: whole, 1), (lambda whole: whole[1:2], 1),
    (lambda whole: [np.asarray(whole).reshape(2, 3)], 1),
    (lambda whole: whole.sum(), 0), (lambda whole: whole.copy(), 0)])
def test_whatever_holds_an_array_is_seen_but_no_copy(keep, there):
    def work(worker):
        worker.start([], None)
        kept = keep(worker.all_gather(np.ones(3)))
        return len(worker._whole()), kept

    for held, _ in zero_step.Group(2).run(work):
        assert held == there


def test_the_numbers_that_are_told_are_those_of_this_answer(capsys):
    """Who keeps each layer gathers once, and sends as little as DDP."""
    def gathers_once(worker, layers, shards, X, y, lr):
        n, inputs = worker.num_workers, []
        whole = [worker.all_gather(shard)[:layer.size]
                 for layer, shard in zip(layers, shards)]
        for layer, w in zip(layers, whole):
            inputs.append(X)
            X = layer.forward(w, X)
        G = loss_gradient(X, y)
        for k in reversed(range(len(layers))):
            G, grad = layers[k].backward(whole[k], inputs[k], G)
            grad = np.pad(grad, (0, -grad.size % n))
            shards[k] -= lr / n * worker.reduce_scatter(grad)

    check('zero-step', 'sent', gathers_once)
    assert 'sends 942 numbers, 1.5 for each' in capsys.readouterr().out
