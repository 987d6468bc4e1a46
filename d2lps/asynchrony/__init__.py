"""Waits that can be avoided: for messages, and for other workers.

`overlap`, `link`, `trace`: messages that are sent during a step. `clock`:
which worker pushes next; `asynchronous_training`: real gradients in that
order. `late_gradients`: backup workers, and stale gradients divided. The
server with a bound is `kvstore.BoundedServer`.
"""
from d2lps.lazy_names import lazy

__getattr__, __dir__ = lazy(__name__, {
    '.clock': ('Plan', 'step_times', 'virtual_clock'),
    '.late_gradients': ('BackupServer', 'DividingServer'),
    '.asynchronous_training': ('follow',)})
