"""Exercise: gradients that leave in buckets while others are still computed.

To chapter 18, notebooks/18-in-pytorch.ipynb.
"""
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np

from d2lps.annotations import Array
from d2lps.exercises.charts import draw_named
from d2lps.exercises.checking import (Answer, Case, Check, Differs, Picture,
                                      Wrong, returned, the_torch, without)
from d2lps.explaining import brief
from d2lps.figures import describe

# For each worker and step: its events, and the gradients before and after.
Events: TypeAlias = list[list[dict]]
INPUTS = 3  # of each layer
LR = 0.1


def network(sizes: Sequence[int], dtype: str = 'float32',
            frozen: Sequence[str] = ()) -> Any:
    """Layers beside each other: a `ModuleList`, the same in every worker.

    sizes: of each layer how many numbers it gives; it gets INPUTS of them.
    frozen: names of parameters without a gradient, such as '1.bias'.
    """
    torch = the_torch()
    random = torch.Generator().manual_seed(0)
    layers = torch.nn.ModuleList(
        torch.nn.Linear(INPUTS, size, dtype=getattr(torch, dtype))
        for size in sizes)
    with torch.no_grad():
        for name, param in layers.named_parameters():
            param.copy_(torch.randn(param.shape, generator=random))
            param.requires_grad_(name not in frozen)
    return layers


def loss_of(layers: Any, used: Sequence[int], rank: int = 0,
            step: int = 0) -> Array:
    """A loss to which the layers `used` add something, in this order.

    used: numbers of layers. rank, step: they tell which examples it is of.
    """
    torch = the_torch()
    random = torch.Generator().manual_seed(1000 * step + rank)
    X = torch.randn(4, INPUTS, generator=random).to(
        next(layers.parameters()).dtype)
    return sum((layers[k](X).tanh() + 1).square().mean() for k in used)


def right_buckets(model: Any, most: int) -> list[list[Array]]:
    """The buckets of a model; `most`: bytes."""
    buckets: list[list[Array]] = []
    nbytes = 0
    for param in reversed([*model.parameters()]):
        size = param.numel() * param.element_size()
        if param.requires_grad:
            if not buckets or nbytes + size > most:
                buckets.append([])
                nbytes = 0
            buckets[-1].append(param)
            nbytes += size
    return buckets


def _names(model, buckets):
    """The buckets with names in place of parameters."""
    name_of = {id(param): name for name, param in model.named_parameters()}
    return [[name_of[id(param)] for param in bucket] for bucket in buckets]


def run_buckets(answer: Answer, sizes: Sequence[int], most: int,
                dtype: str = 'float32',
                frozen: Sequence[str] = ()) -> list[list[str]]:
    model = network(sizes, dtype, frozen)
    without(answer, right_buckets)
    buckets = returned(answer, model, most)
    try:
        return _names(model, buckets)
    except (KeyError, TypeError, RuntimeError):  # PyTorch's: no dimension
        raise Wrong(f'you return {_kind(buckets)}; list[list[Parameter]] is '
                    "right, with the model's own parameters.",
                    anywhere=True) from None


def _kind(value):
    name = type(value).__name__
    return f'{name}[{_kind(value[0])}]' if (
        isinstance(value, (list, tuple)) and value) else name


def judge_buckets(buckets: list[list[str]], sizes: Sequence[int], most: int,
                  dtype: str = 'float32', frozen: Sequence[str] = ()) -> None:
    model = network(sizes, dtype, frozen)
    right = _names(model, right_buckets(model, most))
    nbytes = {name: param.numel() * param.element_size()
              for name, param in model.named_parameters()}
    if [] in buckets:
        raise Wrong(f'bucket {buckets.index([])} is empty; no empty bucket is '
                    'right.')
    mine: list[str]
    theirs: list[str]
    for k, (mine, theirs) in enumerate(zip_longest(buckets, right,
                                                   fillvalue=[])):
        if mine == theirs:
            continue
        place = ''
        if mine == theirs[:len(mine)] != []:
            name = theirs[len(mine)]
            place = f'There is still room for {name}, of {nbytes[name]} bytes.'
        for name in sorted({*sum(buckets, [])} & {*frozen}):
            place = f'{name} has requires_grad = False.'
        raise Differs(f'bucket {k} has {_named(mine, nbytes)}; '
                      f'{_named(theirs, nbytes)} is right', buckets, right,
                      values={}, place=place)


