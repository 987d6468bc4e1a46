"""Exercise: gradients go in buckets, so that the step ends early.

To chapter 15, notebooks/15-overlap.ipynb.
"""
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import index
from reprlib import repr as short
from typing import Any

import numpy as np

from d2lps.exercises.checking import (SLOWER, Answer, Case, Check, Notes,
                                      Picture, Wrong, in_time)

# Unlike layers, and a high latency: no size for all buckets is good here.
UNLIKE: Case = {
    'ms': [1, 4, 2, 2, 10, 1, 20, 1], 'MB': [1, 1, 1, 10, 10, 1, 10, 10],
    'latency_ms': 10, 'MB_per_s': 1000}
TOY = {'ms': [12, 12, 10, 10, 8, 4, 2, 2], 'MB': [1, 1, 2, 2, 4, 10, 30, 10],
       'latency_ms': 3, 'MB_per_s': 1000}  # the chapter's network
MOST_SECONDS = 6 * SLOWER  # of processor time; the solution needs 0.1


def end_of_step(buckets: Iterable[Iterable[int]], backward: Sequence[float],
                nbytes: Sequence[float], bandwidth: float,
                latency: float) -> float:
    """Seconds until the last message has arrived.

    buckets: lists of layers; each list is a message. They go in this order,
    each as soon as the link is free and all of its gradients are ready.
    The other arguments: as in `simulate_step`.
    """
    return max((end for _, _, end in _messages(
        buckets, backward, nbytes, bandwidth, latency)), default=0)


def _messages(buckets, backward, nbytes, bandwidth, latency):
    """Of each message: when it is ready, starts, ends."""
    end = 0
    for layers in buckets:
        ready = sum(backward[min(layers, default=len(backward)):])
        start = max(end, ready)
        end = start + latency + sum(nbytes[i] for i in layers) / bandwidth
        yield ready, start, end


def _link(latency_ms: float, MB_per_s: float, ms: Sequence[float] = (),
          MB: Sequence[float] = (), n: int = 0, seed: int = 0
          ) -> tuple[list[float], list[float], float, float]:
    """The arguments of the student's function; n: that many made-up layers."""
    if n:
        random = np.random.default_rng(seed)
        ms = random.choice([1, 2, 4, 10, 20], n).tolist()
        MB = random.choice([0.5, 1, 2, 5, 10], n).tolist()
    return ([t / 1e3 for t in ms], [size * 1e6 for size in MB],
            MB_per_s * 1e6, latency_ms / 1e3)


def _stopped(n):
    """What a student reads whose function computes for too long."""
    return (f'your function was stopped. For {n} layers it had computed for '
            f'{MOST_SECONDS} seconds. To cut {n} layers there are '
            f'2 ** {n - 1} ways, too many to try each. How many different '
            'buckets of neighbours are there?')


def run(answer: Answer, **case: Any) -> Notes:
    """The buckets as lists of layers."""
    link = _link(**case)
    n = len(link[0])
    with in_time(MOST_SECONDS, lambda: _stopped(n)):
        buckets = answer(*link)
    try:
        return [[index(layer) for layer in bucket] for bucket in buckets]
    except TypeError:
        raise Wrong(f'your function returned {short(buckets)}. A list of '
                    'lists of layers is wanted, such as [[2], [1, 0]].'
                    ) from None


def judge_once(buckets: Notes, **case: Any) -> None:
    """Each layer in one bucket, and the buckets in the order of `ready`."""
    link, found = _link(**case), set()
    _judge_layers(buckets, len(link[0]))
    for layers in buckets:
        if not layers:
            raise Wrong('a bucket is empty. A message costs a latency even if '
                        'it has no gradient.')
        for layer in layers:
            if layer in found:
                raise Wrong(f'the gradient of layer {layer} is sent twice, '
                            'and would be added twice. The second time it is '
                            f'in the bucket {short(layers)}.')
            found.add(layer)
    ready = [ready for ready, *_ in _messages(buckets, *link)]
    for number in range(1, len(buckets)):
        early, late = ready[number], ready[number - 1]
        if early < late - 1e-9:
            first, second = buckets[number - 1:number + 1]
            raise Wrong(
                f'the bucket {short(first)} is sent before {short(second)}, '
                f'but is ready later: at {late * 1e3:g} ms, not '
                f'{early * 1e3:g}, because it waits for layer {min(first)}. '
                'The backward pass begins with the last layer.')


def _judge_layers(buckets, n):
    for layers in buckets:
        for layer in layers:
            if not 0 <= layer < n:
                raise Wrong(f'the bucket {short(layers)} has layer {layer}, '
                            f'and the layers are 0 to {n - 1}.')
    missing = sorted({*range(n)} - {*chain(*buckets)})
    if missing:
        raise Wrong(f'layer {missing[0]} is in no bucket. Its gradient is '
                    'never sent, so the other workers never get it. Layers '
                    f'that are in no bucket: {len(missing)} of {n}.')


