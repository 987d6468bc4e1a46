"""Exercise: an optimizer whose state is divided among the workers.

To chapter 19, notebooks/19-larger-models.ipynb.
"""
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from types import ModuleType
from typing import Any

import numpy as np

from d2lps.annotations import Array
from d2lps.exercises.checking import (Answer, Case, Check, Differs, Notes,
                                      Picture, Wrong, the_torch, without)
from d2lps.explaining import brief
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
        params, calls = parameters(shapes, dtype), []
        after = [[param.tolist() for param in params]]
        optimizer = answer([*params], lr, momentum, worker)
        for step in range(steps):
            set_gradients(params, worker.rank, step)
            try:
                optimizer.step()
            except Exception:
                if step and after[0] == after[1]:
                    raise Wrong(
                        'step 1 changes no parameter, and a later one stops. '
                        'Change the given parameters in place.') from None
                raise
            after.append([param.tolist() for param in params])
            calls.append(_calls(worker))
        return {'calls': calls, 'params': after,
                'kept': kept(optimizer, params)}

    without(answer, Whole)
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


class Whole:
    """torch.optim.SGD on each worker, which keeps all of the momentum."""

    def __init__(self, params: Sequence[Array], lr: float, momentum: float,
                 worker: Any) -> None:
        self.params, self.worker = params, worker
        self.optimizer = the_torch().optim.SGD(params, lr, momentum)

    def step(self) -> None:
        for param in self.params:
            flat = param.grad.flatten().clone()
            self.worker.all_reduce(flat).wait()
            param.grad = (flat / self.worker.num_workers).view_as(param)
        self.optimizer.step()


def judge_params(found: Notes, num_workers: int,
                 shapes: Sequence[Sequence[int]], steps: int = 1,
                 **case: Any) -> None:
    """The parameters, however the state is divided."""
    truth = run(Whole, num_workers, shapes, steps, **case)['workers'][0]
    for step in range(1, steps + 1):
        for rank, worker in enumerate(found['workers']):
            mine, right, before = worker['params'][step], *(
                truth['params'][k] for k in (step, step - 1))
            for k, one in enumerate(right):
                where = f'step {step}, rank {rank}: params[{k}]'
                if np.shape(mine[k]) != np.shape(one):
                    raise Wrong(f'{where} has shape {np.shape(mine[k])}; '
                                f'{np.shape(one)} is right.')
                wrong = ~np.isclose(mine[k], one, rtol=1e-4, atol=1e-5)
                if wrong.any():
                    at = tuple(map(int, np.argwhere(wrong)[0]))
                    start = np.array(before[k])
                    change, wanted = np.array(mine[k]) - start, one - start
                    raise Differs(
                        f'{where}{[*at] if at else ""} changes by '
                        f'{brief(change[at])}; {brief(wanted[at])} is right',
                        change, wanted, 1e-3,
                        {'num_workers': num_workers}, averaged='num_workers',
                        place=_place(found, step, before, right, shapes,
                                     change.any()))


def _place(found, step, before, after, shapes, changed):
    """What the calls of a step got first that is wrong: a sentence."""
    n = len(found['workers'])
    total, size = _sizes(shapes, n)
    if wrong := _wrong_calls(found, n, shapes):
        return f'In {wrong}.'
    summed, gathered = found['given'][2 * step - 2:2 * step]
    for rank, given in enumerate(summed):
        params = parameters(shapes)
        set_gradients(params, rank, step - 1)
        right = np.pad(_flat([one.grad.tolist() for one in params]),
                       (0, n * size - total))
        times = given @ right / (right @ right)  # a mean is fine
        if not times or not np.allclose(given, times * right, 1e-3, 1e-4):
            at = int(np.isclose(given, right, rtol=1e-3).argmin())
            return (f'On rank {rank} reduce_scatter gets {brief(given[at])} '
                    f'at place {at}; {brief(right[at])} is right.')
    mine, right = np.concatenate(gathered)[:total], _flat(after)
    close = np.isclose(mine, right, rtol=1e-4, atol=1e-5)
    if close.all():
        return 'all_gather gets the right shards; this parameter ' + (
            'gets other numbers.' if changed else 'is not changed in place.')
    if step == 2:
        return 'Step 1 is right, where v is still 0.'
    return (f'On rank {close.argmin() // size} all_gather gets a wrong shard, '
            'and reduce_scatter the right gradients.')


