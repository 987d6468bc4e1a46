"""Exercise: gradients that leave in buckets while others are still computed.

To chapter 18, notebooks/18-in-pytorch.ipynb.
"""
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from d2lps.annotations import Array
from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Case, Check, Notes, Picture,
                                      Wrong, forbidding, the_torch)
from d2lps.exercises.multiples import factor
from d2lps.figures import describe

INPUTS = 3  # of each layer
LR = 0.1
RULE = ('A bucket leaves as soon as all its gradients have come and all '
        'earlier buckets have left. finish() sends the rest, with zeros for '
        'gradients that have not come.')


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
    with forbidding(right_buckets):
        found = answer(model, most)
    try:
        return _names(model, found)
    except (KeyError, TypeError, RuntimeError):  # PyTorch's: no dimension
        raise Wrong(f'your function returned {shown(found)}. A list of lists '
                    'is wanted, with the parameters of the model themselves: '
                    'no copies, no names, no parts.') from None


def judge_buckets(found: Notes, sizes: Sequence[int], most: int,
                  dtype: str = 'float32', frozen: Sequence[str] = ()) -> None:
    model = network(sizes, dtype, frozen)
    right = _names(model, right_buckets(model, most))
    for k, (one, two) in enumerate(zip_longest(sum(found, []),
                                               sum(right, [])), 1):
        if one != two:
            right_one = f'it should be {two}' if two else 'there are no more'
            raise Wrong(f'parameter number {k} in your buckets is '
                        f'{one or "missing"}; {right_one}. From the last of '
                        'model.parameters() to the first, each parameter with '
                        'requires_grad = True is there once.')
    nbytes = {name: param.numel() * param.element_size()
              for name, param in model.named_parameters()}
    for k, (mine, theirs) in enumerate(zip(found, [*right, []])):
        size = sum(nbytes[name] for name in mine)
        if not mine:
            raise Wrong(f'bucket {k} is empty.')
        if len(mine) > len(theirs):
            raise Wrong(f'bucket {k} has {size} bytes, in {len(mine)} '
                        'parameters. Only a parameter that is alone in its '
                        f'bucket can have more than {most}.')
        if len(mine) < len(theirs):
            name = theirs[len(mine)]
            raise Wrong(f'bucket {k} is closed at {size} bytes. {name}, of '
                        f'{nbytes[name]} bytes, still fits: up to {most} are '
                        'allowed.')


def _loss(layers, use, rank, step):
    """The loss of a worker. use: its layers, for each step and each rank."""
    row = use[step % len(use)]
    return loss_of(layers, row[rank % len(row)], rank, step)


