"""Divisions of a model among GPUs: the time of a step, and the best of all.

A step is: the matrix products and the passes over memory of a stage's
layers, as often as there are micro-batches; the sums of tensor parallelism,
which wait for each other; the idle time of the pipeline; and the sums of
gradients, which overlap with the backward pass.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from d2lps.checks import boolean, checked, instance_of, integer, one_of, refuse
from d2lps.planning.gpus import Gpu
from d2lps.planning.memory import (GRADIENT, STATE, WEIGHT, layer_activations,
                                   memory, stage_layers,
                                   stage_parameters)
from d2lps.planning.model import Transformer
from d2lps.planning.network import (gather_time, members, send_time,
                                    sum_time)

if TYPE_CHECKING:
    import pandas as pd

# Matrix products of a training run reach this share of the best that was
# measured. The one constant that we chose with published runs in view: of
# 0.66, 0.68, ... it has the least error for the rows 'in view' of their table.
SHARE = 0.70
RECOMPUTE = 'none', 'selective', 'full'


@dataclass(frozen=True)
class Division:
    """How the training of a model is divided.

    data, tensor, pipeline, context: GPUs along each; their product is the
        number of GPUs. expert: 1, because our model has no experts.
    micro_batch: sequences in a micro-batch. micro_batches: how many of them
        each pipeline goes through in a step.
    interleave: parts of the model that each stage has (1: not interleaved).
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
    expert: int = 1
    micro_batch: int = 1
    micro_batches: int = 1
    interleave: int = 1
    zero: int = 0
    recompute: str = 'none'
    sequence_parallel: bool = True
    flash: bool = True

    def __post_init__(self) -> None:
        for name in ('data', 'tensor', 'pipeline', 'context', 'expert',
                     'micro_batch', 'micro_batches', 'interleave'):
            integer(name, getattr(self, name), most=10 ** 6)
        integer('zero', self.zero, least=0, most=3)
        one_of(*RECOMPUTE)('recompute', self.recompute)
        boolean('sequence_parallel', self.sequence_parallel)
        boolean('flash', self.flash)
        if self.expert > 1:
            refuse('expert', self.expert, '1: a Transformer has no experts')
        if self.interleave > 1 and self.pipeline == 1:
            refuse('interleave', self.interleave, '1 without a pipeline')

    @property
    def gpus(self) -> int:
        """How many GPUs it takes."""
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def batch(self) -> int:
        """Sequences of all GPUs in a step."""
        return self.data * self.micro_batch * self.micro_batches

    def but(self, **changes: Any) -> Division:
        """The same division with some fields changed."""
        return replace(self, **changes)


class Step(NamedTuple):
    """Seconds of a step, by what they are spent on.

    compute: matrix products and passes over memory of all micro-batches.
    tensor, context: sums inside layers, and the ring of keys and values,
        as far as nothing else is computed meanwhile.
    bubble: a stage waits for others; most of it while the pipeline fills
        and empties. sends: messages from stage to stage.
    data: sums of gradients, and gathering of weights, not hidden.
    optimizer: the update, which goes through all optimizer state.
    """
    compute: float
    tensor: float
    context: float
    bubble: float
    sends: float
    data: float
    optimizer: float

    @property
    def seconds(self) -> float:
        """The sum of all."""
        return sum(self)


def fits_model(model: Transformer, division: Division) -> str:
    """Why the model cannot be divided so; '' if it can."""
    if model.heads % division.tensor:
        return f'{model.heads} heads are not divisible by {division.tensor}'
    parts = division.pipeline * division.interleave
    if parts > model.layers + 2:  # embedding and output may be parts, too
        return f'{model.layers} layers are too few for {parts} parts'
    if model.sequence % (2 * division.context) and division.context > 1:
        return (f'{model.sequence} tokens are not divisible by twice '
                f'{division.context}')
    return ''


def _rule(model, division, gpu):
    why = fits_model(model, division)
    if why:
        raise ValueError(f'division does not fit the model: {why}')


a_model = instance_of(Transformer, 'a Transformer, such as LLAMA3_70B')
a_gpu = instance_of(Gpu, 'a Gpu, such as H100')


