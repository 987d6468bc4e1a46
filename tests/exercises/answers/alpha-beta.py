# ruff: noqa: E402, F811
# %% wrong: a plain straight line through the means
# says: A percent should count the same at every size
#-    usual = np.median(seconds, axis=1)
#-    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
#+    slope, alpha = np.polyfit(nbytes, seconds.mean(axis=1), 1)

# %% wrong: weights, but of the means
# says: They must not pull
#-    usual = np.median(seconds, axis=1)
#+    usual = seconds.mean(axis=1)

# %% wrong: medians, but no weights
# says: so they decide it
#-    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
#+    slope, alpha = np.polyfit(nbytes, usual, 1)

# %% wrong: weights, and all times as they are
# says: late times count, too
#-    usual = np.median(seconds, axis=1)
#-    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
#+    x, y = np.repeat(nbytes, seconds.shape[1]), seconds.ravel()
#+    slope, alpha = np.polyfit(x, y, 1, w=1 / y)

# %% wrong: a plain straight line through all times
# says: A percent should count the same at every size
#-    usual = np.median(seconds, axis=1)
#-    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
#+    x, y = np.repeat(nbytes, seconds.shape[1]), seconds.ravel()
#+    slope, alpha = np.polyfit(x, y, 1)

# %% wrong: the slowest of each size is left out, then the mean
# says: do they pull?
#-    usual = np.median(seconds, axis=1)
#+    usual = np.sort(seconds, axis=1)[:, :-1].mean(axis=1)

# %% wrong: the fastest of each size
# says: the fastest is too fast for all sizes
#-    usual = np.median(seconds, axis=1)
#+    usual = seconds.min(axis=1)

# %% wrong: the smallest message is alpha, the largest gives the bandwidth
# says: is as far as you may be away
#-    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
#+    small, large = nbytes.argmin(), nbytes.argmax()
#+    alpha = usual[small]
#+    slope = (usual[large] - alpha) / nbytes[large]

# %% wrong: the first and the last row are the smallest and the largest
# says: bandwidth is
#-    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
#+    slope = (usual[-1] - usual[0]) / (nbytes[-1] - nbytes[0])
#+    alpha = usual[0] - slope * nbytes[0]

# %% wrong: a line through two sizes only
# says: Does every size have a say in your fit?
#-    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
#+    small, large = nbytes.argmin(), nbytes.argmax()
#+    slope = (usual[large] - usual[small]) / (nbytes[large] - nbytes[small])
#+    alpha = usual[small] - slope * nbytes[small]

# %% wrong: the weights are the wrong way round
# says: decide the fit? Then their noise goes into alpha
#-    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
#+    slope, alpha = np.polyfit(nbytes, usual, 1, w=usual)

# %% wrong: weights of one over the bytes
# says: bandwidth is
#-    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
#+    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / nbytes)

# %% wrong: the slope is returned, not the bandwidth
# says: looks like seconds per byte
#-    return alpha, 1 / slope
#+    return alpha, slope

# %% wrong: the bandwidth comes first
# says: the wrong way round
#-    return alpha, 1 / slope
#+    return 1 / slope, alpha

# %% wrong: alpha in microseconds
# says: looks like microseconds
#-    return alpha, 1 / slope
#+    return alpha * 1e6, 1 / slope

# %% wrong: the bandwidth in megabytes per second
# says: looks like megabytes per second
#-    return alpha, 1 / slope
#+    return alpha, 1e-6 / slope

# %% wrong: the time is divided by two once more
# says: for one way already
#-    usual = np.median(seconds, axis=1)
#+    usual = np.median(seconds, axis=1) / 2

# %% wrong: a straight line on log axes
# says: does a percent count the same at every size
#-    slope, alpha = np.polyfit(nbytes, usual, 1, w=1 / usual)
#+    power, start = np.polyfit(np.log(nbytes), np.log(usual), 1)
#+    line = np.exp(start + power * np.log(nbytes))
#+    alpha, slope = line.min(), line.max() / nbytes.max()

# %% wrong: no numbers
# says: Two finite numbers are wanted
#-    return alpha, 1 / slope
#+    return np.nan, 1 / slope

# %% wrong: the median over the sizes
# says: your function stopped with
#-    usual = np.median(seconds, axis=1)
#+    usual = np.median(seconds, axis=0)

# %% wrong: one number
# says: Two numbers are wanted
#-    return alpha, 1 / slope
#+    return alpha

# %% wrong: nothing is returned
# says: your function returned None
#-    return alpha, 1 / slope
#+    alpha, 1 / slope

# %% wrong: the chunks are forgotten
# says: A message carries one of
#-    return n * alpha * bandwidth
#+    return alpha * bandwidth

# %% wrong: alpha through the bandwidth
# says: Seconds times bytes per second are bytes
#-    return n * alpha * bandwidth
#+    return alpha / bandwidth

# %% wrong: the rounds are counted on one side only
# says: each pays its latency and its own bytes
#-    return n * alpha * bandwidth
#+    return 2 * (n - 1) * alpha * bandwidth

# %% wrong: the bytes of a chunk
# says: you say
#-    return n * alpha * bandwidth
#+    return alpha * bandwidth / n

# %% right: what is far from the line is left out, and the line drawn again
import numpy as np

def fit(nbytes, seconds):
    x = np.repeat(nbytes, seconds.shape[1])
    y = seconds.ravel()
    keep = np.ones(len(y), bool)
    for _ in range(10):
        slope, alpha = np.polyfit(x[keep], y[keep], 1, w=1 / y[keep])
        miss = y / (alpha + slope * x) - 1
        middle = np.median(miss)
        keep = abs(miss - middle) < 4.5 * np.median(abs(miss - middle))
    return [alpha, 1 / slope]


def crossover(n, alpha, bandwidth):
    return int(alpha * bandwidth * n)


# %% right: the least sum of relative misses, without their squares
import numpy as np

def fit(nbytes, seconds):
    x, y = np.repeat(nbytes, seconds.shape[1]), seconds.ravel()
    weights = 1 / y
    for _ in range(60):
        slope, alpha = np.polyfit(x, y, 1, w=weights)
        line = alpha + slope * x
        weights = 1 / line / np.sqrt(np.maximum(abs(y / line - 1), 1e-3))
    seconds[:] = 0
    return np.array([alpha, 1 / slope])


def crossover(n, alpha, bandwidth):
    low, high = 0.0, 1e15
    for _ in range(200):
        middle = (low + high) / 2
        if middle / n / bandwidth < alpha:
            low = middle
        else:
            high = middle
    return np.array(middle)


# %% right: medians of all slopes between two sizes
import numpy as np

def fit(nbytes, seconds):
    usual = np.median(seconds, axis=1)
    slopes = [(usual[i] - usual[j]) / (nbytes[i] - nbytes[j])
              for i in range(len(nbytes)) for j in range(i)]
    x = nbytes / usual
    best = np.linalg.lstsq(np.stack([1 / usual, x], 1), np.ones(len(x)),
                           rcond=None)[0]
    assert np.isclose(best[1], np.median(slopes), rtol=0.2)
    return best[0], np.float64(1 / best[1])


def crossover(n, alpha, bandwidth):
    chunk = alpha * bandwidth
    return chunk * n
