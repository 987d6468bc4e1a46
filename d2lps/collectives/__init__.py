"""Who sends which chunk to whom and when: plans as data, without MXNet.

`schedule`: a plan, its check, its run. `strategies`: all plans (rings, trees,
...). `topology`: links. `flows`: how they are shared. `simulate`: the times.
`travel`: a plan between processes. `machines`: real ones, as posted.
"""
from d2lps.collectives import simulate, strategies, topology, travel
from d2lps.collectives.schedule import (Round, Schedule,
                                        ScheduleError, Send)
from d2lps.lazy_names import lazy

# Readers of posts take longer to load than all the rest.
__getattr__, __dir__ = lazy(__name__, {}, modules=('.machines',))
