"""Exercise: which share of their peak the GPUs of a training run use.

To chapter 20, notebooks/20-what-do-i-choose.ipynb.
"""
from itertools import product

import numpy as np

from d2lps.exercises.charts import bar_chart
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, number,
                                      returned)
from d2lps.explaining import Facts, brief, same
from d2lps.planning import Transformer

NAMES = ('parameters', 'layers', 'hidden', 'sequence', 'tokens_per_second',
         'gpus', 'peak')
A100, H100 = 312, 989  # TFLOP/s in bfloat16, dense
STEPS = 24  # of a log
NEAR, NEAR_OF_LOG = 1e-3, 5e-3  # the largest relative errors


def _share(parameters, layers, hidden, sequence, tokens_per_second, gpus,
           peak):
    """Model FLOPs utilization: the backward pass needs twice the forward's."""
    attention = Transformer(layers, hidden, 1, sequence=sequence).attention
    forward = 2 * parameters + layers * attention
    return 3 * forward * tokens_per_second / gpus / peak


def _model(billions: float, teraflops: float, **others: float
           ) -> dict[str, float]:
    """The arguments of `_share` for a case: parameters and peak in full."""
    return {**others, 'parameters': billions * 1e9, 'peak': teraflops * 1e12}


def run_mfu(answer: Answer, run: str, published: float = 0,
            **numbers: float) -> float:
    model = _model(**numbers)
    return number(returned(answer, *[model[name] for name in NAMES]),
                  'a number such as 0.4 is right')


def judge_mfu(mine: float, run: str, published: float = 0, **numbers: float
              ) -> None:
    _judge(mine, NEAR, _model(**numbers), {})


def _judge(mine, near, model, known, place=''):
    """Raise `Differs` unless it is the share of a model."""
    right = _share(**model)
    if not same(mine, right, near):
        raise Differs(f'you return {brief(mine)}; {brief(right)} is right',
                      mine, right, near,
                      {name: model[name] for name in ('gpus', 'sequence')},
                      known | _counted(mine, near, **model), place,
                      unit='share')


def _counted(mine: float, near: float, parameters: float, layers: float,
             hidden: float, sequence: float, tokens_per_second: float,
             gpus: float, peak: float) -> Facts:
    """Facts: the FLOPs of a token that a wrong share can count."""
    flops = mine * gpus * peak / tokens_per_second
    numbers = layers * hidden * sequence
    known: Facts = {}
    for each, attention in product(range(0, 9, 2), (0, 2, 4, 6, 8, 12, 16)):
        if same(flops, float(each * parameters + attention * numbers), near):
            known[each, attention] = (
                f'You count {each} FLOPs for each parameter and token; 6 are '
                'right: 2 forward and 4 backward.' if each != 6 else
                'You count no attention.' if not attention
                else f'You count {attention} FLOPs of attention for each '
                'layer, hidden number and token; 12 are right.')
    if same(flops, 6 * parameters + 12 * hidden * sequence, near):
        known['one layer',] = 'In yours, attention counts for one layer only.'
    return known


def _steps(seed, seconds, sequences):
    """Sequences and seconds of each step of a log."""
    random, steps = np.random.default_rng(seed), []
    for step in range(1, STEPS + 1):
        many = sequences // 2 if step <= STEPS // 2 else sequences
        scatter = 1 + 0.004 * random.normal()
        slow = {1: 9, 2: 1.8}.get(step, 1.0)
        if step in (9, 15, 16, 20):  # the machines did something else, too
            slow = random.uniform(1.4, 2.2)
        steps.append((many, seconds * many / sequences * scatter * slow))
    return steps


def log_of(seed: int, seconds: float, sequences: int, **numbers: float
           ) -> str:
    """A log that a training run could have written.

    seconds: of a usual step of the second half. sequences: in such a step;
    steps of the first half have half as many.
    """
    model = _model(**numbers) | {'peak': 1e12}
    lines = ['full recomputation: TFLOP/s count the second forward pass']
    for k, (many, took) in enumerate(_steps(seed, seconds, sequences), 1):
        flops = 4 / 3 * _share(
            tokens_per_second=many * model['sequence'] / took, **model)
        lines.append(f'step {k} | {many:,} sequences | {took:.3f} s | '
                     f'loss {4 + 7 / k:.3f} | {flops:.1f} TFLOP/s per GPU')
        if k % 10 == 0:
            lines += [f'checkpoint saved in {2.5 * seconds:.1f} s',
                      f'evaluation | {sequences // 8:,} sequences | '
                      f'{seconds / 30:.3f} s | loss {4.2 + 7 / k:.3f}']
    return '\n'.join(lines)


