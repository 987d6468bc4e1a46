"""Start and end of each pass of a pipeline, from the times of passes."""
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from d2lps.checks import (checked, from_zero, instance_of, integer, list_of,
                          number, one_of, refuse)
from d2lps.pipelines.orders import Pass

KINDS = 'F', 'B', 'I', 'W'
MOST_STAGES = 100_000


class Timed(NamedTuple):
    """A pass, the stage that does it, and its start and end in seconds."""
    stage: int
    step: Pass
    start: float
    end: float


def _seconds(name, value):
    """Seconds for kinds of passes."""
    if not isinstance(value, Mapping) or not {*value} <= {*KINDS}:
        refuse(name, value, "seconds for kinds of passes, such as "
                            "{'F': 1, 'B': 2}")
    return {kind: number(f'{name}[{kind!r}]', entry)
            for kind, entry in value.items()}


def _pass(name, value):
    """A `Pass` whose fields are possible."""
    step = instance_of(Pass, "a Pass, such as Pass('F', 0)")(name, value)
    return Pass(one_of(*KINDS)(f'{name}.kind', step.kind),
                from_zero(f'{name}.batch', step.batch),
                from_zero(f'{name}.chunk', step.chunk))


def _order(name, value):
    """The passes of a stage; an iterator may give them, too."""
    passes = [*value] if isinstance(value, Iterator) else value
    order = list_of(_pass, 'a list of passes')(name, passes)
    for step, times in Counter(order).items():
        if times > 1:
            raise ValueError(f'{name} must have each pass once; it has '
                             f'{step} {times} times')
    return order


def _complete(orders, seconds, **_):
    """All stages do the same passes, and it is known how long they take."""
    stages = [{*order} for order in orders]
    steps = set().union(*stages)
    kinds = {step.kind for step in steps}
    if kinds - {*seconds}:
        raise ValueError(f'seconds must have {", ".join(sorted(kinds))}; it '
                         f'had {", ".join(seconds) or "nothing"}')
    batches = sorted({step.batch for step in steps})
    for batch, chunk in product(batches, range(_num_chunks(steps))):
        apart = {Pass('I', batch, chunk), Pass('W', batch, chunk)} & steps
        here = 'FIW' if apart else 'FB' if kinds - {'F'} else 'F'
        for k, done in enumerate(stages):
            for kind in KINDS:
                step = Pass(kind, batch, chunk)
                if (step in done) != (kind in here):
                    raise ValueError(
                        f'orders[{k}] has no {step}; of this micro-batch '
                        f'each stage must have {", ".join(here)}'
                        if kind in here else
                        f"orders[{k}] has {step}, and passes 'I' and 'W' do "
                        'the same')


def _num_chunks(steps):
    """The number of model chunks that a stage has."""
    return 1 + max(step.chunk for step in steps)


def needs(stage: int, step: Pass, num_stages: int, num_chunks: int
          ) -> list[tuple[int, str, int]]:
    """Passes that must end before this one: (stage, kind, chunk) of each."""
    place = step.chunk * num_stages + stage  # of the layers in the model
    if step.kind == 'F':
        places = [(place - 1, 'F')]
    elif step.kind == 'W':
        places = [(place, 'I')]
    else:
        places = [(place, 'F'), (place + 1, step.kind)]
    return [(place % num_stages, kind, place // num_stages)
            for place, kind in places if 0 <= place < num_stages * num_chunks]


@checked(_complete, orders=list_of(_order, 'a list for each stage'),
         seconds=_seconds, transfer=number)
def time_passes(orders: Sequence[Sequence[Pass]],
                seconds: Mapping[str, float], transfer: float = 0
                ) -> list[Timed]:
    """Start and end of each pass, if each stage keeps to its order.

    Args:
        orders: for each stage the list of its passes.
        seconds: how long each kind of pass takes, such as {'F': 1, 'B': 2}.
        transfer: seconds from the end of a pass until its result is at
            another stage. Meanwhile both stages can compute.

    Raises:
        ValueError: if a stage does a pass twice, or leaves out a pass, or if
            the stages would wait for each other forever.
    """
    num_chunks = max(map(_num_chunks, orders))
    timed: list[Timed] = []
    ends: dict[tuple[int, str, int, int], float] = {}
    free, done = [0.0] * len(orders), [0] * len(orders)
    progress = True
    while progress:
        progress = False
        for stage, order in enumerate(orders):
            if done[stage] == len(order):
                continue
            step = order[done[stage]]
            wanted = needs(stage, step, len(orders), num_chunks)
            keys = [(*entry, step.batch) for entry in wanted]
            if all(key in ends for key in keys):
                arrived = [ends[key] + transfer * (key[0] != stage)
                           for key in keys]
                start = max([free[stage], *arrived])
                end = free[stage] = start + seconds[step.kind]
                ends[stage, step.kind, step.chunk, step.batch] = end
                timed.append(Timed(stage, step, start, end))
                done[stage] += 1
                progress = True
    if len(timed) < sum(map(len, orders)):
        raise ValueError('in these orders stages wait for each other forever')
    return timed


def _timed(name, value):
    """A `Timed` whose fields are possible."""
    entry = instance_of(Timed, 'a Timed, as from time_passes')(name, value)
    start = number(f'{name}.start', entry.start)
    return Timed(integer(f'{name}.stage', entry.stage, least=0,
                         most=MOST_STAGES),
                 _pass(f'{name}.step', entry.step), start,
                 number(f'{name}.end', entry.end, least=start))


TIMED = list_of(_timed, 'a list of Timed, as from time_passes')


def _busy(timed):
    """Seconds until all is done, and for how many of them stages work."""
    num_stages = 1 + max(entry.stage for entry in timed)
    work = sum(entry.end - entry.start for entry in timed)
    if not work > 0:
        raise ValueError('timed must have passes that take time; all of them '
                         'take 0 seconds')
    return max(entry.end for entry in timed), work / num_stages


@checked(timed=TIMED)
def idle_share(timed: Sequence[Timed]) -> float:
    """The share of all time in which a stage waits, from 0 to 1."""
    length, work = _busy(timed)
    return 1 - work / length


@checked(timed=TIMED)
def bubble(timed: Sequence[Timed]) -> float:
    """The time in which a stage waits, divided by the time in which it works.

    This is how the papers state it.
    """
    length, work = _busy(timed)
    return length / work - 1


@checked(order=_order)
def most_kept(order: Iterable[Pass]) -> float:
    """The most micro-batches whose activations a stage keeps.

    They are kept until the gradients of the weights are there. A stage with
    two model chunks keeps half of a micro-batch's activations for each.

    Args:
        order: all passes of the stage. If it has only one model chunk, the
            first passes may stand alone.

    Raises:
        ValueError: if a backward pass is there before its forward pass.
    """
    kept, most, done = 0, 0, set()
    for step in order:
        kept += {'F': 1, 'I': 0}.get(step.kind, -1)
        most = max(most, kept)
        done.add(step)
        if step._replace(kind='F') not in done:
            raise ValueError(f'order has {step}, and before it no forward '
                             'pass of this micro-batch')
    return most / _num_chunks(done)
