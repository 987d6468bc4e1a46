"""All divisions of a model, the fastest first."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d2lps.checks import checked, integer
from d2lps.planning.divide import divisions
from d2lps.planning.gpus import Gpu, a_gpu
from d2lps.planning.gpu_memory import memory
from d2lps.planning.model import Transformer, a_model
from d2lps.planning.step import mfu, step_time

if TYPE_CHECKING:
    import pandas as pd

SIDES = ['data', 'tensor', 'pipeline', 'context']
SETTINGS = ['micro_batch', 'interleave', 'zero', 'recompute']


def best_divisions(model: Transformer, gpus: int, batch: int, gpu: Gpu
                   ) -> pd.DataFrame:
    """The best settings for each way to divide a model, the fastest first.

    Of settings that are equally fast, these are the ones with least memory.

    Args:
        batch: sequences in a step, of all GPUs.

    Returns:
        A table with a row for each (data, tensor, pipeline, context): seconds
        of a step, MFU (the share of the peak that model FLOPs are), GB on the
        fullest GPU, the settings, the seconds of each part of a step
        ('compute s', ...), and `problem`: empty, or why no setting fits. Rows
        without a setting that fits stand last, with the one that needs least.

    Raises:
        ValueError: no GPU would get whole micro-batches.
    """
    import pandas as pd  # 0.3 s
    return pd.DataFrame(ranked(model, gpus, batch, gpu))


@checked(model=a_model, gpus=integer, batch=integer, gpu=a_gpu)
def ranked(model: Transformer, gpus: int, batch: int, gpu: Gpu
           ) -> list[dict[str, Any]]:
    """Rows of `best_divisions`, for pages that load no pandas."""
    best: dict[tuple, tuple] = {}
    for division in divisions(model, gpus, batch, gpu):
        need = memory(model, division)
        fits = need.fits(gpu)
        sides = tuple(getattr(division, side) for side in SIDES)
        if not fits and sides in best and best[sides][0] < (1, need.total):
            continue
        # Of two that are as fast, take the one that needs less memory.
        key = ((0, step_time(model, division, gpu).seconds, need.total)
               if fits else (1, need.total))
        if sides not in best or key < best[sides][0]:
            best[sides] = key, division
    if not best:
        raise ValueError(f'batch: no way to give {gpus} GPUs whole '
                         f'micro-batches; it was {batch} sequences')
    return [_row(model, division, gpu)
            for _, division in sorted(best.values(), key=lambda pair: pair[0])]


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
