"""Data parallelism from scratch: one training loop, any number of devices."""
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from mxnet import autograd

from d2lps.annotations import Array, Device, PathLike
from d2lps.checks import (boolean, checked, folder, from_zero, function,
                          integer, list_of)
from d2lps.engine import (array, array_list, device, device_list, devices, mx,
                          num_devices)
from d2lps.training.array_checks import (alike, class_labels, finite,
                                         learning_rate, one_label_each,
                                         params_on_each, rate_or_zero,
                                         ready_to_learn)
from d2lps.training.data import DATA, load_data
from d2lps.training.lenet_layers import init_params, lenet, lenet_params, loss
from d2lps.training.progress import (LossWatch, accuracy_curve,
                                     interrupt_between_steps)
from d2lps.units import several

COPIES = list_of(lenet_params, 'a list with the parameters for each device')


@checked(params=array_list, device=device)
def get_params(params: Sequence[Array], device: Device) -> list[Array]:
    """Copy a list of parameters to `device` and attach gradients."""
    new_params = [param.copyto(device) for param in params]
    for param in new_params:
        param.attach_grad()
    return new_params


@checked(alike, data=array_list)
def allreduce(data: Sequence[Array]) -> None:
    """Sum arrays of one shape that live on different devices, in place.

    Afterwards each array in the list `data` holds the sum of all of them.
    """
    total = data[0]
    for array in data[1:]:
        total += array.copyto(total.ctx)  # in place: this is data[0]
    for array in data[1:]:
        total.copyto(array)


