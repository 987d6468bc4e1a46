"""Exercise: choose how to divide a model among GPUs, and defend the choice.

To chapter 20, notebooks/20-what-do-i-choose.ipynb. The planner judges.
"""
import math
from dataclasses import asdict, replace
from functools import cache
from typing import Any, NamedTuple, TypedDict

import numpy as np

from d2lps.collectives.machines.rates import CARD
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      numbers, returned, without)
from d2lps.explaining import same
from d2lps.planning import (A100, H100, LLAMA3_8B, Division, Gpu, Step,
                            Transformer, best_divisions, divisions, memory,
                            step_time)
from d2lps.planning.divide import fits_model
from d2lps.planning.gpu_memory import (layer_activations, model_states,
                                       per_token, stage_layers,
                                       stage_parameters)
from d2lps.planning.ranking import SIDES

FREE = 1 / 8  # of a GPU's memory, for what the planner does not know
NEAR, NEAR_OTHER = 1.12, 1.15  # times the best, at this and other rates
BYTES = 'weights', 'gradients', 'optimizer state', 'activations'


class Cluster(NamedTuple):
    """A model and the GPUs that train it. batch: sequences in a step."""
    model: Transformer
    gpus: int
    batch: int
    gpu: Gpu

    def most(self) -> float:
        """Bytes that a division may need on a GPU: an eighth stays free."""
        return self.gpu.memory * (1 - FREE)


# In the second cluster, 8 GPUs share one card of 100 Gbit/s.
CLUSTERS = {
    'two machines': Cluster(Transformer(40, 5120, 40), 16, 256, A100),
    'slow network': Cluster(Transformer(48, 7168, 56), 32, 256, replace(
        A100, name='A100 40 GB', memory=40e9, hbm=1.555e12,
        network=CARD.usable / 8)),
    'long sequences': Cluster(replace(LLAMA3_8B, sequence=65536), 8, 16,
                              H100)}


def _right(model, d):
    """Bytes for each of `BYTES`: the planner's, without vocabulary."""
    kept = (layer_activations(model, d) * stage_layers(model, d)
            * min(d.micro_batches, d.pipeline))
    if d.recompute == 'full':  # the layer in work
        kept += layer_activations(model, d.but(recompute='none'))
    return [*model_states(stage_parameters(model, d), d.data * d.context,
                          d.zero),
            kept]


