"""The costs of a death: replicas, checkpoints, and starting again.

`hashing`: which servers have a key. `replicas`: chains of servers acknowledge
a push, and are repaired. `file`, `checkpoint`, `checkpointed_training`:
data that survive a power failure. `interval`: how often to save.
"""
from d2lps.lazy_names import lazy

__getattr__, __dir__ = lazy(__name__, {
    '.checkpoint': ('Checkpoint',),
    '.file': ('CheckpointError',),
    '.hashing': ('chain', 'circle', 'position'),
    '.interval': ('best_interval', 'exact_overhead', 'overhead',
                  'simulated_overhead'),
    '.replicas': ('ReplicatedStore',),
    '.checkpointed_training': ('Trained', 'train_with_checkpoints')})
