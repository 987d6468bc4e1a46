"""A record of PyTorch's profiler of a backward pass, as `Task`s."""
from collections.abc import Sequence

from d2lps.asynchrony.overlap import Task
from d2lps.checks import checked, instance_of, integer, list_of

LAYER, SUM = 'MmBackward0', 'gloo:all_reduce'  # as PyTorch calls them


@checked(events=list_of(instance_of((list, tuple), 'a row'),
                        'a list of events', least=2),
         in_buckets=list_of(integer, 'a list of numbers of layers'))
def trace_tasks(events: Sequence[tuple[str, int, float, float]],
                in_buckets: Sequence[int]) -> tuple[list[Task], list[str]]:
    """A backward pass with DDP as a list of `Task`, and the row of each.

    Layers come first, then buckets; seconds are counted from the first event.
    The rows are 'compute' and, for each thread of Gloo, 'Gloo 1', 'Gloo 2'.

    Args:
        events: (name, thread, start, end) of each matrix product's backward
            pass ('MmBackward0') and of each sum ('gloo:all_reduce').
        in_buckets: the number of layers in each bucket, in the order in
            which the buckets leave.

    Raises:
        ValueError: if the events do not fit to these buckets.
    """
    events = sorted(events, key=lambda event: event[2])
    layers = [event for event in events if event[0] == LAYER]
    sums = [event for event in events if event[0] == SUM]
    if (len(layers), len(sums)) != (sum(in_buckets), len(in_buckets)):
        raise ValueError(
            f'events has {len(layers)} layers and {len(sums)} sums; '
            f'in_buckets has {sum(in_buckets)} and {len(in_buckets)}')
    begin, above = events[0][2], len(layers)
    tasks = [Task('backward', (above - 1 - number,), start - begin,
                  end - begin)
             for number, (_, _, start, end) in enumerate(layers)]
    for (_, _, start, end), size in zip(sums, in_buckets):
        tasks.append(Task('push', tuple(range(above - size, above)),
                          start - begin, end - begin))
        above -= size
    threads = [*dict.fromkeys(event[1] for event in sums)]
    return tasks, ['compute'] * len(layers) + [
        f'Gloo {1 + threads.index(event[1])}' for event in sums]
