"""Exercise: gradients go in buckets, so that the step ends early.

To chapter 15, notebooks/15-overlap.ipynb.
"""
from collections.abc import Iterable, Sequence
from operator import index
from reprlib import repr as short

import numpy as np

from d2lps.exercises.checking import (Answer, Case, Check, Picture, Wrong,
                                      in_time)

# Unlike layers, and a high latency: no size for all buckets is good here.
UNLIKE: Case = {
    'ms': [1, 4, 2, 2, 10, 1, 20, 1], 'MB': [1, 1, 1, 10, 10, 1, 10, 10],
    'latency_ms': 10, 'MB_per_s': 1000}
TOY = {'ms': [12, 12, 10, 10, 8, 4, 2, 2], 'MB': [1, 1, 2, 2, 4, 10, 30, 10],
       'latency_ms': 3, 'MB_per_s': 1000}  # the chapter's network
MOST_SECONDS = 6  # of processor time; the solution needs 0.1
tried: list[int] = []  # grows with each call of end_of_step in a check


def end_of_step(buckets: Iterable[Iterable[int]], backward: Sequence[float],
                nbytes: Sequence[float], bandwidth: float,
                latency: float) -> float:
    """Seconds until the last message has arrived.

    buckets: lists of layers; each list is a message. They go in this order,
    each as soon as the link is free and all of its gradients are ready.
    The other arguments: as in `simulate_step`.
    """
    tried.append(1)
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
    asked = (f' and asked end_of_step {len(tried):,} times' if tried else '')
    return (f'your function was stopped. For {n} layers it had computed for '
            f'{MOST_SECONDS} seconds{asked}. To cut {n} layers there are '
            f'2 ** {n - 1} ways, too many to try each. How many different '
            'buckets of neighbours are there?')


def _run(answer, **case):
    link = _link(**case)
    n = len(link[0])
    tried.clear()
    with in_time(MOST_SECONDS, lambda: _stopped(n)):
        buckets = answer(*link)
    if buckets is None:
        raise Wrong('your function returned nothing: is there a `return`?')
    try:
        return [[index(layer) for layer in bucket] for bucket in buckets]
    except TypeError:
        raise Wrong(f'your function returned {short(buckets)}. A list of '
                    'lists of layers is wanted, such as [[2], [1, 0]].'
                    ) from None


def _judge_once(buckets, **case):
    link = _link(**case)
    found = {}
    _judge_all(buckets, len(link[0]))
    for number, layers in enumerate(buckets):
        if not layers:
            raise Wrong(f'bucket {number} is empty. A message costs a '
                        'latency even if it has no gradient.')
        for layer in layers:
            if layer in found:
                raise Wrong(f'the gradient of layer {layer} is in bucket '
                            f'{found[layer]} and again in bucket {number}: '
                            'it would be sent twice, and added twice.')
            found[layer] = number
    ready = [ready for ready, *_ in _messages(buckets, *link)]
    for number in range(1, len(buckets)):
        early, late = ready[number], ready[number - 1]
        if early < late - 1e-9:
            raise Wrong(
                f'bucket {number - 1} is sent before bucket {number}, but is '
                f'ready later: at {late * 1e3:g} ms, not {early * 1e3:g}, '
                f'because it waits for layer {min(buckets[number - 1])}. The '
                'backward pass begins with the last layer.')


def _judge_all(buckets, n):
    for number, layers in enumerate(buckets):
        for layer in layers:
            if not 0 <= layer < n:
                raise Wrong(f'bucket {number} has a layer {layer}, and the '
                            f'layers are 0 to {n - 1}.')
    missing = [k for k in range(n) if not any(
        k in layers for layers in buckets)]
    if missing:
        last = ' What happens to the last bucket?' * (0 in missing)
        raise Wrong(f'the gradients of layers {short(missing)} are in no '
                    'bucket. They are never sent, so the other workers never '
                    f'get them.{last}')


