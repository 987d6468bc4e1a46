"""Exercise: gradients that leave in buckets while others are still computed.

To chapter 18, notebooks/18-in-pytorch.ipynb.
"""
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from reprlib import repr as short
from typing import Any

import numpy as np

from d2lps.annotations import Array
from d2lps.exercises.checking import (Answer, Case, Check, Notes, Picture,
                                      Wrong, forbidding, the_torch)
from d2lps.figures import describe

INPUTS = 3  # of each layer
LR = 0.1


def network(sizes: Sequence[int], dtype: str = 'float32',
            frozen: Sequence[str] = (), seed: int = 0) -> Any:
    """Layers beside each other: a `ModuleList`, the same in every worker.

    sizes: of each layer how many numbers it gives; it gets INPUTS of them.
    frozen: names of parameters without a gradient, such as '1.bias'.
    """
    torch = the_torch()
    random = torch.Generator().manual_seed(seed)
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


def _name_of(model):
    return {id(param): name for name, param in model.named_parameters()}


def _right_buckets(model, most):
    buckets, nbytes = [], 0
    for param in reversed([*model.parameters()]):
        size = param.numel() * param.element_size()
        if not param.requires_grad:
            continue
        if not buckets or nbytes + size > most:
            buckets.append([])
            nbytes = 0
        buckets[-1].append(param)
        nbytes += size
    return buckets


def run_buckets(answer: Answer, sizes: Sequence[int], most: int,
                dtype: str = 'float32',
                frozen: Sequence[str] = ()) -> list[list[str]]:
    model = network(sizes, dtype, frozen)
    with forbidding(_right_buckets):
        found = answer(model, most)
    names = _name_of(model)
    try:
        if any(id(one) in names for one in found):
            raise TypeError  # a list of parameters, not of buckets
        return [[names[id(param)] for param in bucket] for bucket in found]
    except TypeError:
        raise Wrong(f'your function returned {short(found)}. A list of lists '
                    'of parameters is wanted.') from None
    except KeyError:
        raise Wrong('your buckets hold something that is not a parameter of '
                    'the model. The parameters themselves are wanted, not '
                    'copies and not names.') from None


def judge_buckets(found: Notes, sizes: Sequence[int], most: int,
                  dtype: str = 'float32', frozen: Sequence[str] = ()) -> None:
    model = network(sizes, dtype, frozen)
    names, nbytes = _name_of(model), {
        name: param.numel() * param.element_size()
        for name, param in model.named_parameters()}
    right = [[names[id(param)] for param in bucket]
             for bucket in _right_buckets(model, most)]
    _compare_order(sum(found, []), sum(right, []), frozen)
    if [] in found:
        raise Wrong(f'bucket {found.index([])} is empty.')
    _compare_sizes(found, right, most, nbytes)


def _compare_order(mine, right, frozen):
    """All parameters in a row: are they there, once, in order?"""
    for name, times in Counter(mine).items():
        if name in frozen:
            raise Wrong(f'{name} is in a bucket. It never gets a gradient, '
                        'because its requires_grad is False. So its bucket '
                        'would never be full.')
        if times > 1:
            raise Wrong(f'{name} is in your buckets {times} times.')
    lost = [name for name in right if name not in mine]
    if lost:
        raise Wrong(f'{lost[0]} is in no bucket.')
    for k, (one, two) in enumerate(zip(mine, right)):
        if one != two:
            raise Wrong(f'parameter number {k} in your buckets is {one}; it '
                        f'should be {two}. The order is from the last of '
                        'model.parameters() to the first.')


def _compare_sizes(found, right, most, nbytes):
    """The order is right: where is a bucket closed wrongly?"""
    for k, (mine, theirs) in enumerate(zip(found, right)):
        size = sum(nbytes[name] for name in mine)
        if len(mine) > len(theirs):
            raise Wrong(f'bucket {k} has {size} bytes, in {len(mine)} '
                        'parameters. Only a parameter that is alone in its '
                        f'bucket can have more than {most}.')
        if len(mine) < len(theirs):
            name = theirs[len(mine)]
            raise Wrong(f'bucket {k} is closed at {size} bytes. {name}, of '
                        f'{nbytes[name]} bytes, still fits: up to {most} are '
                        'allowed.')


def _layers_used(use, rank, step):
    """Which layers a worker uses in a step, in order."""
    row = use[step % len(use)]
    return row[rank % len(row)]


