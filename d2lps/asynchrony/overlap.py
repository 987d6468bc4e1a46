"""Sending while computing: a training step that can be worked by hand.

The backward pass makes gradients layer by layer, the last layer's first. One
link carries them, one message after the other. In which order? The answer is a
list of `Task`. The picture, the table and the total are made from this list.
"""
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from d2lps.checks import boolean, checked, list_of, number, one_of, positive

ORDERS = 'sequential', 'fifo', 'priority'
MAX_MESSAGES = 1000  # more would take too long


class Task(NamedTuple):
    """Work done for some `layers`, from second `start` to second `end`.

    `kind` is 'backward', 'push', 'pull' or 'forward'. A message has
    `nbytes`, and the moment at which it was `ready`.
    """
    kind: str
    layers: tuple[int, ...]
    start: float
    end: float
    nbytes: float = 0
    ready: float = 0


class Message(NamedTuple):
    """Gradients that travel together; all of them exist from `ready` on."""
    layers: tuple[int, ...]
    nbytes: float
    ready: float


def backward_pass(backward: Sequence[float]) -> list[Task]:
    """Tasks of the backward pass, given each layer's seconds."""
    now: float
    tasks, now = [], 0
    for layer in reversed(range(len(backward))):
        end = now + backward[layer]
        tasks.append(Task('backward', (layer,), now, end))
        now = end
    return tasks


def make_messages(tasks: Sequence[Task], nbytes: Sequence[float],
                  bucket_size: float = 0, slice_size: float | None = None
                  ) -> list[Message]:
    """Put gradients together until there are `bucket_size` bytes; cut them.

    tasks: of the backward pass. nbytes: of each layer's gradient.
    """
    messages: list[Message] = []
    layers: tuple[int, ...] = ()
    for task in tasks:
        layers = task.layers + layers
        size = sum(nbytes[layer] for layer in layers)
        if size >= bucket_size or task is tasks[-1]:
            slices = 1
            if slice_size:
                slices = max(1, math.ceil(size / slice_size))
            messages += [Message(layers, size / slices, task.end)] * slices
            layers = ()
    return messages


def send(kind: str, messages: Sequence[Message], bandwidth: float,
         latency: float = 0,
         urgency: Callable[[Message], float] = lambda m: m.ready
         ) -> list[Task]:
    """Send messages over a link, always the most urgent of the ready ones.

    It costs `latency` seconds and its bytes / `bandwidth`. `urgency` gives a
    number for a message; the smallest one goes first.
    """
    now: float
    tasks, waiting, now = [], list(messages), 0
    while waiting:
        now = max(now, min(message.ready for message in waiting))
        ready = [message for message in waiting if message.ready <= now]
        first = min(ready, key=urgency)
        waiting.remove(first)
        end = now + latency + first.nbytes / bandwidth
        tasks.append(Task(kind, first.layers, now, end, first.nbytes,
                          first.ready))
        now = end
    return tasks


def replies(sent: Sequence[Task]) -> list[Message]:
    """Messages with the sums that come back, and when each can start.

    A request for a sum is sent when the push has arrived, behind all pushes
    that already wait. (MXNet's store does this, because both use the same
    socket.)
    """
    sums = []
    for task in sent:
        before = [other.end for other in sent if other.ready <= task.end]
        sums.append(Message(task.layers, task.nbytes, max(before)))
    return sums


def forward_pass(forward: Sequence[float], sent: Sequence[Task]
                 ) -> list[Task]:
    """Tasks of the next forward pass: a layer waits for all of its own."""
    now: float
    tasks, now = [], 0
    for layer, seconds in enumerate(forward):
        arrived = max(task.end for task in sent if layer in task.layers)
        start = max(now, arrived)
        now = start + seconds
        tasks.append(Task('forward', (layer,), start, now))
    return tasks


