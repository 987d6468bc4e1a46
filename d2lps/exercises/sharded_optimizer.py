"""Exercise: an optimizer whose state is divided among the workers.

To chapter 19, notebooks/19-larger-models.ipynb.
"""
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from d2lps.annotations import Array
from d2lps.exercises.checking import (Answer, Case, Check, Notes, Picture,
                                      Wrong, the_torch)
from d2lps.figures import describe

LR, MOMENTUM = 0.1, 0.9
DEEPEST = 6  # how many lists, objects and dictionaries may be nested


def parameters(shapes: Sequence[Sequence[int]], dtype: str = 'float32',
               seed: int = 0) -> list[Array]:
    """A list of parameters of these shapes, the same in every worker."""
    torch = the_torch()
    random = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=random).to(
        getattr(torch, dtype))) for shape in shapes]


def set_gradients(params: Sequence[Array], rank: int, step: int) -> None:
    """Give each parameter the gradient that this worker has in this step."""
    torch = the_torch()
    random = torch.Generator().manual_seed(1000 * (step + 1) + rank)
    for param in params:
        param.grad = torch.randn(param.shape, generator=random).to(param.dtype)


def kept(thing: object, params: Sequence[Array]) -> dict[str, int]:
    """How many numbers an object keeps in tensors and arrays, by name.

    Not counted are the parameters and their gradients, nor what shares their
    memory. A dictionary, such as {'momentum': 10}.
    """
    known = {_memory(one) for param in params
             for one in (param, param.grad) if one is not None}
    found: dict[str, int] = {}
    _collect(vars(thing) if hasattr(thing, '__dict__') else {}, '', known,
             found, DEEPEST)
    return found


def _memory(tensor):
    return tensor.untyped_storage().data_ptr()


def _collect(thing, name, known, found, deep):
    """Add what `thing` keeps to `found`; memory that is `known` is not new."""
    torch = the_torch()
    if isinstance(thing, torch.Tensor):
        if _memory(thing) not in known:
            known.add(_memory(thing))
            # A view keeps its whole base tensor in memory.
            many = thing.untyped_storage().nbytes() // thing.element_size()
            if many > thing.numel():
                name = f'{name or "it"}, {thing.numel()} that are a view of'
            found[name] = found.get(name, 0) + many
    elif isinstance(thing, np.ndarray):
        found[name] = found.get(name, 0) + thing.size
    elif deep:
        for key, one in _inside(thing):
            _collect(one, name or str(key), known, found, deep - 1)


def _inside(thing):
    """What is in a list or an object that a student made, with its names."""
    if isinstance(thing, dict):
        return [*thing.items()]
    if isinstance(thing, (list, tuple, set)):
        return [('', one) for one in thing]
    ours = 'd2lps' in type(thing).__module__  # such as the worker
    if ours or isinstance(thing, (type, ModuleType)):
        return []
    return [*getattr(thing, '__dict__', {}).items()]


def run(answer: Answer, num_workers: int, shapes: Sequence[Sequence[int]],
        steps: int = 1, dtype: str = 'float32', lr: float = LR,
        momentum: float = MOMENTUM) -> Notes:
    """What every worker called and kept, and its parameters after each step.
    """
    from d2lps.exercises.torchgroup import Group

    def work(worker):
        params, after = parameters(shapes, dtype), []
        optimizer = answer([*params], lr, momentum, worker)
        for step in range(steps):
            set_gradients(params, worker.rank, step)
            worker.note('step', step)
            _step(optimizer, step, after, shapes, dtype)
            after.append([param.tolist() for param in params])
        return {'params': after, 'kept': kept(optimizer, params)}

    group = Group(num_workers)
    found = group.run(work)
    return {'events': [worker.events for worker in group.workers],
            'params': [one['params'] for one in found],
            'kept': [one['kept'] for one in found]}


def _step(optimizer, step, after, shapes, dtype):
    """A step; if it fails, that may be due to what the one before has done."""
    try:
        optimizer.step()
    except Exception:
        start = [param.tolist() for param in parameters(shapes, dtype)]
        if step and after[-1] == start:
            raise Wrong(f'step {step} changed no parameter at all, and step '
                        f'{step + 1} stopped. Change the given parameters in '
                        'place: the model does not know new ones.'
                        ) from None
        raise


def _truth(num_workers, shapes, steps, dtype, lr, momentum):
    """The parameters after each step of torch.optim.SGD, with the means."""
    torch = the_torch()
    params = parameters(shapes, dtype)
    optimizer, after = torch.optim.SGD(params, lr, momentum), []
    for step in range(steps):
        grads = []
        for rank in range(num_workers):
            set_gradients(params, rank, step)
            grads.append([param.grad for param in params])
        for param, *each in zip(params, *grads):
            param.grad = torch.stack(each).mean(0)
        optimizer.step()
        after.append([param.detach().double().numpy().copy()
                      for param in params])
    return after


