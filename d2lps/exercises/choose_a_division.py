"""Exercise: choose how to divide a model among GPUs, and defend the choice.

To chapter 20, notebooks/20-what-do-i-choose.ipynb. The planner judges.
"""
import math
from dataclasses import asdict, replace
from functools import cache
from typing import Any, NamedTuple

from d2lps.checks import shown
from d2lps.collectives.machines.rates import CARD
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, scalar)
from d2lps.planning import (A100, H100, LLAMA3_8B, Division, Gpu, Step,
                            Transformer, divisions, plan, step_time)
from d2lps.planning.divide import fits_model
from d2lps.planning.memory import (GRADIENT, STATE, WEIGHT, held,
                                   layer_activations, memory, per_token,
                                   stage_layers, stage_parameters)

FREE = 1 / 8  # of a GPU's memory, for what the planner does not know
NEAR, NEAR_OTHER = 1.12, 1.15  # times the best, at this and other rates
BYTES = 'weights', 'gradients', 'optimizer state', 'activations'
SIDES = 'data', 'tensor', 'pipeline', 'context'


class Cluster(NamedTuple):
    """What is to be trained, and on what. batch: sequences in a step."""
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
    'slow network': Cluster(Transformer(48, 7168, 56), 32, 256, Gpu(
        'A100 40 GB', A100.peak, A100.matmul, 40e9, 1.555e12, 8, A100.nvlink,
        CARD.usable / 8)),
    'long sequences': Cluster(replace(LLAMA3_8B, sequence=65536), 8, 16,
                              H100)}


def _right(model, division):
    """Bytes for each of `BYTES`, by the rules of the exercise."""
    d = division
    parameters = (math.ceil(model.layers / d.pipeline) * model.layer
                  + model.embedding) / d.tensor
    return [*held(parameters, d.data * d.context, d.zero),
            _kept(model, d, min(d.micro_batches, d.pipeline))]


def _kept(model, division, in_flight, layers=None):
    """Bytes of activations on the first stage."""
    d = division
    layers = layers or math.ceil(model.layers / d.pipeline)
    one = d.micro_batch * model.sequence / d.context * model.hidden / d.tensor
    if d.recompute == 'full':
        return 2 * one * layers * in_flight + 34 * one
    return 34 * one * layers * in_flight


