"""MXNet's parameter server as processes: start, watch, check and end them.

`Cluster` is what readers use.  Its processes are started and watched by
`processes`; workers call the store through `store`, which asks the cluster
before anything can hang.  A name is looked up when it is used: a keeper of
processes needs none of them.
"""
from importlib import import_module

HOME = {'Cluster': 'cluster', 'ClusterError': 'cluster',
        'WorkerError': 'cluster', 'Network': 'network',
        'network_problem': 'network', 'StoreError': 'store.asking'}


def __getattr__(name):
    if name not in HOME:
        raise AttributeError(f'd2lps.cluster has no {name!r}')
    return getattr(import_module(f'd2lps.cluster.{HOME[name]}'), name)


def __dir__():
    return sorted({*globals(), *HOME})