def judge_params(found: Notes, num_workers: int,
                 shapes: Sequence[Sequence[int]], steps: int = 1,
                 dtype: str = 'float32', lr: float = LR,
                 momentum: float = MOMENTUM) -> None:
    """The parameters, however the state is divided."""
    case = num_workers, shapes, steps, dtype, lr
    for step, right in enumerate(_truth(*case, momentum)):
        for rank in range(num_workers):
            mine = found['params'][rank][step]
            for k, true in enumerate(right):
                got = np.asarray(mine[k], float)
                if got.shape != true.shape:
                    raise Wrong(f'step {step + 1}, rank {rank}: parameter {k} '
                                f'has shape {got.shape} now, not '
                                f'{true.shape}.')
                miss = np.abs(got - true)
                if not (miss <= 1e-5 + 1e-4 * np.abs(true)).all():
                    where = np.unravel_index(np.nan_to_num(
                        miss, nan=np.inf).argmax(), miss.shape)
                    raise Wrong(
                        f'step {step + 1}, rank {rank}: parameter {k} is '
                        f'{got[where]:.6g}, at index {[*map(int, where)]}; '
                        f'with torch.optim.SGD it is {true[where]:.6g}. '
                        + _why(found, step, rank, k, case, momentum))


def _why(found, step, rank, k, case, momentum):
    """What wrong parameters look like."""
    mine = _arrays(found['params'][rank][step])
    before = (_arrays(found['params'][rank][step - 1]) if step else
              _start(*case))
    if all(map(np.array_equal, mine, before)):
        return 'The step changed no parameter at all.'
    if np.array_equal(mine[k], before[k]):
        return 'The step did not change this parameter.'
    for words, after in _mistaken(case, momentum):
        if all(np.allclose(one, two, rtol=1e-4, atol=1e-5)
               for one, two in zip(mine, after[step])):
            return words
    for other, theirs in enumerate(found['params']):
        if not np.array_equal(_arrays(theirs[step])[k], mine[k]):
            return (f'Rank {other} has another value: did you gather the '
                    'shards?')
    return _right_so_far(step)


def _arrays(lists):
    return [np.asarray(one, float) for one in lists]


def _start(num_workers, shapes, steps, dtype, lr):
    """The parameters before the first step."""
    return [param.detach().double().numpy()
            for param in parameters(shapes, dtype)]


def _mistaken(case, momentum):
    """What mistakes give, after each step: (words, list of lists)."""
    n, *most, lr = case
    yield (f'The sum of the gradients of {n} workers does that; the mean is '
           'wanted.', _truth(n, *most, n * lr, momentum))
    yield ('That is SGD without momentum.', _truth(*case, 0.))
    yield ('The gradient was multiplied by 1 - momentum, which is wrong here.',
           _truth(n, *most, (1 - momentum) * lr, momentum))
    yield ('That is the other direction: a step goes against the gradient.',
           [[2 * one - two for one, two in zip(_start(*case), after)]
            for after in _truth(*case, momentum)])


def _right_so_far(step):
    if step:
        return (f'Up to step {step} everything was right, so the error is in '
                'what you keep from step to step.')
    return ('All ranks have the same value, so the error is in the shards. '
            'Which part of the flat tensor belongs to which rank?')