def run_bytes(answer: Answer, layers: int, hidden: int,
              **division: Any) -> Notes:
    """Four numbers of bytes."""
    model = Transformer(layers, hidden, hidden // 128)
    with forbidding(_right, _kept, held, layer_activations, memory, per_token,
                    stage_layers, stage_parameters):
        found = answer(model, Division(**division))
    try:
        if isinstance(found, (str, bytes, dict)):
            raise TypeError
        numbers = [float(scalar(one)) for one in found]
        if len(numbers) != len(BYTES) or not all(map(math.isfinite, numbers)):
            raise TypeError
    except (TypeError, ValueError):
        raise Wrong(f'your function returned {shown(found)}. Four numbers of '
                    f'bytes are wanted: {", ".join(BYTES)}.') from None
    return numbers


def judge_bytes(found: Notes, layers: int, hidden: int,
                **division: Any) -> None:
    model, d = Transformer(layers, hidden, hidden // 128), Division(**division)
    for name, mine, right in zip(BYTES, found, _right(model, d)):
        if _equal(mine, right):
            continue
        text = (f'you count {mine / 1e9:.4g} GB for the {name}, and '
                f'{right / 1e9:.4g} is right.')
        mistakes = (_of_activations(model, d) if name == 'activations' else
                    _of_parameters(model, d, BYTES.index(name)))
        fit = [words for words, wrong in mistakes.items()
               if _equal(mine, wrong) and not _equal(wrong, right)]
        if _equal(1e9 * mine, right):
            fit = ['Bytes are wanted, not GB.']
        if len(fit) > 1:
            text += ' More than one mistake gives this number.'
        raise Wrong(' '.join([text, *fit[:4]]))


def _equal(mine, right):
    return math.isclose(mine, right, rel_tol=1e-3)


def _of_parameters(model, d, which):
    """Mistakes in what is held for the parameters, and what they give."""
    whole = math.ceil(model.layers / d.pipeline)

    def count(layers=whole, ends=1, parts=d.tensor):
        return (layers * model.layer + ends * model.embedding) / parts

    shards, each = d.data * d.context, (WEIGHT, GRADIENT, STATE)[which]
    right = stage_parameters(model, d)
    mistakes = {
        'These are the parameters of all layers. A GPU is responsible for '
        'one stage.': count(model.layers),
        'A stage has whole layers: round up.': count(
            model.layers / d.pipeline),
        'Round up: the fullest stage counts.': count(
            model.layers // d.pipeline),
        'The embedding is missing.': count(ends=0),
        'The embedding is divided by tensor parallelism, too.':
            count() + model.embedding * (1 - 1 / d.tensor),
        'Tensor parallelism divides each matrix.': count(parts=1)}
    found = {words: held(wrong, shards, d.zero)[which]
             for words, wrong in mistakes.items()}
    if d.zero + which < 3:
        return found | {f'Does ZeRO-{d.zero} shard this?': each * right / part
                        for part in (shards, d.data, d.gpus) if part > 1}
    found[f'ZeRO-{d.zero} shards this. Over how many GPUs?'] = each * right
    if d.context > 1:
        found['GPUs along context have the same parameters, so ZeRO shards '
              'over them, too.'] = each * right / d.data
    if d.tensor * d.pipeline > 1:
        found['Tensor and pipeline have divided the parameters already. ZeRO '
              'shards over data times context.'] = each * right / d.gpus
    return found


def _of_activations(model, d):
    """Mistakes in the activations, and the bytes that they give."""
    most = min(d.micro_batches, d.pipeline)

    def kept(in_flight=most, layers=None, **changes):
        return _kept(model, d.but(**changes), in_flight, layers)

    layer = kept(1, 1, recompute='none')
    found = {
        'The first stage has several micro-batches in flight: it keeps the '
        'activations of each.': kept(1),
        f'A step has {d.micro_batches} micro-batches: no more can be in '
        'flight.': kept(d.pipeline),
        'Not all micro-batches of a step are in flight at once: at most as '
        'many as the pipeline has stages.': kept(d.micro_batches),
        'A stage has only some of the layers.': kept(layers=model.layers),
        'A stage has whole layers: round up.': kept(
            layers=model.layers / d.pipeline),
        'Round up: the fullest stage counts.': kept(
            layers=model.layers // d.pipeline),
        'A micro-batch can have several sequences.': kept(micro_batch=1),
        'Context parallelism divides the tokens.': kept(context=1),
        'Tensor parallelism divides the activations.': kept(tensor=1),
        'With full recomputation a layer keeps only its input.':
            kept(recompute='none')}
    if d.recompute == 'full':
        found |= {
            'The layer in work keeps all of its activations, too.':
                kept() - layer,
            'Only one layer of one micro-batch is in work at a time.':
                kept() + layer * (most - 1)}
    return found


def run_choice(answer: Answer, cluster: str, network: float = 1) -> Notes:
    """The choice, the rival, and the part in which the rival is slower."""
    with forbidding(plan, divisions, _best, _near):
        found = answer(cluster)
    try:
        mine, rival, part = found
        if not (isinstance(mine, Division) and isinstance(rival, Division)
                and isinstance(part, str)):
            raise TypeError
    except (TypeError, ValueError):
        raise Wrong(f'choose returned {shown(found)}. Your Division, a '
                    "rival's Division and the name of a part are wanted."
                    ) from None
    return {'mine': asdict(mine), 'rival': asdict(rival), 'part': part}


def _asked(cluster, network):
    """The cluster, with a faster or slower network."""
    found = CLUSTERS[cluster]
    return found._replace(gpu=replace(
        found.gpu, network=network * found.gpu.network))


def _step(cluster, division):
    return step_time(cluster.model, division, cluster.gpu)


@cache
def _near(cluster, network):
    """All divisions that fit and are near the best: {division: seconds}."""
    asked = _asked(cluster, network)
    found = {d: _step(asked, d).seconds for d in divisions(*asked)
             if d.interleave == 1
             and memory(asked.model, d).total <= asked.most()}
    near = NEAR if network == 1 else NEAR_OTHER
    return {d: seconds for d, seconds in found.items()
            if seconds <= near * min(found.values())}


def _best(cluster, network):
    return min(_near(cluster, network).values())


def _kind(division):
    return tuple(getattr(division, side) for side in SIDES)


def _look_at(name, asked, d):
    """Raise `Wrong` if a division is not possible here, or does not fit."""
    words = f'{name} = {_words(d)}'
    for what, mine, right in (
            ('GPUs', d.gpus, asked.gpus),
            ('sequences in a step', d.batch, asked.batch)):
        if mine != right:
            raise Wrong(f'{words} has {mine} {what}, and the cluster has '
                        f'{right}. Multiply ' + (
                            f'{", ".join(SIDES)}.' if what == 'GPUs' else
                            'data, micro_batch and micro_batches.'))
    why = fits_model(asked.model, d)
    if d.context > 1 and asked.model.sequence < 4096 * d.context:
        why = (f'a GPU would get {asked.model.sequence // d.context:,} tokens '
               'of a sequence; at least 4,096 are wanted for context '
               'parallelism')
    if d.interleave > 1:
        why = 'a stage has one part of the model here: interleave is 1'
    if why:
        raise Wrong(f'{words} is not possible: {why}.')
    need = memory(asked.model, d)
    if need.total > asked.most():
        gb = [f'{one / 1e9:.1f} GB of {part}'
              for part, one in zip(BYTES, need)]
        if need.activations > need.total / 2:
            hint = ('Which ways divide the activations? Is the micro-batch '
                    'larger than needed?')
        elif d.zero < 3 and d.data * d.context > 1:
            hint = f'Which of these would ZeRO-{d.zero + 1} shard?'
        else:
            hint = 'Which ways divide the parameters?'
        raise Wrong(f'{words} needs {need.total / 1e9:.1f} GB on a GPU: '
                    f'{", ".join(gb)}. An eighth of the memory stays free, so '
                    f'{asked.most() / 1e9:.0f} GB are allowed. {hint}')


def _words(d):
    """What is not left at 1, in the order of `Division`."""
    return ', '.join([f'{name} {value}' for name, value in asdict(d).items()
                      if value not in (1, 'none') or name == 'zero'])


def judge_choice(found: Notes, cluster: str, network: float = 1) -> None:
    asked, mine = _asked(cluster, network), Division(**found['mine'])
    _look_at('your choice', asked, mine)
    step, near = _step(asked, mine), _near(cluster, network)
    best = _best(cluster, network)
    limit = NEAR if network == 1 else NEAR_OTHER
    if step.seconds <= limit * best:
        return
    # Of the divisions that are near the best, the most similar one.
    other = min(near, key=lambda d: (sum(
        abs(math.log2(a / b)) for a, b in zip(_kind(d), _kind(mine))),
        near[d]))
    part = max(Step._fields, key=lambda name: getattr(step, name)
               - getattr(_step(asked, other), name))
    raise Wrong(
        f'a step takes {step.seconds:.1f} s, {step.seconds / best - 1:.0%} '
        f'more than the best one, and {limit - 1:.0%} are allowed. In a '
        f'division that is near the best, {part!r} takes '
        f'{getattr(_step(asked, other), part):.2f} s; in yours it takes '
        f'{getattr(step, part):.2f} s. {_why(part, asked, mine)} '
        f'{_compare(mine, other)}')


def _compare(mine, other):
    """In which direction a better division is."""
    more, less = [[side for side in SIDES
                   if sign * getattr(other, side) > sign * getattr(mine, side)]
                  for sign in (1, -1)]
    if not more:
        return ('The same kind of division can be faster: look at '
                'micro_batch, zero and recompute.')
    return (f'The nearest faster kind has more GPUs along '
            f'{" and ".join(more)}, and fewer along {" and ".join(less)}.')


def _why(part, asked, d):
    """What makes a part of a step long."""
    outside = d.tensor > asked.gpu.domain
    return {
        'compute': 'Each layer is computed once more, by recomputation.'
        if d.recompute == 'full' else 'The matrix products are small.',
        'tensor': f'The sums of {d.tensor} tensor-parallel GPUs cross the '
        'network.' if outside else f'{d.tensor} GPUs sum the activations of '
        'each layer.',
        'context': 'Keys and values travel for longer than attention '
        'computes.',
        'bubble': f'With {d.pipeline} stages and {d.micro_batches} '
        'micro-batches, a stage waits at least '
        f'{(d.pipeline - 1) / d.micro_batches:.0%} of its working time; it '
        'also waits for the slowest stage.',
        'sends': 'A message from stage to stage takes longer than the '
        'computing that hides it.',
        'data': f'The weights of {d.micro_batches} micro-batches are gathered '
        'one after the other.' if d.zero == 3 else
        f'{d.data} copies sum their gradients, once in each of '
        f'{d.micro_batches} micro-batches.' if d.zero == 2 else
        f'{d.data} copies sum their gradients.',
        'optimizer': 'ZeRO shards the update.'}[part]


def judge_rival(found: Notes, cluster: str, network: float = 1) -> None:
    asked, part = _asked(cluster, network), found['part']
    mine, rival = (Division(**found[name]) for name in ('mine', 'rival'))
    if part not in Step._fields:
        raise Wrong(f'{part!r} is no part of a step. The parts are '
                    f'{", ".join(Step._fields)}.')
    for name, division in ('your choice', mine), ('your rival', rival):
        _look_at(name, asked, division)
    if _kind(mine) == _kind(rival):
        raise Wrong('your rival is of the same kind as your choice. Choose '
                    f'one with other numbers along {", ".join(SIDES)}.')
    a, b = _step(asked, mine), _step(asked, rival)
    if b.seconds < 1.02 * a.seconds:
        raise Wrong(f'your choice takes {a.seconds:.2f} s and your rival '
                    f'{b.seconds:.2f} s. Choose a rival that is slower by at '
                    'least 2%.')
    more = {name: getattr(b, name) - getattr(a, name) for name in Step._fields}
    if more[part] < 0.75 * max(more.values()):
        raise Wrong(f'in your rival, {part!r} takes {getattr(b, part):.2f} s; '
                    f'in your choice, {getattr(a, part):.2f} s. But the whole '
                    f'step takes {b.seconds - a.seconds:.2f} s more. Which '
                    'part grows most?')


def picture(choose: Answer) -> Picture:
    """The parts of a step, of each choice and of its rival."""
    from d2lps.figures import describe
    from d2lps.pictures.planning_plots import PARTS
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    figure, parts = new_figure(WIDE, 6), set()
    for name, ax in zip(CLUSTERS, figure.subplots(3)):
        asked, found = _asked(name, 1), run_choice(choose, name)
        rows = [Division(**found[key]) for key in ('mine', 'rival')]
        words = []
        for row, division in enumerate(rows):
            left, step = 0.0, _step(asked, division)
            for part, seconds in step._asdict().items():
                ax.barh(row, seconds, 0.4, left, color=PARTS[part])
                left += seconds
                if seconds > 0.01 * step.seconds:
                    parts.add(part)
            gb = memory(asked.model, division).total / 1e9
            words.append(f'{_words(division)}: {left:.1f} s, {gb:.0f} GB')
            ax.text(0, row - 0.4, words[-1], va='center')
        ax.axvline(NEAR * _best(name, 1), color='black', linestyle='--',
                   label=f'{NEAR - 1:.0%} more than the best')
        ax.set(yticks=[0, 1], yticklabels=['you', 'your rival'],
               ylim=(1.3, -0.7), title=name)
        ax.grid(False, axis='y')
        describe(ax, f'{name}: you, {words[0]}; your rival, {words[1]}; the '
                 f'dashed line, {NEAR * _best(name, 1):.1f} s.')
    for part in Step._fields:
        if part in parts:
            ax.barh(0, 0, color=PARTS[part], label=part)
    ax.set_xlabel('s in a step')
    legend_below(ax, columns=3)
    return figure


def _case(layers, hidden, **division):
    return {'layers': layers, 'hidden': hidden, **division}


RATES = 1, 0.8, 1.25
CHOICES = [{'cluster': cluster, 'network': network}
           for cluster in CLUSTERS for network in RATES]
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
            _case(24, 2048, data=2, context=4, micro_batch=8, zero=1)],
        run_bytes, judge_bytes,
        'the bytes of the fullest GPU, for each stage of ZeRO.'),
    'choice': Check(CHOICES, run_choice, judge_choice,
                    'an eighth of the memory is free, and the step is near '
                    'the best.'),
    'rival': Check(CHOICES, run_choice, judge_rival,
                   'your rival fits, too, and you know what slows it down.')}
