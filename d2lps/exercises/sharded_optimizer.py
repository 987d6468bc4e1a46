"""Exercise: an optimizer whose state is divided among the workers.

To chapter 19, notebooks/19-larger-models.ipynb.
"""
from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from d2lps.annotations import Array
from d2lps.exercises.checking import (Answer, Case, Check, Notes, Picture,
                                      Wrong, forbidding, the_torch)
from d2lps.exercises.multiples import factor
from d2lps.figures import describe

LR, MOMENTUM = 0.1, 0.9
DEEPEST = 6  # how many lists, objects and dictionaries may be nested


def parameters(shapes: Sequence[Sequence[int]], dtype: str = 'float32'
               ) -> list[Array]:
    """A list of parameters of these shapes, the same in every worker."""
    torch = the_torch()
    random = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=random).to(
        getattr(torch, dtype))) for shape in shapes]


def set_gradients(params: Sequence[Array], rank: int, step: int) -> None:
    """Give each parameter the gradient that this worker has in this step."""
    torch = the_torch()
    random = torch.Generator().manual_seed(1000 * (step + 1) + rank)
    for param in params:
        param.grad = torch.randn(param.shape, generator=random).to(param.dtype)


def kept(thing: object, params: Sequence[Array]) -> dict[str, int]:
    """How many numbers an object keeps in tensors, by name.

    Not counted are the parameters and their gradients, nor what shares their
    memory. A dictionary, such as {'momentum': 10}.
    """
    torch = the_torch()
    known = {_memory(one) for param in params
             for one in (param, param.grad) if one is not None}
    found: Counter[str] = Counter()

    def count(name, one, deep):
        if isinstance(one, torch.Tensor):
            if _memory(one) not in known:
                known.add(_memory(one))
                # A view keeps its whole base tensor in memory.
                many = one.untyped_storage().nbytes() // one.element_size()
                if many > one.numel():
                    name += f' (a view of {one.numel()} of them)'
                found[name] += many
        elif deep:
            for inner in _inside(one):
                count(name, inner, deep - 1)

    for name, one in getattr(thing, '__dict__', {}).items():
        count(name, one, DEEPEST)
    return found


def _memory(tensor):
    return tensor.untyped_storage().data_ptr()


def _inside(thing):
    """What is in a list, a dictionary or an object that a student made."""
    if isinstance(thing, dict):
        return thing.values()
    if isinstance(thing, (list, tuple, set)):
        return thing
    if 'd2lps' in type(thing).__module__ or isinstance(
            thing, (type, ModuleType)):  # such as the worker
        return []
    return getattr(thing, '__dict__', {}).values()


def run(answer: Answer, num_workers: int, shapes: Sequence[Sequence[int]],
        steps: int = 1, dtype: str = 'float32', lr: float = LR,
        momentum: float = MOMENTUM) -> Notes:
    """What every worker called, gave and kept, and its parameters."""
    from d2lps.exercises.torchgroup import Group

    def work(worker):
        params, after, calls = parameters(shapes, dtype), [], []
        start = [param.tolist() for param in params]
        with forbidding(_truth):
            optimizer = answer([*params], lr, momentum, worker)
        for step in range(steps):
            set_gradients(params, worker.rank, step)
            try:
                with forbidding(_truth):
                    optimizer.step()
            except Exception:
                if start in after:
                    raise Wrong(
                        'step 1 changed no parameter at all, and step '
                        f'{step + 1} stopped. Change the given parameters in '
                        'place: the model does not know new ones.') from None
                raise
            after.append([param.tolist() for param in params])
            calls.append(_calls(worker))
        return {'calls': calls, 'params': after,
                'kept': kept(optimizer, params)}

    group = Group(num_workers)
    workers = group.run(work)
    return {'workers': workers, 'given': [
        [one.flatten().tolist() for one in call.all()]
        for call in group.calls]}


def _calls(worker):
    """The calls since the last time."""
    calls = [call for call in worker.events if call[0] != 'wait']
    worker.events = []
    return calls


def _truth(num_workers, shapes, steps, dtype='float32', lr=LR,
           momentum=MOMENTUM):
    """For each step of torch.optim.SGD: the parameters before and after it,
    and the gradients of each worker.
    """
    torch = the_torch()
    params = parameters(shapes, dtype)
    optimizer = torch.optim.SGD(params, lr, momentum)
    after = _arrays(params)
    for step in range(steps):
        grads = []
        for rank in range(num_workers):
            set_gradients(params, rank, step)
            grads.append([param.grad for param in params])
        for param, *each in zip(params, *grads):
            param.grad = torch.stack(each).mean(0)
        optimizer.step()
        before, after = after, _arrays(params)
        yield before, after, [_arrays(one) for one in grads]


