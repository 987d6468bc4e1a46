"""Who sends which chunk to whom and when: plans as data, without MXNet.

`schedule`: a plan, its check, its run. `strategies`: rings, trees, halving and
doubling, and all other plans. `topology`, `cables`: which links there are.
`simulate`: when messages begin and end; `flows`: how they share a link.
"""
from d2lps.collectives import simulate, strategies, topology
from d2lps.collectives.schedule import (Round, Schedule,
                                        ScheduleError, Send)
