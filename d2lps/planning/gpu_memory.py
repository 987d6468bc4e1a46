"""Bytes on each GPU: what is held for the model, and what for a step.

Mixed precision with Adam (Rajbhandari et al. 2020, section 3.1): 2 bytes for
a weight, 2 for its gradient, and 12 for its copy in fp32 and Adam's two
means. ZeRO shards them over the data-parallel GPUs: stage 1 the 12, stage 2
the gradients too, stage 3 all 16. Activations: Korthikanti et al. 2022.
"""
from __future__ import annotations

from typing import NamedTuple

from d2lps.checks import checked
from d2lps.planning.divide import Division, a_division
from d2lps.planning.gpus import Gpu, a_gpu
from d2lps.planning.model import Transformer, a_model

WEIGHT, GRADIENT, STATE = 2, 2, 12  # bytes for each parameter
# What else lies on a GPU: the CUDA context, buffers of NCCL, and holes
# between arrays. Our assumption.
RESERVED = 4e9


class Memory(NamedTuple):
    """Bytes on the fullest GPU."""
    weights: float
    gradients: float
    state: float
    activations: float

    @property
    def total(self) -> float:
        """The sum of all, in bytes."""
        return sum(self)

    @checked(gpu=a_gpu)
    def fits(self, gpu: Gpu) -> bool:
        """Is there room on such a GPU, with `RESERVED` bytes left free?"""
        return self.total <= gpu.memory - RESERVED


def model_states(parameters: float, shards: int = 1, zero: int = 0
                 ) -> tuple[float, float, float]:
    """Bytes for weights, gradients and optimizer state on a GPU.

    Args:
        parameters: how many this GPU is responsible for.
        shards: how many GPUs are responsible for the same ones.
        zero: the stage of ZeRO, 0 to 3.
    """
    return (WEIGHT * parameters / (shards if zero >= 3 else 1),
            GRADIENT * parameters / (shards if zero >= 2 else 1),
            STATE * parameters / (shards if zero >= 1 else 1))


@checked(model=a_model, division=a_division)
def layer_activations(model: Transformer, division: Division) -> float:
    """Bytes that one layer keeps for the backward pass of a micro-batch.

    Without division and recomputation, GPT's layer keeps
    s b h (34 + 5 a s / h) bytes (equation 2 of Korthikanti et al.).
    """
    tokens = division.micro_batch * model.sequence / division.context
    hidden, tensor = model.hidden, division.tensor
    whole = tensor if division.sequence_parallel else 1
    if division.recompute == 'full':
        return 2 * tokens * hidden / whole  # the input of the layer
    split, unsplit = per_token(model)
    scores = 0 if division.flash or division.recompute == 'selective' else (
        5 * model.heads * model.sequence)
    return tokens * ((split + scores) / tensor + unsplit / whole)


def per_token(model: Transformer) -> tuple[float, float]:
    """Bytes that a layer keeps for a token, without the scores of attention.

    The first part is divided by tensor parallelism, the second only with
    sequence parallelism. GPT: 24 and 10 times `hidden`.
    """
    hidden, kv = model.hidden, model.hidden * model.kv_heads / model.heads
    attention = 4 * hidden + 4 * kv  # q and the result; k and v
    feed_forward = (6 if model.gated else 4) * model.ffn
    masks = 0 if model.gated else 2  # of dropout
    return attention + feed_forward, (8 + masks) * hidden


def stage_layers(model: Transformer, division: Division) -> int:
    """Layers of the stage that has most of them."""
    return -(-model.layers // division.pipeline)


def stage_parameters(model: Transformer, division: Division) -> float:
    """Parameters for which a GPU of the first or last stage is responsible."""
    ends = 1 if division.pipeline > 1 or not model.gated else 2
    return (stage_layers(model, division) * model.layer
            + ends * model.embedding) / division.tensor


@checked(model=a_model, division=a_division)
def memory(model: Transformer, division: Division) -> Memory:
    """Bytes on the fullest GPU, of the first or of the last stage.

    The first stage of a pipeline (1F1B) keeps the activations of as many
    micro-batches as there are stages; the last keeps one, and the scores of
    all words of the vocabulary. With ZeRO-3, one layer is there in whole.
    """
    p = division.pipeline
    stage = layer_activations(model, division) * stage_layers(model, division)
    in_flight: float = min(division.micro_batches, p)
    if division.interleave > 1:
        in_flight *= 1 + (p - 1) / (p * division.interleave)
    tokens = division.micro_batch * model.sequence / division.context
    logits = 4 * tokens * (model.hidden + model.vocab) / division.tensor
    activations = max(stage * in_flight, stage + logits)
    if division.recompute == 'full':
        kept = division.but(recompute='none')
        activations += layer_activations(model, kept)  # of the one in work
    weights, gradients, state = model_states(
        stage_parameters(model, division),
        division.data * division.context, division.zero)
    if division.zero == 3:
        weights += WEIGHT * model.layer / division.tensor
    return Memory(weights, gradients, state, activations)
