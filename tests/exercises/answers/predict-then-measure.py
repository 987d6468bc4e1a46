# %% wrong: images shared without a rest
# loses: compute, work
# says: 64 images on 3 devices are 21, 21, 22. All wait
#-    sizes = [b * (i + 1) // k - b * i // k for i in range(k)]
#+    sizes = [b // k] * k


# %% wrong: nothing goes back
# loses: allreduce
# says: And how does the sum get back to it?
#-    allreduce = others * (2 * m['copy_ms'] + m['add_ms'])
#+    allreduce = others * (m['copy_ms'] + m['add_ms'])


# %% wrong: one call for each array
# loses: python
# says: a copy back are three
#-    python = k * m['python_ms'] + others * m['arrays'] * 3 * m['call_ms']
#+    python = k * m['python_ms'] + others * m['arrays'] * m['call_ms']


# %% wrong: all is added
# loses: step
# says: That is a sum. Python, the devices and the cores
#-            'work': work, 'step': max(python, compute + allreduce, work)}
#+            'work': work, 'step': python + compute + allreduce + work}


# %% wrong: a measurement is changed
# loses: compute, allreduce, python, work, step
# says: your function has changed `m`
#-    compute, others = max(shards), k - 1
#+    compute, others = max(shards), k - 1
#+    m['ms'][0] -= 1


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
