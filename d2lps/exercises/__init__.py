"""Exercises of the chapters, and checks that say why an answer is wrong.

The notebooks are in `notebooks/exercises`. An exercise has a module here of
the same name; what all have in common is in `checking`, and what the ones with
plans have, in `plans`: it judges their sums and times.
"""
from d2lps.exercises.checking import EXERCISES, check, hidden, picture
