"""The rings of a wiring that nobody has seen before.

To chapter 21, notebooks/21-your-own-server.ipynb. The student's function gets
a table of NVLinks, and returns the order of GPUs of each ring. The truth is
`most_rings`.
"""
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from d2lps.collectives import cables as ours
from d2lps.exercises.checking import (SLOWER, Answer, Check, Differs, Picture,
                                      Wrong, in_time, returned, whole_numbers,
                                      without)
from d2lps.explaining import brief
from d2lps.figures import describe
from d2lps.units import several

Table: TypeAlias = Sequence[Sequence[int]]  # NVLinks from GPU i to GPU j
MOST_SECONDS = 2 * SLOWER  # of processor time; the solution needs 0.1


def run(answer: Answer, table: str, cables: Table) -> list[list[int]]:
    without(answer, ours.rings_of, ours.most_rings)
    with in_time(MOST_SECONDS, lambda: 'your function searched for '
                 f'{MOST_SECONDS} s, so it was stopped.'):
        # A generator searches only when its orders are read.
        return whole_numbers(
            returned(answer, np.array(cables)), 2, 'a list of orders is '
            'right, such as [[0, 1, 2], [0, 1, 2]], or [].')


def rings_left(cables: Table, used: Sequence[Sequence[int]] = ()
               ) -> list[list[int]]:
    """All rings that fit on the cables that other rings do not use."""
    left = np.array(cables)
    for order in used:
        for a, b in _hops(order):
            left[[a, b], [b, a]] -= 1
    return [order for order, count in ours.most_rings(left)
            for _ in range(count)]


def _hops(order: Sequence[int]) -> list[tuple[int, int]]:
    """The pairs of neighbours, lower GPU first, the closing one last."""
    return [(min(pair), max(pair))
            for pair in zip(order, [*order[1:], *order[:1]])]


def judge_rings(rings: list[list[int]], table: str, cables: Table) -> None:
    """Each order goes through all GPUs, over cables, and closes."""
    gpus, there = [*range(len(cables))], rings_left(cables)
    if there and not rings:
        raise Wrong(f'you return []; {there[0]} is a ring')
    for order in rings:
        for gpu in [*order, *gpus]:
            times = order.count(gpu)
            if times != (gpu in gpus):
                raise Differs(
                    f'{brief(order)} {"has" if times else "lacks"} GPU {gpu}'
                    f'{" twice" * (times == 2)}; each of GPUs 0 to {gpus[-1]} '
                    'once is right', rings,
                    place='The way back to the first GPU is not written.'
                    if len(order) > 1 and order[0] == order[-1] else '')
        for a, b in zip(order, [*order[1:], *order[:1]]):
            if not cables[a][b]:
                raise Wrong(
                    f'{order} goes from GPU {a} to GPU {b}; no cable joins '
                    'these two. ' + (
                        '[] is right: there is no ring.' if not there else
                        'That is the way back to the first GPU.' * (
                            (a, b) == (order[-1], order[0]))))


def judge_once(rings: list[list[int]], table: str, cables: Table) -> None:
    """No cable is in two rings."""
    judge_rings(rings, table, cables)
    users = defaultdict(list)
    for k, order in enumerate(rings):
        for a, b in _hops(order):
            users[a, b].append(k)
            if len(users[a, b]) > cables[a][b]:
                shared = ' and '.join(str(j + 1) for j in users[a, b])
                same = [j + 1 for j in users[a, b][:-1]
                        if {*_hops(rings[j])} == {*_hops(order)}]
                there, back = ([
                    j + 1 for j in users[a, b] if ends in zip(
                        rings[j], [*rings[j][1:], *rings[j][:1]])]
                    for ends in ((a, b), (b, a)))
                raise Wrong(
                    f'GPUs {a} and {b} are neighbours in rings {shared} of '
                    f'your {len(rings)}; they have '
                    f'{several(cables[a][b], "cable")}.' + (
                        f' Rings {same[0]} and {k + 1} are the same.' if same
                        else f' Ring {there[0]} goes from {a} to {b}, and '
                             f'ring {back[0]} from {b} to {a}.'
                        if there and back else ''))


def judge_most(rings: list[list[int]], table: str, cables: Table) -> None:
    """There are as many rings as can be."""
    judge_once(rings, table, cables)
    most = len(rings_left(cables))
    if len(rings) == most:
        return
    text = f'you return {several(len(rings), "ring")}; {most} are possible.'
    for k in range(1, len(rings) + 1):
        rest = len(rings_left(cables, rings[:k]))
        if k + rest < most:
            raise Wrong(f'{text} Your ring {k} leaves cables for '
                        f'{rest or "no"} more, not for {most - k}.')
    raise Wrong(f'{text} The cables that are left make '
                f'{rings_left(cables, rings)[0]}.')