def _named(names, nbytes):
    total = sum(nbytes[name] for name in names)
    return f'{", ".join(names)} of {total} bytes' if names else 'nothing'


def _loss(layers, use, rank, step):
    """The loss of a worker. use: its layers, for each step and each rank."""
    row = use[step % len(use)]
    return loss_of(layers, row[rank % len(row)], rank, step)


def run(answer: Answer, num_workers: int, sizes: Sequence[int], most: int,
        use: Sequence[Sequence[Sequence[int]]], steps: int = 1,
        keep: bool = False, frozen: Sequence[str] = (),
        dtype: str = 'float32', buckets_of: Answer = right_buckets) -> Events:
    """Events of each worker and step, and the gradients after it.

    use: for each step and rank, which layers the loss has, in which order.
    keep: zero_grad sets gradients to 0, not to None.
    """
    from d2lps.exercises.torchgroup import Group

    def work(worker):
        layers = network(sizes, dtype, frozen)
        for name, param in layers.named_parameters():
            if param.requires_grad:  # this hook runs before the student's
                param.register_post_accumulate_grad_hook(
                    lambda _, name=name: worker.note('grad', name))
        mine = answer(buckets_of(layers, most), worker.all_reduce,
                      num_workers)
        return [one_step(worker, layers, mine, step)
                for step in range(steps)]

    def one_step(worker, layers, mine, step):
        worker.events = []
        layers.zero_grad(set_to_none=not keep)
        _loss(layers, use, worker.rank, step).backward()
        own = _grads(layers)
        worker.note('finish', step)
        mine.finish()
        grads = _grads(layers)
        for param in layers.parameters():
            if param.grad is not None:
                param.data -= LR * param.grad.detach()
        return {'events': worker.events, 'own': own, 'grads': grads}

    without(answer, Plain)
    return Group(num_workers).run(work)


def _grads(layers):
    """All gradients that are there, by name."""
    return {name: param.grad.tolist()
            for name, param in layers.named_parameters()
            if param.grad is not None}


class Plain:
    """A right reducer, but for the moments: all is sent in `finish`."""

    def __init__(self, buckets: list[list[Array]],
                 all_reduce: Answer, num_workers: int) -> None:
        self.params = sum(buckets, [])
        self.all_reduce, self.num_workers = all_reduce, num_workers

    def finish(self) -> None:
        for param in self.params:
            if param.grad is None:
                param.grad = param.new_zeros(param.shape)
            flat = param.grad.flatten().clone()
            self.all_reduce(flat).wait()
            param.grad = (flat / self.num_workers).view_as(param)


def judge_means(notes: Events, **case: Any) -> None:
    """The gradients, whenever they were sent."""
    truth = run(Plain, **case)
    for step, workers in enumerate(zip(*truth)):
        for rank, right in enumerate(workers):
            for name in right['grads']:
                lacks = [f'Rank {idle} does not compute it in this step.'
                         for idle, other in enumerate(workers)
                         if ['grad', name] not in other['events']]
                place = lacks[0] if lacks else (
                    'Here zero_grad() sets each .grad to zeros.'
                    if case.get('keep') else
                    'The step before is right.' * (step > 0))
                _judge_mean(notes[rank][step], right, name,
                            f'step {step + 1}, rank {rank}: {name}.grad',
                            len(notes), place)


