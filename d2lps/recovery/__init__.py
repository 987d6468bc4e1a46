"""What a death costs: replicas, checkpoints, and starting again.

`replicas`: consistent hashing, chains of servers that acknowledge a push, and
their repair. `file`, `checkpoint`, `training`: what a power failure leaves.
"""
from d2lps.lazy import lazy

__getattr__, __dir__ = lazy(__name__, {
    '.checkpoint': ('Checkpoint',),
    '.file': ('CheckpointError',),
    '.interval': ('best_interval', 'exact_overhead', 'overhead',
                  'simulated_overhead'),
    '.replicas': ('ReplicatedStore', 'chain', 'circle', 'position'),
    '.training': ('Trained', 'train_with_checkpoints')})
