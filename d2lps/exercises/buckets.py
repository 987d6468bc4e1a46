"""Exercise: gradients go in buckets, so that the step ends early.

To chapter 15, notebooks/15-overlap.ipynb.
"""
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from d2lps.exercises.checking import (SLOWER, Answer, Case, Check, Differs,
                                      Picture, Wrong, in_time, returned,
                                      whole_numbers)
from d2lps.explaining import brief

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
    """Times at which each message is ready, starts and ends."""
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


def run(answer: Answer, **case: Any) -> list[list[int]]:
    """The buckets as lists of layers."""
    link = _link(**case)
    n = len(link[0])
    with in_time(MOST_SECONDS, lambda: (
            f'no result after {MOST_SECONDS} s, the limit.'
            + f' There are 2 ** {n - 1} ways to cut {n} layers.' * (n > 20))):
        return whole_numbers(
            returned(answer, *link), 2, 'a list of lists of whole numbers, '
            'such as [[2], [1, 0]], is right.')


def judge_once(buckets: list[list[int]], **case: Any) -> None:
    """Each layer in one bucket, and the buckets in the order of `ready`."""
    link = _link(**case)
    _judge_layers(buckets, len(link[0]))
    if not all(buckets):
        raise Wrong('a bucket is empty. Its message costs a latency, too.')
    ready = [ready for ready, *_ in _messages(buckets, *link)]
    for number, (late, early) in enumerate(pairwise(ready)):
        if early < late - 1e-9:
            first, second = map(brief, buckets[number:number + 2])
            raise Differs(
                f'you send {first}, ready at {late * 1e3:g} ms, before '
                f'{second}, ready at {early * 1e3:g} ms; the bucket that is '
                'ready first goes first', buckets)


def _judge_layers(buckets, n):
    """Raise `Wrong` unless each layer is in one bucket."""
    count = Counter(chain(*buckets))
    for layer in sorted({*range(n), *count}):
        if not 0 <= layer < n:
            raise Differs(f'you send layer {layer}; layers 0 to {n - 1} are '
                          'right', buckets)
        if count[layer] > 1:
            raise Differs(f'layer {layer} is sent {count[layer]} times; once '
                          'is right', buckets)
    if missing := sorted({*range(n)}.difference(count)):
        last = 'layer' if missing == [0] else f'{len(missing)} layers'
        raise Differs(
            f'layer {missing[-1]} is in no bucket; one is right', buckets,
            known={('last',): f'The last {last} of the backward pass '
                   f'{"is" if last == "layer" else "are"} missing.'}
            if missing == [*range(len(missing))] else {})


def judge_time(buckets: list[list[int]], **case: Any) -> None:
    """No other buckets end the step earlier."""
    link = _link(**case)
    _judge_layers(buckets, len(link[0]))
    best, end = earliest(*link), end_of_step(buckets, *link)
    if end > best * (1 + 1e-6):
        raise Differs(f'the step ends after {end * 1e3:.5g} ms; '
                      f'{best * 1e3:.5g} ms is possible', buckets,
                      place=_first_late(buckets, link, best))


def _first_late(buckets, link, best):
    """The first bucket after which the best end cannot be reached."""
    k = len(link[0])
    for layers, (_, start, end) in zip(buckets, _messages(buckets, *link)):
        if {*layers} != {*range(k - len(layers), k)}:
            late = max({*range(k)}.difference(layers))
            return (f'Layer {late} is ready before layer {min(layers)}, and '
                    'is sent after it.')
        if len(layers) == k:
            return (f'Layer {k - 1} is ready at {sum(link[0][k - 1:]) * 1e3:g}'
                    f' ms, and its bucket leaves at {start * 1e3:.5g} ms.')
        k -= len(layers)
        if (at_best := earliest(*link, k, end)) > best * (1 + 1e-6):
            return (f'The bucket {brief(layers)} costs time: after it, the '
                    f'step ends at {at_best * 1e3:.5g} ms or later.')
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
                  'first are sent first.', case='{ms} ms'),
    'time': Check([UNLIKE, SMALL, TOY, SLOW_LINK], run, judge_time,
                  'no other buckets end the step earlier; it takes 75 ms.',
                  case='{ms} ms, {MB} MB, {MB_per_s} MB/s, {latency_ms} ms'),
    'many': Check([MANY], run, judge_time,
                  'no other buckets of 200 layers end the step earlier.',
                  case='{n} layers')}
