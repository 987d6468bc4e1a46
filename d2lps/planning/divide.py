"""Ways to divide a model among GPUs, and those that the planner tries."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from d2lps.checks import (boolean, checked, instance_of, integer, one_of,
                          refuse)
from d2lps.planning.gpus import Gpu, a_gpu
from d2lps.planning.model import Transformer, a_model

RECOMPUTE = 'none', 'selective', 'full'


@dataclass(frozen=True)
class Division:
    """A division of the training of a model.

    data, tensor, pipeline, context: GPUs along each; their product is the
        number of GPUs.
    micro_batch: sequences in a micro-batch. micro_batches: how many of them
        each pipeline goes through in a step.
    interleave: model chunks that each stage has (1: not interleaved).
    zero: the stage of ZeRO, 0 to 3.
    recompute: which activations the backward pass computes again: 'none',
        'selective' (the scores of attention) or 'full' (all of a layer).
    sequence_parallel: between its matrix products, a layer's activations are
        divided among the tensor-parallel GPUs, too.
    flash: attention does not write its scores to memory, and leaves out
        those of later tokens.
    """
    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    micro_batch: int = 1
    micro_batches: int = 1
    interleave: int = 1
    zero: int = 0
    recompute: str = 'none'
    sequence_parallel: bool = True
    flash: bool = True

    def __post_init__(self) -> None:
        for name in ('data', 'tensor', 'pipeline', 'context', 'micro_batch',
                     'micro_batches', 'interleave'):
            integer(name, getattr(self, name), most=10 ** 6)
        integer('zero', self.zero, least=0, most=3)
        one_of(*RECOMPUTE)('recompute', self.recompute)
        boolean('sequence_parallel', self.sequence_parallel)
        boolean('flash', self.flash)
        if self.interleave > 1 and self.pipeline == 1:
            refuse('interleave', self.interleave, '1 without a pipeline')

    @property
    def gpus(self) -> int:
        """The number of GPUs."""
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def batch(self) -> int:
        """Sequences of all GPUs in a step."""
        return self.data * self.micro_batch * self.micro_batches

    def but(self, **changes: Any) -> Division:
        """The same division with some fields changed."""
        return replace(self, **changes)


a_division = instance_of(
    Division, 'a Division, such as Division(data=8, tensor=8)')


def fits_model(model: Transformer, division: Division) -> str:
    """A reason why the model cannot be divided so; '' if it can."""
    if model.heads % division.tensor:
        return f'{model.heads} heads are not divisible by {division.tensor}'
    parts = division.pipeline * division.interleave
    if parts > model.layers + 2:  # embedding and output may be parts, too
        return f'{model.layers} layers are too few for {parts} parts'
    if model.sequence % (2 * division.context) and division.context > 1:
        return (f'{model.sequence} tokens are not divisible by twice '
                f'{division.context}')
    return ''


def _divisors(number):
    return [k for k in range(1, number + 1) if number % k == 0]


@checked(model=a_model, gpus=integer, batch=integer, gpu=a_gpu)
def divisions(model: Transformer, gpus: int, batch: int, gpu: Gpu
              ) -> Iterator[Division]:
    """Ways to train a model on so many GPUs with so large a batch.

    Not all ways: tensor parallelism stays inside an NVLink domain. A
    context-parallel GPU gets at least 4,096 tokens of a sequence. A
    micro-batch has 1, 2, 4 or 8 sequences. A pipeline is interleaved as far
    as layers divide evenly, up to 8 parts, or not at all. ZeRO-2 and ZeRO-3
    are not combined with pipelines. `step_time` and `memory` take other
    divisions, too.

    Args:
        batch: sequences in a step, of all GPUs.
        gpu: says how large an NVLink domain is.
    """
    for tensor in _divisors(gpus):
        if tensor > gpu.domain or model.heads % tensor:
            continue
        for pipeline in _divisors(gpus // tensor):
            rest = gpus // tensor // pipeline
            for context in _divisors(rest):
                sides = Division(rest // context, tensor, pipeline, context)
                if not fits_model(model, sides) and (
                        context == 1 or model.sequence >= 4096 * context):
                    yield from _settings(model, sides, batch)


def _settings(model, sides, batch):
    """Micro-batches, interleaving, ZeRO and recomputation for some sides."""
    parts = [v for v in range(2, 9) if sides.pipeline > 1
             and model.layers % (v * sides.pipeline) == 0]
    shards = sides.data * sides.context
    for micro_batch in 1, 2, 4, 8:
        if batch % (sides.data * micro_batch):
            continue
        count = batch // sides.data // micro_batch
        for interleave in 1, *parts[-1:]:
            if interleave > 1 and count % sides.pipeline:
                continue  # the interleaved schedule needs whole rounds
            for zero in range(4 if shards > 1 else 1):
                if zero > 1 and sides.pipeline > 1:
                    continue  # each micro-batch would send, for little
                for recompute in 'none', 'full':
                    yield sides.but(
                        micro_batch=micro_batch, micro_batches=count,
                        interleave=interleave, zero=zero,
                        recompute=recompute)
