# ruff: noqa: F811
# %% wrong: waits for each device before the next one begins
# loses: time
def accuracy_on_all(X, y, k, begin):
    right = 0
    for i in range(k):
        part = slice(len(X) * i // k, len(X) * (i + 1) // k)
        right += int(begin(i, X[part], y[part]))
    return right / len(X)


# %% wrong: the mean of the devices' accuracies
# loses: accuracy
def accuracy_on_all(X, y, k, begin):
    counts, sizes = [], []
    for i in range(k):
        part = slice(len(X) * i // k, len(X) * (i + 1) // k)
        counts.append(begin(i, X[part], y[part]))
        sizes.append(max(1, len(X[part])))
    return sum(int(c) / n for c, n in zip(counts, sizes)) / k


# %% wrong: what is left over is forgotten
# loses: accuracy
def accuracy_on_all(X, y, k, begin):
    n = len(X) // k
    counts = [begin(i, X[i * n:(i + 1) * n], y[i * n:(i + 1) * n])
              for i in range(k)]
    return sum(int(count) for count in counts) / len(X)


# %% wrong: of each image one pixel is tested
# loses: accuracy
#-        counts.append(begin(i, X[part], y[part]))
#+        counts.append(begin(i, X[part, :, :1, :1], y[part]))


# %% right: image by image, as lists
def accuracy_on_all(X, y, k, begin):
    counts = [begin(n % k, [x], [label])
              for n, (x, label) in enumerate(zip(X, y))]
    return sum(int(count) for count in reversed(counts)) / len(counts)
