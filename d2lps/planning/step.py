"""The time of a training step, and of its parts.

A step is: the matrix products and the passes over memory of a stage's
layers, as often as there are micro-batches; the sums of tensor parallelism,
which wait for each other; the idle time of the pipeline; and the sums of
gradients, which overlap with the backward pass.

Attention has a rate of its own, `Gpu.attention`, which depends on the kernel.
With long sequences it decides how long a step takes.
"""
from typing import NamedTuple

from d2lps.checks import checked, positive
from d2lps.planning.divide import Division, a_division, fits_model
from d2lps.planning.gpus import Gpu, a_gpu
from d2lps.planning.gpu_memory import (GRADIENT, STATE, WEIGHT,
                                       layer_activations, stage_layers,
                                       stage_parameters)
from d2lps.planning.model import Transformer, a_model
from d2lps.planning.network import (gather_time, members, send_time,
                                    sum_time)

# Matrix products of a training run reach this share of the best that was
# measured. The one constant that we chose with published runs in view: of
# 0.66, 0.68, ... it has the least error for the rows 'in view' of their table.
SHARE = 0.70


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


def _rule(model, division, gpu):
    why = fits_model(model, division)
    if why:
        raise ValueError(f'division does not fit the model: {why}')


@checked(_rule, model=a_model, gpu=a_gpu, division=a_division)
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
    vocabulary = 2 * model.embedding * tokens / d.tensor / (gpu.matmul * SHARE)
    forward_all = layers * sum(forward) + vocabulary / p
    backward_all = layers * sum(backward) + 2 * vocabulary / p
    each = forward_all + backward_all  # seconds of a micro-batch in a stage
    slowest = _slowest(model, d, sum(forward) + sum(backward), 3 * vocabulary)
    bubble = (p - 1) / d.interleave * each + M * max(0, slowest - each)
    send = send_time(gpu, d.tensor * d.context, p,
                     2 * tokens * model.hidden / d.tensor)
    kinds = [a + b for a, b in zip(forward, backward)]
    compute = M * (layers * kinds[0] + 3 * vocabulary / p)
    return Step(compute, M * layers * kinds[1], M * layers * kinds[2], bubble,
                2 * (p - 1) * send + 2 * M * d.interleave * max(
                    0, send - each / 2 / d.interleave) if p > 1 else 0,
                _data(model, d, gpu, forward_all, backward_all),
                _optimizer(model, d, gpu))


def _slowest(model, division, layer, vocabulary):
    """Seconds of a micro-batch in the slowest stage.

    The last stage also computes the scores of all words. If layers do not
    divide evenly, it has one less.
    """
    most = stage_layers(model, division)
    spare = most * division.pipeline > model.layers
    return max(most * layer, (most - spare) * layer + vocabulary)


def _layer(model, division, gpu):
    """Seconds of a layer and micro-batch: forward, and backward.

    Each is (computing, sums of tensor parallelism, ring of context).
    """
    tensor, context = division.tensor, division.context
    tokens = division.micro_batch * model.sequence / context
    rate = gpu.matmul * SHARE
    matrices = max(2 * model.matrices * tokens / tensor / rate,
                   WEIGHT * model.matrices / tensor / gpu.hbm)
    attention = model.attention * tokens / tensor * (
        0.5 / gpu.attention if division.flash else 1 / rate)
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
            _waits_back(division, sums, matrices),
            max(0, 2 * ring - attention_back)]
    if division.recompute == 'full':
        back = [a + b for a, b in zip(back, forward)]
    elif division.recompute == 'selective' and not division.flash:
        back[0] += attention + 2 * scores
    return forward, tuple(back)


def _waits_back(division, sums, matrices):
    """Seconds in which the backward pass of a layer waits for sums.

    The sums of gradients go on while gradients of weights are computed. With
    sequence parallelism, each sum is a reduce-scatter, which goes on in this
    way, and an all-gather, for which all wait. Inputs are gathered again,
    while gradients of inputs are computed (Korthikanti et al. 2022, section
    4.2.2).
    """
    if division.sequence_parallel:
        return sums / 2 + 2 * max(0, sums / 2 - matrices)
    return max(0, sums - matrices)


def _ring(model, division, gpu):
    """Seconds in which keys and values go round the context-parallel GPUs."""
    if division.context == 1:
        return 0.0
    kv_heads = max(1, model.kv_heads / division.tensor)
    tokens = division.micro_batch * model.sequence / division.context
    nbytes = 2 * 2 * tokens * kv_heads * model.hidden / model.heads
    return (division.context - 1) * send_time(
        gpu, division.tensor, division.context, nbytes)


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


@checked(model=a_model, division=a_division, gpu=a_gpu, seconds=positive)
def mfu(model: Transformer, division: Division, gpu: Gpu,
        seconds: float) -> float:
    """The share of the GPUs' peak that the model FLOPs of a step are.

    They count attention in full, of which flash attention leaves out half:
    with long sequences, MFU can be higher than matrix products reach.
    """
    tokens = division.batch * model.sequence
    return model.flops * tokens / seconds / division.gpus / gpu.peak
