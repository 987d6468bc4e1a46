"""Who sends which chunk to whom and when: plans as data, without MXNet."""
from d2lps.collectives import simulate, strategies, topology
from d2lps.collectives.schedule import (Round, Schedule,
                                        ScheduleError, Send)