def run(answer: Answer, num_workers: int, sizes: Sequence[int], most: int,
        use: Sequence[Sequence[Sequence[int]]], steps: int = 1,
        keep: bool = False, frozen: Sequence[str] = (),
        dtype: str = 'float32', buckets_of: Answer = right_buckets) -> Notes:
    """Of each worker and step: what happened, and the gradients after it.

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
        buckets = buckets_of(layers, most)
        with forbidding(_truth):
            mine = answer(buckets, worker.all_reduce, num_workers)
            return [one_step(worker, layers, mine, step)
                    for step in range(steps)]

    def one_step(worker, layers, mine, step):
        worker.events = []
        layers.zero_grad(set_to_none=not keep)
        _loss(layers, use, worker.rank, step).backward()
        worker.note('finish', step)
        mine.finish()
        grads = {}
        for name, param in layers.named_parameters():
            if param.grad is not None:
                grads[name] = param.grad.tolist()
                param.data -= LR * param.grad.detach()
        return {'events': worker.events, 'grads': grads}

    return Group(num_workers).run(work)


def _truth(num_workers, sizes, use, steps=1, frozen=(), dtype='float32', **_):
    """Of each step: what each worker computes, and the mean.

    Dictionaries of gradients by name, in the order in which they come.
    """
    layers, came = network(sizes, dtype, frozen), {}
    params = {name: param for name, param in layers.named_parameters()
              if param.requires_grad}
    for name, param in params.items():
        param.register_post_accumulate_grad_hook(
            lambda param, name=name: came.update({
                name: param.grad.double().numpy().copy()}))
    for step in range(steps):
        own = []
        for rank in range(num_workers):
            layers.zero_grad()
            came.clear()
            _loss(layers, use, rank, step).backward()
            own.append({**came})
        mean = {name: np.mean([one.get(name, np.zeros(tuple(param.shape)))
                               for one in own], 0)
                for name, param in params.items()}
        yield own, mean
        for name, param in params.items():
            param.data -= LR * param.new_tensor(mean[name])


def judge_means(found: Notes, num_workers: int, **case: Any) -> None:
    """The gradients, whenever they were sent."""
    for step, (own, mean) in enumerate(_truth(num_workers, **case)):
        for rank, worker in enumerate(found):
            for name, right in mean.items():
                where = f'step {step + 1}, rank {rank}: .grad of {name} '
                mine = worker[step]['grads'].get(name)
                if mine is None:
                    raise Wrong(f'{where}is None after finish().')
                mine = np.asarray(mine, float)
                wrong = ~np.isclose(mine, right, rtol=1e-4, atol=1e-6)
                if wrong.any():
                    at = tuple(map(int, np.argwhere(wrong)[0]))
                    raise Wrong(
                        f'{where}is not the mean: at index {[*at]} it is '
                        f'{mine[at]:.5g}, and {right[at]:.5g} is right. '
                        + _hint(worker[step]['events'], mine, mine[at], name,
                                own, rank, mean))


def _hint(events, mine, number, name, own, rank, mean):
    """What a wrong gradient is.

    mine, number: the array, and the first wrong one of its numbers.
    """
    if np.isnan(number):
        sent, waits = (len(_moments(events, kind))
                       for kind in ('all_reduce', 'wait'))
        return (f'This worker called all_reduce {sent} times and wait() '
                f'{waits} times. Numbers are nan until wait() returns.')
    for words, one in (('the mean', mean[name]),
                       ('the gradient of this worker alone',
                        own[rank].get(name))):
        times = 0 if one is None else factor(mine, one)
        if times:
            many = '' if np.isclose(times, 1) else f'{times:.4g} times '
            return f'The whole array is {many}{words}.'
    for other, one in mean.items():
        places = np.argwhere(np.isclose(one, number, rtol=1e-5, atol=0))
        if len(places):
            return (f'{number:.5g} is the right number for {other}, at index '
                    f'{places[0].tolist()}.')
    return ''


def judge_calls(found: Notes, num_workers: int, sizes: Sequence[int],
                most: int, **case: Any) -> None:
    """When each bucket left, whatever the gradients are."""
    layers = network(sizes, case.get('dtype', 'float32'),
                     case.get('frozen', ()))
    buckets = right_buckets(layers, most)
    names = _names(layers, buckets)
    elements = [sum(param.numel() for param in one) for one in buckets]
    for step, (own, _) in enumerate(_truth(num_workers, sizes, **case)):
        for rank, came in enumerate(own):
            try:
                _judge_step(found[rank][step]['events'], [*came], names,
                            elements)
            except Wrong as error:
                raise Wrong(f'step {step + 1}, rank {rank}: {error}') from None


def _moments(events, kind):
    """For each all_reduce or wait(): how many gradients and finish() had come
    before it, and its number.
    """
    return [(sum(what in ('grad', 'finish') for what, _ in events[:k]), value)
            for k, (what, value) in enumerate(events) if what == kind]


def _judge_step(events, came, names, elements):
    """Raise `Wrong` for the first bucket that leaves at a wrong moment."""
    words = ['before the first gradient came',
             *(f'when the gradient of {name} came' for name in came),
             'in finish()']
    left, due = _moments(events, 'all_reduce'), 0
    for k, (bucket, size) in enumerate(zip(names, elements)):
        there = [came.index(name) + 1 if name in came else len(came) + 1
                 for name in bucket]
        due = max(due, *there)
        right = f'and should leave {words[due]}. '
        if k == len(left):
            raise Wrong(f'bucket {k} never left, {right}{RULE}')
        when, sent = left[k]
        if sent != size:
            others = ''.join(f' Bucket {other} has so many.' for other, many
                             in enumerate(elements) if many == sent)
            raise Wrong(f'all_reduce {k + 1} has {sent} elements, and bucket '
                        f'{k} has {size}.{others} Each bucket leaves in one '
                        'all_reduce, and buckets leave in order.')
        lacking = [name for name, one in zip(bucket, there) if one > when]
        if when != due:
            raise Wrong(f'bucket {k} left {words[when]}, {right}' + (
                f'{len(lacking)} of its {len(bucket)} gradients had not come '
                f'when it left, such as the gradient of {lacking[0]}.'
                if lacking else RULE))
    if len(left) > len(names):
        raise Wrong(f'all_reduce was called {len(left)} times; there are '
                    f'{len(names)} buckets.')
    for when, number in _moments(events, 'wait'):
        if when <= len(came):
            raise Wrong(f'wait() of all_reduce {number} was called '
                        f'{words[when]}. Then nothing is computed while the '
                        'bucket is sent: wait in finish().')


def judge(found: Notes, **case: Any) -> None:
    judge_calls(found, **case)
    judge_means(found, **case)


def picture(buckets_of: Answer, reducer: Answer) -> Picture:
    """What happens on two workers in a step, one thing after the other."""
    from d2lps.pictures.rows import WIDE, new_figure
    buckets = run_buckets(buckets_of, SHOWN['sizes'], SHOWN['most'])
    found = run(reducer, 2, **SHOWN, buckets_of=buckets_of)
    events = [worker[0]['events'] for worker in found]
    rows = max(len(buckets), *(len(_moments(one, 'all_reduce'))
                               for one in events))
    figure = new_figure(WIDE, 1.2 + 0.7 * (1 + rows))
    for rank, ax in enumerate(figure.subplots(2, sharex=True)):
        _draw(ax, rank, events[rank], buckets, rows, max(map(len, events)))
    ax.set_xlabel('one thing after the other (w: weight, b: bias)')
    return figure


def _draw(ax, rank, events, buckets, rows, until):
    """A row of gradients, and below it a row for each bucket's all-reduce."""
    from d2lps.pictures.drawing import color
    from d2lps.pictures.rows import draw_bars, name_bar, row_axes
    from d2lps.pictures.style import GRAY
    row_axes(['gradients', *(f'bucket {k}' for k in range(rows))], until,
             ax=ax, title=f'rank {rank}')
    ax.set_xticks([])
    describe(ax, f'On rank {rank}: ' + ', '.join(
        f'{what} {value}' for what, value in events) + '.')
    fills = {name: color(k) for k, bucket in enumerate(buckets)
             for name in bucket}
    left = []  # when each all-reduce was called
    for x, (what, value) in enumerate(events):
        if what == 'grad':
            fill = fills.get(value, GRAY)
            draw_bars(ax, [(x, x + 0.94, 0)], fill)
            name_bar(ax, x, x + 0.94, 0, value[:value.index('.') + 2], fill)
        elif what == 'all_reduce':
            left.append(x)
        elif what == 'wait':
            draw_bars(ax, [(left[value - 1], x + 0.9, value)],
                      color(value - 1))
        else:
            ax.axvline(x + 0.45, color='gray', linestyle='--')
            ax.text(x + 0.6, 0, 'finish()', va='center')


