"""Training one network on several devices, and ways to split it."""
from d2lps.training.data import Batches, load_data
from d2lps.training.data_parallel import (TrainResult, allreduce,
                                          compute_gradients,
                                          evaluate_accuracy, get_params,
                                          split_batch, train, train_batch)
from d2lps.training.lenet_layers import init_params, lenet, loss
from d2lps.training.stopwatch import Stopwatch
from d2lps.training.timeline import Operation, Timeline, step_timeline
