"""A cluster on several machines, over SSH.

ipyparallel has launchers for SSH, but what they start with `nohup` stays
behind when the connection breaks.  Ours are started by a `keeper`, one on
each machine, at the far end of an `ssh` that stays (`distant`).  `machines`
says which process runs where, and `check` whether a cluster would work.
"""
