# %% wrong: attention is forgotten
# loses: mfu, log
#-    forward = 2 * parameters + 4 * layers * hidden * sequence
#+    forward = 2 * parameters


# %% wrong: the log's own TFLOP/s
# loses: log
#-            rates.append(count * sequence / float(seconds.split()[0]))
#+            rates.append(float(line.split(' | ')[-1].split()[0]))
#-    return mfu_of(parameters, layers, hidden, sequence, usual, gpus, peak)
#+    return usual * 1e12 / peak


# %% wrong: digits up to the comma
# loses: log
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