@checked(_rule, model=a_model, gpu=a_gpu, division=instance_of(
    Division, 'a Division, such as Division(data=8, tensor=8)'))
def step_time(model: Transformer, division: Division, gpu: Gpu) -> Step:
    """The `Step` of a model divided so among such GPUs.

    Ranks are dealt out in the order tensor, context, pipeline, data: the GPUs
    of a tensor-parallel group are neighbours.
    """
    d = division
    M, p = d.micro_batches, d.pipeline
    layers = model.layers / p
    forward, backward = _layer(model, d, gpu)
    tokens = d.micro_batch * model.sequence / d.context
    words = 2 * model.embedding * tokens / d.tensor / (gpu.matmul * SHARE)
    forward_all = layers * sum(forward) + words / p
    backward_all = layers * sum(backward) + 2 * words / p
    each = forward_all + backward_all  # seconds of a micro-batch in a stage
    slowest = _slowest(model, d, sum(forward) + sum(backward), 3 * words)
    bubble = (p - 1) / d.interleave * each + M * max(0, slowest - each)
    send = send_time(gpu, d.tensor * d.context,
                     2 * tokens * model.hidden / d.tensor)
    kinds = [a + b for a, b in zip(forward, backward)]
    compute = M * (layers * kinds[0] + 3 * words / p)
    return Step(compute, M * layers * kinds[1], M * layers * kinds[2], bubble,
                2 * (p - 1) * send + 2 * M * d.interleave * max(
                    0, send - each / 2 / d.interleave) if p > 1 else 0,
                _data(model, d, gpu, forward_all, backward_all),
                _optimizer(model, d, gpu))


def _slowest(model, division, layer, words):
    """Seconds of a micro-batch in the slowest stage.

    The last stage also computes the scores of all words. If layers do not
    divide evenly, it has one less.
    """
    most = stage_layers(model, division)
    spare = most * division.pipeline > model.layers
    return max(most * layer, (most - spare) * layer + words)


def _layer(model, division, gpu):
    """Seconds of a layer and micro-batch: forward, and backward.

    Each is (computing, sums of tensor parallelism, ring of context).
    """
    tensor, context = division.tensor, division.context
    tokens = division.micro_batch * model.sequence / context
    rate = gpu.matmul * SHARE
    matrices = max(2 * model.matrices * tokens / tensor / rate,
                   WEIGHT * model.matrices / tensor / gpu.hbm)
    attention = model.attention * tokens / tensor / rate * (
        0.5 if division.flash else 1)
    # What the backward pass will need is written once and read once. The
    # backward pass reads it, and reads and writes its gradient.
    passes = layer_activations(
        model, division.but(recompute='none')) / gpu.hbm
    scores = 0 if division.flash else (
        5 * model.heads * model.sequence * tokens / tensor / gpu.hbm)
    sums = 2 * sum_time(gpu, *members(gpu, tensor, 1),
                        2 * tokens * model.hidden)
    ring = _ring(model, division, gpu)
    forward = (matrices + attention + 2 * passes, sums,
               max(0, ring - attention))
    # Flash attention computes its scores again: 5 products instead of 4.
    attention_back = attention * (2.5 if division.flash else 2)
    back = [2 * matrices + attention_back + 3 * passes,
            max(0, sums - matrices),  # during the gradients of the weights
            max(0, 2 * ring - attention_back)]
    if division.recompute == 'full':
        back = [a + b for a, b in zip(back, forward)]
    elif division.recompute == 'selective' and not division.flash:
        back[0] += attention + 2 * scores
    return forward, tuple(back)


def _ring(model, division, gpu):
    """Seconds in which keys and values go round the context-parallel GPUs."""
    if division.context == 1:
        return 0.0
    kv_heads = max(1, model.kv_heads / division.tensor)
    tokens = division.micro_batch * model.sequence / division.context
    nbytes = 2 * 2 * tokens * kv_heads * model.hidden / model.heads
    return (division.context - 1) * send_time(gpu, division.tensor, nbytes)


