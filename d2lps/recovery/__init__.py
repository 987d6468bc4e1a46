"""What a death costs: replicas, checkpoints, and starting again."""
from d2lps.recovery.replicas import (ReplicatedStore, chain, circle,
                                     position)
