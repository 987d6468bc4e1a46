"""Exercise: which share of their peak the GPUs of a training run use.

To chapter 20, notebooks/20-what-do-i-choose.ipynb.
"""
import math
import re

import numpy as np

from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, scalar)

NAMES = ('parameters', 'layers', 'hidden', 'sequence', 'tokens_per_second',
         'gpus', 'peak')
A100, H100 = 312, 989  # TFLOP/s in bfloat16, dense


def _share(parameters, layers, hidden, sequence, tokens_per_second, gpus,
           peak, each=6, attention=12):
    """Model FLOPs utilization, or with other factors."""
    flops = each * parameters + attention * layers * hidden * sequence
    return flops * tokens_per_second / gpus / peak


def _model(billions: float, teraflops: float, **others: float
           ) -> dict[str, float]:
    """The arguments of `_share` for a case: parameters and peak in full."""
    return {**others, 'parameters': billions * 1e9, 'peak': teraflops * 1e12}


def _number(found):
    try:
        if isinstance(found, (str, bytes)):
            raise TypeError
        return float(scalar(found))
    except (TypeError, ValueError):
        raise Wrong(f'your function returned {shown(found)}. A number is '
                    'wanted, such as 0.4.') from None


def run_mfu(answer: Answer, run: str, published: float = 0,
            **numbers: float) -> float:
    model = _model(**numbers)
    with forbidding(_share):
        return _number(answer(*[model[name] for name in NAMES]))


def _says(mine, right, text, mistakes, hint=''):
    """Raise `Wrong` with the words of the mistakes that give this number."""
    if not math.isfinite(mine):
        raise Wrong(f'your function returned {mine}; it must be finite.')
    fit = [words for words, wrong in mistakes.items()
           if math.isclose(mine, wrong, rel_tol=1e-3)]
    if math.isclose(mine, 100 * right, rel_tol=0.02):
        fit = ['This looks like percent. A share of 1 is wanted.', *fit]
    if not fit and hint:
        fit = [hint]
    if len(fit) > 1:
        text += ' More than one mistake gives this number.'
    raise Wrong(' '.join([text, *fit[:4]]))


def judge_mfu(found: Notes, run: str, published: float = 0,
              **numbers: float) -> None:
    model = _model(**numbers)
    right = _share(**model)
    if math.isclose(found, right, rel_tol=1e-3):
        return
    text = f'you say {found:.4g}, and {right:.4g} is right.'
    if published:
        text += f' The source says {published:.1%}.'
    _says(found, right, text, {words: _share(**{**model, **changes})
                               for words, changes in _mistakes(**model)})


def _mistakes(layers: float, hidden: float, sequence: float, gpus: float,
              **_: float) -> list[tuple[str, dict[str, float]]]:
    """Words about likely mistakes, and what `_share` then gets."""
    return [
        ('Attention is missing: 12 FLOPs for each number, layer and token of '
         'the sequence.', {'attention': 0}),
        ('Attention counts in full, though a causal model computes half of '
         'it.', {'attention': 6}),
        ('The attention of each layer counts.', {'attention': 12 / layers}),
        ('A token meets every token of its sequence: is `sequence` missing?',
         {'attention': 12 / sequence}),
        ('These are the FLOPs of the forward pass alone.',
         {'each': 2, 'attention': 4}),
        ('The backward pass takes twice as many FLOPs as the forward pass.',
         {'each': 4, 'attention': 8}),
        ('You count a second forward pass. Recomputed layers do not count.',
         {'each': 8, 'attention': 16}),
        ('The attention of the backward pass is missing.', {'attention': 4}),
        ('With the backward pass, the 4 FLOPs of attention become 12, not '
         '36.', {'attention': 36}),
        ('Attention needs hidden times sequence, not hidden squared.',
         {'attention': 12 * hidden / sequence}),
        ('All GPUs together have `gpus` times the peak, and '
         '`tokens_per_second` is the number of all of them.', {'gpus': 1}),
        ('This would be right for one token in a second.',
         {'tokens_per_second': 1}),
        ('Divide by the number of GPUs; do not multiply.',
         {'gpus': 1 / gpus})]


LINE = re.compile(r'step (\d+) \| ([\d,]+) sequences \| ([\d.]+) s \| .* '
                  r'\| ([\d.]+) TFLOP/s')


def log_of(seed: int, seconds: float, sequences: int, **numbers: float
           ) -> str:
    """A log that a training run could have written.

    seconds: of a usual step of the second half. sequences: in such a step;
    steps of the first half have half as many.
    """
    model, random = _model(**numbers), np.random.default_rng(seed)
    lines = ['full recomputation: TFLOP/s count the second forward pass']
    for step in range(1, 25):
        many = sequences if step > 12 else sequences // 2
        took = seconds * many / sequences * (1 + 0.004 * random.normal()) * {
            1: 9, 2: 1.8}.get(step, 1)
        if step in (9, 15, 16, 20):  # the machines did something else, too
            took *= random.uniform(1.4, 2.2)
        rate = many * model['sequence'] / took
        flops = _share(**{**model, 'tokens_per_second': rate, 'peak': 1e12,
                          'each': 8, 'attention': 16})
        lines.append(f'step {step} | {many:,} sequences | {took:.3f} s | '
                     f'loss {4 + 7 / step:.3f} | {flops:.1f} TFLOP/s per GPU')
        if step % 10 == 0:
            lines += [f'checkpoint saved in {2.5 * seconds:.1f} s',
                      f'evaluation | {sequences // 8:,} sequences | '
                      f'{seconds / 30:.3f} s | loss {4.2 + 7 / step:.3f}']
    return '\n'.join(lines)