def _data(model, division, gpu, forward, backward):
    """Seconds of gradients' sums and weights' gathers that nothing hides."""
    d = division
    near, _ = members(gpu, d.context, d.tensor)
    more, _ = members(gpu, d.data, d.tensor * d.context * d.pipeline)
    group = near * more, -(-d.data * d.context // (near * more))
    parameters = stage_parameters(model, d)
    scatter = gather_time(gpu, *group, GRADIENT * parameters)
    gather = gather_time(gpu, *group, WEIGHT * parameters)
    if d.zero == 3:  # in each micro-batch, and again for the backward pass
        each = max(0, gather - forward) + max(0, gather + scatter - backward)
        return d.micro_batches * each
    if d.zero == 2:
        return (d.micro_batches * max(0, scatter - backward)
                + max(0, gather - forward))
    if d.zero == 1:
        return max(0, scatter - backward) + max(0, gather - forward)
    return max(0, 2 * scatter - backward)


def _optimizer(model, division, gpu):
    """Seconds in which the update reads and writes all that it needs."""
    shards = division.data * division.context if division.zero else 1
    nbytes = 2 * (WEIGHT + STATE) + GRADIENT
    return stage_parameters(model, division) / shards * nbytes / gpu.hbm


def _divisors(number):
    return [k for k in range(1, number + 1) if number % k == 0]


@checked(model=a_model, gpus=integer, batch=integer, gpu=a_gpu)
def divisions(model: Transformer, gpus: int, batch: int, gpu: Gpu
              ) -> Iterator[Division]:
    """All ways to train a model on so many GPUs with so large a batch.

    batch: sequences in a step. Tensor parallelism stays inside an NVLink
    domain. A context-parallel GPU gets at least 4,096 tokens of a sequence.
    A micro-batch has 1, 2, 4 or 8 sequences. A pipeline is interleaved as
    far as layers divide evenly, up to 8 parts, or not at all.
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


SIDES = ['data', 'tensor', 'pipeline', 'context']
SETTINGS = ['micro_batch', 'interleave', 'zero', 'recompute']


@checked(model=a_model, gpus=integer, batch=integer, gpu=a_gpu)
def plan(model: Transformer, gpus: int, batch: int, gpu: Gpu
         ) -> pd.DataFrame:
    """The best settings for each way to divide a model, the fastest first.

    batch: sequences in a step. Returns a table with a row for each (data,
    tensor, pipeline, context): seconds of a step, MFU (the share of the peak
    that model FLOPs are), GB on the fullest GPU, the settings, the seconds of
    each part of a step ('compute s', ...), and `problem`: empty, or why no
    setting fits. Rows without any that fit stand last, with the setting that
    needs least.
    """
    import pandas as pd  # 0.3 s
    best: dict[tuple, tuple] = {}
    for division in divisions(model, gpus, batch, gpu):
        need = memory(model, division)
        fits = need.fits(gpu)
        sides = tuple(getattr(division, side) for side in SIDES)
        if not fits and sides in best and best[sides][0] < (1, need.total):
            continue
        key = ((0, step_time(model, division, gpu).seconds) if fits else
               (1, need.total))
        if sides not in best or key < best[sides][0]:
            best[sides] = key, division
    if not best:
        raise ValueError(f'batch: no way to give {gpus} GPUs whole '
                         f'micro-batches of {batch} sequences')
    rows = [_row(model, division, gpu)
            for _, division in sorted(best.values(), key=lambda one: one[0])]
    return pd.DataFrame(rows)


def _row(model, division, gpu):
    step, need = step_time(model, division, gpu), memory(model, division)
    gb = need.total / 1e9
    return {**{side: getattr(division, side) for side in SIDES},
            'seconds': step.seconds, 'MFU': mfu(model, division, gpu,
                                                step.seconds),
            'GB': gb, **{name: getattr(division, name) for name in SETTINGS},
            **{f'{part} s': s for part, s in step._asdict().items()},
            'problem': '' if need.fits(gpu) else
            f'needs {gb:,.0f} GB'}


def mfu(model: Transformer, division: Division, gpu: Gpu,
        seconds: float) -> float:
    """The share of the GPUs' peak that the model FLOPs of a step are."""
    tokens = division.batch * model.sequence
    return model.flops * tokens / seconds / division.gpus / gpu.peak
