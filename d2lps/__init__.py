"""d2lps: see for yourself how training is spread over devices and machines.

Import it before mxnet: it prepares MXNet's engine (see `d2lps.engine`).
"""
from d2lps.engine import (Machine, Traffic, copy_bandwidth, devices,  # noqa
                          machine, nbytes)
from d2lps.data import Batches, load_data  # noqa
from d2lps.lenet import init_params, lenet, loss  # noqa
from d2lps.training import (TrainResult, allreduce, compute_gradients,  # noqa
                            evaluate_accuracy, get_params, split_batch, train,
                            train_batch)
from d2lps.timeline import Event, Timeline, step_timeline  # noqa
from d2lps import schedule, simulate, topology  # noqa
