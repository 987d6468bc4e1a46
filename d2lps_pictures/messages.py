"""When messages went over cables, as simulated or as measured."""
from functools import partial

import numpy as np
from matplotlib import pyplot as plt

from d2lps.checks import a, checked, list_of, one_of, refuse, whole
from d2lps.collectives import strategies
from d2lps.collectives.simulate import Event
from d2lps_pictures.style import CHUNK_COLORS, GRAY, GREEN, RED
from d2lps_pictures.widgets import live_picture
from d2lps_pictures.controls import choose, menu

HUNG = {'ring': strategies.ring, 'tree': strategies.tree,
        'sharded': strategies.sharded,
        'halving and doubling': strategies.halving_doubling}


def _panels(name, value):
    """A dict of lists of events."""
    if not isinstance(value, dict) or not value:
        refuse(name, value, 'a dict such as {"measured": events}')
    events = list_of(a(Event, 'an Event'), 'a list of Event')
    return {title: events(f'{name}[{title!r}]', [*found])
            for title, found in value.items()}


@checked(panels=_panels)
def plot_messages(panels):
    """For each worker a row, with a bar for each message that comes to it.

    panels: {title: a list of `Event`}; the panels share their axes. A bar
    goes from the first byte to the last, its number is the round, and its
    colour the chunk. Times count from the first byte of the panel.
    """
    fig, axes = plt.subplots(
        len(panels), sharex=True, sharey=True, squeeze=False,
        figsize=(8, 0.6 + 1.6 * len(panels)), layout='constrained')
    for ax, (title, events) in zip(axes.flat, panels.items()):
        begin = min(event.start for event in events)
        for event in events:
            width = max(event.end - event.start, 1e-6) * 1e3
            left = (event.start - begin) * 1e3
            color = CHUNK_COLORS[event.send.chunk % len(CHUNK_COLORS)]
            ax.barh(event.send.dst, width, 0.8, left, color=color,
                    edgecolor='white')
            ax.text(left + width / 2, event.send.dst, event.round,
                    ha='center', va='center', color='white', fontsize=8)
        rows = sorted({event.send.dst for event in events})
        ax.set_yticks(rows, [f'to worker {row}' for row in rows])
        ax.set_title(title, loc='left', fontsize=10)
        ax.spines[['top', 'right']].set_visible(False)
    axes[0, 0].invert_yaxis()
    axes[-1, 0].set_xlabel('time / ms (a colour for each chunk; numbers are '
                           'rounds)')
    return axes[:, 0]


def _waits(plan, late, stops):
    """Who waits for whom if a worker stops before a round, from 1.

    {worker: (the one that it waits for, in which round)}; nobody else ends.
    """
    last = {node: len(plan.rounds) for node in range(plan.num_devices)}
    last[late], waits = stops - 1, {}  # the last round that each begins
    for number, sends in enumerate(plan.rounds, 1):
        for src, dst in zip(sends.src.tolist(), sends.dst.tolist()):
            if last[src] < number <= last[dst] and dst not in waits:
                waits[dst], last[dst] = (src, number), number
    return waits


def _draw(plan, late, stops):
    made = HUNG[plan](8)
    found = _waits(made, late, stops)
    fig, ax = plt.subplots(figsize=(5.6, 4.2), layout='constrained')
    angles = np.pi / 2 - 2 * np.pi * np.arange(8) / 8
    at = np.column_stack([np.cos(angles), np.sin(angles)])
    for worker, (other, number) in found.items():
        ax.annotate('', at[other], at[worker], arrowprops={
            'arrowstyle': '-|>', 'color': '0.3', 'shrinkA': 14, 'shrinkB': 14})
        ax.text(*(0.65 * at[worker] + 0.35 * at[other]), number,
                ha='center', va='center', fontsize=9, bbox={
                    'facecolor': 'white', 'edgecolor': 'none', 'pad': 1})
    for worker in range(8):
        color = (RED if worker == late else
                 GRAY if worker in found else GREEN)
        ax.text(*at[worker], worker, ha='center', va='center', bbox={
            'boxstyle': 'circle', 'facecolor': color, 'edgecolor': 'none',
            'alpha': 0.7})
    ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect='equal')
    count = len(made.rounds)
    when = (f'before round {stops} of {count}' if stops <= count else
            f'at {stops}, after its {count} rounds')
    ax.set_title(f'{plan}: worker {late} stops {when}', fontsize=10)
    ax.axis('off')
    fig.supxlabel('arrow: waits for, in which round; orange: has stopped; '
                  'green: is done', fontsize=9)
    return ax


@checked(plan=one_of(*HUNG), late=partial(whole, least=0, most=7),
         stops=whole)
def explore_hang(plan='ring', late=2, stops=3):
    """Stop a worker of eight before a round, and see who waits for whom."""
    live_picture(_draw, dict(
        plan=menu([*HUNG], plan, 'plan'),
        late=choose([*range(8)], late, 'worker'),
        stops=choose([*range(1, 15)], stops, 'at round')))