def _size(shapes, num_workers):
    """How many numbers there are, and how many a shard has."""
    total = sum(int(np.prod(shape)) for shape in shapes)
    return total, -(-total // num_workers)


def judge_calls(found: Notes, num_workers: int,
                shapes: Sequence[Sequence[int]], steps: int = 1,
                **_: Any) -> None:
    """One reduce-scatter and one all-gather in a step, of flat tensors."""
    total, shard = _size(shapes, num_workers)
    right = [['reduce_scatter', num_workers * shard], ['all_gather', shard]]
    for rank in range(num_workers):
        calls = _by_step(found['events'][rank])
        if calls[0]:
            raise Wrong(f'rank {rank} calls {calls[0][0][0]} before the first '
                        'step.')
        for step in range(steps):
            mine, where = calls[step + 1], f'step {step + 1}, rank {rank}: '
            if mine != right:
                raise Wrong(where + _calls(mine, right, num_workers, total))


def _by_step(events):
    """The calls before the first step, and those in each step."""
    found = [[]]
    for what, value in events:
        if what == 'step':
            found.append([])
        else:
            found[-1].append([what, value])
    return found


def _calls(mine, right, n, total):
    """What is wrong with the calls of a step."""
    kinds = [kind for kind, _ in mine]
    if 'all_reduce' in kinds:
        return ('all_reduce was called. Each rank would get the whole sum, '
                'but it needs only its shard.')
    if kinds == ['all_gather', 'reduce_scatter']:
        return 'the parameters are gathered before they are updated.'
    if kinds != ['reduce_scatter', 'all_gather']:
        more = f' and {len(kinds) - 4} more' if len(kinds) > 4 else ''
        return (f'the calls are {", ".join(kinds[:4]) or "none"}{more}. One '
                'reduce_scatter and then one all_gather are wanted, for all '
                'parameters together.')
    (_, mine_in), (_, gathered) = mine
    (_, right_in), (_, shard) = right
    if mine_in != right_in:
        return (f'reduce_scatter has {mine_in} elements of input, and '
                f'{right_in} are wanted: {total} and zeros, up to the next '
                f'multiple of {n}.')
    return (f'all_gather has {gathered} elements of input, and the shard has '
            f'{shard}. A rank needs to send no more.')


def judge_kept(found: Notes, num_workers: int, shapes: Sequence[Sequence[int]],
               **_: Any) -> None:
    """What each rank keeps between the steps."""
    total, shard = _size(shapes, num_workers)
    for rank, by_name in enumerate(found['kept']):
        numbers = sum(by_name.values())
        words = ', '.join(f'{many} in {name or "it"}'
                          for name, many in by_name.items())
        if not numbers:
            raise Wrong(f'rank {rank} keeps no momentum, neither in a tensor '
                        'nor in a list of tensors of the object.')
        if numbers > shard:
            why = (' That is all of the momentum.' if num_workers > 1 and
                   total <= numbers < 2 * shard * num_workers else
                   ' Keep only the shard of the momentum.')
            raise Wrong(f'between steps, rank {rank} keeps {numbers} numbers '
                        f'besides the parameters and gradients: {words}. Its '
                        f'shard has {shard}.{why}')


def picture(optimizer: Answer) -> Picture:
    """Who updates what, and who keeps how much."""
    from d2lps.pictures.rows import WIDE, legend_below, new_figure, row_axes
    found = run(optimizer, **SHOWN)
    n, shapes = SHOWN['num_workers'], SHOWN['shapes']
    total, shard = _size(shapes, n)
    keeps = [sum(kept.values()) for kept in found['kept']]
    told = '; '.join(f'rank {rank} keeps {kept} of {total}'
                     for rank, kept in enumerate(keeps))
    figure = new_figure(WIDE, 3)
    ax = row_axes(['parameters', *(f'rank {rank}' for rank in range(n))],
                  n * shard, ax=figure.subplots(),
                  xlabel='place in the flat tensor')
    ax.set_xticks([k * shard for k in range(n + 1)])
    describe(ax, f'A row of parameters, cut for {n} ranks. {told}.')
    _draw_parameters(ax, shapes, n * shard)
    for rank in range(n):
        _draw_rank(ax, rank, found, keeps[rank], total)
    ax.set_xlim(0, ax.dataLim.x1)  # of all bars
    legend_below(ax)
    return figure


def _draw_parameters(ax, shapes, padded):
    """A row with the parameters, one after the other, and the padding."""
    from d2lps.pictures import GRAY
    from d2lps.pictures.rows import draw_bars, name_bar
    start = 0
    for k, shape in enumerate(shapes):
        end = start + int(np.prod(shape))
        draw_bars(ax, [(start, end, 0)], GRAY)
        name_bar(ax, start, end, 0, k, GRAY)
        start = end
    if padded > start:
        draw_bars(ax, [(start, padded, 0)], GRAY, 'padding', '//')


def _draw_rank(ax, rank, found, keeps, total):
    """What this rank gives to all, and above it what it keeps."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import draw_bars
    gathered = [value for what, value in found['events'][rank]
                if what == 'all_gather'][:1]
    start = rank * keeps if keeps < total else 0
    draw_bars(ax, [(start, start + keeps, rank + 0.83)], ORANGE,
              'keeps momentum', height=0.3)
    for size in gathered:
        draw_bars(ax, [(rank * size, (rank + 1) * size, rank + 1.17)], BLUE,
                  'updates', '//', height=0.3)
    ax.text(1.02, rank + 1, f'keeps {keeps} of {total}', va='center',
            transform=ax.get_yaxis_transform())


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
        [SHOWN, {'num_workers': 2, 'shapes': [[3], [2, 2]], 'steps': 3},
         {'num_workers': 3, 'shapes': [[5, 3], [], [4]], 'steps': 3},
         {'num_workers': 4, 'shapes': [[3], [2]], 'steps': 2},
         {'num_workers': 4, 'shapes': [[2]], 'steps': 2}],
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
