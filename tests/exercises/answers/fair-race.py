# %% wrong: all repeats of one, then all of the next
# loses: phase, drift
#-    for number in range(rounds):
#-        for name in names if number % 2 == 0 else reversed(names):
#+    for name in names:
#+        for _ in range(rounds):


# %% wrong: the mean, with the cold run
# loses: cold, phase, spikes, fast, drift
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: np.mean(ms) for name, ms in taken.items()}


# %% wrong: how many times as long as the first
# loses: cold
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    usual = {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: usual[name] / usual[names[0]] for name in names}


# %% wrong: the error of too many runs is caught
# loses: cold, phase, spikes, fast, drift
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#+    rounds = 101
#-            taken[name].append(run(name))
#+            try:
#+                taken[name].append(run(name))
#+            except Exception:
#+                pass


# %% right: blocks of A B B A, and a list
import numpy as np


def race(names, run):
    for name in names:
        run(name)
    times = []
    for _ in range(24 // len(names) // 2 - 1 + len(names) % 2):
        block = [*names, *names[::-1]]
        if len(times) + len(block) + len(names) <= 24:
            times += [(name, run(name)) for name in block]
    return [np.median([ms for other, ms in times if other == name])
            for name in names]
