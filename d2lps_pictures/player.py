"""Step through a schedule: who holds whose contributions after each round."""
from functools import partial

import numpy as np
from matplotlib import collections, pyplot as plt

from d2lps.checks import checked, from_zero, whole
from d2lps.collectives import limits
from d2lps_pictures.controls import steps
from d2lps_pictures.plots import AXES
from d2lps_pictures.style import CHUNK_COLORS
from d2lps_pictures.widgets import live_picture


def _small(schedule, number, **_):
    """Refuse what has no such round, or too many boxes to be read."""
    whole('number', number, least=0, most=len(schedule.rounds))
    if len(schedule.nodes) * len(schedule.weights) > 144:
        raise ValueError(f'{schedule!r}: too many nodes x chunks (over 144)')


@checked(_small, schedule=limits.schedule, number=from_zero, ax=AXES)
def plot_holdings(schedule, number=0, ax=None):
    """Who holds what after round `number`: a row per node, a box per chunk.

    A bar in a box is the contribution of one device, in its colour; a red
    number says that it is there more than once, a tick that all are there
    once. A filled arrow is a send of this round that was added to what was
    there, a hollow one replaced it; what they changed has a thick frame.
    """
    wide = 0.72  # a box; the arrows are in the gap
    held = list(schedule.states())[number]
    nodes, chunks, devices = held.shape
    ax = ax or plt.subplots(figsize=(max(6, chunks / 2), 1 + nodes / 2))[1]

    def boxes(x, y, width, **style):
        square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * (width, 0.7)
        ax.add_collection(collections.PolyCollection(
            np.stack([x, y - 0.35], axis=-1)[:, None] + square, **style))

    y, x = np.indices((nodes, chunks)).reshape(2, -1)
    boxes(x, y, wide, facecolor='0.96', edgecolor='0.8')
    y, x, who = np.nonzero(held)
    color = np.resize(CHUNK_COLORS, devices)
    boxes(x + wide * who / devices, y, wide / devices, facecolor=color[who],
          edgecolor='white', linewidth=0.5 * (devices <= 8))
    y, x = np.nonzero((held == 1).all(axis=2))
    ax.scatter(x + wide / 2, y, 110, 'white', zorder=3)
    ax.scatter(x + wide / 2, y, 50, 'green', marker=r'$\checkmark$', zorder=4)
    for y, x, who in np.argwhere(held > 1):
        ax.text(x + wide * (who + 0.5) / devices, y, held[y, x, who], c='r',
                ha='center', va='center', bbox={'fc': 'w', 'pad': 1})
    if number:
        r = schedule.rounds[number - 1]
        boxes(r.chunk, r.dst, wide, facecolor='none', edgecolor='k', lw=1.8)
        rank = np.tril(r.chunk[:, None] == r.chunk, -1).sum(axis=1)
        ax.quiver(r.chunk + wide + 0.28 * (rank + 1) / (rank.max() + 2),
                  r.src, 0 * r.src, r.dst - r.src, scale=1, angles='xy',
                  scale_units='xy', width=0.012, units='inches', headwidth=7,
                  headlength=8, edgecolor='black', linewidth=0.7,
                  facecolor=np.where(r.reduce, 'black', 'white'))
    ax.set(xlim=(-0.1, chunks), ylim=(nodes - 0.5, -0.5), frame_on=False,
           xlabel='chunk', ylabel='device', title=f'{schedule.name}: after '
           f'round {number} of {len(schedule.rounds)}')
    ax.set_xticks(np.arange(chunks) + wide / 2, range(chunks))
    ax.set_yticks(range(nodes), schedule.nodes)
    for label, c in zip(ax.get_yticklabels(), color):
        label.set(color=c, weight='bold')
    return ax


@checked(_small, schedule=limits.schedule, number=from_zero)
def step_player(schedule, number=0):
    """Go through the rounds, forward, back or playing, from `number` on."""
    live_picture(partial(plot_holdings, schedule), {
        'number': steps(len(schedule.rounds), number, 'round')})
