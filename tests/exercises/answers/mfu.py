# %% wrong: attention is forgotten
# loses: mfu, log
# says: a token needs 0 FLOPs more by your function
#-    forward = 2 * parameters + 4 * layers * hidden * sequence
#+    forward = 2 * parameters


# %% wrong: recomputation counts
# loses: mfu, log
# says: you count 8 FLOPs, and 6 are right
#-    flops = 3 * forward
#+    flops = 4 * forward


# %% wrong: the peak of one GPU
# loses: mfu, log
# says: With twice the `gpus` your result is 1 times
#-    return flops * tokens_per_second / (gpus * peak)
#+    return flops * tokens_per_second / peak


# %% wrong: the log's own TFLOP/s
# loses: log
# says: That is the second forward pass
#-            rates.append(count * sequence / float(seconds.split()[0]))
#+            rates.append(float(line.split(' | ')[-1].split()[0]))
#-    return mfu_of(parameters, layers, hidden, sequence, usual, gpus, peak)
#+    return usual * 1e12 / peak


# %% wrong: the mean
# loses: log
# says: without the slow steps
#-    usual = (rates[middle] + rates[-middle - 1]) / 2
#+    usual = sum(rates) / len(rates)


# %% wrong: digits up to the comma
# loses: log
# says: without the commas in its numbers
#-            count = int(sequences.split()[0].replace(',', ''))
#+            count = int(sequences.split()[0].split(',')[0])


# %% right: in other forms
import re

import numpy as np


def mfu_of(p, n, h, s, rate, k, top):
    return np.float64(6 * p * (1 + 2 * n * h * s / p) * rate / k / top)


def mfu_of_log(text, *model):
    table = [(int(many.replace(',', '')), float(took)) for many, took in
             re.findall(r'^step .*\| ([\d,]+) sequences \| ([\d.]+) s', text,
                        re.M)][2:]
    many, took = np.array(table).T
    *before, gpus, peak = model
    usual = np.median(many * model[3] / took)
    return np.array(mfu_of(*before, usual, gpus, peak))