def _flat(arrays):
    return np.concatenate([np.ravel(one) for one in arrays])


def _sizes(shapes, num_workers):
    """How many numbers there are, and how many a shard has."""
    total = sum(int(np.prod(shape)) for shape in shapes)
    return total, -(-total // num_workers)


def _wrong_calls(found, num_workers, shapes):
    """Words about the first step with wrong calls; or ''."""
    _, size = _sizes(shapes, num_workers)
    right = [['reduce_scatter', num_workers * size], ['all_gather', size]]
    for rank, worker in enumerate(found['workers']):
        for step, calls in enumerate(worker['calls'], 1):
            for k, pair in enumerate(zip_longest(calls, right), 1):
                mine, one = (f'{call[0]} of {call[1]}' if call else 'missing'
                             for call in pair)
                if mine != one:
                    return (f'step {step}, rank {rank}: call {k} is {mine}; '
                            f'{one.replace("missing", "no call")} is right')
    return ''


def judge_calls(found: Notes, num_workers: int,
                shapes: Sequence[Sequence[int]], steps: int = 1,
                **_: Any) -> None:
    """One reduce-scatter and one all-gather in a step, of flat tensors."""
    if wrong := _wrong_calls(found, num_workers, shapes):
        total, size = _sizes(shapes, num_workers)
        raise Wrong(f'{wrong}. A shard has {size} of {total} numbers.')


def judge_kept(found: Notes, num_workers: int, shapes: Sequence[Sequence[int]],
               **_: Any) -> None:
    """What each rank keeps between the steps."""
    _, size = _sizes(shapes, num_workers)
    for rank, worker in enumerate(found['workers']):
        by_name = worker['kept']
        words = ', '.join(f'{many} in {name}'
                          for name, many in by_name.items())
        if not by_name:
            raise Wrong(f'rank {rank} keeps no tensor in its attributes; '
                        f'{size} numbers of momentum are right.')
        if sum(by_name.values()) > size:
            raise Wrong(f'between steps rank {rank} keeps {words}; {size} are '
                        'right, the momentum of its shard.')


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
WORKERS = 'num_workers = {num_workers}'  # the case in a message
CHECKS = {
    'even': Check(
        [{'num_workers': n, 'shapes': EVEN, 'steps': 3} for n in (2, 3, 4, 1)
         ] + [{'num_workers': 2, 'shapes': [[6], [2]], 'steps': 3,
               'dtype': 'float64', 'lr': 0.5, 'momentum': 0.5}],
        run, judge_params,
        'all ranks have the same parameters as with torch.optim.SGD.',
        case=WORKERS),
    'uneven': Check(
        [SHOWN, {'num_workers': 3, 'shapes': [[5, 3], [], [4]], 'steps': 3},
         {'num_workers': 4, 'shapes': [[3], [2]], 'steps': 2}],
        run, judge_params, 'the parameters are right also if the sizes do '
                           'not divide.', case=WORKERS),
    'calls': Check(
        [{'num_workers': n, 'shapes': EVEN, 'steps': 2} for n in (2, 4, 1)],
        run, judge_calls,
        'each rank makes two calls in a step, with the right numbers of '
        'elements.', case=WORKERS),
    'kept': Check(
        [{'num_workers': n, 'shapes': EVEN, 'steps': 2} for n in (2, 3, 4)],
        run, judge_kept, 'each rank keeps only its shard of the momentum.',
        case=WORKERS)}