def _arrays(tensors):
    return [one.detach().double().numpy().copy() for one in tensors]


def judge_params(found: Notes, num_workers: int,
                 shapes: Sequence[Sequence[int]], steps: int = 1,
                 **case: Any) -> None:
    """The parameters, however the state is divided."""
    for step, truth in enumerate(_truth(num_workers, shapes, steps, **case)):
        for rank, worker in enumerate(found['workers']):
            for k, right in enumerate(truth[1]):
                mine = np.asarray(worker['params'][step][k], float)
                where = f'step {step + 1}, rank {rank}: parameter {k} '
                if mine.shape != right.shape:
                    raise Wrong(f'{where}has shape {mine.shape} now, not '
                                f'{right.shape}.')
                wrong = ~np.isclose(mine, right, rtol=1e-4, atol=1e-5)
                if wrong.any():
                    at = tuple(map(int, np.argwhere(wrong)[0]))
                    unchanged = np.array_equal(mine, truth[0][k])
                    raise Wrong(
                        f'{where}is {mine[at]:.6g}, at index {[*at]}; with '
                        f'torch.optim.SGD it is {right[at]:.6g}. '
                        + 'The step has not changed this parameter. '
                        * unchanged + _hint(found, step, *truth))


def _hint(found, step, before, after, grads):
    """What the calls of a step got first that is wrong."""
    shapes = [one.shape for one in after]
    total, size = _sizes(shapes, len(grads))
    wrong = _wrong_calls(found, len(grads), shapes)
    if wrong:
        return f'One reason may be that in {wrong}'
    summed, gathered = found['given'][2 * step:2 * step + 2]
    text = 'reduce_scatter gets the right gradients, and gives their sum. '
    for rank, one in enumerate(grads):
        mine, right = np.array(summed[rank])[:total], _flat(one)
        times = factor(mine, right)
        if not times:
            at = int(np.isclose(mine, right, rtol=1e-3).argmin())
            return (f'On rank {rank}, reduce_scatter gets a wrong input: '
                    f'number {at} is {mine[at]:.4g}, and {right[at]:.4g} is '
                    'right: all gradients in a row, and then zeros.')
        if not np.isclose(times, 1, rtol=1e-3):
            text = f'reduce_scatter gets {times:.4g} times the gradients. '
    mine, right = np.concatenate(gathered)[:total], _flat(after)
    close = np.isclose(mine, right, rtol=1e-4, atol=1e-5)
    if close.all():
        return ('All ranks give the right shards to all_gather. What it '
                'writes into its output belongs into the parameters, in '
                'place.')
    at, start = int(close.argmin()), _flat(before)
    times = factor(mine - start, right - start)
    text += (f'All parameters change {times:.4g} times as much as they '
             'should. ' if times else
             f'On rank {at // size}, all_gather gets a wrong shard: its '
             f'number {at % size}, number {at} of the flat tensor, is '
             f'{mine[at]:.6g}, and {right[at]:.6g} is right. Before the step '
             f'it was {start[at]:.6g}. ')
    if step:
        text += f'Up to step {step} all was right; before step 1, v is 0. '
    return text + ('With the mean g of the gradients, v becomes momentum · v '
                   '+ g, and p becomes p - lr · v.')


def _flat(arrays):
    return np.concatenate([one.ravel() for one in arrays])