@checked(one_label_each, X=array, y=array, devices=device_list)
def split_batch(X: Array, y: Array, devices: Sequence[Device]
                ) -> tuple[list[Array], list[Array]]:
    """Split examples X and labels y over `devices`, as evenly as they go.

    Returns two lists with one array a device.  With fewer examples than
    devices, the last devices get none and the lists are shorter.

    Raises:
        ValueError: if X and y differ in length, or there is no device.
    """
    k = min(len(devices), len(X))
    bounds = [len(X) * i // k for i in range(k + 1)]
    shards = list(zip(bounds, bounds[1:], devices))
    return ([X[start:end].copyto(device) for start, end, device in shards],
            [y[start:end].copyto(device) for start, end, device in shards])


@checked(ready_to_learn, X=finite, y=class_labels, device_params=COPIES,
         devices=device_list)
def compute_gradients(X: Array, y: Array,
                      device_params: Sequence[Sequence[Array]],
                      devices: Sequence[Device]) -> list[Array]:
    """Each device computes its gradients of the sum of losses on its part.

    `device_params` has a full copy of the parameters for each device.
    Returns the losses, one array a device, one value an example; like all
    MXNet arrays they may not be computed yet. ValueError for a bad
    argument, such as an image with a pixel that is nan or inf.
    """
    X_shards, y_shards = split_batch(X, y, devices)
    with autograd.record():
        losses = [loss(lenet(X_shard, params), y_shard) for
                  X_shard, y_shard, params in
                  zip(X_shards, y_shards, device_params)]
    for l in losses:
        l.backward()
    for idle in device_params[len(losses):]:  # more devices than examples
        for param in idle:
            param.grad[:] = 0
    return losses


@checked(lr=rate_or_zero)  # compute_gradients checks the other arguments
def train_batch(X: Array, y: Array, device_params: Sequence[Sequence[Array]],
                devices: Sequence[Device], lr: float) -> list[Array]:
    """One step of minibatch SGD on all devices; returns the losses.

    The update is the same for any division of the batch.
    """
    losses = compute_gradients(X, y, device_params, devices)
    for copies in zip(*device_params):
        allreduce([param.grad for param in copies])
    for params in device_params:
        for param in params:
            param -= lr / len(X) * param.grad
    return losses


@checked(params_on_each, device_params=COPIES, devices=device_list)
def evaluate_accuracy(data_iter: Iterable[tuple[Array, Array]],
                      device_params: Sequence[Sequence[Array]],
                      devices: Sequence[Device]) -> float:
    """The share of right answers, each device doing its part.

    Raises:
        ValueError: for a bad argument, and if there are no examples.
    """
    num_right, num_examples = [], 0
    for X, y in data_iter:
        num_examples += len(X)
        for X_shard, y_shard, params in zip(*split_batch(X, y, devices),
                                            device_params):
            y_hat = lenet(X_shard, params).argmax(axis=1).astype(y.dtype)
            num_right.append((y_hat == y_shard).sum())
    if not num_examples:
        raise ValueError('data_iter has no examples')
    return sum(int(n) for n in num_right) / num_examples


@dataclass
class TrainResult:
    """The result of `train`.

    `accuracy` (test set) and `seconds` (training, without the test) have an
    entry for each full epoch; `images_per_second` covers all training steps;
    `params` are the eight arrays as they were at the end, on `devices[0]`.
    """
    accuracy: list[float]
    seconds: list[float]
    images_per_second: float
    devices: list[Device]
    params: list[Array]

    def __repr__(self) -> str:
        last = f'{self.accuracy[-1]:.3f}' if self.accuracy else 'none yet'
        return (f'TrainResult(accuracy: {last} after '
                f'{several(len(self.accuracy), "epoch")}, '
                f'{self.images_per_second:,.0f} images per second on '
                f'{self.devices})')


@checked(num_devices=num_devices, batch_size=integer, lr=learning_rate,
         num_epochs=partial(integer, most=1_000_000), data=DATA, root=folder,
         seed=from_zero, show=boolean, step=function)
def train(num_devices: int, batch_size: int, lr: float, num_epochs: int = 10,
          data: str = 'digits', root: PathLike | None = None,
          scale: float | str | None = None, seed: int = 0, show: bool = True,
          step: Callable[..., list[Array]] | None = None) -> TrainResult:
    """Train LeNet on `num_devices` devices and return a `TrainResult`.

    Args:
        num_devices: how many devices share each minibatch.
        batch_size: examples in a minibatch, all devices together.
        lr: learning rate.
        num_epochs: passes over the training set, at most a million.
        data, root: the data set and its folder; see `load_data`.
        scale: start of the parameters, see `init_params`; by default
            'xavier' for the digits and 0.01 for larger sets.
        seed: fixes the start and the order of the examples.
        show: draw the accuracy as it goes and print a summary at the end.
        step: a function that replaces `train_batch`.

    Ctrl-C ends the training after the current step, and the result so far is
    returned.

    Raises:
        ValueError: for a bad argument.
        FloatingPointError: when the loss is no longer a number.
    """
    step = step or train_batch
    device_list = devices(num_devices)
    train_iter, test_iter = load_data(batch_size, data, root, seed)
    if scale is None:
        scale = 'xavier' if data == 'digits' else 0.01
    params = init_params(scale, seed)
    device_params = [get_params(params, device) for device in device_list]
    accuracy, seconds, watch = [], [], LossWatch(lr)
    num_images, total_seconds = 0, 0

    def take_step(X, y):
        watch(step(X, y, device_params, device_list, lr))

    with (accuracy_curve(num_epochs, show) as add,
          interrupt_between_steps() as interrupted):
        for epoch in range(1, num_epochs + 1):
            seen, taken = _train_epoch(train_iter, take_step, interrupted)
            watch.check()
            num_images += seen
            total_seconds += taken
            if not interrupted:
                seconds.append(taken)
                accuracy.append(evaluate_accuracy(test_iter, device_params,
                                                  device_list))
                add(epoch, accuracy[-1])
            if interrupted:  # perhaps during the test
                break
    if interrupted:
        print(f'Stopped in epoch {epoch}, after step {watch.step}; the '
              'parameters up to here are in the result.')
    if show and accuracy:
        print(f'test accuracy {accuracy[-1]:.3f}, '
              f'{sum(seconds) / len(seconds):.2f} seconds per epoch '
              f'on {device_list}')
    return TrainResult(accuracy, seconds, num_images / total_seconds,
                       device_list, device_params[0])


def _train_epoch(train_iter, take_step, interrupted):
    """Take all steps, or some; return how many images, and the seconds."""
    start, num_images = time.perf_counter(), 0
    for X, y in train_iter:
        take_step(X, y)
        num_images += len(X)
        if interrupted:
            break
    mx.nd.waitall()
    return num_images, time.perf_counter() - start