def _model(layers, hidden, sequence):
    return Transformer(layers, hidden, hidden // 128, sequence=sequence)


def _steps_to(division):
    """Divisions from one GPU to this one: a field more is set in each."""
    return [Division(**dict([*division.items()][:many]))
            for many in range(len(division) + 1)]


def run_bytes(answer: Answer, layers: int, hidden: int,
              sequence: int = 2048, **division: Any) -> list[list[float]]:
    """Four numbers of bytes for each division of `_steps_to`."""
    without(answer, model_states, layer_activations, memory, per_token,
            stage_layers, stage_parameters)
    model = _model(layers, hidden, sequence)
    return [_four(returned(answer, model, d)) for d in _steps_to(division)]


def _four(result):
    return numbers(result, 4, 'four numbers of bytes are right: '
                   f'{", ".join(BYTES)}.')


def judge_bytes(notes: list[list[float]], layers: int, hidden: int,
                sequence: int = 2048, **division: Any) -> None:
    model, steps = _model(layers, hidden, sequence), _steps_to(division)
    for name, mine, true in zip(BYTES, np.transpose(notes), np.transpose(
            [_right(model, d) for d in steps])):
        right = [same(*pair) for pair in zip(mine.tolist(), true.tolist())]
        if not right[-1]:
            tokens = f' and sequences of {sequence:,}' * (sequence != 2048)
            raise Differs(
                f'for {_code_of(steps[-1])}{tokens} you count '
                f'{_bytes(mine[-1])} of {name}; {_bytes(true[-1])} is right',
                float(mine[-1]), float(true[-1]),
                values={**vars(model), **division}, unit='bytes',
                place=_place(mine, true, right.index(False), division))


def _bytes(number):
    return f'{number / 1e9:,.4g} GB' if abs(number) >= 1e6 else (
        f'{number:,.4g} bytes')


def _place(mine, true, first, division):
    """Words about the field with which a number begins to be wrong."""
    if not first:
        return (f'On one GPU, with Division(), you count {_bytes(mine[0])}; '
                f'{_bytes(true[0])} is right.')
    *simpler, last = _fields(dict([*division.items()][:first]))
    return (f'Yours is right for Division({", ".join(simpler)}), and wrong '
            f'with {last}.')


def _fields(division):
    return [f'{name}={value!r}' for name, value in division.items()]


def _code_of(division):
    """A division as code: the fields that are not left as they are."""
    usual = asdict(Division())
    return 'Division({})'.format(', '.join(_fields({
        name: value for name, value in asdict(division).items()
        if value != usual[name]})))


class Choice(TypedDict):
    """Two divisions as dictionaries, and the part that slows the rival."""
    mine: dict
    rival: dict
    part: str


def run_choice(answer: Answer, cluster: str, network: float = 1) -> Choice:
    """The choice, the rival, and the part in which the rival is slower."""
    without(answer, best_divisions, divisions)
    choice = returned(answer, cluster)
    try:
        mine, rival, part = choice
        if not (isinstance(mine, Division) and isinstance(rival, Division)
                and isinstance(part, str)):
            raise TypeError
    except (TypeError, ValueError):
        parts = choice if isinstance(choice, (list, tuple)) else [choice]
        kinds = ', '.join(type(value).__name__ for value in parts)
        raise Wrong(f'you return {kinds}; Division, Division, str are right: '
                    'yours, a rival, and the name of a part.', anywhere=True
                    ) from None
    return {'mine': asdict(mine), 'rival': asdict(rival), 'part': str(part)}


def _asked(cluster, network):
    """The cluster, with a faster or slower network."""
    asked = CLUSTERS[cluster]
    return asked._replace(gpu=replace(
        asked.gpu, network=network * asked.gpu.network))


def _step(cluster, division):
    return step_time(cluster.model, division, cluster.gpu)


def _limit(network):
    return NEAR if network == 1 else NEAR_OTHER


@cache
def _near(cluster, network):
    """All divisions that fit and are near the best: {division: seconds}."""
    asked = _asked(cluster, network)
    seconds_of = {d: _step(asked, d).seconds for d in divisions(*asked)
                  if d.interleave == 1
                  and memory(asked.model, d).total <= asked.most()}
    return {d: seconds for d, seconds in seconds_of.items()
            if seconds <= _limit(network) * min(seconds_of.values())}


def _kind(division):
    return tuple(getattr(division, side) for side in SIDES)


def _look_at(name, asked, d):
    """Raise `Wrong` if a division is not possible here, or does not fit."""
    for count_of, has, right, factors in (
            ('GPUs', d.gpus, asked.gpus, SIDES),
            ('sequences in a step', d.batch, asked.batch,
             ('data', 'micro_batch', 'micro_batches'))):
        if has != right:
            raise Wrong(f'{name} has {has} {count_of}; {right} are right: the '
                        f'product of {", ".join(factors)}.')
    why = fits_model(asked.model, d)
    if why or d.interleave > 1:
        raise Wrong(f'{name} is not possible: '
                    f'{why or "leave interleave at 1"}.')
    need = memory(asked.model, d)
    if need.total > asked.most():
        k = np.argmax(need)
        raise Wrong(f'{name} needs {need.total / 1e9:.1f} GB on a GPU; at '
                    f'most {asked.most() / 1e9:.1f} GB is right. '
                    f'{need[k] / 1e9:.1f} GB of it are {BYTES[k]}.')


def judge_choice(notes: Choice, cluster: str, network: float = 1) -> None:
    asked, mine = _asked(cluster, network), Division(**notes['mine'])
    _look_at('your choice', asked, mine)
    step, near = _step(asked, mine), _near(cluster, network)
    most = _limit(network) * min(near.values())
    if step.seconds <= most:
        return
    # Of the divisions that are near the best, the one with most similar sides.
    other = min(near, key=lambda d: (sum(
        abs(math.log2(a / b)) for a, b in zip(_kind(d), _kind(mine))),
        near[d]))
    part, seconds, fewer = max(
        zip(Step._fields, step, _step(asked, other)),
        key=lambda row: row[1] - row[2])
    raise Wrong(f'a step takes {step.seconds:.2f} s; at most {most:.2f} s is '
                f'right. {part!r} takes {seconds:.2f} s; in the most similar '
                f'fast division it takes {fewer:.2f} s.')


def judge_rival(notes: Choice, cluster: str, network: float = 1) -> None:
    asked, part = _asked(cluster, network), notes['part']
    mine, rival = (Division(**notes[name]) for name in ('mine', 'rival'))
    if part not in Step._fields:
        raise Wrong(f'you return the part {part!r}; one of '
                    f'{", ".join(Step._fields)} is right.', anywhere=True)
    _look_at('your choice', asked, mine)
    _look_at('your rival', asked, rival)
    if _kind(mine) == _kind(rival):
        raise Wrong(f'your choice and your rival both have {", ".join(SIDES)} '
                    f'= {", ".join(map(str, _kind(mine)))}; at least two must '
                    'differ.')
    a, b = _step(asked, mine), _step(asked, rival)
    if b.seconds < 1.02 * a.seconds:
        raise Wrong(f'your choice takes {a.seconds:.2f} s, and your rival '
                    f'{b.seconds:.2f} s; {1.02 * a.seconds:.2f} s or more is '
                    'right for the rival.')
    more = {name: getattr(b, name) - getattr(a, name) for name in Step._fields}
    if more[part] < 0.75 * max(more.values()):
        raise Wrong(f'from your step to your rival\'s, {part!r} changes by '
                    f'{more[part]:+.2f} s; another part changes by '
                    f'{max(more.values()):+.2f} s.')


def picture(choose: Answer) -> Picture:
    """The parts of a step, of each choice and of its rival."""
    import pandas as pd
    from matplotlib import pyplot as plt

    from d2lps.figures import describe
    from d2lps.pictures.planning_plots import plot_parts
    from d2lps.pictures.rows import legend_below
    steps = {}
    for name in CLUSTERS:
        asked, choice = _asked(name, 1), run_choice(choose, name)
        for who, division in (('you', choice['mine']),
                              ('your rival', choice['rival'])):
            d = Division(**division)
            step, need = _step(asked, d), memory(asked.model, d)
            steps[f'{name}, {who}: {step.seconds:.1f} s, '
                  f'{need.total / 1e9:.0f} GB'] = step
    table = pd.DataFrame(steps.values()).add_suffix(' s')
    ax = plot_parts(table.assign(seconds=table.sum(axis=1)), [*steps])
    limits = [NEAR * min(_near(name, 1).values()) for name in CLUSTERS]
    for k, limit in enumerate(limits):
        ax.vlines(limit, 2 * k - 0.4, 2 * k + 1.4, color='black',
                  linestyle='--', label=f'{NEAR - 1:.0%} more than the best')
    legend_below(ax, columns=4)
    describe(ax, f'{"; ".join(steps)}; the dashed lines: '
             f'{", ".join(f"{limit:.1f} s" for limit in limits)}.')
    plt.close(ax.figure)  # it shows itself where it is returned
    return ax.figure


def _case(layers, hidden, **division):
    return {'layers': layers, 'hidden': hidden, **division}


RATES = 1, 0.8, 1.25
CHOICES = [{'cluster': cluster, 'network': network}
           for cluster in CLUSTERS for network in RATES]
CASE = '{cluster}, network = {network}'
CHECKS = {
    'bytes': Check(
        [_case(40, 5120, data=16, zero=zero) for zero in range(4)] + [
            _case(40, 5120, data=16, zero=3, micro_batch=4, recompute='full'),
            _case(40, 5120, data=2, tensor=8, zero=1),
            _case(46, 7168, data=2, tensor=4, pipeline=4, micro_batches=64,
                  micro_batch=2, zero=1),
            _case(46, 7168, pipeline=8, tensor=4, micro_batches=4),
            _case(48, 7168, pipeline=4, data=4, micro_batches=16,
                  recompute='full', zero=2),
            _case(24, 2048, sequence=8192, data=2, context=4, micro_batch=8,
                  zero=1)],
        run_bytes, judge_bytes,
        'the bytes of the fullest GPU, for each stage of ZeRO.',
        case='{layers} layers of {hidden}'),
    'choice': Check(CHOICES, run_choice, judge_choice,
                    'an eighth of the memory is free, and the step is near '
                    'the best.', case=CASE),
    'rival': Check(CHOICES, run_choice, judge_rival,
                   'your rival fits, too, and you know what slows it down.',
                   case=CASE)}
