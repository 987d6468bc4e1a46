"""What a death costs: replicas, checkpoints, and starting again.

`hashing`: who has a key. `replicas`: chains acknowledge a push; repair.
`file`, `checkpoint`, `training`: after a power failure. `interval`: how often.
"""
from d2lps.lazy import lazy

__getattr__, __dir__ = lazy(__name__, {
    '.checkpoint': ('Checkpoint',),
    '.file': ('CheckpointError',),
    '.hashing': ('chain', 'circle', 'position'),
    '.interval': ('best_interval', 'exact_overhead', 'overhead',
                  'simulated_overhead'),
    '.replicas': ('ReplicatedStore',),
    '.checkpointed_training': ('Trained', 'train_with_checkpoints')})
