"""Workers and MXNet's servers as processes: start, watch and end them.

`Cluster` is what readers use; without servers it needs no MXNet. Its processes
are started and watched by `processes`; workers call the store through `store`,
which asks the cluster before anything can hang. What happens in a `run`, and
when a process dies, is told in `processes/__init__.py`; `messages` has all
that the processes say to each other. `network` is what readers say of a slow
network, and `processes/namespaces.py` makes it.
"""
from d2lps.lazy_names import lazy

__getattr__, __dir__ = lazy(__name__, {
    '.bare': ('bare_mxnet',),
    '.cluster': ('Cluster',),
    '.network': ('Network', 'network_problem'),
    '.processes.calls': ('ClusterError', 'WorkerError'),
    '.store.client': ('StoreError',)})
