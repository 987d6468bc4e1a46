"""Orders of passes: each function returns the passes of one stage, in order.

Literature: GPipe, Huang et al. 2019; 1F1B and its interleaved form, Narayanan
et al. 2021, section 2.2; zero bubble, Qi et al. 2024, section 2.
"""
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NamedTuple, ParamSpec

from d2lps.checks import checked, from_zero, integer

P = ParamSpec('P')


class Pass(NamedTuple):
    """A pass of a micro-batch through the layers of a stage.

    kind: 'F' is a forward pass, 'B' a backward pass. A backward pass can be
        done in two steps: 'I' computes the gradient of the stage's input,
        'W' those of its weights.
    batch: the number of the micro-batch.
    chunk: if the stage has several model chunks, the number of the chunk.
    """
    kind: str
    batch: int
    chunk: int = 0


def _as_tuple(passes: Callable[P, Iterator[Pass]]
              ) -> Callable[P, tuple[Pass, ...]]:
    """A function that returns what `passes` yields: it can be read twice."""
    @wraps(passes)
    def order(*args: P.args, **kwargs: P.kwargs) -> tuple[Pass, ...]:
        return tuple(passes(*args, **kwargs))
    return order


def _fits(stage, num_stages, num_batches, num_chunks=1):
    if stage >= num_stages:
        raise ValueError(f'stage must be at most {num_stages - 1}, the last '
                         f'of {num_stages} stages; it was {stage}')
    if num_chunks > 1 and num_batches % num_stages:
        raise ValueError('num_batches must be a multiple of num_stages, '
                         f'{num_stages}; it was {num_batches}')


SIZES: dict[str, Callable[..., Any]] = {
    'stage': from_zero, 'num_stages': integer, 'num_batches': integer}


@checked(_fits, **SIZES)
@_as_tuple
def gpipe(stage: int, num_stages: int, num_batches: int) -> Iterator[Pass]:
    """First all forward passes, then all backward passes."""
    for batch in range(num_batches):
        yield Pass('F', batch)
    for batch in range(num_batches):
        yield Pass('B', batch)


@checked(_fits, **SIZES)
@_as_tuple
def one_f_one_b(stage: int, num_stages: int, num_batches: int
                ) -> Iterator[Pass]:
    """A few forward passes, then one backward and one forward in turn."""
    ahead = min(num_batches, num_stages - stage)
    for batch in range(ahead):
        yield Pass('F', batch)
    for batch in range(num_batches):
        yield Pass('B', batch)
        if batch + ahead < num_batches:
            yield Pass('F', batch + ahead)


@checked(_fits, **SIZES)
@_as_tuple
def zero_bubble(stage: int, num_stages: int, num_batches: int
                ) -> Iterator[Pass]:
    """ZB-H1: 1F1B, in which the gradients of the weights can wait.

    Stage k is k micro-batches behind with them, so all stages keep as many.
    """
    ahead = min(num_batches, num_stages - stage)
    for batch in range(ahead):
        yield Pass('F', batch)
    for batch in range(num_batches):
        yield Pass('I', batch)
        if batch >= stage:
            yield Pass('W', batch - stage)
        if batch + ahead < num_batches:
            yield Pass('F', batch + ahead)
    for batch in range(max(0, num_batches - stage), num_batches):
        yield Pass('W', batch)


@checked(_fits, **SIZES, num_chunks=integer)
@_as_tuple
def interleaved(stage: int, num_stages: int, num_batches: int,
                num_chunks: int = 2) -> Iterator[Pass]:
    """1F1B, in which each stage has several model chunks.

    Model chunk 1 of stage 0 follows model chunk 0 of the last stage, and so
    on. Each `num_stages` micro-batches go through one model chunk, then
    through the next. With one model chunk it is 1F1B.
    """
    if num_chunks == 1:
        yield from one_f_one_b(stage, num_stages, num_batches)
        return
    forward = [(batch, chunk) for first in range(0, num_batches, num_stages)
               for chunk in range(num_chunks)
               for batch in range(first, first + num_stages)]
    backward = [(batch, num_chunks - 1 - chunk) for batch, chunk in forward]
    ahead = 2 * (num_stages - stage - 1) + (num_chunks - 1) * num_stages + 1
    ahead = min(ahead, len(forward))
    for place in forward[:ahead]:
        yield Pass('F', *place)
    for number, place in enumerate(backward):
        yield Pass('B', *place)
        if number + ahead < len(forward):
            yield Pass('F', *forward[number + ahead])
