"""Exercise: gradients go in buckets, so that the step ends early.

To chapter 15, notebooks/15-overlap.ipynb.
"""
from operator import index
from reprlib import repr as short

from d2lps_exercises.checking import Check, Wrong

TOY = {'ms': [12, 12, 10, 10, 8, 4, 2, 2], 'MB': [1, 1, 2, 2, 4, 10, 30, 10],
       'latency_ms': 3, 'MB_per_s': 1000}  # the chapter's network


def end_of_step(buckets, backward, nbytes, bandwidth, latency):
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


def _link(ms, MB, latency_ms, MB_per_s):
    """The arguments of the student's function."""
    return ([t / 1e3 for t in ms], [size * 1e6 for size in MB],
            MB_per_s * 1e6, latency_ms / 1e3)


def _run(answer, **case):
    buckets = answer(*_link(**case))
    if buckets is None:
        raise Wrong('your function returned nothing: is there a `return`?')
    try:
        return [[index(layer) for layer in bucket] for bucket in buckets]
    except TypeError:
        raise Wrong(f'your function returned {short(buckets)}. A list of '
                    'lists of layers is wanted, such as [[2], [1, 0]].'
                    ) from None


def _judge_once(buckets, ms, **link):
    found = {}
    for number, layers in enumerate(buckets):
        if not layers:
            raise Wrong(f'bucket {number} is empty. A message costs its '
                        'latency even if no gradient is in it.')
        for layer in layers:
            if not 0 <= layer < len(ms):
                raise Wrong(f'bucket {number} has a layer {layer}, and the '
                            f'layers are 0 to {len(ms) - 1}.')
            if layer in found:
                raise Wrong(f'the gradient of layer {layer} is in bucket '
                            f'{found[layer]} and again in bucket {number}: '
                            'it would be sent, and added, twice.')
            found[layer] = number
    _judge_all(buckets, ms)
    ready = [ready for ready, *_ in _messages(buckets, *_link(ms, **link))]
    for number in range(1, len(buckets)):
        early, late = ready[number], ready[number - 1]
        if early < late - 1e-9:
            raise Wrong(
                f'bucket {number - 1} goes before bucket {number}, but is '
                f'ready after it: at {late * 1e3:g} ms, not '
                f'{early * 1e3:g}, as it waits for layer '
                f'{min(buckets[number - 1])}. The backward pass begins with '
                'the last layer.')


def _judge_all(buckets, ms):
    missing = [k for k in range(len(ms)) if not any(
        k in layers for layers in buckets)]
    if missing:
        last = ' What happens to the last bucket?' * (0 in missing)
        raise Wrong(f'of layers {missing}, the gradients are in no bucket. '
                    'They are never sent, so the other workers never get '
                    f'them.{last}')


def _judge_time(buckets, **case):
    _judge_all(buckets, case['ms'])
    link, latency = _link(**case), case['latency_ms']
    end, best = 1e3 * end_of_step(buckets, *link), _best(*link)
    if end <= best * (1 + 1e-6):
        return
    digits = 2 if best >= 1 else 5
    text = (f'with layers of {case["ms"]} ms and {case["MB"]} MB, the step '
            f'ends after {end:.{digits}f} ms, {end - best:.{digits}f} ms '
            f'later than it could ({best:.{digits}f} ms). ')
    if len(buckets) == 1:
        raise Wrong(f'{text}Everything goes in one message, which leaves '
                    f'when all is computed, at {sum(case["ms"]):g} ms: '
                    'nothing overlaps.')
    if len(buckets) == len(case['ms']):
        raise Wrong(f'{text}Each gradient goes on its own, so the latency of '
                    f'{latency:g} ms counts {len(buckets)} times.')
    before, idle = 0, []
    for number, (_, start, after) in enumerate(_messages(buckets, *link)):
        if start > before + 1e-9:
            idle.append(f'{(start - before) * 1e3:g} ms before bucket '
                        f'{number}, which waits for layer '
                        f'{min(buckets[number])}')
        before = after
    raise Wrong(f'{text}Your {len(buckets)} messages cost '
                f'{len(buckets) * latency:g} ms of latency, and the link is '
                f'idle for {"; ".join(idle) or "no time"}.')


def _best(backward, nbytes, bandwidth, latency):
    """The earliest end in ms; ends[k]: that of layers k and up alone."""
    ends = {len(nbytes): 0}
    for k in reversed(range(len(nbytes))):
        ends[k] = min(max(ends[j], sum(backward[k:])) + latency
                      + sum(nbytes[k:j]) / bandwidth for j in ends)
    return 1e3 * ends[0]


def picture(answer):
    """Draw the step of the chapter's network with the student's buckets."""
    from d2lps.asynchrony.overlap import Task, backward_pass
    from d2lps_pictures import plot_step
    buckets, link = _run(answer, **TOY), _link(**TOY)
    if not all(0 <= k < 8 for layers in buckets for k in layers):
        raise Wrong(f'there are layers 0 to 7; the buckets are {buckets}.')
    sent = [Task('push', tuple(sorted(layers)), start, end) for
            layers, (_, start, end) in zip(buckets, _messages(buckets, *link))
            if layers]
    return plot_step(backward_pass(link[0]) + sent,
                     f'{len(buckets)} messages', best=_best(*link) / 1e3)


SMALL = {'ms': [5, 4, 3], 'MB': [2, 6, 1], 'latency_ms': 2, 'MB_per_s': 1000}
ALONE = {'ms': [7], 'MB': [3], 'latency_ms': 1, 'MB_per_s': 500}
SLOW_LINK = {'ms': [6, 5, 4, 9, 2, 3], 'MB': [1, 1, 5, 1, 7, 3],
             'latency_ms': 4, 'MB_per_s': 800}
CHECKS = {
    'once': Check([SMALL, ALONE, TOY], _run, _judge_once,
                  'each gradient goes once, and those go first that are '
                  'ready first.'),
    'time': Check([TOY, SMALL, SLOW_LINK], _run, _judge_time,
                  'no buckets end the step earlier; 72 ms for the network of '
                  'chapter 15.')}