def run(answer: Answer, num_workers: int, sizes: Sequence[int], most: int,
        use: Sequence[Sequence[Sequence[int]]], steps: int = 1,
        keep: bool = False, frozen: Sequence[str] = (),
        dtype: str = 'float32') -> Notes:
    """What every worker did, and the gradients that it had after each step.

    use: for each step and rank, which layers the loss has, in which order.
    keep: zero_grad sets gradients to 0, not to None.
    """
    from d2lps.exercises.torchgroup import Group

    def work(worker):
        layers = network(sizes, dtype, frozen)
        _note_gradients(layers, worker)
        reducer = answer(_right_buckets(layers, most), worker.all_reduce,
                         num_workers)
        return [_step(layers, reducer, worker, keep, step,
                      _layers_used(use, worker.rank, step))
                for step in range(steps)]

    group = Group(num_workers)
    grads = group.run(work)
    return {'events': [worker.events for worker in group.workers],
            'grads': grads}


def _note_gradients(layers, worker):
    """Note when each gradient comes; our hooks run before the student's."""
    for name, param in layers.named_parameters():
        if param.requires_grad:
            param.register_post_accumulate_grad_hook(
                lambda _, name=name: worker.note('grad', name))


def _step(layers, reducer, worker, keep, step, used):
    """One step of training: the gradients, by name."""
    layers.zero_grad(set_to_none=not keep)
    loss = loss_of(layers, used, worker.rank, step)
    worker.note('backward', step)
    loss.backward()
    worker.note('finish', step)
    reducer.finish()
    grads = {}
    for name, param in layers.named_parameters():
        if param.grad is not None:
            grads[name] = param.grad.tolist()
            param.data -= LR * param.grad.detach()
    return grads


class _Alone:
    """Stands for a worker, to see which gradients come when."""

    def __init__(self) -> None:
        self.came: list[str] = []

    def note(self, _: str, name: str) -> None:
        self.came.append(name)


def _truth(num_workers, sizes, most, use, steps=1, keep=False, frozen=(),
           dtype='float32'):
    """For each step: what came on each rank, its own gradients, and the mean.

    Lists of names, and dictionaries of arrays.
    """
    layers, alone, found = network(sizes, dtype, frozen), _Alone(), []
    _note_gradients(layers, alone)
    params = {name: param for name, param in layers.named_parameters()
              if param.requires_grad}
    for step in range(steps):
        came, own = [], []
        for rank in range(num_workers):
            layers.zero_grad()
            alone.came = []
            used = _layers_used(use, rank, step)
            loss_of(layers, used, rank, step).backward()
            came.append(alone.came)
            own.append({name: _array(params[name]) for name in params})
        mean = {name: np.mean([one[name] for one in own], 0)
                for name in params}
        for name, param in params.items():
            param.data -= LR * param.new_tensor(mean[name])
        found.append((came, own, mean))
    return found


def _array(param):
    """Its gradient; zeros if it has none."""
    if param.grad is None:
        return np.zeros(tuple(param.shape))
    return param.grad.double().numpy().copy()


def judge_means(found: Notes, num_workers: int, **case: Any) -> None:
    """The gradients, whenever they were sent."""
    for step, (_, own, mean) in enumerate(_truth(num_workers, **case)):
        for rank in range(num_workers):
            mine = found['grads'][rank][step]
            for name, right in mean.items():
                if name not in mine:
                    raise Wrong(f'step {step + 1}, rank {rank}: .grad of '
                                f'{name} is None after finish().')
                got = np.asarray(mine[name], float)
                if got.shape != right.shape:
                    raise Wrong(f'step {step + 1}, rank {rank}: .grad of '
                                f'{name} has shape {got.shape}, not '
                                f'{right.shape}.')
                if not np.allclose(got, right, rtol=1e-4, atol=1e-6):
                    raise Wrong(
                        f'step {step + 1}, rank {rank}: .grad of {name} is '
                        'not the mean. ' + _which(got, right, name, own, rank))