def _judge_time(buckets, **case):
    link, latency = _link(**case), case['latency_ms']
    backward, n = link[0], len(link[0])
    _judge_all(buckets, n)
    end, best = 1e3 * max(end for *_, end in _messages(
        buckets, *link)), _best(*link)
    if end <= best * (1 + 1e-6):
        return
    digits = 2 if best >= 1 else 5
    text = (f'with {n} layers the step ends after {end:.{digits}f} ms, '
            f'{end - best:.{digits}f} ms later than it could '
            f'({best:.{digits}f} ms). ')
    if 'ms' in case:
        text += f'They take {case["ms"]} ms and have {case["MB"]} MB. '
    if len(buckets) == 1:
        raise Wrong(f'{text}All gradients are in one message, which leaves '
                    f'when all is computed, at {1e3 * sum(backward):g} ms: '
                    'nothing overlaps.')
    if len(buckets) == n:
        raise Wrong(f'{text}Each gradient has its own message, so the '
                    f'latency of {latency:g} ms counts {len(buckets)} times.')
    before, idle = 0, []
    for number, (_, start, after) in enumerate(_messages(buckets, *link)):
        if start > before + 1e-9:
            idle.append(f'{(start - before) * 1e3:g} ms before bucket '
                        f'{number}, which waits for layer '
                        f'{min(buckets[number])}')
        before = after
    more = '; and before other buckets' * (len(idle) > 3)
    raise Wrong(f'{text}Your {len(buckets)} messages cost '
                f'{len(buckets) * latency:g} ms of latency, and the link is '
                f'idle for {"; ".join(idle[:3]) or "no time"}{more}.')


def _best(backward, nbytes, bandwidth, latency):
    """The earliest end in ms; ends[k]: that of layers k and up alone."""
    ends = {len(nbytes): 0}
    for k in reversed(range(len(nbytes))):
        ends[k] = min(max(ends[j], sum(backward[k:])) + latency
                      + sum(nbytes[k:j]) / bandwidth for j in ends)
    return 1e3 * ends[0]


def picture(answer: Answer) -> Picture:
    """Draw the step with the best size for all buckets, and the student's."""
    from d2lps.asynchrony.overlap import Task, backward_pass, simulate_step
    from d2lps.pictures import Row, plot_step
    buckets, link = _run(answer, **UNLIKE), _link(**UNLIKE)
    n = len(link[0])
    if not all(0 <= k < n for layers in buckets for k in layers):
        raise Wrong(f'there are layers 0 to {n - 1}; the buckets are '
                    f'{short(buckets)}.')
    sizes = range(0, sum(UNLIKE['MB']) + 1)
    fixed = min((simulate_step(*link, bucket_size=size * 1e6)
                 for size in sizes), key=lambda tasks: tasks[-1].end)
    sent = [Task('push', tuple(sorted(layers)), start, end) for
            layers, (_, start, end) in zip(buckets, _messages(buckets, *link))
            if layers]
    yours = backward_pass(link[0]) + sent
    until = 1.05 * max(task.end for task in fixed + yours)
    return Row(*(plot_step(tasks, title, until, _best(*link) / 1e3)
                 for title, tasks in (('one size', fixed), ('yours', yours))))


SMALL = {'ms': [5, 4, 3], 'MB': [2, 6, 1], 'latency_ms': 2, 'MB_per_s': 1000}
ALONE = {'ms': [7], 'MB': [3], 'latency_ms': 1, 'MB_per_s': 500}
SLOW_LINK = {'ms': [6, 5, 4, 9, 2, 3], 'MB': [1, 1, 5, 1, 7, 3],
             'latency_ms': 4, 'MB_per_s': 800}
MANY = {'n': 200, 'seed': 1, 'latency_ms': 10, 'MB_per_s': 500}
CHECKS = {
    'once': Check([SMALL, ALONE, UNLIKE], _run, _judge_once,
                  'each gradient is sent once, and gradients that are ready '
                  'first are sent first.'),
    'time': Check([UNLIKE, SMALL, TOY, SLOW_LINK], _run, _judge_time,
                  'no other buckets end the step earlier; it takes 75 ms.'),
    'many': Check([MANY], _run, _judge_time,
                  'no other buckets of 200 layers end the step earlier.')}
