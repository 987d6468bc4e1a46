"""Plans of collectives as data, without MXNet.

`sends`: messages and rounds. `schedule`: a plan, its check, its run (by
`reading`, `limits`, `execute`). `strategies`: all plans (rings, trees,
...). `topology`: links. `flows`: how they are shared. `simulate`: the times.
`travel`: a plan between processes. `machines`: real ones, as posted.
"""
from d2lps.collectives import simulate, strategies, topology, travel
from d2lps.collectives.schedule import Schedule, ScheduleError
from d2lps.collectives.sends import Round, Send
from d2lps.lazy_names import lazy

# Readers of posts take longer to load than all the rest.
__getattr__, __dir__ = lazy(__name__, {}, modules=('.machines',))
