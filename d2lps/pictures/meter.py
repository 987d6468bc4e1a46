"""Costs of a training step of LeNet, measured at its layers."""
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps

from d2lps.annotations import Array, Device
from d2lps.checks import checked, function, list_of
from d2lps.engine import Traffic, array, array_list, device_list, nbytes


def _before_pooling(function, X, args, result):
    """Bytes that a convolution and its ReLU give out, from the shapes."""
    if function.__name__ != 'conv':
        return 0
    height, width = (n - k + 1 for n, k in zip(X.shape[2:],
                                               args[0].shape[2:]))
    pooled = result.shape[2] * result.shape[3]
    return 2 * nbytes(result) * height * width // pooled


class Meter:
    """Notes what LeNet's layers do in a training step, and what it costs.

    `layers`: the same functions, but each notes its input and its result.
    `calls`: after `measure`, the names of all noted functions, in order.
    """

    @checked(layers=list_of(function, 'the functions of LAYERS'))
    def __init__(self, layers: Sequence[Callable[..., Array]]) -> None:
        self._notes: list[tuple] | None = None  # None: nothing is measured
        self.calls: list[str] = []
        self._noted: set[Callable[..., Array]] = set()
        self.layers = [self.noted(layer) for layer in layers]

    @checked(function=function)
    def noted(self, function: Callable[..., Array]) -> Callable[..., Array]:
        """The same function, but `measure` notes its calls."""
        if function in self._noted:  # a cell that ran twice
            return function

        @wraps(function)
        def call(X, *args):
            result = function(X, *args)
            if self._notes is not None:
                self._notes.append((function.__name__, X, result,
                                    _before_pooling(function, X, args,
                                                    result)))
            return result
        self._noted.add(call)
        return call

    @checked(step=function, placed=list_of(array_list, 'lists of parameters'),
             devices=device_list, X=array, y=array)
    def measure(self, step: Callable[..., object],
                placed: Sequence[Sequence[Array]], devices: Sequence[Device],
                X: Array, y: Array) -> tuple[list[int], list[int], int]:
        """Run `step(X, y, placed, devices)`; what the first `Costs` were.

        If the output of a layer is the input of the next one, it is one
        array in memory, and is counted once.
        """
        notes: list[tuple] = []
        self._notes = notes
        try:
            with Traffic() as traffic:
                step(X, y, placed, devices)
        finally:
            self._notes = None
        self.calls = [name for name, *_ in notes]
        layers = [note for note in notes
                  if note[0] in ('conv', 'hidden', 'output')]
        kept = {id(array): array for _, taken, given, _ in layers
                for array in (taken, given)}
        active: Counter[Device] = Counter()  # bytes on each device
        for array in kept.values():
            active[array.ctx] += nbytes(array)
        for _, _, given, inside in layers:
            active[given.ctx] += inside
        return ([sum(map(nbytes, part)) for part in placed],
                [active[device] for device in devices], traffic.bytes)
