"""Runs that were published, and what the planner says of them.

The tables (`notebooks/results/20-published-runs.csv`, and `20-more-runs.csv`)
have for each run the model, the division, what was published, and where. What
a source does not say is named in `assumed`.
"""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from d2lps.checks import checked, one_of, positive, refuse
from d2lps.planning import gpus
from d2lps.planning.divide import Division
from d2lps.planning.gpu_memory import memory
from d2lps.planning.model import Transformer
from d2lps.planning.step import mfu, step_time

if TYPE_CHECKING:
    import pandas as pd

MODEL = ['layers', 'hidden', 'heads', 'kv_heads', 'ffn', 'vocab', 'sequence',
         'gated']
DIVISION = ['data', 'tensor', 'pipeline', 'context', 'micro_batch',
            'micro_batches', 'interleave', 'zero', 'recompute',
            'sequence_parallel', 'flash']
COLUMNS = ['run', 'gpu', *MODEL, *DIVISION, 'published', 'unit']
GPUS = {gpu.name: gpu for gpu in vars(gpus).values()
        if isinstance(gpu, gpus.Gpu)}
UNITS = 'seconds', 'model', 'hardware', 'causal'


def _runs(name, value):
    """A table of runs that can be compared."""
    for column in COLUMNS:
        if column not in getattr(value, 'columns', ()):
            refuse(name, value, 'a table of runs, as from read_runs, with a '
                   f'column {column!r}')
    for _, row in value.iterrows():
        where = f'of the run {row["run"]!r} in {name}'
        one_of(*GPUS)(f'gpu {where}', row['gpu'])
        one_of(*UNITS)(f'unit {where}', row['unit'])
        positive(f'published {where}', row['published'])
    return value


def read_runs(path: str | Path) -> pd.DataFrame:
    """The table of published runs, one run a row.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such table.
    """
    import pandas as pd
    return _runs(str(path), pd.read_csv(path, keep_default_na=False))


def run_of(row: pd.Series) -> tuple[Transformer, Division, gpus.Gpu]:
    """The model, the division and the GPU of a row of the table."""
    def fields(names):
        return {name: row[name].item() if hasattr(row[name], 'item')
                else row[name] for name in names}
    return (Transformer(**fields(MODEL)), Division(**fields(DIVISION)),
            GPUS[row['gpu']])


def published_seconds(row: pd.Series) -> float:
    """Seconds of a step, from what a source says and how it counts.

    'seconds'; or TFLOP/s of each GPU, of model FLOPs ('model'), of those with
    a second forward pass ('hardware'), or of model FLOPs with half of
    attention's ('causal').
    """
    model, division, _ = run_of(row)
    if row['unit'] == 'seconds':
        return float(row['published'])
    attention = 3 * model.layers * model.attention
    again = model.forward - 2 * model.embedding  # all but the output
    flops = {'model': model.flops, 'hardware': model.flops + again,
             'causal': model.flops - attention / 2}[row['unit']]
    tokens = division.batch * model.sequence
    return flops * tokens / division.gpus / (row['published'] * 1e12)


@checked(runs=_runs, attention=positive)
def compare_runs(runs: pd.DataFrame, attention: float | None = None
                 ) -> pd.DataFrame:
    """Predicted beside published, for each run.

    runs: as from `read_runs`. attention: FLOP/s that its kernel reaches, in
        place of what `Gpu.attention` says.
    Returns columns run, GPUs, published and predicted (seconds of a step),
    ratio (predicted over published), MFU of both, GB (predicted).
    """
    import pandas as pd
    rows = []
    for _, row in runs.iterrows():
        model, division, gpu = run_of(row)
        gpu = replace(gpu, attention=attention or gpu.attention)
        published = published_seconds(row)
        predicted = step_time(model, division, gpu).seconds
        rows.append({'run': row['run'], 'GPUs': division.gpus,
                     'published': published, 'predicted': predicted,
                     'ratio': predicted / published,
                     'published MFU': mfu(model, division, gpu, published),
                     'predicted MFU': mfu(model, division, gpu, predicted),
                     'GB': memory(model, division).total / 1e9})
    return pd.DataFrame(rows, index=runs.index)