def _sizes(shapes, num_workers):
    """How many numbers there are, and how many a shard has."""
    total = sum(int(np.prod(shape)) for shape in shapes)
    return total, -(-total // num_workers)


def _wrong_calls(found, num_workers, shapes):
    """Words about the first step with wrong calls; or ''."""
    total, size = _sizes(shapes, num_workers)
    right = [['reduce_scatter', num_workers * size], ['all_gather', size]]
    for rank, worker in enumerate(found['workers']):
        for step, calls in enumerate(worker['calls'], 1):
            if calls != right:
                return (f'step {step}, rank {rank} calls {_words(calls)}; '
                        f'{_words(right)} elements of input are right. The '
                        f'parameters have {total} numbers, and a shard has '
                        f'{size}.' + (
                            ' all_reduce gives each rank the whole sum, but '
                            'it needs only its shard.'
                            if 'all_reduce' in dict(calls) else ''))
    return ''


def _words(calls):
    words = [f'{kind} of {size}' for kind, size in calls[:4]] or ['nothing']
    if len(calls) > 4:
        words.append(f'{len(calls) - 4} more')
    return ', then '.join(words)


def judge_calls(found: Notes, num_workers: int,
                shapes: Sequence[Sequence[int]], steps: int = 1,
                **_: Any) -> None:
    """One reduce-scatter and one all-gather in a step, of flat tensors."""
    wrong = _wrong_calls(found, num_workers, shapes)
    if wrong:
        raise Wrong(f'in {wrong}')


def judge_kept(found: Notes, num_workers: int, shapes: Sequence[Sequence[int]],
               **_: Any) -> None:
    """What each rank keeps between the steps."""
    total, size = _sizes(shapes, num_workers)
    for rank, worker in enumerate(found['workers']):
        by_name = worker['kept']
        words = ', '.join(f'{many} in {name}'
                          for name, many in by_name.items())
        if not by_name:
            raise Wrong(f'rank {rank} keeps no momentum, neither in a tensor '
                        'nor in a list of tensors of the object.')
        if sum(by_name.values()) > size:
            raise Wrong(
                f'between steps, rank {rank} keeps {sum(by_name.values())} '
                f'numbers besides the parameters and gradients: {words}. All '
                f'parameters have {total} numbers, and its shard has {size}. '
                'Keep only the momentum of the shard.')


def picture(optimizer: Answer) -> Picture:
    """Who updates what, and who keeps how much."""
    from d2lps.pictures import BLUE, GRAY, ORANGE
    from d2lps.pictures.rows import (WIDE, draw_bars, legend_below, name_bar,
                                     new_figure, row_axes)
    workers = run(optimizer, **SHOWN)['workers']
    n, shapes = SHOWN['num_workers'], SHOWN['shapes']
    total, shard = _sizes(shapes, n)
    keeps = [sum(worker['kept'].values()) for worker in workers]
    figure = new_figure(WIDE, 3)
    ax = row_axes(['parameters', *(f'rank {rank}' for rank in range(n))],
                  n * shard, ax=figure.subplots(),
                  xlabel='place in the flat tensor')
    ax.set_xticks([k * shard for k in range(n + 1)])
    describe(ax, f'A row of parameters, cut for {n} ranks. ' + '; '.join(
        f'rank {rank} keeps {many} of {total}'
        for rank, many in enumerate(keeps)) + '.')
    end = 0
    for k, shape in enumerate(shapes):
        start, end = end, end + int(np.prod(shape))
        draw_bars(ax, [(start, end, 0)], GRAY)
        name_bar(ax, start, end, 0, k, GRAY)
    draw_bars(ax, [(total, n * shard, 0)], GRAY, 'padding', '//')
    for rank, (worker, many) in enumerate(zip(workers, keeps)):
        # Above what it gives to all, what it keeps.
        start = rank * many if many < total else 0
        draw_bars(ax, [(start, start + many, rank + 0.83)], ORANGE,
                  'keeps momentum', height=0.3)
        sent = dict(worker['calls'][0]).get('all_gather', 0)
        draw_bars(ax, [(rank * sent, (rank + 1) * sent, rank + 1.17)], BLUE,
                  'updates', '//', height=0.3)
        ax.text(1.02, rank + 1, f'keeps {many} of {total}', va='center',
                transform=ax.get_yaxis_transform())
    ax.set_xlim(0, ax.dataLim.x1)  # of all bars
    legend_below(ax)
    return figure


SHOWN: Case = {'num_workers': 4, 'shapes': [[5, 4], [5], [2, 5], [2]],
               'steps': 2}
EVEN = [[3, 4], [4], [2, 2], [4]]  # 24 numbers: for 1, 2, 3 and 4 workers
CHECKS = {
    'even': Check(
        [{'num_workers': n, 'shapes': EVEN, 'steps': 3} for n in (2, 3, 4, 1)
         ] + [{'num_workers': 2, 'shapes': [[6], [2]], 'steps': 3,
               'dtype': 'float64', 'lr': 0.5, 'momentum': 0.5}],
        run, judge_params,
        'all ranks have the same parameters as with torch.optim.SGD.'),
    'uneven': Check(
        [SHOWN, {'num_workers': 3, 'shapes': [[5, 3], [], [4]], 'steps': 3},
         {'num_workers': 4, 'shapes': [[3], [2]], 'steps': 2}],
        run, judge_params, 'the parameters are right also if the sizes do '
                           'not divide.'),
    'calls': Check(
        [{'num_workers': n, 'shapes': EVEN, 'steps': 2} for n in (2, 4, 1)],
        run, judge_calls,
        'each rank makes two calls in a step, with the right numbers of '
        'elements.'),
    'kept': Check(
        [{'num_workers': n, 'shapes': EVEN, 'steps': 2} for n in (2, 3, 4)],
        run, judge_kept, 'each rank keeps only its shard of the momentum.')}
