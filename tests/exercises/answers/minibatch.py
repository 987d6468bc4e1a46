# ruff: noqa: F811
# %% wrong: the last, smaller minibatch is forgotten
# loses: steps, rate
def one_epoch(X, y, k, b, lr, train_batch):
    steps = len(X) // (k * b)
    for i in range(steps):
        rows = slice(i * k * b, (i + 1) * k * b)
        train_batch(X[rows], y[rows], k * lr)
    return steps


# %% wrong: the learning rate stays
# loses: rate
def one_epoch(X, y, k, b, lr, train_batch):
    starts = range(0, len(X), k * b)
    for start in starts:
        train_batch(X[start:start + k * b], y[start:start + k * b], lr)
    return len(starts)


# %% wrong: X is shuffled, y is not
# loses: steps
def one_epoch(X, y, k, b, lr, train_batch):
    import numpy as np
    X = np.random.default_rng(0).permutation(X)
    starts = range(0, len(X), k * b)
    for start in starts:
        X_batch = X[start:start + k * b]
        train_batch(X_batch, y[start:start + k * b], lr * len(X_batch) / b)
    return len(starts)


# %% wrong: a rate that is no number
# loses: rate
def one_epoch(X, y, k, b, lr, train_batch):
    starts = range(0, len(X), k * b)
    for start in starts:
        rows = slice(start, start + k * b)
        train_batch(X[rows], y[rows], float('nan'))
    return len(starts)


# %% right: lists
def one_epoch(X, y, k, b, lr, train_batch):
    X, y, steps = list(X), list(y), 0
    while X:
        size = min(k * b, len(X))
        train_batch([X.pop() for _ in range(size)],
                    [y.pop() for _ in range(size)], size * lr / b)
        steps += 1
    return steps
