"""Who sends which chunk to whom and when: plans as data, without MXNet."""
from d2lps.collectives import simulate, strategies, topology  # noqa
from d2lps.collectives.schedule import (Round, Schedule,  # noqa
                                        ScheduleError, Send)
