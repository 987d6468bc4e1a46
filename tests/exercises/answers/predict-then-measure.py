# ruff: noqa: F811
# %% wrong: all is added
# says: That is a sum. Python, the devices and the cores
#-            'work': work, 'step': max(python, compute + allreduce, work)}
#+            'work': work, 'step': python + compute + allreduce + work}

# %% wrong: images shared without a rest
# says: 64 images on 3 devices are 21, 21, 22. All wait
#-    sizes = [b * (i + 1) // k - b * i // k for i in range(k)]
#+    sizes = [b // k] * k

# %% wrong: a line through zero
# says: That is a line through 0
#-    shards = [m['ms'][0] + slope * (n - m['images'][0]) for n in sizes]
#+    shards = [m['ms'][1] / m['images'][1] * n for n in sizes]

# %% wrong: parts of an image
# says: No device has 21.33 of them
#-    sizes = [b * (i + 1) // k - b * i // k for i in range(k)]
#+    sizes = [b / k] * k

# %% wrong: the time of all images, divided by the devices
# says: Each device also pays what a step of no images takes
#-    shards = [m['ms'][0] + slope * (n - m['images'][0]) for n in sizes]
#+    shards = [(m['ms'][0] + slope * (b - m['images'][0])) / k for n in sizes]

# %% wrong: interpolated
# says: np.interp does
#-    shards = [m['ms'][0] + slope * (n - m['images'][0]) for n in sizes]
#+    import numpy as np
#+    shards = [np.interp(n, m['images'], m['ms']) for n in sizes]

# %% wrong: devices compute one after another
# says: they work at the same time
#-    compute, others = max(shards), k - 1
#+    compute, others = sum(shards), k - 1

# %% wrong: device 0 copies its own gradient
# says: How many come from the other 3?
#-    allreduce = others * (2 * m['copy_ms'] + m['add_ms'])
#+    allreduce = k * (2 * m['copy_ms'] + m['add_ms'])

# %% wrong: nothing goes back
# says: And how does the sum get back to it?
#-    allreduce = others * (2 * m['copy_ms'] + m['add_ms'])
#+    allreduce = others * (m['copy_ms'] + m['add_ms'])

# %% wrong: adding costs nothing
# says: The additions are missing
#-    allreduce = others * (2 * m['copy_ms'] + m['add_ms'])
#+    allreduce = others * 2 * m['copy_ms']

# %% wrong: every array costs a whole copy
# says: were measured for all arrays together
#-    allreduce = others * (2 * m['copy_ms'] + m['add_ms'])
#+    allreduce = others * m['arrays'] * (2 * m['copy_ms'] + m['add_ms'])

# %% wrong: Python puts the devices' steps into queues at once
# says: One Python program fills the queues of all devices
#-    python = k * m['python_ms'] + others * m['arrays'] * 3 * m['call_ms']
#+    python = m['python_ms'] + others * m['arrays'] * 3 * m['call_ms']

# %% wrong: Python's calls of the all-reduce are forgotten
# says: The calls of the all-reduce are missing
#-    python = k * m['python_ms'] + others * m['arrays'] * 3 * m['call_ms']
#+    python = k * m['python_ms']

# %% wrong: one call for each array
# says: a copy back are three
#-    python = k * m['python_ms'] + others * m['arrays'] * 3 * m['call_ms']
#+    python = k * m['python_ms'] + others * m['arrays'] * m['call_ms']

# %% wrong: the arrays are forgotten
# says: How many arrays does an all-reduce sum?
#-    python = k * m['python_ms'] + others * m['arrays'] * 3 * m['call_ms']
#+    python = k * m['python_ms'] + others * 3 * m['call_ms']

# %% wrong: Python needs no core
# says: Python's work is missing
#-    work = (python + sum(shards) + allreduce) / m['cores']
#+    work = (sum(shards) + allreduce) / m['cores']

# %% wrong: no more cores than devices
# says: You divide by the smaller of devices and cores
#-    work = (python + sum(shards) + allreduce) / m['cores']
#+    work = (python + sum(shards) + allreduce) / min(k, m['cores'])

# %% wrong: every shard is the largest
# says: The shards differ
#-    work = (python + sum(shards) + allreduce) / m['cores']
#+    work = (python + k * max(shards) + allreduce) / m['cores']

# %% wrong: cores are thought of as many
# says: And if there are too few cores for all that?
#-            'work': work, 'step': max(python, compute + allreduce, work)}
#+            'work': work, 'step': max(python, compute + allreduce)}

# %% wrong: the all-reduce does not wait
# says: The all-reduce can only begin when the gradients are there
#-            'work': work, 'step': max(python, compute + allreduce, work)}
#+            'work': work, 'step': max(python, compute, allreduce, work)}

# %% wrong: what is done first counts
# says: The step is over when the last is done
#-            'work': work, 'step': max(python, compute + allreduce, work)}
#+            'work': work, 'step': min(python, compute + allreduce, work)}

# %% wrong: in seconds
# says: All times here are in ms
#-    compute, others = max(shards), k - 1
#+    compute, others = max(shards) / 1000, k - 1

# %% wrong: a list
# says: A dictionary is wanted
#-    return {'compute': compute, 'allreduce': allreduce, 'python': python,
#-            'work': work, 'step': max(python, compute + allreduce, work)}
#+    return [compute, allreduce, python, work]

# %% wrong: nothing is returned
# says: predict returned None
#-    return {'compute': compute, 'allreduce': allreduce, 'python': python,
#-            'work': work, 'step': max(python, compute + allreduce, work)}
#+    print(compute, allreduce, python, work)

# %% wrong: the step is forgotten
# says: there is no 'step'
#-            'work': work, 'step': max(python, compute + allreduce, work)}
#+            'work': work}

# %% wrong: all shards are returned
# says: compute is [
#-    return {'compute': compute, 'allreduce': allreduce, 'python': python,
#+    return {'compute': shards, 'allreduce': allreduce, 'python': python,

# %% wrong: no further than the second measurement
# says: compute' is
#-    shards = [m['ms'][0] + slope * (n - m['images'][0]) for n in sizes]
#+    shards = [m['ms'][0] + slope * (min(n, m['images'][1])
#+                                    - m['images'][0]) for n in sizes]

# %% wrong: a measurement is changed
# says: `m` is another when your function is done
#-    compute, others = max(shards), k - 1
#+    compute, others = max(shards), k - 1
#+    m['ms'][0] -= 1

# %% wrong: texts
# says: One number is wanted, in ms
#-    return {'compute': compute, 'allreduce': allreduce, 'python': python,
#+    compute = f'{compute:.3f}'
#+    return {'compute': compute, 'allreduce': allreduce, 'python': python,
#-            'work': work, 'step': max(python, compute + allreduce, work)}
#+            'work': work,
#+            'step': max(python, float(compute) + allreduce, work)}

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


# %% right: counted call by call
def predict(k, b, m):
    (few, many), (short, long) = m['images'], m['ms']
    per_image = (long - short) / (many - few)
    fixed = long - many * per_image
    calls = allreduce = python = 0
    for device in range(k):
        python += m['python_ms']
        if device:
            allreduce += m['copy_ms'] + m['add_ms'] + m['copy_ms']
            calls += 3 * m['arrays']
    python += calls * m['call_ms']
    compute = fixed + per_image * -(-b // k)
    everything = k * fixed + b * per_image + allreduce + python
    work = everything / m['cores']
    step = compute + allreduce
    for other in (python, work):
        if other > step:
            step = other
    return dict(compute=compute, allreduce=allreduce, python=python,
                work=work, step=step)
