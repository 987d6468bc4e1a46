# %% wrong: one micro-batch in flight
# loses: bytes
#-    in_flight = min(d.micro_batches, d.pipeline)
#+    in_flight = 1


# %% wrong: half a layer
# loses: bytes
#-    layers = -(-model.layers // d.pipeline)
#+    layers = model.layers / d.pipeline


# %% wrong: ZeRO-3 also over a slow network
# loses: choice
#-        mine = Division(tensor=4, pipeline=8, micro_batches=256)
#-        rival = Division(data=4, tensor=4, pipeline=2, micro_batches=64,
#-                         zero=1)
#+        mine = Division(data=32, micro_batch=4, micro_batches=2, zero=3,
#+                        recompute='full')
#+        rival = Division(data=4, tensor=4, pipeline=2, micro_batches=64,
#+                         recompute='full', zero=1)


# %% wrong: a guess of what slows the rival down
# loses: rival
#-        return mine, rival, 'data'
#+        return mine, rival, 'bubble'


# %% wrong: sequences have 2,048 tokens in the visible model
# loses: bytes
#-    tokens = d.micro_batch * model.sequence / d.context
#+    tokens = d.micro_batch * 2048 / d.context


# %% wrong: the planner chooses
# loses: choice, rival
#-    if cluster == 'two machines':
#+    from d2lps.planning import best_divisions
#+    best_divisions(*CLUSTERS[cluster])
#+    if cluster == 'two machines':


# %% right: other choices, in other forms
import math

import numpy as np

from d2lps.planning import Division


def bytes_on_gpu(model, division):
    rows = {}
    first = math.ceil(model.layers / division.pipeline)
    own = (model.layer * first + model.embedding) // division.tensor
    for stage, (name, each) in zip((3, 2, 1), (
            ('weights', 2), ('gradients', 2), ('state', 12))):
        sharded = division.zero >= stage
        rows[name] = each * own / (
            division.data * division.context) ** sharded
    numbers = (division.micro_batch * model.sequence * model.hidden
               / division.context / division.tensor)
    full = division.recompute == 'full'
    rows['kept'] = numbers * (34 * full + (2 if full else 34) * first * min(
        division.pipeline, division.micro_batches))
    return np.array([*rows.values()])


def choose(cluster):
    return {
        'two machines': [
            Division(data=4, tensor=2, pipeline=2, micro_batches=64, zero=1),
            Division(pipeline=16, micro_batches=256), 'bubble'],
        'slow network': [
            Division(2, 8, 2, micro_batch=4, micro_batches=32, zero=1),
            Division(data=32, micro_batch=4, micro_batches=2, zero=3,
                     recompute='full'), 'compute'],
        'long sequences': (
            Division(context=8, micro_batches=16, zero=3),
            Division(pipeline=2, tensor=4, micro_batches=16,
                     recompute='full'), 'compute')}[cluster]
