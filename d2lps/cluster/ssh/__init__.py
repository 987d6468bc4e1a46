"""A cluster on several machines, over SSH.

ipyparallel has launchers for SSH, but what they start with `nohup` stays
behind when the connection breaks.  Our processes already talk over standard
input and output and end when these do.  So each of them is started by an
`ssh` that stays (`distant`), with a `keeper` at its far end.  `machines`
says which process runs where.
"""