def _which(got, right, name, own, rank):
    """What a wrong gradient is."""
    n, each = len(own), [one[name] for one in own]
    if np.isnan(got).any():
        return ('It is nan, because it was read while its all-reduce was '
                'running: call wait() first.')
    if np.allclose(got, n * right, rtol=1e-4, atol=1e-6):
        return f'It is the sum over {n} workers.'
    if np.allclose(got, right / n, rtol=1e-4, atol=1e-6):
        return f'It is the mean divided by {n} once more.'
    if np.allclose(got, each[rank], rtol=1e-4, atol=1e-6):
        return ('It is still the gradient of this worker: the mean was not '
                'written to it.')
    if not got.any():
        return 'It is zero.'
    got, right = got.ravel(), right.ravel()
    worst = np.abs(got - right).argmax()
    return (f'Its number {worst} is {got[worst]:.4g}, and {right[worst]:.4g} '
            'is the mean. Is it the gradient of this step, and of this '
            'parameter?')


def judge_calls(found: Notes, num_workers: int, sizes: Sequence[int],
                most: int, **case: Any) -> None:
    """When each bucket left, whatever the gradients are."""
    truth = _truth(num_workers, sizes, most, **case)
    layers = network(sizes, case.get('dtype', 'float32'),
                     case.get('frozen', ()))
    names = _name_of(layers)
    buckets = [([names[id(param)] for param in bucket],
                sum(param.numel() for param in bucket))
               for bucket in _right_buckets(layers, most)]
    for step, (came, *_) in enumerate(truth):
        for rank in range(num_workers):
            where = f'step {step + 1}, rank {rank}: '
            events = _of_step(found['events'][rank], step)
            try:
                _follow(events, came[rank], buckets)
            except Wrong as error:
                raise Wrong(f'{where}{error}') from None


def _of_step(events, step):
    """The events of one step."""
    edges = [k for k, event in enumerate(events) if event[0] == 'backward']
    return events[edges[step] + 1:([*edges, len(events)])[step + 1]]


def _expected(came, buckets):
    """Gradients as they came, and the numbers of buckets that leave then."""
    there, sent = set(), 0
    for name in came:
        yield 'grad', name
        there.add(name)
        while sent < len(buckets) and there.issuperset(buckets[sent][0]):
            yield 'all_reduce', sent
            sent += 1
    yield 'finish', None
    for k in range(sent, len(buckets)):
        yield 'all_reduce', k


def _follow(events, came, buckets):
    """Compare what happened with what should have, up to the first fault."""
    expected, sent, there = [*_expected(came, buckets)], 0, []
    for k, (what, value) in enumerate(events):
        if what == 'wait':
            _no_wait_before_finish(expected, there)
            continue
        should, which = expected.pop(0) if expected else ('nothing', None)
        if what == 'all_reduce':
            _may_leave(value, sent, should, there, buckets)
            sent += 1
        elif should == 'all_reduce':
            last = f'{there[-1]} came' if there else 'backward began'
            raise Wrong(f'bucket {which} did not leave when it could. All '
                        f'its gradients had been computed when {last}, and '
                        'every earlier bucket had left. '
                        f'{_instead(events[k:])}'
                        + _another(_next_sum(events[k:]), which, buckets))
        else:
            there.append(value)
    if expected:
        raise Wrong(f'bucket {expected[0][1]} never left. If a gradient is '
                    'missing when backward ends, finish() sends zeros for it.')


def _next_sum(events):
    return next((value for what, value in events if what == 'all_reduce'),
                None)


def _instead(events):
    """When the next bucket left, in what happened then."""
    if _next_sum(events) is None:
        return 'It never did.'
    before = [*takewhile(lambda event: event[0] != 'all_reduce', events)]
    if any(what == 'finish' for what, _ in before):
        return 'The next all_reduce was in finish() only.'
    return f'The next all_reduce was called when {before[-1][1]} came.'


def _no_wait_before_finish(expected, there):
    if any(what == 'finish' for what, _ in expected):
        raise Wrong('wait() was called while backward was running, after the '
                    f'gradient of {there[-1] if there else "nothing"} came. '
                    'Then nothing is computed while the bucket is sent: wait '
                    'in finish().')


def _may_leave(elements, sent, should, there, buckets):
    """Raise `Wrong` if this all-reduce is not that of the next bucket."""
    if sent >= len(buckets):
        raise Wrong(f'all_reduce was called {sent + 1} times; there are '
                    f'{len(buckets)} buckets.')
    names, right = buckets[sent]
    lacking = [name for name in names if name not in there]
    if elements != right:
        raise Wrong(
            f'all_reduce {sent + 1} has {elements} elements, and bucket '
            f'{sent} has {right}.' + _another(elements, sent, buckets))
    if should != 'all_reduce':
        raise Wrong(f'bucket {sent} left too early: {len(lacking)} of its '
                    f'{len(names)} gradients were missing, such as the '
                    f'gradient of {lacking[0]}.')


