"""d2lps: see how training is spread over devices and machines.

The lesson. Chapters build these packages. Read them:
    training      one network on several devices (chapters 1, 2, 4)
    collectives   plans as data, their simulator, plans between processes
                  (3, 5 to 7, 11 to 14, 21)
    kvstore       a key-value store from scratch (8)
    asynchrony    a virtual clock, and sending while computing (15, 16)
    recovery      replicas, checkpoints, training after a death (17)
    pipelines     orders of passes through a pipeline, and their times (22)
    planning      how to divide a large model among GPUs (20)
    engine        devices, as MXNet's engine sees them

Machinery. It makes the chapters run. You need not read it:
    cluster       MXNet's parameter server and workers as real processes, and
                  a slow network between them (9 to 13, 15 to 19,
                  22, 24, 25)
    pictures      plots, drawings, and toys with controls
    exercises     checks that tell students what is wrong

The lesson imports no machinery; pyproject.toml says so, and a test checks it.
Import d2lps before mxnet, because d2lps makes the settings that MXNet reads
when it starts (see `d2lps.settings`). Names are looked up when they are first
used.
"""
import sys

from d2lps import missing, settings  # before MXNet is imported
from d2lps.lazy_names import lazy
from d2lps.usage import watch_cells

__getattr__, __dir__ = lazy(__name__, {
    '.expectations': ('expect',),
    '.blanks': ('your_turn',),
    '.missing': ('has_mxnet',),
    '.release': ('__version__',),
    '.engine': ('Traffic', 'copy_bandwidth', 'devices', 'nbytes'),
    '.equipment': ('Machine', 'machine'),
    '.training': ('Batches', 'Operation', 'Stopwatch', 'Timeline',
                  'TrainResult', 'allreduce', 'compute_gradients',
                  'evaluate_accuracy', 'get_params', 'init_params', 'lenet',
                  'load_data', 'loss', 'split_batch', 'step_timeline', 'train',
                  'train_batch'),
    '.collectives.machines': ('expected_bandwidth', 'read_nccl_tests'),
    '.collectives': ('Schedule', 'ScheduleError', 'Send', 'simulate',
                     'strategies', 'topology', 'travel'),
    '.kvstore': ('KVStore', 'prepare_store', 'store_step',
                 'train_batch_store'),
    '.asynchrony': ('follow', 'step_times', 'virtual_clock'),
    '.asynchrony.link': ('LinkMeter', 'in_flight', 'push_then_pull',
                         'seen_tasks'),
    '.asynchrony.overlap': ('Message', 'Task', 'best_possible',
                            'simulate_step'),
    '.asynchrony.trace': ('trace_tasks',),
    '.recovery': ('Checkpoint', 'train_with_checkpoints'),
    '.cluster.peers.exchange': ('PeerError', 'Peers', 'PlanError',
                                'join_peers'),
    '.cluster.connections': ('bytes_received', 'who_to_whom'),
    '.cluster.recorded': ('cluster_or_record', 'here_or_record'),
    '.cluster.processes.cells': ('run_script',),
    '.cluster': ('Cluster', 'ClusterError', 'Network', 'StoreError',
                 'WorkerError', 'bare_mxnet', 'network_problem')},
    modules=('.asynchrony', '.cluster', '.collectives', '.engine',
             '.exercises', '.kvstore', '.pictures', '.pipelines', '.planning',
             '.recovery', '.training'))
watch_cells()
if sys.modules.get('IPython'):
    from d2lps import figures
    figures.register()
