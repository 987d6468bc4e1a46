"""Plots, players and widgets; notebooks alone import them.

In a notebook that has imported this, a small `Schedule` shows as a drawing.
"""
from IPython import get_ipython

from d2lps.pictures import sketch

if get_ipython():
    get_ipython().display_formatter.formatters['text/html'].for_type_by_name(
        'd2lps.collectives.schedule', 'Schedule', sketch.html)
