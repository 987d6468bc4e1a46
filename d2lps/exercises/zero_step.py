"""Exercise: a training step in which everything is in shards (ZeRO, FSDP).

To chapter 19, notebooks/19-larger-models.ipynb.
"""
import linecache
import sys
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, TypedDict

import numpy as np

from d2lps.exercises import numpygroup, worker_threads
from d2lps.exercises.charts import bar_chart
from d2lps.exercises.checking import (Answer, Case, Check, Differs, Picture,
                                      Wrong, without)
from d2lps.explaining import brief

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
        # Called when this layer computes: see `Watched.computes`.
        self.tell: Callable[..., None] = lambda *_: None

    def forward(self, w: np.ndarray, X: np.ndarray) -> np.ndarray:
        """The outputs for inputs X, a row for each example."""
        self._look_at(w)
        self.tell('forward', w)
        return self._outputs(w, X)

    def backward(self, w: np.ndarray, X: np.ndarray,
                 G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient for X, and that for w, which is flat as w is.

        X: what `forward` got. G: the gradient for the outputs.
        """
        self._look_at(w)
        slope = G * (self._outputs(w, X) > 0) if self.relu else G
        for_w = np.concatenate([(X.T @ slope).ravel(), slope.sum(0)])
        self.tell('backward', w, for_w)
        return slope @ self._weights(w).T, for_w

    def _weights(self, w):
        return w[:-self.outputs].reshape(self.inputs, self.outputs)

    def _outputs(self, w, X):
        outputs = X @ self._weights(w) + w[-self.outputs:]
        return np.maximum(outputs, 0) if self.relu else outputs

    def _look_at(self, w):
        if np.shape(w) != (self.size,):
            raise Wrong(f'{self} gets w of shape {np.shape(w)}; '
                        f'{(self.size,)} is right: the beginning of what '
                        'all_gather returns.')

    def __repr__(self) -> str:
        return f'Layer({self.inputs}, {self.outputs})'


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
        w[-layer.outputs:] *= not zero_biases  # 0, as in most networks
        params.append(w)
    return params


def shard_sizes(widths: Sequence[int], num_workers: int) -> list[int]:
    """The sizes of a shard of each layer, with the zeros that fill it up."""
    return [-(-layer.size // num_workers) for layer in layers_of(widths)]


def _padded(w, n):
    """A row for each worker; zeros fill up the last ones."""
    return np.pad(w, (0, -w.size % n)).reshape(n, -1)


def batch(widths: Sequence[int], rank: int,
          step: int) -> tuple[np.ndarray, np.ndarray]:
    """The examples of a worker in a step: X, y."""
    chance = np.random.default_rng([1 + step, rank])
    return (chance.normal(size=(BATCH, widths[0])),
            chance.normal(size=(BATCH, widths[-1])))


class Watched(numpygroup.Worker):
    """Knows which gathered arrays and whole gradients are still there.

    It has weak references to them. What somebody copies is not seen.
    """

    def __init__(self, group: worker_threads.Group, rank: int) -> None:
        super().__init__(group, rank)
        self.gathered: list[weakref.ref] = []
        self.gradients: list[tuple[int, weakref.ref]] = []  # layer, array
        self.waiting: set[int] = set()  # layers with gradients to be summed
        self.layer: int | None = None  # the last that computed a gradient
        self.peak = 0  # most gathered numbers since the last layer computed

    def start(self, layers: Sequence[Layer], most: int | None) -> None:
        """Begin a step.

        most: how many numbers a worker may give to all_gather; `Wrong` is
        raised then if it holds too much. None: it may hold all.
        """
        self.events, self.most = [], most
        self.seen: list[tuple] = []  # what a layer computes, and what is held
        self.sums: list[list[float]] = [[] for _ in layers]
        for k, layer in enumerate(layers):
            layer.tell = partial(self.computes, k)

    def all_gather(self, shard: np.ndarray) -> np.ndarray:
        if self.most:
            self._judge_held(np.size(shard))
        whole = super().all_gather(shard)
        self.gathered.append(weakref.ref(whole))
        self.peak = max(self.peak, sum(array.size for array in self._whole()))
        return whole

    def reduce_scatter(self, array: np.ndarray) -> np.ndarray:
        if isinstance(array, np.ndarray) and self.layer is not None:
            self.gradients.append((self.layer, weakref.ref(array)))
        part = super().reduce_scatter(array)
        if self.layer in self.waiting:
            self.sums[self.layer] = array.tolist()
            self.waiting.remove(self.layer)
        return part

    def computes(self, layer: int, kind: str, w: np.ndarray,
                 gradient: np.ndarray | None = None) -> None:
        """A layer computes with parameters w: what is held now?"""
        if self.most and not any(np.may_share_memory(array, w)
                                 for array in self._whole()):
            raise Wrong(f'on rank {self.rank}, `{kind}` of layer {layer} gets '
                        'another array than all_gather returned; that array '
                        'or a slice of it is right.')
        if gradient is not None:
            self.layer = layer
            self.waiting.add(layer)
            self.gradients.append((layer, weakref.ref(gradient)))
        there = self.waiting.union(
            k for k, array in self.gradients if array() is not None)
        self.peak = max(self.peak, sum(array.size for array in self._whole()))
        self.seen.append((kind, layer, self.peak, sorted(there)))
        self.peak = 0

    def _whole(self):
        """Gathered arrays that are still there."""
        return [array for array in (ref() for ref in self.gathered)
                if array is not None]

    def _judge_held(self, size):
        """Raise `Wrong` if this worker holds something whole."""
        if size > self.most:
            raise Wrong(f'rank {self.rank} gives {size} numbers to one '
                        f'all_gather; {self.most} are right at most, the '
                        'largest shard.')
        where = f'rank {self.rank} calls all_gather, and '
        for array in self._whole():
            raise Wrong(f'{where}still holds {array.size} gathered numbers'
                        f'{_holder(array)}')
        for layer in self.waiting:
            raise Wrong(f'{where}has not summed the gradient of layer '
                        f'{layer}; first reduce_scatter, then all_gather is '
                        'right.')
        for layer, ref in self.gradients:
            if ref() is not None:
                raise Wrong(f'{where}still holds the gradient of layer '
                            f'{layer}{_holder(ref())}')


def _holder(array):
    """Words: which variable of the student's function holds an array."""
    frame = sys._getframe(3)  # the caller of all_gather
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    while frame and frame.f_globals.get('__name__') != __name__:
        for name, value in frame.f_locals.items():
            if any(isinstance(part, np.ndarray)
                   and np.may_share_memory(part, array) for part in (
                       value if isinstance(value, (list, tuple)) else
                       [value])):
                return f' in `{name}`; nothing whole is right.' + (
                    f' `{line}` keeps the old `{name}` until the call has '
                    'returned.' * line.startswith(f'{name} = '))
        frame = frame.f_back
    return '; nothing whole is right.'


class Group(numpygroup.Group):
    worker = Watched


class StepNotes(TypedDict):
    """A step of a worker: its calls, the sums, the new shards.

    sums: for each layer, the numbers that reduce_scatter got.
    seen: see `Watched.computes`.
    """
    events: list
    sums: list[list[float]]
    seen: list[tuple]
    shards: list[list[float]]


Steps: TypeAlias = list[list[StepNotes]]  # of each step and worker


def run(answer: Answer, num_workers: int, widths: Sequence[int],
        steps: int = 1, lr: float = LR, zero_biases: bool = False,
        strict: bool = False) -> Steps:
    """Notes of each step and worker: calls, sums, new shards.

    strict: whether a worker that holds too much is stopped.
    """
    def work(worker):
        layers = layers_of(widths)
        shards = [_padded(w, num_workers)[worker.rank].copy()
                  for w in parameters(widths, zero_biases)]
        return [one_step(worker, layers, shards, step)
                for step in range(steps)]

    def one_step(worker, layers, shards, step):
        worker.start(layers, max(shard_sizes(widths, num_workers))
                     if strict else None)
        answer(worker, [*layers], shards, *batch(widths, worker.rank, step),
               lr)
        return {'events': worker.events, 'sums': worker.sums,
                'seen': worker.seen,
                'shards': [np.ravel(shard).tolist() for shard in shards]}

    without(answer, _right)
    return [[*step] for step in zip(*Group(num_workers).run(work))]


def _right(worker, layers, shards, X, y, lr):
    """A right answer, which the judge compares with."""
    n, inputs = worker.num_workers, []
    for layer, shard in zip(layers, shards):
        inputs.append(X)
        X = layer.forward(worker.all_gather(shard)[:layer.size], X)
    G = loss_gradient(X, y)
    for layer, shard in zip(layers[::-1], shards[::-1]):
        G, gradient = layer.backward(
            worker.all_gather(shard)[:layer.size], inputs.pop(), G)
        shard -= lr / n * worker.reduce_scatter(_padded(gradient, n).ravel())


def judge_params(notes: Steps, num_workers: int, widths: Sequence[int],
                 steps: int = 1, lr: float = LR,
                 zero_biases: bool = False) -> None:
    """The parameters after each step, however they were sent."""
    truth = [run(_right, num_workers, widths, 1, 0, zero_biases)[0],
             *run(_right, num_workers, widths, steps, lr, zero_biases)]
    for step, (mine, before, after) in enumerate(
            zip(notes, truth, truth[1:]), 1):
        for k, layer in [*enumerate(layers_of(widths))][::-1]:
            _judge_layer(step, k, layer.size, mine, before, after, lr)


def _judge_layer(step, layer, size, mine, before, after, lr):
    """The shards of a layer after a step, without what fills up the last."""
    shards, start, right = ([rank['shards'][layer] for rank in ranks]
                            for ranks in (mine, before, after))
    n, length = len(right), len(right[0])
    for rank, shard in enumerate(shards):
        if len(shard) != length:
            raise Wrong(f'step {step}, rank {rank}: shards[{layer}] has '
                        f'{len(shard)} numbers; {length} are right.')
    shards, start, right = (np.ravel(parts)[:size]
                            for parts in (shards, start, right))
    close = np.isclose(shards, right, rtol=1e-5, atol=1e-6)
    if close.all():
        return
    change, wanted, at = shards - start, right - start, int(close.argmin())
    raise Differs(
        f'step {step}, rank {at // length}: shards[{layer}][{at % length}] '
        f'changes by {brief(change[at])}; {brief(wanted[at])} is right',
        change, wanted, values={'num_workers': n},
        known={('lr',): f'That is right for lr = {LR}; here lr is {lr}.'}
        if lr != LR and np.allclose(change * lr, wanted * LR, 1e-3) else {},
        averaged='num_workers', place=_place(layer, mine, after, change))


def _place(layer, mine, right, change):
    """Words: whether it goes wrong before or after reduce_scatter."""
    for rank, pair in enumerate(zip(mine, right)):
        got, wanted = (np.array(notes['sums'][layer]) for notes in pair)
        if got.shape != wanted.shape:
            return '' if 'reduce_scatter' in dict(pair[0]['events']) else (
                'reduce_scatter is not called.')
        same = np.isclose(got, wanted, rtol=1e-3, atol=1e-6)
        if not same.all():
            at = int(same.argmin())
            return (f'On rank {rank} reduce_scatter gets {brief(got[at])} at '
                    f'place {at}; {brief(wanted[at])} is right.')
    return ('reduce_scatter gets the right gradients.' if change.any() else
            'Change the array in place, or put the new one into the list.')


def _sent(worker, n):
    """The numbers that a worker sends in all-gathers and reduce-scatters."""
    gathers, sums = ([size for kind, size in worker['events'] if kind == call]
                     for call in ('all_gather', 'reduce_scatter'))
    return ((n - 1) * sum(gathers), f'{len(gathers)} all-gathers',
            (n - 1) * sum(sums) // n, f'{len(sums)} reduce-scatters')


def judge_sent(notes: Steps, num_workers: int, widths: Sequence[int],
               steps: int = 1) -> None:
    """The numbers that each worker sends in a step."""
    once = (num_workers - 1) * sum(shard_sizes(widths, num_workers))
    for step, workers in enumerate(notes, 1):
        for rank, worker in enumerate(workers):
            gathered, gathers, summed, sums = _sent(worker, num_workers)
            for many, calls, limits, right in (
                    (summed, sums, f'{once:,}', summed == once),
                    (gathered, gathers, f'{once:,} to {2 * once:,}',
                     once <= gathered <= 2 * once)):
                if not right:
                    raise Wrong(f'step {step}, rank {rank}: it sends {many:,} '
                                f'numbers in {calls}; {limits} are right. One '
                                f'for each layer sends {once:,}.')


def says_sent(notes: Steps, num_workers: int, widths: Sequence[int],
              **_: int) -> str:
    gathered, _, summed, _ = _sent(notes[0][0], num_workers)
    total = sum(layer.size for layer in layers_of(widths))
    return (f'Each worker sends {gathered + summed:,} numbers, '
            f'{(gathered + summed) / total:.3g} for each parameter.')


def judge_held(notes: Steps, num_workers: int, widths: Sequence[int],
               **_: int) -> None:
    """`Watched` has seen nothing that is held too long. Has it looked?"""
    for rank, worker in (pair for step in notes for pair in enumerate(step)):
        calls = [[*call[:2]] for call in worker['seen']]
        for kind in 'forward', 'backward':
            for k in range(len(widths) - 1):
                if [kind, k] not in calls:
                    raise Wrong(f'rank {rank} does not call `{kind}` of layer '
                                f'{k}; one call for each layer is right.')


def picture(answer: Answer) -> Picture:
    """Numbers that worker 0 holds while each layer computes."""
    import pandas as pd

    from d2lps.pictures.rows import legend_below
    n, widths = SHOWN['num_workers'], SHOWN['widths']
    seen = run(answer, **SHOWN)[0][0]['seen']
    if not seen:
        raise Wrong('worker 0 calls no layer: there is nothing to draw.')
    sizes = [layer.size for layer in layers_of(widths)]
    table = pd.DataFrame(
        [(sum(shard_sizes(widths, n)), gathered, sum(sizes[k] for k in grads))
         for *_, gathered, grads in seen],
        [f'{kind} {layer}' for kind, layer, *_ in seen],
        ['own shards', 'gathered parameters', 'whole gradients'])
    ax = bar_chart(table, stacked=True, xlabel='numbers held', title=(
        f'worker 0 of {n} holds {table.sum(axis=1).max()} numbers at most'))
    come = [sizes[layer] * (kind == 'backward') for kind, layer, *_ in seen]
    ax.stairs(sum(sizes) + np.cumsum(come), np.arange(len(come) + 1) - 0.5,
              orientation='horizontal', baseline=None, linestyle='--',
              color='gray', label='data parallelism')
    ax.set_xlim(0, max(2.2 * sum(sizes), ax.get_xlim()[1]))
    legend_below(ax)
    return ax.figure


SHOWN: Case = {'num_workers': 4, 'widths': [11, 8, 12, 8, 12, 8, 12]}
EVEN = [5, 12, 24, 12]  # 72, 312 and 300 numbers: for 1, 2, 3 and 4 workers
TWO_STEPS = [SHOWN, *({'num_workers': n, 'widths': EVEN, 'steps': 2}
                      for n in (2, 3))]
WORKERS = 'num_workers = {num_workers}'  # the case in a message
CHECKS = {
    'params': Check(
        [{'num_workers': n, 'widths': EVEN, 'steps': 3} for n in (2, 3, 4, 1)
         ], run, judge_params,
        'the shards are the same as with SGD on one device.', case=WORKERS),
    'uneven': Check(
        [{'num_workers': 3, 'widths': [3, 5, 2], 'steps': 3},
         {'num_workers': 4, 'widths': [1, 1, 3], 'steps': 2},
         {'num_workers': 2, 'widths': [4, 3, 6, 1], 'steps': 2, 'lr': 0.2,
          'zero_biases': True}],
        run, judge_params, 'the shards are right also if the sizes do not '
                           'divide.', case=WORKERS),
    'sent': Check(
        TWO_STEPS, run, judge_sent,
        'a worker sends at most what two all-gathers and one reduce-scatter '
        'of each layer need.', says_sent, WORKERS),
    'held': Check(
        TWO_STEPS, partial(run, strict=True), judge_held,
        'a worker never holds more than one whole layer.', case=WORKERS)}
