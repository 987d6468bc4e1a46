"""Schedules that move: chunks travel along cables, with a clock."""
from d2lps.pictures.animation.animation import Animation, animate
