"""Exercise: which share of their peak the GPUs of a training run use.

To chapter 20, notebooks/20-what-do-i-choose.ipynb.
"""
import math
from collections.abc import Collection

import numpy as np

from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, number)
from d2lps.planning import Transformer

NAMES = ('parameters', 'layers', 'hidden', 'sequence', 'tokens_per_second',
         'gpus', 'peak')
A100, H100 = 312, 989  # TFLOP/s in bfloat16, dense
STEPS = 24  # of a log
# What is not alike in the steps of a log, by its name in `log_of`.
TROUBLES = {'slow': 'the slow steps', 'scatter': 'the scatter of 0.4%',
            'change': 'the change of the number of sequences',
            'commas': 'the commas in its numbers'}


def _forward(parameters, layers, hidden, sequence):
    """FLOPs of a token in the forward pass."""
    one = Transformer(layers, hidden, 1, sequence=sequence)
    return 2 * parameters + layers * one.attention


def _share(tokens_per_second, gpus, peak, **model):
    """Model FLOPs utilization: the backward pass needs twice the forward's."""
    return 3 * _forward(**model) * tokens_per_second / gpus / peak


def _model(billions: float, teraflops: float, **others: float
           ) -> dict[str, float]:
    """The arguments of `_share` for a case: parameters and peak in full."""
    return {**others, 'parameters': billions * 1e9, 'peak': teraflops * 1e12}


def run_mfu(answer: Answer, run: str, published: float = 0,
            **numbers: float) -> dict[str, float]:
    """The result, also with twice one of `NAMES`, by its name."""
    model, found = _model(**numbers), {}
    for name in ('', *NAMES):
        with forbidding(_share, _forward):
            found[name] = number(answer(*[
                model[one] * (1 + (one == name)) for one in NAMES]),
                'A number is wanted, such as 0.4.')
    return found


def judge_mfu(found: Notes, run: str, published: float = 0,
              **numbers: float) -> None:
    model = _model(**numbers)
    mine, right = found[''], _share(**model)
    if math.isclose(mine, right, rel_tol=1e-3):
        return
    text = f'you say {mine:.4g}, and {right:.4g} is right.'
    if published:
        text += f' The source says {published:.1%}.'
    if math.isclose(mine, 100 * right, rel_tol=1e-3):
        text += ' Return a share of 1, not percent.'
    elif math.isclose(mine, right, rel_tol=0.01):
        text += ' An error of up to 0.1% is allowed.'
    elif all(map(math.isfinite, found.values())):
        text += _hint(found, **model)
    raise Wrong(text)


def _hint(found, tokens_per_second, gpus, peak, parameters, **model):
    """Which of the numbers goes into the result in a wrong way."""
    for name, times in ('tokens_per_second', 2), ('gpus', 0.5), ('peak', 0.5):
        if not math.isclose(found[name], times * found[''], rel_tol=1e-3):
            return (f' With twice the `{name}` your result is '
                    f'{found[name] / found[""] if found[""] else 0:.4g} times '
                    f'as large, and {times:g} times is right.')
    more = {name: (found[name] - found['']) * gpus * peak / tokens_per_second
            for name in ('parameters', *model)}  # FLOPs of a token
    each = more.pop('parameters') / parameters
    if not math.isclose(each, 6, rel_tol=1e-3):
        return (f' For each parameter and token you count {each:.4g} FLOPs, '
                'and 6 are right: 2 in the forward pass, and twice as many in '
                'the backward pass.')
    right = 3 * _forward(0, **model)
    name = min(more, key=lambda name: more[name])
    if math.isclose(more[name], right, rel_tol=1e-3):
        return ''
    return (f' With twice the `{name}`, a token needs {more[name]:.4g} FLOPs '
            f'more by your function, and {right:.4g} more are right. '
            'Attention needs 4 in the forward pass, and 8 in the backward '
            'pass, for each layer, hidden number and token of the sequence.')


