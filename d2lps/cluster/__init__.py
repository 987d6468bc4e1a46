"""MXNet's parameter server as processes: start, watch, check and end them.

`Cluster` is what readers use.  Its processes are started and watched by
`supervisor` and `group`; each of them runs `member`; workers call the store
through `diststore`, which asks `agreement` before anything can hang.
"""
from d2lps.cluster.cluster import Cluster, ClusterError, WorkerError  # noqa
from d2lps.cluster.network import Network, network_problem  # noqa
from d2lps.cluster.store.asking import StoreError  # noqa