def _judge_mean(notes, right, name, where, n, place):
    """One gradient after a step. right: the notes of a right reducer."""
    mine, mean = notes['grads'].get(name), np.array(right['grads'][name])
    if np.shape(mine) != mean.shape:
        given = 'None' if mine is None else f'of shape {np.shape(mine)}'
        raise Wrong(f'{where} is {given} after finish(); shape {mean.shape} '
                    'is right.')
    wrong = ~np.isclose(mine, mean, rtol=1e-4, atol=1e-6)
    if not wrong.any():
        return
    at = tuple(map(int, np.argwhere(wrong)[0]))
    number, events = np.array(mine)[at], notes['events']
    sent, waits = (len(_moments(events, kind))
                   for kind in ('all_reduce', 'wait'))
    known = {}
    if np.isnan(number):
        known['nan',] = ('Numbers are nan until wait() returns: you call '
                         f'all_reduce {sent} times and wait() {waits} times.')
    if name in right['own'] and np.allclose(mine, right['own'][name]):
        known['own',] = 'That is the gradient of this worker alone.'
    raise Differs(f'{where}{[*at]} is {brief(number)}; {brief(mean[at])} is '
                  'right', mine, mean, values={'num_workers': n}, known=known,
                  place=place, averaged='num_workers')


def judge_calls(notes: Events, num_workers: int, sizes: Sequence[int],
                most: int, **case: Any) -> None:
    """The moment at which each bucket left, whatever the gradients are."""
    layers = network(sizes, case.get('dtype', 'float32'),
                     case.get('frozen', ()))
    buckets = right_buckets(layers, most)
    elements = [sum(param.numel() for param in bucket) for bucket in buckets]
    for step, workers in enumerate(zip(*notes), 1):
        for rank, worker in enumerate(workers):
            _judge_step(step, rank, worker['events'],
                        _names(layers, buckets), elements)


def _moments(events, wanted):
    """A pair for each all_reduce or wait(): the number of gradients and of
    finish() before it, and its value.
    """
    return [(sum(kind in ('grad', 'finish') for kind, _ in events[:k]), value)
            for k, (kind, value) in enumerate(events) if kind == wanted]


def _judge_step(step, rank, events, names, elements):
    """Raise `Wrong` for the first bucket that leaves at a wrong moment."""
    where = f'step {step}, rank {rank}: '
    came = [name for kind, name in events if kind == 'grad']
    moments = ['before the first hook',
               *(f'in the hook of {name}' for name in came), 'in finish()']
    left, due = _moments(events, 'all_reduce'), 0
    for k, (bucket, size) in enumerate(zip(names, elements)):
        there = [came.index(name) + 1 if name in came else len(came) + 1
                 for name in bucket]
        due = max(due, *there)
        if k == len(left):
            raise Wrong(f'{where}bucket {k} never leaves; {moments[due]} is '
                        'right.')
        when, sent = left[k]
        if sent != size:
            others = ''.join(f' Bucket {other} has so many.' for other, many
                             in enumerate(elements) if many == sent)
            raise Wrong(f'{where}all_reduce {k + 1} has {sent} elements; '
                        f'{size} are right, those of bucket {k}.{others}')
        if when != due:
            lacking = [name for name, arrival in zip(bucket, there)
                       if arrival > when]
            hint = ('The step before is right.' if step > 1 else
                    f'{lacking[0]}.grad has not come then.' if lacking else
                    f'It was full before, and waited for bucket {k - 1}.'
                    if max(there) < due else '')
            raise Wrong(f'{where}bucket {k} leaves {moments[when]}; '
                        f'{moments[due]} is right. {hint}'.rstrip())
    if len(left) > len(names):
        raise Wrong(f'{where}all_reduce is called {len(left)} times; '
                    f'{len(names)} times is right, once for each bucket.')
    for when, number in _moments(events, 'wait'):
        if when <= len(came):
            raise Wrong(f'{where}wait() of all_reduce {number} is called '
                        f'{moments[when]}; in finish() is right.')


def judge(notes: Events, **case: Any) -> None:
    judge_calls(notes, **case)
    judge_means(notes, **case)


def picture(buckets_of: Answer, reducer: Answer) -> Picture:
    """The events on two workers in a step, one after the other."""
    from d2lps.pictures.rows import WIDE, new_figure
    buckets = run_buckets(buckets_of, SHOWN['sizes'], SHOWN['most'])
    workers = run(reducer, 2, **SHOWN, buckets_of=buckets_of)
    events = [worker[0]['events'] for worker in workers]
    rows = max(len(buckets), *(len(_moments(column, 'all_reduce'))
                               for column in events))
    figure = new_figure(WIDE, 1.2 + 0.7 * (1 + rows))
    for rank, ax in enumerate(figure.subplots(2)):
        _draw(ax, rank, events[rank], buckets, rows)
    ax.set_xlabel('one event after the other (w: weight, b: bias)')
    return figure


