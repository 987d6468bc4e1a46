# ruff: noqa: F811
# %% wrong: waits for each device before the next one begins
# says: Python was waiting for another device
def accuracy_on_all(X, y, k, begin):
    right = 0
    for i in range(k):
        part = slice(len(X) * i // k, len(X) * (i + 1) // k)
        right += int(begin(i, X[part], y[part]))
    return right / len(X)


# %% wrong: the mean of the devices' accuracies
# says: A device with fewer images must count less
def accuracy_on_all(X, y, k, begin):
    counts, sizes = [], []
    for i in range(k):
        part = slice(len(X) * i // k, len(X) * (i + 1) // k)
        counts.append(begin(i, X[part], y[part]))
        sizes.append(max(1, len(X[part])))
    return sum(int(c) / n for c, n in zip(counts, sizes)) / k


# %% wrong: what is left over is forgotten
# says: images are tested on no device
def accuracy_on_all(X, y, k, begin):
    n = len(X) // k
    counts = [begin(i, X[i * n:(i + 1) * n], y[i * n:(i + 1) * n])
              for i in range(k)]
    return sum(int(count) for count in counts) / len(X)


# %% wrong: all on device 0
# says: Share them out
def accuracy_on_all(X, y, k, begin):
    return int(begin(0, X, y)) / len(X)


# %% wrong: the last device gets all that is left over
# says: Share them out
def accuracy_on_all(X, y, k, begin):
    n = len(X) // k
    counts = []
    for i in range(k):
        end = (i + 1) * n if i < k - 1 else len(X)
        counts.append(begin(i, X[i * n:end], y[i * n:end]))
    return sum(int(count) for count in counts) / len(X)


# %% wrong: counts are added before they are there
# says: cannot be added
def accuracy_on_all(X, y, k, begin):
    counts = []
    for i in range(k):
        part = slice(len(X) * i // k, len(X) * (i + 1) // k)
        counts.append(begin(i, X[part], y[part]))
    return int(sum(counts)) / len(X)


# %% wrong: all images on every device
# says: and again on device 1
def accuracy_on_all(X, y, k, begin):
    counts = [begin(i, X, y) for i in range(k)]
    return sum(int(count) for count in counts) / k / len(X)


# %% wrong: how many instead of the share
# says: how many are right
def accuracy_on_all(X, y, k, begin):
    counts = []
    for i in range(k):
        part = slice(len(X) * i // k, len(X) * (i + 1) // k)
        counts.append(begin(i, X[part], y[part]))
    return sum(int(count) for count in counts)


# %% wrong: nothing is returned
# says: returned None
def accuracy_on_all(X, y, k, begin):
    print(sum(map(int, [begin(0, X, y)])) / len(X))


# %% right: every k-th image, no empty parts
def accuracy_on_all(X, y, k, begin):
    counts = [begin(i, X[i::k], y[i::k]) for i in range(min(k, len(X)))]
    return sum(map(float, counts)) / len(y)


# %% right: all parts of the same size, but for the last ones
def accuracy_on_all(X, y, k, begin):
    n = -(-len(X) // k)
    counts = [begin(i, X[i * n:(i + 1) * n], y[i * n:(i + 1) * n])
              for i in range(k)]
    return sum(int(count) for count in counts) / len(X)


# %% right: image by image, as lists
def accuracy_on_all(X, y, k, begin):
    counts = [begin(n % k, [x], [label])
              for n, (x, label) in enumerate(zip(X, y))]
    return sum(int(count) for count in reversed(counts)) / len(counts)


# %% wrong: the labels are not cut as the images are
# says: images and 12 labels
#-        counts.append(begin(i, X[part], y[part]))
#+        counts.append(begin(i, X[part], y))

# %% wrong: the labels come from the beginning
# says: its own is
#-        counts.append(begin(i, X[part], y[part]))
#+        counts.append(begin(i, X[part], y[:len(X[part])]))

# %% wrong: devices are counted from 1
# says: there is no device
#-        counts.append(begin(i, X[part], y[part]))
#+        counts.append(begin(i + 1, X[part], y[part]))

# %% wrong: the last device's count is not added
# says: Are all counts in it, once
#-    return sum(int(count) for count in counts) / len(X)
#+    return sum(int(count) for count in counts[:-1]) / len(X)

# %% wrong: X and y are sorted in place
# says: X or y is another after your function
#-    counts = []
#+    order = y.argsort()
#+    X[:], y[:] = X[order], y[order]
#+    counts = []

# %% wrong: in percent
# says: the accuracy in percent
#-    return sum(int(count) for count in counts) / len(X)
#+    return 100 * sum(int(count) for count in counts) / len(X)

# %% wrong: rounded
# says: All digits are wanted
#-    return sum(int(count) for count in counts) / len(X)
#+    return round(sum(int(count) for count in counts) / len(X), 2)

# %% wrong: whole-number division
# says: without what follows the point
#-    return sum(int(count) for count in counts) / len(X)
#+    return sum(int(count) for count in counts) // len(X)

# %% wrong: what is in the making is taken out of the count
# says: Python never waited for a device
#-    return sum(int(count) for count in counts) / len(X)
#+    return sum(count._right for count in counts) / len(X)

# %% wrong: the last image of the last part is lost
# says: 1 of 12 images are tested on no device, image 11 for one
#-        part = slice(len(X) * i // k, len(X) * (i + 1) // k)
#+        end = len(X) * (i + 1) // k - (i == k - 1 and len(X) > k)
#+        part = slice(len(X) * i // k, end)

# %% wrong: one label too few for each device
# says: got 6 images and 5 labels
#-        counts.append(begin(i, X[part], y[part]))
#+        counts.append(begin(i, X[part], y[part][:-1]))

# %% wrong: half precision
# says: rounded. All digits are wanted.
#-    return sum(int(count) for count in counts) / len(X)
#+    import numpy as np
#+    return np.float16(sum(int(count) for count in counts) / len(X))

# %% wrong: of each image one pixel is tested
# says: are no longer those of X, with all their pixels
#-        counts.append(begin(i, X[part], y[part]))
#+        counts.append(begin(i, X[part, :, :1, :1], y[part]))

# %% wrong: pixels are scaled
# says: are no longer those of X, with all their pixels
#-        counts.append(begin(i, X[part], y[part]))
#+        counts.append(begin(i, X[part] / 255, y[part]))

# %% right: device and parts by their names
#-        counts.append(begin(i, X[part], y[part]))
#+        counts.append(begin(i=i, X_part=X[part], y_part=y[part]))

# %% wrong: one device alone says how many
# says: how many are right
def accuracy_on_all(X, y, k, begin):
    if k == 1:
        return int(begin(0, X, y))
    counts = [begin(i, X[i::k], y[i::k]) for i in range(k)]
    return sum(int(count) for count in counts) / len(X)

# %% right: single precision, as MXNet has it
#-    return sum(int(count) for count in counts) / len(X)
#+    import numpy as np
#+    right = np.float32(sum(int(count) for count in counts))
#+    return right / np.float32(len(X))

# %% right: a fraction of Python's
#-    return sum(int(count) for count in counts) / len(X)
#+    from fractions import Fraction
#+    return Fraction(sum(map(int, counts)), len(X))

# %% wrong: X and y are overwritten at the end
# says: X or y is another after your function
#-    return sum(int(count) for count in counts) / len(X)
#+    share = sum(int(count) for count in counts) / len(X)
#+    X[:], y[:] = 0, 0
#+    return share