def judge_time(buckets: Notes, **case: Any) -> None:
    """No other buckets end the step earlier."""
    link = _link(**case)
    _judge_layers(buckets, len(link[0]))
    messages, best = [*_messages(buckets, *link)], earliest(*link)
    end = max(end for *_, end in messages)
    if end <= best * (1 + 1e-6):
        return
    text = (f'with {len(link[0])} layers the step ends after {end * 1e3:.5g} '
            f'ms, and {best * 1e3:.5g} ms is possible. ')
    if 'ms' in case:
        text += f'Layers take {case["ms"]} ms and have {case["MB"]} MB. '
    waits = end - sum(after - start for _, start, after in messages)
    raise Wrong(f'{text}{_hint(buckets, messages, link, best)} The latency of '
                f'{case["latency_ms"]:g} ms counts {len(buckets)} '
                f'time{"s" * (len(buckets) != 1)}, and the link waits for '
                f'gradients for {waits * 1e3:.5g} ms.')


def _hint(buckets, messages, link, best):
    """The first bucket after which the best end cannot be reached."""
    k = len(link[0])
    for layers, (ready, start, end) in zip(buckets, messages, strict=True):
        if sorted(layers) != [*range(k - len(layers), k)]:
            return (f'Layers {k - 1} to 0 are still to be sent, and {k - 1} '
                    'is ready first. The bucket that is sent then is '
                    f'{short(layers)}.')
        k -= len(layers)
        at_best = earliest(*link, k, end)
        if at_best > best * (1 + 1e-6):
            return (f'The bucket {short(layers)} is the first one that costs '
                    f'time. It has {len(layers)} of {len(link[0])} layers, '
                    f'is ready at {ready * 1e3:.5g} ms, leaves at '
                    f'{start * 1e3:.5g} ms and arrives at {end * 1e3:.5g} '
                    'ms. Whatever follows, the step ends after '
                    f'{at_best * 1e3:.5g} ms or later.')
    return ''


def earliest(backward: Sequence[float], nbytes: Sequence[float],
             bandwidth: float, latency: float, k: int | None = None,
             end: float = 0) -> float:
    """The earliest end of a step in seconds.

    k, end: when layers k and up have arrived; else none has been sent.
    """
    k = len(nbytes) if k is None else k
    ready = np.cumsum(backward[::-1])[::-1]
    sent = np.cumsum([0, *nbytes]) / bandwidth
    ends = np.full(k + 1, end, float)  # ends[j]: that of layers j and up
    for j in reversed(range(k)):
        ends[j] = latency + (np.maximum(ends[j + 1:], ready[j])
                             + sent[j + 1:k + 1] - sent[j]).min()
    return float(ends[0])


def picture(answer: Answer) -> Picture:
    """Draw the step with the best size for all buckets, and the student's."""
    from d2lps.asynchrony.overlap import Task, backward_pass, simulate_step
    from d2lps.pictures import Row, plot_step
    buckets, link = run(answer, **UNLIKE), _link(**UNLIKE)
    _judge_layers(buckets, len(link[0]))
    sizes = range(0, sum(UNLIKE['MB']) + 1)
    fixed = min((simulate_step(*link, bucket_size=size * 1e6)
                 for size in sizes), key=lambda tasks: tasks[-1].end)
    sent = [Task('push', tuple(sorted(layers)), start, end) for
            layers, (_, start, end) in zip(buckets, _messages(buckets, *link))
            if layers]
    yours = backward_pass(link[0]) + sent
    until = 1.05 * max(task.end for task in fixed + yours)
    return Row(*(plot_step(tasks, title, until, earliest(*link))
                 for title, tasks in (('one size', fixed), ('yours', yours))))


SMALL = {'ms': [5, 4, 3], 'MB': [2, 6, 1], 'latency_ms': 2, 'MB_per_s': 1000}
ALONE = {'ms': [7], 'MB': [3], 'latency_ms': 1, 'MB_per_s': 500}
SLOW_LINK = {'ms': [6, 5, 4, 9, 2, 3], 'MB': [1, 1, 5, 1, 7, 3],
             'latency_ms': 4, 'MB_per_s': 800}
MANY = {'n': 200, 'seed': 1, 'latency_ms': 10, 'MB_per_s': 500}
CHECKS = {
    'once': Check([SMALL, ALONE, UNLIKE], run, judge_once,
                  'each gradient is sent once, and gradients that are ready '
                  'first are sent first.'),
    'time': Check([UNLIKE, SMALL, TOY, SLOW_LINK], run, judge_time,
                  'no other buckets end the step earlier; it takes 75 ms.'),
    'many': Check([MANY], run, judge_time,
                  'no other buckets of 200 layers end the step earlier.')}
