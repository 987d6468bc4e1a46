"""A cluster on several machines, over SSH.

Processes are started by a `keeper`, one on each machine, at the far end of
an `ssh` that stays (`host`): so none is left behind when the connection
breaks.  `machines` says which process runs where, and `check` whether a
cluster would work.
"""
