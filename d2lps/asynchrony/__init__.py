"""What need not wait: sending while computing, and workers for each other.

`overlap`, `link`: messages that go during a step. `clock`: which worker pushes
next; `training`: real gradients in that order. `servers`: backup workers, and
old gradients divided. The server with a bound is `kvstore.BoundedServer`.
"""
from d2lps.asynchrony.clock import Plan, step_times, virtual_clock
from d2lps.asynchrony.servers import BackupServer, DividingServer
from d2lps.asynchrony.training import follow
