"""Exercise: an optimizer whose state is divided among the workers.

To chapter 19, notebooks/19-larger-models.ipynb.
"""
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from types import ModuleType
from typing import Any, TypedDict

import numpy as np

from d2lps.annotations import Array
from d2lps.exercises.charts import draw_named, row_chart
from d2lps.exercises.checking import (Answer, Case, Check, Differs, Picture,
                                      Wrong, the_torch, without)
from d2lps.explaining import brief

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
    """Counts of the numbers that an object keeps in tensors, by name.

    Not counted are the parameters and their gradients, nor what shares their
    memory. A dictionary, such as {'momentum': 10}.
    """
    torch = the_torch()
    known = {_memory(value) for param in params
             for value in (param, param.grad) if value is not None}
    counts: Counter[str] = Counter()

    def count(name, value, deep):
        if isinstance(value, torch.Tensor):
            if _memory(value) not in known:
                known.add(_memory(value))
                # A view keeps its whole base tensor in memory.
                many = value.untyped_storage().nbytes() // value.element_size()
                if many > value.numel():
                    name += f' (a view of {value.numel()} of them)'
                counts[name] += many
        elif deep:
            for inner in _inside(value):
                count(name, inner, deep - 1)

    for name, value in getattr(thing, '__dict__', {}).items():
        count(name, value, DEEPEST)
    return counts


def _memory(tensor):
    return tensor.untyped_storage().data_ptr()


def _inside(thing):
    """The values in a list, a dictionary or an object that a student made."""
    if isinstance(thing, dict):
        return thing.values()
    if isinstance(thing, (list, tuple, set)):
        return thing
    if 'd2lps' in type(thing).__module__ or isinstance(
            thing, (type, ModuleType)):  # such as the worker
        return []
    return getattr(thing, '__dict__', {}).values()


class Trained(TypedDict):
    """Calls, parameters and kept numbers of each worker.

    given: for each call, the numbers that each rank gave.
    """
    workers: list[dict]
    given: list[list]


def run(answer: Answer, num_workers: int, shapes: Sequence[Sequence[int]],
        steps: int = 1, dtype: str = 'float32', lr: float = LR,
        momentum: float = MOMENTUM) -> Trained:
    """Calls, tensors and parameters of every worker."""
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
        [tensor.flatten().tolist() for tensor in call.all()]
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


def judge_params(notes: Trained, num_workers: int,
                 shapes: Sequence[Sequence[int]], steps: int = 1,
                 **case: Any) -> None:
    """The parameters, however the state is divided."""
    truth = run(Whole, num_workers, shapes, steps, **case)['workers'][0]
    for step in range(1, steps + 1):
        for rank, worker in enumerate(notes['workers']):
            mine, right, before = worker['params'][step], *(
                truth['params'][k] for k in (step, step - 1))
            for k, param in enumerate(right):
                where = f'step {step}, rank {rank}: params[{k}]'
                if np.shape(mine[k]) != np.shape(param):
                    raise Wrong(f'{where} has shape {np.shape(mine[k])}; '
                                f'{np.shape(param)} is right.')
                wrong = ~np.isclose(mine[k], param, rtol=1e-4, atol=1e-5)
                if wrong.any():
                    at = tuple(map(int, np.argwhere(wrong)[0]))
                    start = np.array(before[k])
                    change, due = np.array(mine[k]) - start, param - start
                    raise Differs(
                        f'{where}{[*at] if at else ""} changes by '
                        f'{brief(change[at])}; {brief(due[at])} is right',
                        change, due, 1e-3,
                        {'num_workers': num_workers}, averaged='num_workers',
                        place=_place(notes, step, before, right, shapes,
                                     change.any()))