def _another(elements, sent, buckets):
    """What else was in an all-reduce of so many elements."""
    sizes = [size for _, size in buckets]
    if elements in (None, sizes[sent]):
        return ''
    if elements in sizes:
        return (f' Was it bucket {sizes.index(elements)}? Buckets leave in '
                'order, in the same order on every worker.')
    if elements == sum(sizes):
        return ' It had all gradients in one tensor.'
    return ''


def judge(found: Notes, **case: Any) -> None:
    judge_calls(found, **case)
    judge_means(found, **case)


def picture(buckets_of: Answer, reducer: Answer) -> Picture:
    """What happens on two workers in a step, one thing after the other."""
    from d2lps.pictures.rows import WIDE, new_figure
    layers = network(SHOWN['sizes'])
    names = _name_of(layers)
    buckets = [[names[id(param)] for param in bucket]
               for bucket in buckets_of(layers, SHOWN['most'])]
    events = _watched(buckets_of, reducer)
    rows = max(len(buckets), *(sum(what == 'all_reduce' for what, _ in found)
                               for found in events))
    figure = new_figure(WIDE, 1.2 + 0.7 * (1 + rows))
    for rank, ax in enumerate(figure.subplots(len(events), sharex=True)):
        _draw(ax, rank, events[rank], buckets, rows, max(map(len, events)))
    ax.set_xlabel('one thing after the other (w: weight, b: bias)')
    return figure


def _watched(buckets_of, reducer):
    """The events of each worker; without a reducer, the gradients alone."""
    from d2lps.exercises.torchgroup import Group

    class Without:
        def finish(self):
            """There is nothing to finish."""

    def work(worker):
        layers = network(SHOWN['sizes'])
        _note_gradients(layers, worker)
        try:
            mine = reducer(buckets_of(layers, SHOWN['most']),
                           worker.all_reduce, 2)
        except NotImplementedError:  # the student has no class yet
            mine = Without()
        used = _layers_used(SHOWN['use'], worker.rank, 0)
        _step(layers, mine, worker, False, 0, used)

    group = Group(2)
    group.run(work)
    return [worker.events[1:] for worker in group.workers]


def _draw(ax, rank, events, buckets, rows, most):
    """A row of gradients, and below it a row for each bucket's all-reduce."""
    from d2lps.pictures.drawing import color
    from d2lps.pictures.rows import draw_bars, row_axes
    from d2lps.pictures.style import GRAY, ink_on
    row_axes(['gradients', *(f'bucket {k}' for k in range(rows))], most,
             ax=ax, title=f'rank {rank}')
    ax.set_xticks([])
    told = ', '.join(what if value is None else f'{what} {value}'
                     for what, value in events)
    describe(ax, f'On rank {rank}: {told}.')
    left = []
    for x, (what, value) in enumerate(events):
        if what == 'grad':
            k = [k for k, names in enumerate(buckets) if value in names]
            fill = color(k[0]) if k else GRAY
            layer, _, kind = value.partition('.')
            draw_bars(ax, [(x, x + 0.94, 0)], fill)
            ax.text(x + 0.47, 0, f'{layer}.{kind[:1]}', ha='center',
                    va='center', color=ink_on(fill))
        elif what == 'all_reduce':
            left.append(x)
        elif what == 'wait':
            draw_bars(ax, [(left[value - 1], x + 0.9, value)],
                      color(value - 1))
        elif what == 'finish':
            ax.axvline(x + 0.45, color='gray', linestyle='--')
            ax.text(x + 0.6, 0, 'finish()', va='center')


ALL = [[[0, 1, 2]]]
SHOWN: Case = {'sizes': [2, 3, 4, 5], 'most': 80,
               'use': [[[0, 1, 2, 3], [1, 0, 3]]]}
CHECKS = {
    'buckets': Check(
        [{'sizes': [2, 3, 4], 'most': 64},
         {'sizes': [4, 1, 5, 2], 'most': 48},
         {'sizes': [6, 2, 1, 1], 'most': 40},
         {'sizes': [2, 3], 'most': 4},
         {'sizes': [2, 3, 4], 'most': 128, 'dtype': 'float64'},
         {'sizes': [2, 5, 3], 'most': 72,
          'frozen': ['1.weight', '2.bias']}],
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
