# %% wrong: images shared without a rest
# loses: compute, work
#-    sizes = [b * (i + 1) // k - b * i // k for i in range(k)]
#+    sizes = [b // k] * k


# %% wrong: nothing goes back
# loses: allreduce, python
#-    allreduce = others * (2 * m['copy_ms'] + m['add_ms'])
#+    allreduce = others * (m['copy_ms'] + m['add_ms'])
#-    python = k * m['python_ms'] + others * m['arrays'] * 3 * m['call_ms']
#+    python = k * m['python_ms'] + others * m['arrays'] * 2 * m['call_ms']


# %% wrong: all is added
# loses: step
#-            'work': work, 'step': max(python, compute + allreduce, work)}
#+            'work': work, 'step': python + compute + allreduce + work}


# %% wrong: a measurement is changed
# loses: compute, allreduce, python, work, step
#-    compute, others = max(shards), k - 1
#+    compute, others = max(shards), k - 1
#+    m['ms'][0] -= 1


# %% wrong: functions of the check
# loses: compute, allreduce, python, work, step
#-    sizes = [b * (i + 1) // k - b * i // k for i in range(k)]
#+    from d2lps.exercises.predict_then_measure import shards_of
#+    sizes = shards_of(k, b)


# %% right: with NumPy, numbers as arrays
import numpy as np


def predict(k, b, m):
    bounds = b * np.arange(k + 1) // k
    line = np.polyfit(m['images'], m['ms'], 1)
    shards = np.polyval(line, np.diff(bounds))
    found = {'compute': shards.max(),
             'allreduce': np.array((k - 1) * (m['copy_ms'] * 2 + m['add_ms']))}
    found['python'] = (k * m['python_ms']
                       + 3 * m['call_ms'] * m['arrays'] * (k - 1))
    found['work'] = (shards.sum() + found['allreduce'] + found['python']
                     ) / m['cores']
    found['step'] = np.max([found['python'], found['work'],
                            found['compute'] + found['allreduce']])
    return found
