"""Exercise: a training step in which everything is in shards (ZeRO, FSDP).

To chapter 19, notebooks/19-larger-models.ipynb.
"""
import weakref
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from d2lps.exercises import numpygroup, worker_threads
from d2lps.exercises.checking import (Answer, Case, Check, Notes, Picture,
                                      Wrong, forbidding)
from d2lps.exercises.multiples import factor

LR = 0.1
BATCH = 3  # examples of each worker
MEANINGS = {  # of the arrays that a layer gets
    'w': 'the first numbers of what all_gather returns for this layer',
    'X': 'the inputs of this layer, a row for each example',
    'G': 'the first of the two that `backward` of the next layer returns'}


class Layer:
    """A dense layer, which gets its parameters in one flat array.

    size: how many these are: its weights, row by row, and then its biases.
    relu: whether negative outputs become 0.
    """

    def __init__(self, inputs: int, outputs: int, relu: bool = True) -> None:
        self.inputs, self.outputs, self.relu = inputs, outputs, relu
        self.size = (inputs + 1) * outputs
        # Who wants to know what this layer computes: see `Watched.computes`.
        self.tell: Callable[..., None] = lambda *_: None

    def forward(self, w: np.ndarray, X: np.ndarray) -> np.ndarray:
        """The outputs for inputs X, a row for each example."""
        self._look_at('forward', w=(w, self.size), X=(X, self.inputs))
        outputs = self._outputs(w, X)
        self.tell('forward', w)
        return outputs

    def backward(self, w: np.ndarray, X: np.ndarray,
                 G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient for X, and that for w, which is flat as w is.

        X: what `forward` got. G: the gradient for the outputs.
        """
        self._look_at('backward', w=(w, self.size), X=(X, self.inputs),
                      G=(G, self.outputs))
        slope = G * (self._outputs(w, X) > 0) if self.relu else G
        for_X = slope @ self._weights(w).T
        for_w = np.concatenate([(X.T @ slope).ravel(), slope.sum(0)])
        self.tell('backward', w, for_w)
        return for_X, for_w

    def _weights(self, w):
        return w[:-self.outputs].reshape(self.inputs, self.outputs)

    def _outputs(self, w, X):
        outputs = X @ self._weights(w) + w[-self.outputs:]
        return np.maximum(outputs, 0) if self.relu else outputs

    def _look_at(self, function, **arrays):
        """Raise `Wrong` if an array has not the size that it should have."""
        for name, (array, size) in arrays.items():
            shape = np.shape(array)
            wanted = (size,) if name == 'w' else (*shape[:1], size)
            if shape != wanted:
                raise Wrong(f'{function} of {self} got {name} of shape '
                            f'{shape}; {wanted} is wanted: {MEANINGS[name]}.')

    def __repr__(self) -> str:
        return f'the layer from {self.inputs} to {self.outputs}'


def loss_gradient(outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gradient of the mean loss of these examples, for the outputs.

    The loss of an example: half the sum of the squared differences.
    """
    return (outputs - y) / len(y)


def layers_of(widths: Sequence[int]) -> list[Layer]:
    """The layers between these numbers of inputs and outputs."""
    last = len(widths) - 2
    return [Layer(widths[k], widths[k + 1], relu=k < last)
            for k in range(last + 1)]


def parameters(widths: Sequence[int], zero_biases: bool = False
               ) -> list[np.ndarray]:
    """The parameters of each layer at the start, flat."""
    chance, params = np.random.default_rng(0), []
    for layer in layers_of(widths):
        w = chance.normal(size=layer.size) / layer.inputs ** 0.5
        if zero_biases:  # as in most networks
            w[-layer.outputs:] = 0
        params.append(w)
    return params


def shard_sizes(widths: Sequence[int], num_workers: int) -> list[int]:
    """How many numbers a shard of each layer has, with what fills it up."""
    return [-(-layer.size // num_workers) for layer in layers_of(widths)]


def shards_of(params: Sequence[np.ndarray], rank: int,
              num_workers: int) -> list[np.ndarray]:
    """A worker's shards of parameters; zeros fill up the last ones."""
    return [np.pad(w, (0, -w.size % num_workers)).reshape(num_workers, -1)[
        rank].copy() for w in params]


def batch(widths: Sequence[int], rank: int,
          step: int) -> tuple[np.ndarray, np.ndarray]:
    """The examples of a worker in a step: X, y."""
    chance = np.random.default_rng([1 + step, rank])
    return (chance.normal(size=(BATCH, widths[0])),
            chance.normal(size=(BATCH, widths[-1])))


class Watched(numpygroup.Worker):
    """Notes which gathered arrays and whole gradients are still there.

    It knows them by weak references. What somebody copies is not seen.
    """

    def __init__(self, group: worker_threads.Group, rank: int) -> None:
        super().__init__(group, rank)
        self.gathered: list[tuple[int, weakref.ref]] = []  # numbers, array
        self.gradients: list[tuple[int, weakref.ref]] = []  # layer, array
        self.waiting: set[int] = set()  # layers with gradients to be summed
        self.sums: list[tuple[int | None, np.ndarray]] = []
        self.layer: int | None = None  # the last that computed a gradient
        self.peak = 0  # most gathered numbers since the last layer computed

    def held(self) -> tuple[list[tuple[int, int]], list[int]]:
        """What is there now, or not summed yet: (call of all_gather, counted
        from 1, and its numbers), and layers with whole gradients.
        """
        calls = [(k, numbers) for k, (numbers, one) in enumerate(
            self.gathered, 1) if one() is not None]
        self.peak = max(self.peak, sum(numbers for _, numbers in calls))
        there = {k for k, one in self.gradients if one() is not None}
        return calls, sorted(there.union(self.waiting))

    def all_gather(self, shard: np.ndarray) -> np.ndarray:
        before = self.held()
        whole = super().all_gather(shard)
        self.events[-1] += before
        self.gathered.append((whole.size, weakref.ref(whole)))
        self.held()
        return whole

    def reduce_scatter(self, array: np.ndarray) -> np.ndarray:
        if isinstance(array, np.ndarray) and self.layer is not None:
            self.gradients.append((self.layer, weakref.ref(array)))
        part = super().reduce_scatter(array)
        self.sums.append((self.layer, array.round(7)))
        self.waiting -= {self.layer}
        return part

    def computes(self, layer: int, kind: str, w: np.ndarray,
                 gradient: np.ndarray | None = None) -> None:
        """A layer computes with parameters w: what is held now?"""
        if gradient is not None:
            self.layer = layer
            self.waiting.add(layer)
            self.gradients.append((layer, weakref.ref(gradient)))
        is_slice = any(np.may_share_memory(one(), w)
                       for _, one in self.gathered if one() is not None)
        _, gradients = self.held()
        self.note(kind, layer, is_slice, self.peak, gradients)
        self.peak = 0


class Group(numpygroup.Group):
    worker = Watched


def run(answer: Answer, num_workers: int, widths: Sequence[int],
        steps: int = 1, lr: float = LR, zero_biases: bool = False) -> Notes:
    """Of each worker and step: the calls, what was summed, the new shards."""
    def work(worker):
        layers = layers_of(widths)
        for k, layer in enumerate(layers):
            layer.tell = partial(worker.computes, k)
        shards = shards_of(parameters(widths, zero_biases), worker.rank,
                           num_workers)
        return [one_step(worker, layers, shards, step)
                for step in range(steps)]

    def one_step(worker, layers, shards, step):
        worker.events, worker.sums = [], []
        with forbidding(_gradients):
            answer(worker, [*layers], shards,
                   *batch(widths, worker.rank, step), lr)
        return {'events': worker.events, 'sums': worker.sums,
                'shards': [np.ravel(one).tolist() for one in shards]}

    return Group(num_workers).run(work)


def _gradients(layers, params, X, y):
    """Of each layer, on one device."""
    inputs, gradients = [X], []
    for layer, w in zip(layers, params):
        inputs.append(layer.forward(w, inputs[-1]))
    G = loss_gradient(inputs.pop(), y)
    for layer, w, X in [*zip(layers, params, inputs)][::-1]:
        G, gradient = layer.backward(w, X, G)
        gradients.insert(0, gradient)
    return gradients


def judge_params(found: Notes, num_workers: int, widths: Sequence[int],
                 steps: int = 1, lr: float = LR,
                 zero_biases: bool = False) -> None:
    """The parameters after each step, however they were sent."""
    layers, before = layers_of(widths), parameters(widths, zero_biases)
    for step in range(steps):
        each = [_gradients(layers, before, *batch(widths, rank, step))
                for rank in range(num_workers)]
        after = [w - lr * np.mean(gradients, 0)
                 for w, *gradients in zip(before, *each)]
        notes = [worker[step] for worker in found]
        for k in reversed(range(len(layers))):
            _judge_layer(notes, step, k, before[k], after[k],
                         [gradients[k] for gradients in each])
        before = after


def _judge_layer(notes, step, layer, before, after, gradients):
    """The shards of a layer after a step, without what fills up the last."""
    length = -(-len(before) // len(notes))
    parts = [one['shards'][layer] for one in notes]
    for rank, part in enumerate(parts):
        if len(part) != length:
            raise Wrong(f'step {step + 1}, rank {rank}, layer {layer}: the '
                        f'shard has {len(part)} numbers now, but it had '
                        f'{length} before.')
    mine = np.ravel(parts)[:len(before)]
    close = np.isclose(mine, after, rtol=1e-5, atol=1e-6)
    if not close.all():
        at = int(close.argmin())
        raise Wrong(
            f'step {step + 1}, rank {at // length}, layer {layer}: the number '
            f'with index {at % length} of the shard is {mine[at]:.6g}; it '
            f'should be {after[at]:.6g}, as with SGD on one device. '
            + _hint(notes, layer, gradients, mine - before, after - before))


def _hint(notes, layer, gradients, change, right):
    """Where the first wrong layer of a step goes wrong.

    change, right: by how much the step changes its parameters.
    """
    if not change.any():
        return ('The arrays of this layer in `shards` have not changed. '
                'Change them in place, or put new arrays into the list.')
    for rank, (one, gradient) in enumerate(zip(notes, gradients)):
        given = [array for k, array in one['sums'] if k == layer]
        if not given:
            return (f'On rank {rank}, no reduce_scatter comes after `backward`'
                    f' of layer {layer}, before the next `backward`. It sums '
                    'the gradients of all workers.')
        mine = np.resize(given[0], len(gradient))
        given_times = factor(mine, gradient)
        if not given_times:
            at = int(np.isclose(mine, gradient, rtol=1e-3).argmin())
            return (f'On rank {rank}, reduce_scatter gets a wrong array for '
                    f'this layer: array[{at}] is {mine[at]:.4g}, and '
                    f'{gradient[at]:.4g} is right. It is the gradient of w, '
                    'and then zeros.')
    times = factor(change, right)
    text = (f'The layer changes {times:.4g} times as much as it should. '
            if times else '')
    return text + (
        'reduce_scatter gets the right arrays, and gives their sum over all '
        'workers. A shard w becomes w - lr · g, where g is the mean.'
        if np.isclose(given_times, 1, rtol=1e-3) else
        f'reduce_scatter gets {given_times:.4g} times the gradient. All '
        'gradients begin with loss_gradient(outputs, y).')


def _each_step(found):
    """Words: which step and rank; and the events of this step."""
    for rank, worker in enumerate(found):
        for step, one in enumerate(worker, 1):
            yield f'step {step}, rank {rank}: ', one['events']


def _sizes(events, kind):
    return [event[1] for event in events if event[0] == kind]


def judge_sent(found: Notes, num_workers: int, widths: Sequence[int],
               steps: int = 1) -> None:
    """How many numbers each worker sends in a step."""
    n, sizes = num_workers, shard_sizes(widths, num_workers)
    once = (n - 1) * sum(sizes)
    for where, events in _each_step(found):
        gathers = _sizes(events, 'all_gather')
        sums = _sizes(events, 'reduce_scatter')
        gathered, reduced = (n - 1) * sum(gathers), (n - 1) * sum(sums) // n
        if not sums:
            raise Wrong(f'{where}reduce_scatter is not called. It gives a '
                        'worker its part of the sum of the gradients of all '
                        'workers.')
        if reduced != once or not once <= gathered <= 2 * once:
            raise Wrong(f'{where}it sends {gathered + reduced} numbers, '
                        f'{gathered} of them in {len(gathers)} all-gathers '
                        f'and {reduced} in {len(sums)} reduce-scatters. '
                        f'Right are {once} in reduce-scatters, one for each '
                        f'layer, and from {once} to {2 * once} in '
                        'all-gathers: each layer once on the way forward, '
                        'and at most once on the way back.')


def says_sent(found: Notes, num_workers: int, widths: Sequence[int],
              **_: int) -> str:
    """What a worker has sent, beside what FSDP sends."""
    n, total = num_workers, sum(one.size for one in layers_of(widths))
    events = found[0][0]['events']
    sent = (n - 1) * sum(_sizes(events, 'all_gather'))
    sent += (n - 1) * sum(_sizes(events, 'reduce_scatter')) // n
    fsdp = 3 * (n - 1) * sum(shard_sizes(widths, n))
    words = (f'Each of {n} workers sends {sent} numbers in a step, '
             f'{sent / total:.3g} for each of {total} parameters, ')
    if sent == fsdp:
        return f'{words}as FSDP does, with two all-gathers for each layer.'
    return (f'{words}and FSDP sends {fsdp}, with two all-gathers for each '
            'layer.')


def judge_held(found: Notes, num_workers: int, widths: Sequence[int],
               steps: int = 1) -> None:
    """What each worker holds whole when it gathers, and when it computes."""
    sizes = shard_sizes(widths, num_workers)
    for where, events in _each_step(found):
        for kind, *event in events:
            if kind == 'all_gather':
                _judge_gather(where, max(sizes), *event)
            elif kind in ('forward', 'backward') and not event[1]:
                raise Wrong(
                    f'{where}`{kind}` of layer {event[0]} gets a copy of what '
                    'was gathered. Give it the array that all_gather '
                    'returned, or a slice of it: a copy is one more whole '
                    'layer.')
        for kind in 'forward', 'backward':
            if {*range(len(sizes))}.difference(_sizes(events, kind)):
                raise Wrong(f'{where}it does not call `{kind}` of every '
                            'layer, so the check cannot see what it holds.')


def _judge_gather(where, largest, size, calls, gradients):
    """What is held when a call of all_gather begins."""
    if size > largest:
        raise Wrong(f'{where}one all-gather has {size} numbers of each '
                    f'worker; the largest shard has {largest}. Gather one '
                    'layer at a time, and no gradients.')
    where += 'when it gathers a layer, it still holds '
    if calls:
        number, many = calls[0]
        raise Wrong(f'{where}what call {number} of all_gather returned, '
                    f'{many} numbers. Which names, lists and slices still '
                    'hold it? `del` deletes a name.')
    if gradients:
        raise Wrong(f'{where}the whole gradient of layer {gradients[0]}. Sum '
                    'it with reduce_scatter first. Then no name and no list '
                    'may hold it.')


def picture(answer: Answer) -> Picture:
    """What worker 0 holds while each layer computes."""
    import pandas as pd

    from d2lps.pictures import BLUE, GREEN, ORANGE
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    from d2lps.pictures.style import ink_on
    n, widths = SHOWN['num_workers'], SHOWN['widths']
    events = run(answer, **SHOWN)[0][0]['events']
    passes = [event for event in events if event[0] in ('forward', 'backward')]
    if not passes:
        raise Wrong('worker 0 calls no layer: there is nothing to draw.')
    sizes = [layer.size for layer in layers_of(widths)]
    total = sum(sizes)
    table = pd.DataFrame(
        [(sum(shard_sizes(widths, n)), gathered, sum(sizes[k] for k in grads))
         for _, _, _, gathered, grads in passes],
        [f'{kind[0]} {layer}' for kind, layer, *_ in passes],
        ['own shards', 'gathered parameters', 'whole gradients'])
    most = table.sum(1).max()
    figure = new_figure(WIDE, 3.4)
    ax = figure.subplots()
    colors = [BLUE, ORANGE, GREEN]
    table.plot.bar(ax=ax, stacked=True, width=0.84, rot=0, legend=False,
                   color=colors)
    for bars, color in zip(ax.containers, colors):
        ax.bar_label(bars, [many or '' for many in table[bars.get_label()]],
                     label_type='center', color=ink_on(color))
    ax.set(title=f'worker 0 of {n} holds {most} numbers at most',
           ylabel='numbers held', ylim=(0, 1.08 * max(most, 2 * total)),
           xlabel='forward (f) and backward (b) of the layers, in the order '
           'of the step')
    come = [sizes[layer] * (kind == 'backward') for kind, layer, *_ in passes]
    ax.stairs(total + np.cumsum(come), np.arange(len(come) + 1) - 0.5,
              baseline=None, linestyle='--', color='gray',
              label='data parallelism')
    ax.grid(False, axis='x')
    ax.margins(x=0.01)
    legend_below(ax)
    return figure


SHOWN: Case = {'num_workers': 4, 'widths': [11, 8, 12, 8, 12, 8, 12]}
EVEN = [5, 12, 24, 12]  # 72, 312 and 300 numbers: for 1, 2, 3 and 4 workers
TWO_STEPS = [SHOWN, *({'num_workers': n, 'widths': EVEN, 'steps': 2}
                      for n in (2, 3))]
CHECKS = {
    'params': Check(
        [{'num_workers': n, 'widths': EVEN, 'steps': 3} for n in (2, 3, 4, 1)
         ], run, judge_params,
        'the shards are the same as with SGD on one device.'),
    'uneven': Check(
        [{'num_workers': 3, 'widths': [3, 5, 2], 'steps': 3},
         {'num_workers': 4, 'widths': [1, 1, 3], 'steps': 2},
         {'num_workers': 2, 'widths': [4, 3, 6, 1], 'steps': 2, 'lr': 0.2,
          'zero_biases': True}],
        run, judge_params, 'the shards are right also if the sizes do not '
                           'divide.'),
    'sent': Check(
        TWO_STEPS, run, judge_sent,
        'a worker sends at most what two all-gathers and one reduce-scatter '
        'of each layer need.', says_sent),
    'held': Check(
        TWO_STEPS, run, judge_held,
        'a worker never holds more than one whole layer.')}
