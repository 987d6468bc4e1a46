"""Exercises of the chapters, and checks that say why an answer is wrong.

The notebooks are in `notebooks/exercises`; each has a module here with the
same name. All modules use `checking`. Exercises whose answer is a plan use
`plan_checks`, which judges sums and times. `charts` has the charts that
several pictures share. `worker_threads` runs workers as threads that take
turns: `numpygroup` with NumPy arrays, `torchgroup` with tensors.
"""
from d2lps.exercises.checking import EXERCISES, check, hidden, picture
