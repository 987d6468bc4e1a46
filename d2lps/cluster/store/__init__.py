"""A worker's end of MXNet's store, and what the workers agree on.

A worker calls `diststore`, which looks at the arguments (`arguments`) and
asks the cluster (`client`) before anything can hang. There, `agreement`
answers when all workers are where they should be. `worker` puts this store in
the place of MXNet's.
"""