ALL = [[[0, 1, 2]]]
SHOWN: Case = {'sizes': [2, 3, 4, 5], 'most': 80,
               'use': [[[0, 1, 2, 3], [1, 0, 3]]]}
CHECKS = {
    'buckets': Check(
        [{'sizes': [2, 3, 4], 'most': 64},
         {'sizes': [4, 1, 5, 2], 'most': 48},
         {'sizes': [2, 3], 'most': 4},
         {'sizes': [2, 3, 4], 'most': 128, 'dtype': 'float64'},
         {'sizes': [2, 5, 3], 'most': 72, 'frozen': ['1.weight', '2.bias']}],
        run_buckets, judge_buckets, 'each parameter is in the right bucket.'),
    'mean': Check(
        [{'num_workers': 2, 'sizes': [2, 3, 5], 'most': 64, 'use': ALL},
         {'num_workers': 1, 'sizes': [2, 3, 5], 'most': 20, 'use': ALL},
         {'num_workers': 3, 'sizes': [4, 1, 2], 'most': 1000, 'use': ALL},
         {'num_workers': 4, 'sizes': [3, 2, 6], 'most': 40, 'use': ALL,
          'dtype': 'float64'}],
        run, judge_means, 'every worker has the mean of the gradients.'),
    'overlap': Check(
        [{'num_workers': 2, 'sizes': [2, 3, 5], 'most': 64, 'use': ALL},
         {'num_workers': 2, 'sizes': [2, 3, 5, 1], 'most': 84,
          'use': [[[3, 0, 2, 1]]]},
         {'num_workers': 3, 'sizes': [1, 4, 2], 'most': 16,
          'use': [[[2, 1, 0]]]}],
        run, judge_calls, 'each bucket leaves as soon as it can, and not '
                          'earlier.'),
    'steps': Check(
        [{'num_workers': 2, 'sizes': [2, 3, 5], 'most': 64, 'use': ALL,
          'steps': 3},
         {'num_workers': 2, 'sizes': [3, 4, 1], 'most': 50, 'use': ALL,
          'steps': 3, 'keep': True},
         {'num_workers': 2, 'sizes': [2, 3, 5, 1], 'most': 60,
          'use': [[[0, 1, 2, 3], [0, 1, 3]], [[2, 0], [3, 1]]],
          'steps': 3}],
        run, judge, 'every step is right, also with layers that are not '
                    'used.')}