def _lengths_fit(backward, nbytes, forward=(), slice_size=None, **_):
    """A number for each layer, and not too many layers and messages."""
    for name, value in ('nbytes', nbytes), ('forward', forward):
        if len(value) != len(backward) and (value or name == 'nbytes'):
            raise ValueError(f'{name} must have a number for each of the '
                             f'{len(backward)} layers; it had {len(value)}')
    if len(backward) > MAX_MESSAGES:
        raise ValueError(f'backward must have at most {MAX_MESSAGES:,} '
                         f'layers; it had {len(backward):,}')
    if slice_size and sum(nbytes) / slice_size + len(nbytes) > MAX_MESSAGES:
        raise ValueError(f'slice_size is {slice_size:g}: that makes more than '
                         f'{MAX_MESSAGES} messages')


LAYERS: dict[str, Callable] = {
    'backward': list_of(number, 'a list of seconds'),
    'nbytes': list_of(number, 'a list of bytes'),
    'forward': list_of(number, 'a list of seconds', least=0),
    'bandwidth': positive, 'latency': number, 'pull': boolean}


@checked(_lengths_fit, **LAYERS, order=one_of(*ORDERS), bucket_size=number,
         slice_size=positive)
def simulate_step(backward: Sequence[float], nbytes: Sequence[float],
                  bandwidth: float, latency: float = 0, order: str = 'fifo',
                  bucket_size: float = 0, slice_size: float | None = None,
                  pull: bool = False, forward: Sequence[float] = ()
                  ) -> list[Task]:
    """One step of training: a list of `Task`, of which the last ends last.

    Args:
        backward: seconds of each layer in the backward pass, a list; the
            first layer's first.
        nbytes: bytes of each layer's gradient.
        bandwidth: of the link, in bytes per second.
        latency: seconds that each message costs besides its bytes.
        order: 'sequential': nothing is sent before all has been computed;
            'fifo': first come, first served; this is the last layer first,
            because the backward pass begins there; 'priority': of the ready
            gradients, the first layer's is sent first, because the forward
            pass needs it first (Jayarajan et al. 2019; Peng et al. 2019).
            A message is never interrupted.
        bucket_size: gradients of neighbouring layers wait for each other
            until they have this many bytes, and are sent as one message
            (PyTorch's DistributedDataParallel, Li et al. 2020).
        slice_size: messages are cut into equal slices of at most this many
            bytes; by default they stay whole.
        pull: the sums come back over the link's other direction; see
            `replies`.
        forward: seconds of each layer in the next step's forward pass; left
            out, the step ends with the last message.

    Raises:
        ValueError: for a bad argument, or more than 1,000 messages.
    """
    tasks = backward_pass(backward)
    messages = make_messages(tasks, nbytes, bucket_size, slice_size)
    urgency = {'priority': lambda message: message.layers[0]}.get(
        order, lambda message: message.ready)
    if order == 'sequential':
        messages = [m._replace(ready=tasks[-1].end) for m in messages]
    sent = send('push', messages, bandwidth, latency, urgency)
    tasks += sent
    if pull:
        sent = send('pull', replies(sent), bandwidth, latency, urgency)
        tasks += sent
    return tasks + forward_pass(forward, sent)


@checked(_lengths_fit, **LAYERS)
def best_possible(backward: Sequence[float], nbytes: Sequence[float],
                  bandwidth: float, latency: float = 0, pull: bool = False,
                  forward: Sequence[float] = ()) -> float:
    """A lower bound in seconds for such a step, for all orders and buckets.

    The gradients of the first k layers cannot leave before the gradient of
    layer k is ready. Then the link must carry all of them. After the last of
    them, at least the forward passes from layer k on remain. The worst k
    counts. With `pull`, messages cannot be sliced. Arguments as in
    `simulate_step`.
    """
    ready = {task.layers[0]: task.end for task in backward_pass(backward)}
    forward = forward or [0] * len(backward)
    bounds = []
    for k in range(len(backward)):
        first = nbytes[:k + 1]
        carried = sum(first) + pull * min(first)
        bounds.append(ready[k] + (1 + pull) * latency + carried / bandwidth
                      + sum(forward[k:]))
    return max(bounds)
