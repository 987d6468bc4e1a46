"""What a death costs: replicas, checkpoints, and starting again.

A name is looked up when it is used.
"""
from importlib import import_module

HOME = {'Checkpoint': 'checkpoint', 'CheckpointError': 'file',
        'best_interval': 'interval', 'exact_overhead': 'interval',
        'overhead': 'interval', 'simulated_overhead': 'interval',
        'Trained': 'training', 'train_with_checkpoints': 'training',
        'ReplicatedStore': 'replicas', 'chain': 'replicas',
        'circle': 'replicas', 'position': 'replicas'}


def __getattr__(name):
    if name not in HOME:
        raise AttributeError(f'd2lps.recovery has no {name!r}')
    return getattr(import_module(f'd2lps.recovery.{HOME[name]}'), name)


def __dir__():
    return sorted({*globals(), *HOME})