def _place(notes, step, before, after, shapes, changed):
    """A sentence about the first wrong tensor that a call of a step got."""
    n = len(notes['workers'])
    total, size = _sizes(shapes, n)
    if wrong := _wrong_calls(notes, n, shapes):
        return f'In {wrong}.'
    summed, gathered = notes['given'][2 * step - 2:2 * step]
    for rank, given in enumerate(summed):
        params = parameters(shapes)
        set_gradients(params, rank, step - 1)
        right = np.pad(_flat([param.grad.tolist() for param in params]),
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
    return np.concatenate([np.ravel(array) for array in arrays])


def _sizes(shapes, num_workers):
    """The number of all parameters, and of those in a shard."""
    total = sum(int(np.prod(shape)) for shape in shapes)
    return total, -(-total // num_workers)


def _wrong_calls(notes, num_workers, shapes):
    """Words about the first step with wrong calls; or ''."""
    _, size = _sizes(shapes, num_workers)
    right = [['reduce_scatter', num_workers * size], ['all_gather', size]]
    for rank, worker in enumerate(notes['workers']):
        for step, calls in enumerate(worker['calls'], 1):
            for k, pair in enumerate(zip_longest(calls, right), 1):
                mine, due = (f'{call[0]} of {call[1]}' if call else 'missing'
                             for call in pair)
                if mine != due:
                    return (f'step {step}, rank {rank}: call {k} is {mine}; '
                            f'{due.replace("missing", "no call")} is right')
    return ''


def judge_calls(notes: Trained, num_workers: int,
                shapes: Sequence[Sequence[int]], steps: int = 1,
                **_: Any) -> None:
    """One reduce-scatter and one all-gather in a step, of flat tensors."""
    if wrong := _wrong_calls(notes, num_workers, shapes):
        total, size = _sizes(shapes, num_workers)
        raise Wrong(f'{wrong}. A shard has {size} of {total} numbers.')


def judge_kept(notes: Trained, num_workers: int,
               shapes: Sequence[Sequence[int]], **_: Any) -> None:
    """The tensors that each rank keeps between the steps."""
    _, size = _sizes(shapes, num_workers)
    for rank, worker in enumerate(notes['workers']):
        by_name = worker['kept']
        parts = ', '.join(f'{many} in {name}'
                          for name, many in by_name.items())
        if not by_name:
            raise Wrong(f'rank {rank} keeps no tensor in its attributes; '
                        f'{size} numbers of momentum are right.')
        if sum(by_name.values()) > size:
            raise Wrong(f'between steps rank {rank} keeps {parts}; {size} are '
                        'right, the momentum of its shard.')


def picture(optimizer: Answer) -> Picture:
    """The places that each rank updates, and how much it keeps."""
    from d2lps.pictures import BLUE, GRAY, ORANGE
    from d2lps.pictures.rows import draw_bars, legend_below
    workers = run(optimizer, **SHOWN)['workers']
    n, shapes = SHOWN['num_workers'], SHOWN['shapes']
    total, shard = _sizes(shapes, n)
    keeps = [sum(worker['kept'].values()) for worker in workers]
    labels = [f'rank {rank} keeps {many} of {total}'
              for rank, many in enumerate(keeps)]
    ax = row_chart(['parameters', *labels], n * shard,
                   f'A row of parameters, cut for {n} ranks. '
                   f'{"; ".join(labels)}.', height=3,
                   xlabel='place in the flat tensor')
    ax.set_xticks([k * shard for k in range(n + 1)])
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    draw_named(ax, [(start, end, 0, k) for k, (start, end) in enumerate(
        zip([0, *ends], ends))], GRAY)
    draw_bars(ax, [(total, n * shard, 0)], GRAY, 'padding', '//')
    for rank, (worker, many) in enumerate(zip(workers, keeps)):
        start = rank * many if many < total else 0
        draw_bars(ax, [(start, start + many, rank + 0.83)], ORANGE,
                  'keeps momentum', height=0.3)
        sent = dict(worker['calls'][0]).get('all_gather', 0)
        draw_bars(ax, [(rank * sent, (rank + 1) * sent, rank + 1.17)], BLUE,
                  'updates', '//', height=0.3)
    ax.set_xlim(0, ax.dataLim.x1)  # of all bars
    legend_below(ax)
    return ax.figure


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
