"""d2lps: see for yourself how training is spread over devices and machines.

Import it before mxnet: it makes the settings that MXNet reads when it starts
(see `d2lps.settings`). What it offers is looked up when it is used.
"""
from importlib import import_module

from d2lps import loading, missing, settings  # before MXNet is imported
from d2lps.usage import watch_cells

ROOMS = ('asynchrony', 'cluster', 'collectives', 'engine', 'kvstore',
         'pictures', 'recovery', 'training')
NAMES = {
    'expectations': ('expect',),
    'engine': ('Machine', 'Traffic', 'copy_bandwidth', 'devices', 'machine',
               'nbytes', 'on_devices'),
    'training': ('Batches', 'Event', 'Stopwatch', 'Timeline', 'TrainResult',
                 'allreduce', 'compute_gradients', 'evaluate_accuracy',
                 'get_params', 'init_params', 'lenet', 'load_data', 'loss',
                 'split_batch', 'step_timeline', 'train', 'train_batch'),
    'collectives': ('Schedule', 'ScheduleError', 'Send', 'simulate',
                    'strategies', 'topology'),
    'kvstore': ('KVStore', 'prepare_store', 'store_step',
                'train_batch_store'),
    'asynchrony': ('follow', 'step_times', 'virtual_clock'),
    'cluster': ('Cluster', 'ClusterError', 'Network', 'StoreError',
                'WorkerError', 'network_problem'),
    'asynchrony.link': ('LinkMeter', 'in_flight', 'push_then_pull',
                        'seen_tasks'),
    'asynchrony.overlap': ('Message', 'Task', 'best_possible',
                           'simulate_step'),
    'cluster.bare': ('bare_mxnet',),
    'recovery': ('Checkpoint', 'train_with_checkpoints')}
HOME = {name: room for room, names in NAMES.items() for name in names}
watch_cells()


def __getattr__(name):
    """Find a room, or a name in its room, when it is first used."""
    if name in ROOMS:
        return import_module(f'd2lps.{name}')
    if name not in HOME:
        raise AttributeError(f'd2lps has no {name!r}')
    return getattr(import_module(f'd2lps.{HOME[name]}'), name)


def __dir__():
    return sorted({*globals(), *ROOMS, *HOME})