def run_log(answer: Answer, run: str, seed: int, seconds: float,
            sequences: int, **numbers: float) -> float:
    model = _model(**numbers)
    log = log_of(seed, seconds, sequences, **numbers)
    return number(returned(answer, log, *[
        model[name] for name in NAMES if name in model]),
        'a number such as 0.4 is right')


def judge_log(mine: float, run: str, seed: int, seconds: float,
              sequences: int, **numbers: float) -> None:
    model = _model(**numbers)
    many, took = np.transpose(_steps(seed, seconds, sequences))
    rates = many / took
    usual = np.median(rates)
    before, after = divmod(many, 1000)
    known = {(key,): f'Yours {mistake}.' for key, mistake, rate in (
        ('mean', 'is the mean of all steps; the median is wanted',
         rates.mean()),
        ('total', 'is that of all steps together; the median of their rates '
         'is wanted', many.sum() / took.sum()),
        ('first', 'is that of the first step', rates[0]),
        ('last', 'is that of the last step', rates[-1]),
        ('before', f'reads {sequences:,} as {sequences // 1000}', np.median(
            np.where(before, before, many) / took)),
        ('after', f'reads {sequences:,} as {sequences % 1000:03}', np.median(
            after / took)),
        ('second', 'counts the forward pass twice, as the TFLOP/s of the log '
         'do', 4 / 3 * usual)) if same(mine, float(_share(
                tokens_per_second=rate * model['sequence'], **model)),
                NEAR_OF_LOG / 5)}
    tokens = float(usual) * model['sequence']
    _judge(mine, NEAR_OF_LOG, {**model, 'tokens_per_second': tokens}, known,
           f'The usual step trains {tokens:,.0f} tokens in a second.')


def picture(mfu_of: Answer) -> Picture:
    """The student's MFU beside the published one, for each known run."""
    import pandas as pd
    return bar_chart(pd.DataFrame(
        {'yours': [run_mfu(mfu_of, **case) for case in PUBLISHED],
         'published': [case['published'] for case in PUBLISHED]},
        [case['run'] for case in PUBLISHED]), xlabel='MFU').figure


def _case(run, billions, layers, hidden, sequence, gpus, teraflops, **more):
    return {'run': run, **more, 'billions': billions, 'layers': layers,
            'hidden': hidden, 'sequence': sequence, 'gpus': gpus,
            'teraflops': teraflops}


def _run(published, sequences, seconds, *case):
    return _case(*case, published=published, tokens_per_second=round(
        sequences * 2048 / seconds, 1))


# Korthikanti et al. 2022, tables 3 and 5: a step has so many sequences and
# takes so many seconds. The last run: MosaicML, llm-foundry, table H100.
PUBLISHED = [
    _run(0.415, 4, 1.10, 'GPT 22B, 8 A100', 22.1, 48, 6144, 2048, 8, A100),
    _run(0.514, 64, 13.75, 'GPT 175B, 64 A100', 174.6, 96, 12288, 2048, 64,
         A100),
    _run(0.560, 280, 37.83, 'GPT 530B, 280 A100', 529.6, 105, 20480, 2048,
         280, A100),
    _run(0.563, 512, 71.49, 'GPT 1000B, 512 A100', 1008, 128, 25600, 2048,
         512, A100),
    _case('MPT 70B, 64 H100', 64.86, 80, 8192, 2048, 64, H100,
          published=0.4257, tokens_per_second=66523)]
LOGS = [
    _case('22B, 8 A100', 22.1, 48, 6144, 2048, 8, A100, seed=1, seconds=5.72,
          sequences=16),
    _case('8B, 32 H100', 8.03, 32, 4096, 8192, 32, H100, seed=2, seconds=30.1,
          sequences=512),
    _case('7B, 16 A100', 6.74, 32, 4096, 2048, 16, A100, seed=3, seconds=80.3,
          sequences=2048)]
CHECKS = {
    'mfu': Check([*PUBLISHED, _case(
        '8B, 131,072 tokens', 8.03, 32, 4096, 131072, 16, H100,
        tokens_per_second=30_000)], run_mfu, judge_mfu,
        'attention counts, and recomputation does not.', case='{run}'),
    'log': Check(LOGS, run_log, judge_log,
                 'the usual step of a run, whatever else its log says.',
                 case='{run}')}