def _draw(ax, rank, events, buckets, rows):
    """A row of gradients, and below it a row for each bucket's all-reduce."""
    from d2lps.pictures.drawing import color
    from d2lps.pictures.rows import draw_bars, row_axes
    from d2lps.pictures.style import GRAY
    row_axes(['gradients', *(f'bucket {k}' for k in range(rows))],
             len(events), ax=ax, title=f'rank {rank}')
    ax.set_xticks([])
    describe(ax, f'On rank {rank}: ' + ', '.join(
        f'{kind} {value}' for kind, value in events) + '.')
    fills = {name: color(k) for k, bucket in enumerate(buckets)
             for name in bucket}
    left = []  # when each all-reduce was called
    for x, (kind, value) in enumerate(events):
        if kind == 'grad':
            draw_named(ax, [(x, x + 0.94, 0, value[:value.index('.') + 2])],
                       fills.get(value, GRAY))
        elif kind == 'all_reduce':
            left.append(x)
        elif kind == 'wait':
            draw_bars(ax, [(left[value - 1], x + 0.9, value)],
                      color(value - 1))
        else:
            ax.axvline(x + 0.45, color='gray', linestyle='--')
            ax.text(x + 0.6, 0, 'finish()', va='center')


ALL = [[[0, 1, 2]]]
SHOWN: Case = {'sizes': [2, 3, 4, 5], 'most': 80,
               'use': [[[0, 1, 2, 3], [1, 0, 3]]]}
MODEL = 'sizes = {sizes}, most = {most}'  # the case in a message
CHECKS = {
    'buckets': Check(
        [{'sizes': [2, 3, 4], 'most': 64},
         {'sizes': [4, 1, 5, 2], 'most': 48},
         {'sizes': [2, 3], 'most': 4},
         {'sizes': [2, 3, 4], 'most': 128, 'dtype': 'float64'},
         {'sizes': [2, 5, 3], 'most': 72, 'frozen': ['1.weight', '2.bias']}],
        run_buckets, judge_buckets, 'each parameter is in the right bucket.',
        case=MODEL),
    'mean': Check(
        [{'num_workers': 2, 'sizes': [2, 3, 5], 'most': 64, 'use': ALL},
         {'num_workers': 1, 'sizes': [2, 3, 5], 'most': 20, 'use': ALL},
         {'num_workers': 3, 'sizes': [4, 1, 2], 'most': 1000, 'use': ALL},
         {'num_workers': 4, 'sizes': [3, 2, 6], 'most': 40, 'use': ALL,
          'dtype': 'float64'}],
        run, judge_means, 'every worker has the mean of the gradients.',
        case='num_workers = {num_workers}'),
    'overlap': Check(
        [{'num_workers': 2, 'sizes': [2, 3, 5], 'most': 64, 'use': ALL},
         {'num_workers': 2, 'sizes': [2, 3, 5, 1], 'most': 84,
          'use': [[[3, 0, 2, 1]]]},
         {'num_workers': 3, 'sizes': [1, 4, 2], 'most': 16,
          'use': [[[2, 1, 0]]]}],
        run, judge_calls, 'each bucket leaves as soon as it can, and not '
                          'earlier.', case=MODEL),
    'steps': Check(
        [{'num_workers': 2, 'sizes': [2, 3, 5], 'most': 64, 'use': ALL,
          'steps': 3},
         {'num_workers': 2, 'sizes': [3, 4, 1], 'most': 50, 'use': ALL,
          'steps': 3, 'keep': True},
         {'num_workers': 2, 'sizes': [2, 3, 5, 1], 'most': 60,
          'use': [[[0, 1, 2, 3], [0, 1, 3]], [[2, 0], [3, 1]]],
          'steps': 3}],
        run, judge, 'every step is right, also with layers that are not '
                    'used.', case=MODEL)}
