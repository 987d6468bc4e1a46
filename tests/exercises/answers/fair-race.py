# ruff: noqa: E402, F811
# %% wrong: one run of each
# says: What would a second run have said?
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#-    for number in range(rounds):
#-        for name in names if number % 2 == 0 else reversed(names):
#-            taken[name].append(run(name))
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: run(name) for name in names}

# %% wrong: all repeats of one, then all of the next
# says: In which order do all get their share of it
#-    for number in range(rounds):
#-        for name in names if number % 2 == 0 else reversed(names):
#+    for name in names:
#+        for _ in range(rounds):

# %% wrong: the mean
# says: One such run must not pull the result
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: np.mean(ms[1:]) for name, ms in taken.items()}

# %% wrong: the fastest of each, as in the chapter
# says: you let the fastest run decide
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: min(ms[1:]) for name, ms in taken.items()}

# %% wrong: the mean, with the cold run
# says: should it count?
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: np.mean(ms) for name, ms in taken.items()}

# %% wrong: always the same order
# says: 'sharded' always runs before 'copy'
#-        for name in names if number % 2 == 0 else reversed(names):
#+        for name in names:

# %% wrong: an odd number of runs counts
# says: How many runs must count, and in which order
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#+    rounds = 24 // len(names)

# %% wrong: the first of three goes last, and so on
# says: How many runs must count, and in which order
#-    for number in range(rounds):
#-        for name in names if number % 2 == 0 else reversed(names):
#+    for number in range(24 // len(names)):
#+        first = number % len(names)
#+        for name in names[first:] + names[:first]:

# %% wrong: two runs of each, and the second counts
# says: What made of all runs hardly notices them?
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#+    rounds = 2

# %% wrong: the slowest and the fastest are left out
# says: there may be two
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: np.mean(sorted(ms[1:])[1:-1])
#+            for name, ms in taken.items()}

# %% wrong: the slowest of each
# says: That is the slowest run of each
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: max(ms[1:]) for name, ms in taken.items()}

# %% wrong: the first run of each counts alone
# says: These are the first runs, the cold ones
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: ms[0] for name, ms in taken.items()}

# %% wrong: twelve runs of each, of three as well
# says: asks for run number 25. 24 are allowed
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#+    rounds = 11

# %% wrong: the error of too many runs is caught
# says: asks for run number 25
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#+    rounds = 101
#-            taken[name].append(run(name))
#+            try:
#+                taken[name].append(run(name))
#+            except Exception:
#+                pass

# %% wrong: nothing is returned
# says: your function returned None. The ms of each program are wanted
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    print({name: np.median(ms[1:]) for name, ms in taken.items()})

# %% wrong: all times are returned
# says: One number is wanted, its ms
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return taken

# %% wrong: only the winner is returned
# says: your function returned 'copy'. The ms of each program
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return min(taken, key=lambda name: np.median(taken[name][1:]))

# %% wrong: how many times as long as the first
# says: the ratios are right. For 'sharded' your function returned 1,
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    usual = {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: usual[name] / usual[names[0]] for name in names}

# %% wrong: numbers in place of names
# says: run(0) was called. The programs are
#-    taken = {name: [] for name in names}
#+    names = range(len(names))
#+    taken = {name: [] for name in names}

# %% wrong: the last program is forgotten
# says: your function returned nothing for
#-    taken = {name: [] for name in names}
#+    names = names[:-1]
#+    taken = {name: [] for name in names}

# %% wrong: the median of all, the cold one among them
# says: Without cold starts it would be right
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#+    rounds = 24 // len(names)
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: np.median(ms) for name, ms in taken.items()}

# %% wrong: runs per second
# says: The ratio is upside down here
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: 1000 / np.median(ms[1:]) for name, ms in taken.items()}

# %% wrong: one of them in seconds
# says: Are these ms of one repetition?
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    usual = {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    usual[names[-1]] /= 1000
#+    return usual

# %% wrong: the sum
# says: Are these ms of one repetition?
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: sum(ms[1:]) * len(name)
#+            for name, ms in taken.items()}

# %% wrong: in whole ms
# says: are whole numbers. What does
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: round(np.median(ms[1:])) for name, ms in taken.items()}

# %% wrong: the fastest of all
# says: is that one program, or one moment?
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#+    rounds = 24 // len(names)
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: min(ms) for name, ms in taken.items()}

# %% wrong: one of the two in the middle
# says: What is the median of 1, 2, 4 and 9?
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: sorted(ms[1:])[len(ms) // 2] for name, ms in taken.items()}

# %% wrong: the middle, not sorted
# says: What is in the middle when
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#+    rounds = 24 // len(names)
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: ms[len(ms) // 2] for name, ms in taken.items()}

# %% wrong: the mean of the middle half
# says: Which number made of them
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#+    rounds = 24 // len(names)
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    half = {name: sorted(ms)[len(ms) // 4:-(len(ms) // 4)]
#+            for name, ms in taken.items()}
#+    return {name: np.mean(ms) for name, ms in half.items()}

# %% wrong: twice there and back
# says: You used 8 of 24 runs
#-    rounds = 24 // len(names) - 1  # an even number, and one that is cold
#+    rounds = 4
#-    return {name: np.median(ms[1:]) for name, ms in taken.items()}
#+    return {name: np.median(ms) for name, ms in taken.items()}

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


# %% right: by numbers, and the cold runs apart
from statistics import median


def race(names, run):
    first = [run(name) for name in names]
    taken = [[] for _ in first]
    for number in range(24 // len(names) - 1 - (24 // len(names) - 1) % 2):
        ways = list(range(len(names)))
        for k in ways[::-1] if number % 2 else ways:
            taken[k].append(run(names[k]))
    return dict(zip(names, map(median, taken)))