def _steps(seed, seconds, sequences, without=()):
    """Of each step: its sequences and seconds. without: some `TROUBLES`."""
    random, steps = np.random.default_rng(seed), []
    for step in range(1, STEPS + 1):
        change = step <= STEPS // 2 and 'change' not in without
        many = sequences // 2 if change else sequences
        scatter = 1 + 0.004 * random.normal()
        slow = {1: 9, 2: 1.8}.get(step, 1.0)
        if step in (9, 15, 16, 20):  # the machines did something else, too
            slow = random.uniform(1.4, 2.2)
        steps.append((many, seconds * many / sequences
                      * (1 if 'scatter' in without else scatter)
                      * (1 if 'slow' in without else slow)))
    return steps


def log_of(seed: int, seconds: float, sequences: int,
           without: Collection[str] = (), **numbers: float) -> str:
    """A log that a training run could have written.

    seconds: of a usual step of the second half. sequences: in such a step;
    steps of the first half have half as many. without: some of `TROUBLES`.
    """
    model = _model(**numbers) | {'peak': 1e12}
    comma = '' if 'commas' in without else ','
    lines = ['full recomputation: TFLOP/s count the second forward pass']
    for k, (many, took) in enumerate(_steps(seed, seconds, sequences,
                                            without), 1):
        flops = 4 / 3 * _share(many * model['sequence'] / took, **model)
        lines.append(f'step {k} | {many:{comma}} sequences | {took:.3f} s | '
                     f'loss {4 + 7 / k:.3f} | {flops:.1f} TFLOP/s per GPU')
        if k % 10 == 0:
            lines += [f'checkpoint saved in {2.5 * seconds:.1f} s',
                      f'evaluation | {sequences // 8:{comma}} sequences | '
                      f'{seconds / 30:.3f} s | loss {4.2 + 7 / k:.3f}']
    return '\n'.join(lines)


def run_log(answer: Answer, run: str, seed: int, seconds: float,
            sequences: int, **numbers: float) -> Notes:
    """What is returned for the log, and for logs without some `TROUBLES`.

    A list of (troubles, number), with the log itself first.
    """
    model, found = _model(**numbers), []
    for without in (), *[(one,) for one in TROUBLES], tuple(TROUBLES):
        log = log_of(seed, seconds, sequences, without, **numbers)
        try:
            with forbidding(_share, _forward, _steps):
                mine = answer(log, *[model[name] for name in NAMES
                                     if name in model])
            found.append((without, number(
                mine, 'A number is wanted, such as 0.4.')))
        except Exception:
            if not without:  # only the log itself is graded
                raise
    return found


def judge_log(found: Notes, run: str, seed: int, seconds: float,
              sequences: int, **numbers: float) -> None:
    model = _model(**numbers)

    def rate(without):
        many, took = np.transpose(_steps(seed, seconds, sequences, without))
        return np.median(many * model['sequence'] / took)

    good = next((without for without, mine in found if math.isclose(
        mine, _share(rate(without), **model), rel_tol=5e-3)), None)
    if good is not None and not good:  # the log itself
        return
    (_, mine), right = found[0], _share(rate(()), **model)
    text = (f'you say {mine:.4g}, and {right:.4g} is right, for '
            f'{rate(()):,.0f} tokens in a second.')
    if good is None:
        times = mine / right
        raise Wrong(
            f'{text} Your result is {times:.4g} times as large, and it is '
            'wrong also for a log whose steps are all alike. ' + (
                'That is the second forward pass, which the TFLOP/s of the '
                'log count.' if math.isclose(times, 4 / 3, rel_tol=5e-3) else
                'Is it what `mfu_of` returns for so many tokens in a second?'))
    words = ('a log whose steps are all alike' if len(good) > 1 else
             f'the same log without {TROUBLES[good[0]]}')
    raise Wrong(f'{text} For {words} your result would be right. The median '
                'of the rates of all steps is wanted.')


def picture(mfu_of: Answer) -> Picture:
    """The student's MFU beside the published one, for each known run."""
    from d2lps.figures import describe
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    mine = [run_mfu(mfu_of, **case)[''] for case in PUBLISHED]
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
