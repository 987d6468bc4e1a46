"""Exercise: predict from latency and bandwidth what a plan takes.

To chapter 11, notebooks/11-all-reduce-between-machines.ipynb. What is
predicted is judged; `measuring` then runs plans, and no time is judged.
"""
import math
from functools import cache, partial
from typing import TypedDict

import numpy as np

from d2lps.collectives import (Schedule, Send, simulate, strategies,
                               topology)
from d2lps.exercises.charts import result_or_none
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      number, returned, without)
from d2lps.exercises.measuring import Links, Measured

PLANS = {name: getattr(strategies, name) for name in (
    'ring', 'bidirectional_ring', 'tree', 'double_tree', 'running_sum',
    'recursive_doubling', 'halving_doubling', 'sharded', 'gather_broadcast')}
PLANS |= {
    'two_rings': lambda n: strategies.two_rings(),
    'two_servers': lambda n: strategies.parameter_server(n, 2),
    'machines_of_two': lambda n: strategies.hierarchical(n // 2, 2),
    'one_shot': lambda n: Schedule(
        [[Send(i, j, 0, True) for i in range(n) for j in range(n)
          if i != j]], n, name=f'one_shot({n})'),
    'uneven': lambda n: Schedule(
        [[Send(0, 1, 0, True), Send(1, 2, 1, True), Send(3, 2, 1, True)],
         [Send(2, 0, 1, False), Send(2, 3, 1, False)],
         [Send(1, 0, 0, False), Send(1, 0, 1, False),
          Send(3, 0, 1, False)]], n,
        weights=[1, 3], name='uneven'),
    'two_busy': lambda n: Schedule(  # most messages: 0, most bytes: 5
        [[Send(0, 1, 0, True), Send(0, 2, 0, True), Send(0, 3, 0, True),
          Send(5, 4, 1, True)]], n, weights=[1, 100], name='two_busy'),
    'whole': lambda n: Schedule(
        [[Send(0, 1, chunk, True) for chunk in range(3)]], n,
        weights=[4000, 2, 1], name='whole'),
    'nearly_whole': lambda n: Schedule(
        [[Send(0, 1, 0, True)], [Send(0, 1, 2, True)]], n,
        weights=[4000, 2, 1], name='nearly_whole')}


# The price of a round, of a message and of the bytes.
TERMS = {'rounds': 'alpha', 'messages': 'the overhead',
         'bytes': 'nbytes / bandwidth'}


@cache
def costs(plan: str, n: int) -> np.ndarray:
    """The costs of each round, by the simulator: an array (rounds, 3).

    Its latencies, its overheads, and the arrays through its busiest cable:
    seconds of a round in which only this one thing takes time.
    """
    return np.array([  # the overhead of the first message is a part of alpha
        [_simulated(alone, 0, latency=1), _simulated(alone, 0, overhead=1) - 1,
         _simulated(alone, 1)] for alone in rounds_alone(PLANS[plan](n))
    ]).reshape(-1, 3)


def _simulated(plan, nbytes, latency=0.0, overhead=0.0):
    """Seconds with a bandwidth of 1 byte per second."""
    links = topology.ethernet(plan.nodes, 1.0, latency=latency / 2)
    return simulate.timing(plan, links, nbytes, overhead=overhead).seconds


def rounds_alone(plan: Schedule) -> list[Schedule]:
    """A plan for each round of a plan, with this round only."""
    n = plan.num_devices
    return [Schedule([tuple(sends)], n, helpers=plan.nodes[n:],
                     weights=plan.weights) for sends in plan.rounds]


def _links(alpha_us, MB_per_s, overhead_us):
    return alpha_us * 1e-6, MB_per_s * 1e6, overhead_us * 1e-6


def _predicted(answer, plan, nbytes, alpha, bandwidth, overhead):
    return number(returned(answer, plan, nbytes, alpha, bandwidth, overhead),
                  'a number of seconds is right')


def _counts_of(answer, plan, nbytes, alpha, bandwidth, overhead):
    """The number of times that a prediction counts each of `TERMS`.

    By how much it grows when one price, or the array, is three times as high.
    """
    seconds, more_alpha, more_overhead, more_bytes = (
        _predicted(answer, plan, nbytes * c, alpha * a, bandwidth,
                   overhead * b)
        for a, b, c in ((1, 1, 1), (3, 1, 1), (1, 3, 1), (1, 1, 3)))
    return [(more_alpha - seconds) / (2 * alpha),
            (more_overhead - seconds) / (2 * overhead),
            (more_bytes - seconds) / (2 * max(nbytes, 1)) * bandwidth]


class Counts(TypedDict):
    """Counts of `TERMS`, of the plan and of each round alone.

    for_nothing: seconds that are predicted if nothing takes time.
    """
    counts: list[float]
    alone: list[list[float]]
    for_nothing: float


def run(answer: Answer, plan: str, n: int, nbytes: float,
        **links: float) -> Counts:
    """Counts of the prediction, for the plan and for each round alone."""
    without(answer, simulate.timing)
    schedule, prices = PLANS[plan](n), _links(**links)
    return {
        'counts': _counts_of(answer, schedule, nbytes, *prices),
        'alone': [_counts_of(answer, alone, nbytes, *prices)
                  for alone in rounds_alone(schedule)],
        'for_nothing': _predicted(answer, schedule, 0, 0.0, prices[1], 0.0)}


def _near(mine, right):
    return abs(mine - right) <= 1e-3 * abs(right) + 1e-6


def judge(term: str, notes: Counts, plan: str, n: int, nbytes: float,
          **links: float) -> None:
    """Raise `Wrong` unless the prediction counts this term as the model."""
    schedule, column = PLANS[plan](n), [*TERMS].index(term)
    if abs(notes['for_nothing']) > 1e-9:
        raise Wrong('without bytes, and with alpha = overhead = 0, you '
                    f'predict {notes["for_nothing"]:.4g} s; 0 is right.')
    mine, right = notes['counts'][column], costs(plan, n)[:, column]
    if not _near(mine, right.sum()):
        raise Differs(
            f'you count {TERMS[term]} {mine:.4g} times; {right.sum():.4g} '
            'times is right', mine, float(right.sum()), values={},
            place=_place(term, notes['alone'], schedule, right, nbytes),
            unit='seconds')


def _place(term, alone, plan, right, nbytes):
    """The first round that is wrong, and what its busiest worker does."""
    column = [*TERMS].index(term)
    for k, (counts, count) in enumerate(zip(alone, right)):
        if not _near(counts[column], count):
            return (f'In round {k + 1} alone you count {counts[column]:.4g}; '
                    f'{count:.4g} is right' + _busiest(
                        plan, k, term, nbytes) + '.')
    return 'Each round alone is right.' * bool(plan.rounds)


def _busiest(plan, k, term, nbytes):
    """Words about the worker that decides the cost of a round."""
    sends, size = plan.rounds[k], plan.chunk_bytes(nbytes)
    if term == 'rounds':
        return f': its {len(sends)} sends travel at the same time'
    loads = {}  # of a worker and a direction: chunks, messages, bytes
    for end, verb in (0, 'sends'), (1, 'receives'):
        for node in plan.nodes:
            mine = [send for send in sends if send[end] == node]
            loads[node, verb] = (
                len(mine), len({(send.src, send.dst) for send in mine}),
                sum(size[send.chunk] for send in mine))
    column = 2 if term == 'bytes' else 1
    node, verb = max(loads, key=lambda place: loads[place][column])
    who = node if isinstance(node, str) else f'worker {node}'
    chunks, messages, nbytes = loads[node, verb]
    if term == 'bytes':
        other = 'receives' if verb == 'sends' else 'sends'
        return (f': {who} {verb} {nbytes:,.10g} bytes, and at the same time '
                f'{other} {loads[node, other][2]:,.10g}')
    return f': {who} {verb} {chunks} chunks in {messages} messages' + (
        ', and the first is in alpha' * (messages > 0))


def line_of(plan: str, n: int, **links: float) -> tuple[float, float]:
    """A plan's seconds for no bytes, and for each byte, by the model."""
    alpha, bandwidth, overhead = _links(**links)
    latencies, overheads, arrays = costs(plan, n).sum(axis=0)
    return latencies * alpha + overheads * overhead, arrays / bandwidth


def crossing(first: str, second: str, n: int, **links: float) -> float:
    """The size above which the second plan is faster; may be 0.0 or inf."""
    start, slope = line_of(first, n, **links)
    start_2, slope_2 = line_of(second, n, **links)
    if abs(slope - slope_2) <= 1e-9 * slope:
        return 0.0 if start_2 < start else math.inf
    if slope_2 > slope:
        return math.inf
    return max(0.0, (start_2 - start) / (slope - slope_2))


def run_crossover(answer: Answer, first: str, second: str, n: int,
                  **links: float) -> float | str:
    def line(plan):
        start, slope = line_of(plan, n, **links)
        return lambda nbytes: start + slope * nbytes

    size = number(returned(answer, line(first), line(second)),
                  'a number of bytes, or float("inf"), is right')
    return size if math.isfinite(size) else repr(size)  # JSON has no inf


def judge_crossover(size: float | str, first: str, second: str, n: int,
                    **links: float) -> None:
    size, right = float(size), crossing(first, second, n, **links)
    if (size >= 1e15 if right == math.inf else
            abs(size - right) <= (1e-3 * right + 1 if right else 0.5)):
        return
    times = [start + slope * size for start, slope in (
        line_of(plan, n, **links) for plan in (first, second))]
    raise Differs(
        f'you return {size:,.6g} bytes; {right:,.6g} is right', size, right,
        place='The second plan is never faster.' if right == math.inf else
        'The second plan is faster for all sizes above 0.' if right == 0 else
        f'At your size the plans take {times[0] * 1e3:.4g} and '
        f'{times[1] * 1e3:.4g} ms.' if 0 <= size < 1e15 else '',
        unit='bytes')


LIKE_CHAPTER = Links(180e-6, 11.8e6, 45e-6, 'A network like chapter 11\'s')


def picture(predict: Answer, crossover: Answer,
            measured: Measured | None = None) -> Picture:
    """Times of two plans, by the student's prediction and measured."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import legend_below, new_figure
    if measured is None:
        links = LIKE_CHAPTER
        nbytes = links.alpha * links.bandwidth * 4.0 ** np.arange(-1, 5)
        measured = Measured((strategies.recursive_doubling(4),
                             strategies.ring(4)), links, nbytes, np.array([]))
    plans, links, nbytes, seconds = measured
    curves = [partial(_predicted, predict, plan, alpha=links.alpha,
                      bandwidth=links.bandwidth, overhead=links.overhead)
              for plan in plans]
    ax = new_figure(5.4, 4.4 if len(seconds) else 4).subplots()
    sizes = np.geomspace(nbytes.min(), nbytes.max(), 60)
    for plan, curve, color, style in zip(plans, curves, (BLUE, ORANGE),
                                         ('-', '--')):
        times = np.array([curve(size) for size in sizes.tolist()])
        if not (np.isfinite(times).all() and (times > 0).all()):
            raise Wrong(f'for {plan.name} your prediction goes from '
                        f'{times[0]:.4g} to {times[-1]:.4g} s: only times '
                        'above 0 can be drawn.')
        ax.loglog(sizes, times * 1e3, color=color, linestyle=style,
                  label=f'{plan.name}, predicted')
    for plan, times, color, marker in zip(plans, seconds, (BLUE, ORANGE),
                                          'os'):
        ax.plot(nbytes, times * 1e3, marker, color=color,
                label=f'{plan.name}, measured')
    size = result_or_none(crossover, *curves)
    if size is not None and sizes[0] < number(size) < sizes[-1]:
        ax.axvline(size, color='gray', linestyle='-.', linewidth=1.5,
                   label=f'your crossover: {size:,.0f} bytes')
    ax.set(title=f'{links.label}: alpha = {links.alpha * 1e6:.0f} µs,\n'
           f'bandwidth = {links.bandwidth / 1e6:,.1f} MB/s, overhead = '
           f'{links.overhead * 1e6:.0f} µs', xlabel='bytes of the array',
           ylabel='time / ms')
    ax.xaxis.set_major_formatter('{x:,.0f}')
    ax.yaxis.set_major_formatter('{x:g}')
    legend_below(ax, columns=1)
    return ax.figure


def _cases(*plans):
    """Cases of plans for some workers, each with other numbers."""
    numbers = [(180, 11.8, 45, 1_000_000), (20, 1000, 3, 400_000),
               (50, 110, 10, 60_000), (5, 12_000, 2, 5_000_000)]
    return [{'plan': plan, 'n': n, 'nbytes': nbytes, 'alpha_us': alpha,
             'MB_per_s': bandwidth, 'overhead_us': overhead}
            for k, (plan, n) in enumerate(plans)
            for alpha, bandwidth, overhead, nbytes in [
                numbers[k % len(numbers)]]]


def _pairs(*pairs):
    return [{'first': first, 'second': second, 'n': n, 'alpha_us': 180,
             'MB_per_s': 11.8, 'overhead_us': 45}
            for first, second, n in pairs]


PLAN = '{plan}({n})'  # the case in a message
CHECKS = {
    'rounds': Check(_cases(('ring', 4), ('tree', 5), ('one_shot', 4),
                           ('ring', 1)) + [
                    {**case, 'nbytes': 0} for case in _cases(('ring', 4))],
                    run, partial(judge, 'rounds'),
                    'every round takes one latency.', case=PLAN),
    'bytes': Check(_cases(('halving_doubling', 5), ('uneven', 4),
                          ('tree', 8), ('two_servers', 3),
                          ('two_busy', 6)) + [
                   {**case, 'nbytes': 3} for case in _cases(('ring', 4))],
                   run, partial(judge, 'bytes'),
                   'in each round the busiest cable decides the time of the '
                   'bytes.', case=PLAN),
    'messages': Check(_cases(('one_shot', 4), ('uneven', 4),
                             ('halving_doubling', 4), ('tree', 8),
                             ('two_busy', 6)),
                      run, partial(judge, 'messages'),
                      'each further message of the busiest worker costs an '
                      'overhead.', case=PLAN),
    'crossover': Check(_pairs(('recursive_doubling', 'ring', 4),
                              ('ring', 'recursive_doubling', 4),
                              ('tree', 'recursive_doubling', 8),
                              ('ring', 'sharded', 12),
                              ('sharded', 'ring', 12), ('ring', 'ring', 5),
                              ('gather_broadcast', 'sharded', 3),
                              ('whole', 'nearly_whole', 2)) + [
                           {**case, 'MB_per_s': 12_000} for case in
                           _pairs(('recursive_doubling', 'ring', 4))],
                       run_crossover, judge_crossover,
                       'from there on, and not before, the second plan is '
                       'faster.', case='{first}({n}) and {second}({n})')}