def run_log(answer: Answer, run: str, seed: int, seconds: float,
            sequences: int, **numbers: float) -> float:
    text = log_of(seed, seconds, sequences, **numbers)
    model = _model(**numbers)
    with forbidding(_share, _rates):
        return _number(answer(text, *[model[name] for name in NAMES
                                      if name in model]))


def _rates(text, sequence):
    """(steps, 3): tokens, seconds, TFLOP/s of each step, as the log has them.
    """
    rows = [[float(one.replace(',', '')) for one in row]
            for row in LINE.findall(text)]
    _, sequences, seconds, tflops = np.array(rows).T
    return np.array([sequence * sequences, seconds, tflops]).T


def judge_log(found: Notes, run: str, seed: int, seconds: float,
              sequences: int, **numbers: float) -> None:
    text = log_of(seed, seconds, sequences, **numbers)
    model = _model(**numbers)
    tokens, took, tflops = _rates(text, model['sequence']).T
    rates = tokens / took

    def of(rate):
        return _share(**{**model, 'tokens_per_second': rate})

    usual = np.median(rates)
    right = of(usual)
    if math.isclose(found, right, rel_tol=5e-3):
        return
    _says(found, right,
          f'you say {found:.4g}, and {right:.4g} is right.', {
              'The TFLOP/s of this log count recomputation, and MFU does '
              'not.': np.median(tflops) * 1e12 / model['peak'],
              'This is a mean. Late steps pull it; take the median.':
                  of(rates.mean()),
              'This is a mean without the first two steps. Other steps are '
              'late, too; take the median.': of(rates[2:].mean()),
              'These are all tokens divided by all seconds. Late steps pull '
              'it; take the median of the rates.':
                  of(tokens.sum() / took.sum()),
              'These are tokens divided by seconds, of all steps but the '
              'first two. Late steps pull it; take the median of the rates.':
                  of(tokens[2:].sum() / took[2:].sum()),
              'Steps have different numbers of sequences: first work out the '
              'tokens per second of each step, then the median.':
                  of(np.median(tokens) / np.median(took)),
              'These are sequences per second: each has `sequence` tokens.':
                  of(usual / model['sequence']),
              'Are the fastest steps the usual ones?':
                  of(rates.max()),
              f'{sequences:,} is written with a comma. Did your function read '
              'the digits on one side of it only?': min(
                  (of(one) for one in _cut(text, model['sequence'])),
                  key=lambda one: abs(one - found)),
              **{f'Is this the formula of `mfu_of`? {words}': _share(**{
                  **model, 'tokens_per_second': usual, **changes})
                 for words, changes in _mistakes(**model)
                 if changes != {'each': 8, 'attention': 16}}},
          'Print the rates of all steps of this log: which are far from the '
          'others, and which did your function choose?')


def _cut(text, sequence):
    """Tokens per second, if a number is read to its comma, or from there."""
    for pattern in r',\d{3}(?= sequences)', r'\d+,(?=\d{3} sequences)':
        tokens, took, _ = _rates(re.sub(pattern, '', text), sequence).T
        yield np.median(tokens / took)


def picture(mfu_of: Answer) -> Picture:
    """The student's MFU beside the published one, for each known run."""
    from d2lps.figures import describe
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    mine = [run_mfu(mfu_of, **case) for case in PUBLISHED]
    figure = new_figure(WIDE, 2.8)
    ax = figure.subplots()
    ax.barh(range(len(mine)), mine, 0.6, color=BLUE, label='yours')
    ax.plot([case['published'] for case in PUBLISHED], range(len(mine)), 'D',
            color=ORANGE, markeredgecolor='black', label='published')
    ax.set(yticks=range(len(mine)), ylim=(len(mine) - 0.5, -0.5),
           yticklabels=[case['run'] for case in PUBLISHED], xlabel='MFU')
    ax.grid(False, axis='y')
    legend_below(ax)
    describe(ax, '; '.join(
        f'{case["run"]}: yours {one:.3g}, published {case["published"]:.3g}'
        for case, one in zip(PUBLISHED, mine)) + '.')
    return figure


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
        '8B, long sequences', 8.03, 32, 4096, 131072, 16, H100,
        tokens_per_second=30_000)], run_mfu, judge_mfu,
        'attention counts, and recomputation does not.'),
    'log': Check(LOGS, run_log, judge_log,
                 'the usual step of a run, whatever else its log says.')}
