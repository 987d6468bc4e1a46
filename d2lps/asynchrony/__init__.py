"""What need not wait: sending while computing, and workers for each other.

`overlap`, `link`: messages that go during a step. `clock`: which worker pushes
next; `training`: real gradients in that order. `servers`: backup workers, and
old gradients divided. The server with a bound is `kvstore.BoundedServer`.
"""
from d2lps.lazy import lazy

__getattr__, __dir__ = lazy(__name__, {
    '.clock': ('Plan', 'step_times', 'virtual_clock'),
    '.late_gradients': ('BackupServer', 'DividingServer'),
    '.asynchronous_training': ('follow',)})
