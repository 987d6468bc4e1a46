# ruff: noqa: F811
# %% wrong: the last, smaller minibatch is forgotten
# says: what is left after the last full minibatch
def one_epoch(X, y, k, b, lr, train_batch):
    steps = len(X) // (k * b)
    for i in range(steps):
        rows = slice(i * k * b, (i + 1) * k * b)
        train_batch(X[rows], y[rows], k * lr)
    return steps


# %% wrong: b examples for all devices together
# says: on each; 4 on each are wanted, so 8
def one_epoch(X, y, k, b, lr, train_batch):
    starts = range(0, len(X), b)
    for start in starts:
        train_batch(X[start:start + b], y[start:start + b], lr)
    return len(starts)


# %% wrong: the learning rate stays
# says: so each image counts 0.0125
def one_epoch(X, y, k, b, lr, train_batch):
    starts = range(0, len(X), k * b)
    for start in starts:
        train_batch(X[start:start + k * b], y[start:start + k * b], lr)
    return len(starts)


# %% wrong: the last step has k times the rate, too
# says: It is the last step, a smaller one
def one_epoch(X, y, k, b, lr, train_batch):
    starts = range(0, len(X), k * b)
    for start in starts:
        train_batch(X[start:start + k * b], y[start:start + k * b], k * lr)
    return len(starts)


# %% wrong: an empty step at the end where k * b divides N
# says: has no images
def one_epoch(X, y, k, b, lr, train_batch):
    steps = len(X) // (k * b) + 1
    for i in range(steps):
        rows = slice(i * k * b, (i + 1) * k * b)
        train_batch(X[rows], y[rows], lr * len(X[rows]) / b)
    return steps


# %% wrong: X is shuffled, y is not
# says: Are X and y in the same order?
def one_epoch(X, y, k, b, lr, train_batch):
    import numpy as np
    X = np.random.default_rng(0).permutation(X)
    starts = range(0, len(X), k * b)
    for start in starts:
        X_batch = X[start:start + k * b]
        train_batch(X_batch, y[start:start + k * b], lr * len(X_batch) / b)
    return len(starts)


# %% wrong: the last minibatch is filled up from the beginning
# says: it counts twice
def one_epoch(X, y, k, b, lr, train_batch):
    import numpy as np
    starts = range(0, len(X), k * b)
    for start in starts:
        rows = np.arange(start, start + k * b) % len(X)
        train_batch(X[rows], y[rows], k * lr)
    return len(starts)


# %% wrong: a step of its own for each device
# says: on each; 4 on each are wanted
def one_epoch(X, y, k, b, lr, train_batch):
    steps = 0
    for start in range(0, len(X), k * b):
        for i in range(k):
            rows = slice(start + i * b, start + (i + 1) * b)
            if len(X[rows]):
                train_batch(X[rows], y[rows], lr)
        steps += 1
    return steps


# %% wrong: nothing is returned
# says: returned None
def one_epoch(X, y, k, b, lr, train_batch):
    for start in range(0, len(X), k * b):
        X_batch = X[start:start + k * b]
        train_batch(X_batch, y[start:start + k * b], lr * len(X_batch) / b)


# %% wrong: the steps are rounded down when they are returned
# says: steps and returned
def one_epoch(X, y, k, b, lr, train_batch):
    for start in range(0, len(X), k * b):
        X_batch = X[start:start + k * b]
        train_batch(X_batch, y[start:start + k * b], lr * len(X_batch) / b)
    return len(X) // (k * b)


# %% wrong: a rate that is no number
# says: a learning rate of nan
def one_epoch(X, y, k, b, lr, train_batch):
    starts = range(0, len(X), k * b)
    for start in starts:
        rows = slice(start, start + k * b)
        train_batch(X[rows], y[rows], float('nan'))
    return len(starts)


# %% right: shuffled, with NumPy's split
def one_epoch(X, y, k, b, lr, train_batch):
    import numpy as np
    order = np.random.permutation(len(X))
    parts = np.split(order, np.arange(k * b, len(X), k * b))
    for rows in parts:
        train_batch(X[rows], y[rows], lr / b * len(rows))
    return np.int64(len(parts))


# %% right: arguments by their names
def one_epoch(X, y, k, b, lr, train_batch):
    starts = range(0, len(X), k * b)
    for start in starts:
        X_batch, y_batch = X[start:start + k * b], y[start:start + k * b]
        train_batch(X_batch=X_batch, y_batch=y_batch,
                    rate=lr * len(X_batch) / b)
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


# %% wrong: the labels stay whole
# says: labels
#-        X_batch, y_batch = X[start:start + k * b], y[start:start + k * b]
#+        X_batch, y_batch = X[start:start + k * b], y

# %% wrong: the last minibatch takes along what is left
# says: Only the last step may be smaller
#-    starts = range(0, len(X), k * b)
#+    starts = range(0, max(1, len(X) - len(X) % (k * b)), k * b)
#-        X_batch, y_batch = X[start:start + k * b], y[start:start + k * b]
#+        stop = len(X) if start == starts[-1] else start + k * b
#+        X_batch, y_batch = X[start:stop], y[start:stop]

# %% wrong: X and y are shuffled in place
# says: X or y is another after your function
#-    starts = range(0, len(X), k * b)
#+    import numpy as np
#+    order = np.random.default_rng(0).permutation(len(X))
#+    X[:], y[:] = X[order], y[order]
#+    starts = range(0, len(X), k * b)

# %% wrong: slices are one too short
# says: image 7 for one
#-        X_batch, y_batch = X[start:start + k * b], y[start:start + k * b]
#+        end = start + k * b - 1
#+        X_batch, y_batch = X[start:end], y[start:end]

# %% wrong: fewer images than a minibatch go at k times the rate
# says: It is the last step, a smaller one
#-    starts = range(0, len(X), k * b)
#+    if len(X) < k * b:
#+        train_batch(X, y, k * lr)
#+        return 1
#+    starts = range(0, len(X), k * b)

# %% right: steps counted in an array of no dimension
#-    return len(starts)
#+    import numpy
#+    return numpy.array(len(starts))

# %% right: the steps rounded up by NumPy
#-    return len(starts)
#+    import numpy
#+    return numpy.ceil(len(X) / (k * b))

# %% right: the rate in single precision
#-        train_batch(X_batch, y_batch, lr * len(X_batch) / b)
#+        import numpy
#+        train_batch(X_batch, y_batch, numpy.float32(lr * len(X_batch) / b))