def picture(answer: Answer) -> Picture:
    """The student's rings, each in a colour, over the cables of a table."""
    from d2lps.pictures.rows import WIDE, new_figure
    figure = new_figure(WIDE, 2.8)
    for ax, case in zip(figure.subplots(1, len(SHOWN)), SHOWN):
        _draw(ax, run(answer, **case), **case)
    return figure


def _draw(ax, rings, table, cables):
    """A line for each cable, beside those that join the same GPUs."""
    from d2lps.pictures.style import CHUNK_COLORS
    n = len(cables)
    angles = np.pi / 2 - 2 * np.pi * (np.arange(n) + 0.5) / n
    places = np.stack([np.cos(angles), np.sin(angles)], 1)

    def lines(hops, **style):
        for a, b in hops:
            way = places[b] - places[a]
            aside = np.array([-way[1], way[0]]) / np.hypot(*way)
            shift = 0.08 * (drawn[a, b] - (max(cables[a][b], 1) - 1) / 2)
            ax.plot(*(places[[a, b]] + shift * aside).T, **style)
            drawn[a, b] += 1

    drawn = Counter()
    lines([(a, b) for a in range(n) for b in range(a, n)
           for _ in range(cables[a][b])], color='gray', linestyle='-',
          linewidth=1, alpha=0.5)
    drawn = Counter()
    for k, order in enumerate(rings):
        hops = _hops([gpu for gpu in order if 0 <= gpu < n])
        lines([(a, b) for a, b in hops if a != b], linewidth=2.5,
              color=CHUNK_COLORS[k % len(CHUNK_COLORS)],
              linestyle=('-', '--', ':')[k % 3])
    for gpu, place in enumerate(1.15 * places):
        ax.text(*place, str(gpu), ha='center', va='center')
    ax.set(title=f'{table}\nyour rings: {len(rings)}', xlim=(-1.3, 1.3),
           ylim=(-1.3, 1.3), aspect='equal')
    ax.axis('off')
    describe(ax, f'{table}; your rings: '
             f'{"; ".join(map(str, rings)) or "none"}.')


def _case(table, *joined, n, times=1):
    """A table as plain lists. joined: (i, j) or (i, j, cables)."""
    cables = np.zeros((n, n), int)
    for i, j, *count in joined:
        cables[[i, j], [j, i]] = count[0] if count else times
    return {'table': table, 'cables': cables.tolist()}


def _part(table, cables, gpus):
    """These GPUs of a larger table, numbered anew."""
    return {'table': table,
            'cables': np.array(cables)[np.ix_(gpus, gpus)].tolist()}


_QUADS = [(i + half, j + half) for half in (0, 4) for j in range(4)
          for i in range(j)]
V100 = _part('DGX-1 with V100', ours.P3_CABLES, [*range(8)])
P100 = _case('DGX-1 with P100', *_QUADS, *((i, i + 4) for i in range(4)), n=8)
FOUR = _case('four, each pair by two', *_QUADS[:6], n=4, times=2)
THREE = _case('three GPUs', (0, 1, 2), (0, 2, 2), (1, 2, 3), n=3)
ANEW = _part('a DGX-1, numbered anew', ours.P3_CABLES,
             [2, 7, 4, 0, 5, 1, 6, 3])
PAIRS = _case('two pairs', (0, 2), (1, 3), n=4, times=12)
ROW = _case('four in a row', (0, 1), (1, 2), (2, 3), n=4, times=2)
HANGING = _part('GPUs 0 to 4 of a DGX-1', ours.P3_CABLES, [*range(5)])
SIX = _part('GPUs 0 to 5 of a DGX-1', ours.P3_CABLES, [*range(6)])
SEVEN = _part('GPUs 1 to 7 of a DGX-1', ours.P3_CABLES, [*range(1, 8)])
ODD = _case('wired by nobody yet', (0, 1), (0, 2, 2), (0, 5, 3), (1, 2),
            (1, 3, 2), (1, 4, 2), (2, 4), (2, 5, 2), (3, 4, 3), (3, 5), n=6)
SHOWN = [V100, FOUR, HANGING]
_WITH = [V100, P100, FOUR, THREE, ANEW, SEVEN, ODD]
CHECKS = {
    'rings': Check(_WITH, run, judge_rings,
                   'each is a ring through all GPUs, over cables.',
                   case='{table}'),
    'once': Check(_WITH, run, judge_once, 'no cable is in two rings.',
                  case='{table}'),
    'most': Check(_WITH, run, judge_most,
                  'there are as many rings as possible.', case='{table}'),
    'none': Check([PAIRS, ROW, SIX, HANGING], run, judge_most,
                  'if there is no ring, you return none.', case='{table}')}
