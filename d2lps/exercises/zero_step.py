"""Exercise: a training step in which everything is in shards (ZeRO, FSDP).

To chapter 19, notebooks/19-larger-models.ipynb.
"""
import weakref
from collections.abc import Sequence
from reprlib import repr as short

import numpy as np

from d2lps.exercises import numpygroup, turns
from d2lps.exercises.checking import (Answer, Case, Check, Notes, Picture,
                                      Wrong, forbidding)
from d2lps.figures import describe

LR = 0.1
BATCH = 3  # examples of each worker


class Layer:
    """A dense layer, which gets its parameters in one flat array.

    size: how many these are: its weights, row by row, and then its biases.
    relu: whether negative outputs become 0.
    """

    def __init__(self, inputs: int, outputs: int, relu: bool = True) -> None:
        self.inputs, self.outputs, self.relu = inputs, outputs, relu
        self.size = (inputs + 1) * outputs

    def forward(self, w: np.ndarray, X: np.ndarray) -> np.ndarray:
        """The outputs for inputs X, a row for each example."""
        self._look_at('forward', w=(w, self.size), X=(X, self.inputs))
        outputs = X @ w[:-self.outputs].reshape(
            self.inputs, self.outputs) + w[-self.outputs:]
        return np.maximum(outputs, 0) if self.relu else outputs

    def backward(self, w: np.ndarray, X: np.ndarray,
                 G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient for X, and that for w, which is flat as w is.

        X: what `forward` got. G: the gradient for the outputs.
        """
        self._look_at('backward', w=(w, self.size), X=(X, self.inputs),
                      G=(G, self.outputs))
        if self.relu:
            G = G * (Layer.forward(self, w, X) > 0)
        weights = w[:-self.outputs].reshape(self.inputs, self.outputs)
        return G @ weights.T, np.concatenate([(X.T @ G).ravel(), G.sum(0)])

    def _look_at(self, function, **arrays):
        """Raise `Wrong` if an array has not the size that it should have."""
        for name, (array, size) in arrays.items():
            if not isinstance(array, np.ndarray):
                raise Wrong(f'{function} of {self} got {short(array)} as '
                            f'{name}; an array is wanted.')
            wanted = (size,) if name == 'w' else (BATCH, size)
            if name == 'w' and array.shape != wanted:
                raise Wrong(f'{function} of {self} got w of shape '
                            f'{array.shape}; {wanted} is wanted. Does it '
                            'belong to this layer, and does it have zeros at '
                            'its end?')
            if array.shape[1:] != wanted[1:]:
                why = ''
                if name == 'G' and array.ndim == 1:
                    why = (' `backward` returns the gradient for X first, '
                           'and then the gradient for w.')
                raise Wrong(f'{function} of {self} got {name} of shape '
                            f'{array.shape}; {size} columns are wanted.{why}')

    def __repr__(self) -> str:
        return f'the layer from {self.inputs} to {self.outputs}'


def loss_gradient(outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gradient of the mean loss of these examples, for the outputs.

    The loss of an example: half the sum of the squared differences.
    """
    return (outputs - y) / len(y)


def layers_of(widths: Sequence[int], kind: type[Layer] = Layer) -> list[Layer]:
    """The layers between these numbers of inputs and outputs."""
    last = len(widths) - 2
    return [kind(widths[k], widths[k + 1], relu=k < last)
            for k in range(last + 1)]


def parameters(widths: Sequence[int]) -> list[np.ndarray]:
    """The parameters of each layer at the start, flat."""
    chance = np.random.default_rng(0)
    return [chance.normal(size=layer.size) / layer.inputs ** 0.5
            for layer in layers_of(widths)]


def shard_of(array: np.ndarray, rank: int, num_workers: int) -> np.ndarray:
    """A worker's shard: a copy, with zeros if the array does not suffice."""
    size = -(-array.size // num_workers)
    padded = np.zeros(num_workers * size)
    padded[:array.size] = array
    return padded[rank * size:(rank + 1) * size].copy()


def batch(widths: Sequence[int], rank: int,
          step: int) -> tuple[np.ndarray, np.ndarray]:
    """The examples of a worker in a step: X, y."""
    chance = np.random.default_rng([1 + step, rank])
    return (chance.normal(size=(BATCH, widths[0])),
            chance.normal(size=(BATCH, widths[-1])))


class Watched(numpygroup.Worker):
    """Notes what is still there of the arrays that it knows, by weak
    references. What somebody copies is not seen."""

    def __init__(self, group: turns.Group, rank: int) -> None:
        super().__init__(group, rank)
        self.gathered: list[weakref.ref] = []
        self.gradients: list[tuple[int, weakref.ref]] = []
        self.layer: int | None = None
        # Of the layer that computes now:
        self.size = self.reduced = 0
        self.for_inputs: tuple[int, ...] = ()

    def held(self) -> tuple[list[int], list[int]]:
        """Calls of all_gather, and layers: whose whole arrays are there."""
        return ([k for k, one in enumerate(self.gathered)
                 if one() is not None],
                sorted({k for k, one in self.gradients if one() is not None}))

    def all_gather(self, shard: np.ndarray) -> np.ndarray:
        self.note('held', *self.held())
        whole = super().all_gather(shard)
        self.gathered.append(weakref.ref(whole))
        return whole

    def reduce_scatter(self, array: np.ndarray) -> np.ndarray:
        if isinstance(array, np.ndarray) and self.layer is not None:
            self.gradients.append((self.layer, weakref.ref(array)))
            self.reduced = array.size
        return super().reduce_scatter(array)

    def hint(self, text: str) -> str:
        """What may have led to an error with this text, or ''."""
        if self.layer is None:
            return ''
        if str(self.for_inputs).replace(' ', '') in text.replace(' ', ''):
            return (f' (the gradient for X has the shape {self.for_inputs}, '
                    'and `backward` returns it first)')
        n = self.num_workers
        if self.size % n == 0 and self.reduced == self.size + n:
            return (f' (for layer {self.layer}, reduce_scatter has got '
                    f'{self.reduced} numbers, and {self.size} are wanted. '
                    f'How many zeros are missing where {n} divides the size?)')
        return ''

    def enter(self, kind: str, layer: int, w: np.ndarray) -> None:
        """A layer computes with these parameters: what is held now?"""
        source = [k for k in self.held()[0]
                  if np.may_share_memory(self.gathered[k](), w)]
        self.note(kind, layer, bool(source), *self.held())


class Group(numpygroup.Group):
    worker = Watched


class WatchedLayer(Layer):
    """Tells its worker what it computes."""

    def watch(self, worker: Watched, number: int) -> 'WatchedLayer':
        self._worker, self._number = worker, number
        return self

    def forward(self, w: np.ndarray, X: np.ndarray) -> np.ndarray:
        outputs = super().forward(w, X)
        self._worker.enter('forward', self._number, w)
        return outputs

    def backward(self, w: np.ndarray, X: np.ndarray,
                 G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        for_inputs, gradient = super().backward(w, X, G)
        self._worker.enter('backward', self._number, w)
        self._worker.layer, self._worker.size = self._number, self.size
        self._worker.for_inputs = for_inputs.shape
        self._worker.gradients.append((self._number, weakref.ref(gradient)))
        return for_inputs, gradient


def run(answer: Answer, num_workers: int, widths: Sequence[int],
        steps: int = 1) -> Notes:
    """What every worker did, and its shards after each step."""
    def work(worker):
        layers = [layer.watch(worker, k) for k, layer in enumerate(
            layers_of(widths, WatchedLayer))]
        shards = [shard_of(w, worker.rank, num_workers)
                  for w in parameters(widths)]
        after = []
        for step in range(steps):
            worker.note('step', step)
            X, y = batch(widths, worker.rank, step)
            try:
                with forbidding(_truth, _gradients):
                    answer(worker, [*layers], shards, X, y, LR)
            except (ValueError, Wrong) as error:
                error.args = f'{error}{worker.hint(str(error))}',
                raise
            before = batch(widths, worker.rank, step)
            for name, new, old in zip('Xy', (X, y), before):
                if not np.array_equal(new, old):
                    changed.add(name)
            after.append(_lists(shards, len(layers)))
        return after

    group = Group(num_workers)
    changed: set[str] = set()
    after = group.run(work)
    return {'events': [worker.events for worker in group.workers],
            'shards': after, 'changed': sorted(changed)}


def _lists(shards, many):
    try:
        if len(shards) != many:
            raise ValueError
        return [np.asarray(one, float).ravel().tolist() for one in shards]
    except (TypeError, ValueError):
        raise Wrong(f'the list `shards` holds {short(shards)} after the step. '
                    f'It had {many} arrays: one for each layer.') from None


def _gradients(widths, params, X, y):
    """Of each layer, on one device."""
    layers, inputs, gradients = layers_of(widths), [X], []
    for layer, w in zip(layers, params):
        inputs.append(layer.forward(w, inputs[-1]))
    G = loss_gradient(inputs.pop(), y)
    for layer, w in zip(layers[::-1], params[::-1]):
        G, gradient = layer.backward(w, inputs.pop(), G)
        gradients.insert(0, gradient)
    return gradients


def _truth(num_workers, widths, steps, lr=LR, ranks=None):
    """The parameters after each step of plain SGD, on one device.

    ranks: whose examples are used; all, if None.
    """
    params, after = parameters(widths), []
    for step in range(steps):
        batches = [batch(widths, rank, step)
                   for rank in (ranks or range(num_workers))]
        X, y = (np.concatenate(parts) for parts in zip(*batches))
        params = [w - lr * gradient for w, gradient in zip(
            params, _gradients(widths, params, X, y))]
        after.append(params)
    return after


def judge_params(found: Notes, num_workers: int, widths: Sequence[int],
                 steps: int = 1) -> None:
    """The parameters after each step, however they were sent."""
    right = _truth(num_workers, widths, steps)
    for step in range(steps):
        for k in range(len(widths) - 2, -1, -1):
            for rank in range(num_workers):
                at = _first_wrong(found, right[step], step, rank, k,
                                  num_workers)
                if at is not None:
                    mine = found['shards'][rank][step][k][at]
                    true = shard_of(right[step][k], rank, num_workers)[at]
                    raise Wrong(
                        f'step {step + 1}, rank {rank}, layer {k}: the number '
                        f'with index {at} of the shard is {mine:.6g}; it '
                        f'should be {true:.6g}, as with SGD on one device. '
                        + _why(found, step, num_workers, widths, right))


def _first_wrong(found, right, step, rank, k, num_workers):
    """The index of the first wrong number of a shard; None if all are right.

    What fills up the last shards does not count.
    """
    mine = found['shards'][rank][step][k]
    true = shard_of(right[k], rank, num_workers)
    if len(mine) != len(true):
        raise Wrong(f'step {step + 1}, rank {rank}, layer {k}: the shard has '
                    f'{len(mine)} numbers now, but it had {len(true)} before.')
    many = min(len(true), max(0, right[k].size - rank * len(true)))
    close = np.isclose(mine, true, rtol=1e-5, atol=1e-6)[:many]
    return None if close.all() else int(close.argmin())


def _why(found, step, num_workers, widths, right):
    """What wrong parameters look like."""
    def are(params, ranks=range(num_workers)):
        return all(_first_wrong(found, params, step, rank, k, num_workers)
                   is None for rank in ranks for k in range(len(params)))

    before = right[step - 1] if step else parameters(widths)
    if are(before):
        return ('No shard has changed. Does your last line change the array '
                'in `shards`, or does it only give a name to another array? '
                'It is not enough to return new shards.')
    case = num_workers, widths, step + 1
    if are(_truth(*case, num_workers * LR)[step]):
        return (f'The sum of the gradients of {num_workers} workers does '
                'that; the mean is wanted.')
    if are([2 * old - new for old, new in zip(before, right[step])]):
        return ('That is the other direction: a step goes against the '
                'gradient. Or does `loss_gradient` get y first?')
    for lr in LR, LR / num_workers:
        if all(are(_truth(*case, lr, [rank])[step], [rank])
               for rank in range(num_workers)):
            return ('Each worker has used only the gradient of its own '
                    'examples. What do you do with the sum over all workers?')
    if found['changed']:
        return (f'Your function has changed {" and ".join(found["changed"])}, '
                'in place.')
    for times in _lengths(num_workers):
        if are([old + times * (new - old) for old, new in zip(
                before, right[step])]):
            return (f'The step is {times:.4g} times as long as it should be. '
                    'By what do you divide, and how often?')
    wrong = max(k for k in range(len(widths) - 1) if any(
        _first_wrong(found, right[step], step, rank, k, num_workers)
        is not None for rank in range(num_workers)))
    if wrong < len(widths) - 2:
        return ('On the way back everything was right down to layer '
                f'{wrong + 1}. What do `backward` and `reduce_scatter` get '
                f'for layer {wrong}?')
    if step:
        return ('In the previous step everything was right. What is '
                'different in this step?')
    return ('The way back begins with the last layer, and this layer is '
            'wrong already. Which inputs X does its `backward` get, and what '
            'does `reduce_scatter` sum?')


def _lengths(num_workers):
    """How many times too long a step is, if it is divided wrongly."""
    n = num_workers
    return [up / down for up in (1, n, n * n) for down in (
        1, 2, n, n * n, BATCH, n * BATCH) if up != down]


def _size(widths, num_workers):
    """The numbers of all shards of a worker, and those of each."""
    each = [-(-layer.size // num_workers) for layer in layers_of(widths)]
    return sum(each), each


def _steps(events):
    """The events of each step."""
    steps = []
    for event in events:
        if event[0] == 'step':
            steps.append([])
        else:
            steps[-1].append(event)
    return steps


def _sent(events, num_workers):
    """Numbers that a worker sends in all-gathers, and in reduce-scatters."""
    others = num_workers - 1
    return (sum(others * event[1] for event in events
                if event[0] == 'all_gather'),
            sum(others * event[1] // num_workers for event in events
                if event[0] == 'reduce_scatter'))


def judge_sent(found: Notes, num_workers: int, widths: Sequence[int],
               steps: int = 1) -> None:
    """How many numbers each worker sends in a step."""
    n, (own, each) = num_workers, _size(widths, num_workers)
    once = (n - 1) * own
    for rank, events in enumerate(found['events']):
        for step, some in enumerate(_steps(events)):
            gathered, reduced = _sent(some, n)
            sizes = [event[1] for event in some if event[0] == 'all_gather']
            where = f'step {step + 1}, rank {rank}: '
            if reduced != once:
                raise Wrong(where + _reduced(reduced, once, some, sizes,
                                             each))
            if gathered < once:
                raise Wrong(f'{where}only {gathered} numbers are sent in '
                            f'all-gathers, but all shards once are {once}. '
                            'Other workers have changed their shards. How '
                            'does this worker get the new numbers?')
            if gathered > 2 * once:
                why = ('Each layer is needed once on the way forward and '
                       'once on the way back. Why do you gather more?')
                if max(sizes) > max(each):
                    why = (f'One all-gather has {max(sizes)} numbers of each '
                           f'worker, but no shard has more than {max(each)}.')
                raise Wrong(
                    f'{where}it sends {gathered + reduced} numbers, '
                    f'{gathered} of them in {len(sizes)} all-gathers and '
                    f'{reduced} in reduce-scatters. {3 * once} are enough. '
                    + why)


def _reduced(reduced, once, events, gathers, each):
    """What is wrong with the reduce-scatters of a step."""
    sizes = [event[1] for event in events if event[0] == 'reduce_scatter']
    if not sizes and max(gathers, default=0) > max(each):
        return ('reduce_scatter is not called, and an all_gather has '
                f'{max(gathers)} numbers of each worker. Are these whole '
                'gradients? A worker needs only its part of their sum.')
    if not sizes:
        return ('reduce_scatter is not called. How does a worker get the sum '
                'of the gradients of all workers?')
    return (f'{reduced} numbers are sent in {len(sizes)} reduce-scatters, '
            f'and {once} are wanted: each of {len(each)} layers once, with '
            'as few zeros as make its size a multiple of num_workers.')


def judge_held(found: Notes, num_workers: int, widths: Sequence[int],
               steps: int = 1) -> None:
    """What each worker holds whole when it gathers, and when it computes."""
    _, each = _size(widths, num_workers)
    for rank, events in enumerate(found['events']):
        calls = [event[1] * num_workers for event in events
                 if event[0] == 'all_gather']
        for step, some in enumerate(_steps(events)):
            where = f'step {step + 1}, rank {rank}: '
            waiting = None  # the layer whose gradient is still to be summed
            for k, event in enumerate(some):
                kind = event[0]
                if kind == 'held':
                    _judge_gather(where, event, some[k + 1][1], calls, each,
                                  waiting)
                elif kind in ('forward', 'backward') and not event[2]:
                    raise Wrong(
                        f'{where}`{kind}` of layer {event[1]} gets a copy of '
                        'what was gathered. Give it the array that '
                        'all_gather returned, or a slice of it: a copy is '
                        'one more whole layer.')
                elif kind == 'backward':
                    waiting = event[1]
                elif kind == 'reduce_scatter':
                    waiting = None
        for many in ('forward', 'backward'):
            if {event[1] for event in events if event[0] == many} != {
                    *range(len(each))}:
                raise Wrong(f'rank {rank} does not call `{many}` of every '
                            'layer, so the check cannot see what it holds.')


def _judge_gather(where, event, size, calls, each, waiting):
    """What is held when a call of all_gather begins."""
    _, held, gradients = event
    if size > max(each):
        raise Wrong(f'{where}one all-gather has {size} numbers of each '
                    f'worker, but the largest shard has {max(each)}. Do you '
                    'gather more than one layer at once?')
    if held:
        numbers = sum(calls[k] for k in held)
        which = f'call {held[0] + 1}'
        if len(held) > 1:
            which = f'calls {", ".join(str(k + 1) for k in held[:9])}'
        raise Wrong(f'{where}when it gathers a layer, it still holds what '
                    f'{which} of all_gather returned, {numbers} numbers. '
                    'Which names, lists and slices still hold it? `del` '
                    'deletes a name.')
    if gradients or waiting is not None:
        which = gradients[0] if gradients else waiting
        more = ('it has not been summed yet' if waiting is not None else
                'a name or a list still holds it')
        raise Wrong(f'{where}when it gathers a layer, it still holds the '
                    f'whole gradient of layer {which}: {more}.')


def picture(answer: Answer) -> Picture:
    """What worker 0 holds while each layer computes."""
    from d2lps.pictures import BLUE, GREEN, ORANGE
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    from d2lps.pictures.style import ink_on
    found, n, widths = run(answer, **SHOWN), SHOWN['num_workers'], (
        SHOWN['widths'])
    events = found['events'][0]
    own, _ = _size(widths, n)
    passes = _passes(events, n, widths)
    total = sum(layer.size for layer in layers_of(widths))
    sent = sum(_sent(events, n))
    most = max((own + gathered + gradient
                for _, _, gathered, gradient in passes), default=own)
    line = _data_parallel(passes, widths)
    title = (f'worker 0 of {n} holds {most} numbers at most,\nand sends '
             f'{sent}, {sent / total:.2f} for each of {total} parameters')
    told = '; '.join(f'{kind} {k}: {gathered} gathered, {gradient} of '
                     'gradients' for kind, k, gathered, gradient in passes)
    figure = new_figure(WIDE, 3.4)
    ax = figure.subplots()
    ax.set(title=title, ylabel='numbers held', xlabel='forward (f) and '
           'backward (b) of the layers, in the order of the step')
    describe(ax, f'{title}. It has {own} in its shards. {told}.')
    ax.set_xticks(range(len(passes)), [f'{kind[0]} {k}'
                                       for kind, k, *_ in passes])
    ax.grid(False, axis='x')
    low, top = np.zeros(len(passes)), 1.08 * max([most, *line])
    ax.margins(x=0.01)
    ax.set_ylim(0, top)
    for label, color, high in (
            ('own shards', BLUE, [own] * len(passes)),
            ('gathered parameters', ORANGE, [one[2] for one in passes]),
            ('whole gradients', GREEN, [one[3] for one in passes])):
        bars = ax.bar(range(len(passes)), high, 0.84, low, color=color,
                      label=label)
        ax.bar_label(bars, [one if one > 0.06 * top else '' for one in high],
                     label_type='center', color=ink_on(color))
        low += high
    if passes:
        ax.step(np.arange(len(passes) + 1) - 0.5, [*line, line[-1]], '--',
                where='post', color='gray', label='data parallelism')
    legend_below(ax)
    return figure


def _passes(events, n, widths):
    """Each pass of a layer: (kind, layer, numbers gathered, of gradients).

    What is held at once, from when its parameters are gathered until it has
    computed, its own gradient included.
    """
    sizes = [layer.size for layer in layers_of(widths)]
    calls = [event[1] * n for event in events if event[0] == 'all_gather']
    passes, waiting, most, call = [], [], 0, 0
    for event in events:
        if event[0] == 'held':
            most = sum(calls[k] for k in event[1]) + calls[call]
            call += 1
        elif event[0] == 'reduce_scatter':
            waiting = waiting[:-1]
        elif event[0] in ('forward', 'backward'):
            kind, k, _, held, gradients = event
            if kind == 'backward':
                waiting.append(k)
            passes.append((kind, k, max(most, sum(calls[j] for j in held)),
                           sum(sizes[j] for j in {*gradients, *waiting})))
            most = 0
    return passes


def _data_parallel(passes, widths):
    """What it holds meanwhile: all parameters, and gradients as they come."""
    sizes, line = [layer.size for layer in layers_of(widths)], []
    there = set()
    for kind, k, _, _ in passes:
        if kind == 'backward':
            there.add(k)
        line.append(sum(sizes) + sum(sizes[one] for one in there))
    return line


SHOWN: Case = {'num_workers': 4, 'widths': [11, 8, 12, 8, 12, 8, 12]}
EVEN = [5, 12, 24, 12]  # 72, 312 and 300 numbers: for 1, 2, 3 and 4 workers
CHECKS = {
    'params': Check(
        [{'num_workers': n, 'widths': EVEN, 'steps': 3} for n in (2, 3, 4, 1)
         ], run, judge_params,
        'the shards are the same as with SGD on one device.'),
    'uneven': Check(
        [{'num_workers': 3, 'widths': [3, 5, 2], 'steps': 3},
         {'num_workers': 4, 'widths': [1, 1, 3], 'steps': 2},
         {'num_workers': 2, 'widths': [4, 3, 6, 1], 'steps': 2}],
        run, judge_params, 'the shards are right also if the sizes do not '
                           'divide.'),
    'sent': Check(
        [SHOWN, {'num_workers': 2, 'widths': EVEN, 'steps': 2},
         {'num_workers': 3, 'widths': EVEN, 'steps': 2}],
        run, judge_sent,
        'each of four workers sends 1413 numbers, 2.25 for each of 628 '
        'parameters.'),
    'held': Check(
        [SHOWN, {'num_workers': 2, 'widths': EVEN, 'steps': 2},
         {'num_workers': 3, 'widths': EVEN, 'steps': 2}],
        run, judge_held, 'a worker never holds more than one whole layer.')}
