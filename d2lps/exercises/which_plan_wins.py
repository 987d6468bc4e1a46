"""Exercise: predict from latency and bandwidth what a plan takes.

To chapter 11, notebooks/11-all-reduce-between-machines.ipynb. What is
predicted is judged; `measuring` then runs plans, and no time is judged.
"""
import math
from collections import Counter
from functools import partial

import numpy as np

from d2lps.collectives import (Schedule, Send, simulate, strategies,
                               topology)
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, number)
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


# What alpha, the overhead, and the bytes are a price of.
TERMS = {'rounds': 'alpha', 'messages': 'the overhead',
         'bytes': 'the number of bytes'}


def costs(plan: Schedule) -> np.ndarray:
    """What each round costs, by the simulator: an array (rounds, 3).

    Its latencies, its overheads, and the arrays through its busiest cable:
    seconds of a round in which only this one thing takes time.
    """
    return np.array([  # the overhead of the first message is a part of alpha
        [_simulated(alone, 0, latency=1), _simulated(alone, 0, overhead=1) - 1,
         _simulated(alone, 1)] for alone in rounds_alone(plan)]).reshape(-1, 3)


def _simulated(plan, nbytes, latency=0.0, overhead=0.0):
    """Seconds with a bandwidth of 1 byte per second."""
    links = topology.ethernet(plan.nodes, 1.0, latency=latency / 2)
    return simulate.time(plan, links, nbytes, overhead=overhead).seconds


def rounds_alone(plan: Schedule) -> list[Schedule]:
    """A plan for each round of a plan, with this round only."""
    n = plan.num_devices
    return [Schedule([tuple(sends)], n, helpers=plan.nodes[n:],
                     weights=plan.weights) for sends in plan.rounds]


def _links(alpha_us, MB_per_s, overhead_us):
    return alpha_us * 1e-6, MB_per_s * 1e6, overhead_us * 1e-6


def _predicted(answer, plan, nbytes, alpha, bandwidth, overhead):
    with forbidding(costs, simulate.time):
        returned = answer(plan, nbytes, alpha, bandwidth, overhead)
    return number(returned, 'A number of seconds is wanted.')


def _counts_of(answer, plan, nbytes, alpha, bandwidth, overhead):
    """How often a prediction counts each of `TERMS`.

    By how much it grows when one price, or the array, is three times as high.
    """
    seconds, more_alpha, more_overhead, more_bytes = (
        _predicted(answer, plan, nbytes * c, alpha * a, bandwidth,
                   overhead * b)
        for a, b, c in ((1, 1, 1), (3, 1, 1), (1, 3, 1), (1, 1, 3)))
    return [(more_alpha - seconds) / (2 * alpha),
            (more_overhead - seconds) / (2 * overhead),
            (more_bytes - seconds) / (2 * max(nbytes, 1)) * bandwidth]


def run(answer: Answer, plan: str, n: int, nbytes: float,
        **links: float) -> Notes:
    """What the prediction counts, of the plan and of each round alone."""
    schedule, prices = PLANS[plan](n), _links(**links)
    alpha, bandwidth, overhead = prices
    return {
        'counts': _counts_of(answer, schedule, nbytes, *prices),
        'alone': [_counts_of(answer, alone, nbytes, *prices)
                  for alone in rounds_alone(schedule)],
        'for_nothing': _predicted(answer, schedule, 0, 0.0, bandwidth, 0.0),
        'faster': _predicted(answer, schedule, nbytes, alpha, 2 * bandwidth,
                             overhead)
        - _predicted(answer, schedule, nbytes, *prices)}


def _near(mine, right):
    return abs(mine - right) <= 1e-3 * abs(right) + 1e-6


def judge(term: str, notes: Notes, plan: str, n: int, nbytes: float,
          **links: float) -> None:
    """Raise `Wrong` unless the prediction counts this term as the model."""
    schedule, column = PLANS[plan](n), [*TERMS].index(term)
    if abs(notes['for_nothing']) > 1e-9:
        raise Wrong('without bytes, with alpha = 0 and overhead = 0, you '
                    f'predict {notes["for_nothing"]:.4g} s. Then nothing '
                    'costs time.')
    mine, right = notes['counts'][column], costs(schedule)[:, column]
    if not _near(mine, right.sum()):
        grows = ('the array grows, your prediction grows as if '
                 f'{mine:.4g} times the array went through a cable'
                 if term == 'bytes' else f'{TERMS[term]} grows by 1 µs, '
                 f'your prediction grows by {mine:.4g} µs')
        raise Wrong(f'when {grows}; {right.sum():.4g} is right for '
                    f'{schedule.name}. '
                    f'{_hint(term, notes, schedule, right, nbytes)}')


def _hint(term, notes, plan, right, nbytes):
    """A wrong unit, or the first round that is wrong alone."""
    column = [*TERMS].index(term)
    mine, total = notes['counts'][column], right.sum()
    if notes['faster'] > 0:
        return 'With twice the bandwidth you predict more time.'
    for factor in 1e-6, 1e-3, 1e3, 1e6:
        if total and _near(mine / factor, total):
            times = (f'{factor:,.0f} times too much' if factor > 1 else
                     f'{1 / factor:,.0f} times too little')
            return (f'That is {times}. Times are in seconds, and the '
                    'bandwidth is in bytes per second.')
    text = ''
    if _near(mine, 0):
        text = f'Does your function use {TERMS[term]} in every case? '
    for k, (counts, count) in enumerate(zip(notes['alone'], right)):
        if not _near(counts[column], count):
            return (f'{text}Round {k + 1} alone is already wrong: your '
                    f'prediction counts {counts[column]:.4g}, and '
                    f'{count:.4g} is right. '
                    + _what_happens(plan, k, term, nbytes,
                                    counts[column] - count))
    return ('Each round alone is right. A plan costs what its rounds cost, '
            'added up.')


def _what_happens(plan, k, term, nbytes, too_many):
    """Words about the cost of a round.

    too_many: by how much the student counts too many of this term.
    """
    sends = plan.rounds[k]
    if term == 'rounds':
        return (f'It has {len(sends)} sends, and all of them travel at the '
                'same time.')
    size = plan.chunk_bytes(1)
    chunks = Counter((send.src, send.dst) for send in sends)
    data, messages = {}, {}  # from a worker to what it sends and receives
    for node in plan.nodes:
        data[node] = [sum(size[send.chunk] for send in sends
                          if send[end] == node) for end in (0, 1)]
        messages[node] = [sum(pair[end] == node for pair in chunks)
                          for end in (0, 1)]
    counted = data if term == 'bytes' else messages
    busiest = max(counted, key=lambda node: max(counted[node]))
    out, into = counted[busiest]
    text = f'The busiest in this round is {_called(busiest)}. It '
    if term == 'bytes':
        return (f'{text}sends {out:.4g} × nbytes = {out * nbytes:,.10g} bytes '
                f'and receives {into:.4g} × nbytes = {into * nbytes:,.10g} '
                'bytes.')
    text += f'sends {out} messages and receives {into}.'
    (src, dst), many = chunks.most_common(1)[0]
    if too_many > 0 and many > 1:
        text += (f' All {many} chunks from {_called(src)} to {_called(dst)} '
                 'are one message.')
    elif _near(too_many, 1):
        text += ' The handling of the first message is in alpha already.'
    other = max(data, key=lambda node: max(data[node]))
    if too_many < 0 and other != busiest:
        text += f' It is not {_called(other)}, which has the most bytes.'
    return text


def _called(node):
    return node if isinstance(node, str) else f'worker {node}'


def line_of(plan: str, n: int, **links: float) -> tuple[float, float]:
    """A plan's seconds for no bytes, and for each byte, by the model."""
    alpha, bandwidth, overhead = _links(**links)
    latencies, overheads, arrays = costs(PLANS[plan](n)).sum(axis=0)
    return latencies * alpha + overheads * overhead, arrays / bandwidth


def crossing(first: str, second: str, n: int, **links: float) -> float:
    """From which size on the second plan is faster; 0.0 and inf, too."""
    start, slope = line_of(first, n, **links)
    start_2, slope_2 = line_of(second, n, **links)
    if abs(slope - slope_2) <= 1e-9 * slope:
        return 0.0 if start_2 < start else math.inf
    if slope_2 > slope:
        return math.inf
    return max(0.0, (start_2 - start) / (slope - slope_2))


def run_crossover(answer: Answer, first: str, second: str, n: int,
                  **links: float) -> Notes:
    def line(plan):
        start, slope = line_of(plan, n, **links)
        return lambda nbytes: start + slope * nbytes

    functions = line(first), line(second)
    with forbidding(crossing, line_of):
        returned = answer(*functions)
    found = number(returned, 'A number of bytes is wanted; float("inf") is '
                    'allowed, too.')
    return found if math.isfinite(found) else repr(found)  # JSON has no inf


def judge_crossover(found: Notes, first: str, second: str, n: int,
                    **links: float) -> None:
    found, right = float(found), crossing(first, second, n, **links)
    if right == math.inf:
        good = found >= 1e15
    else:
        good = abs(found - right) <= (1e-3 * right + 1 if right else 0.5)
    if good:
        return
    (start, slope), (start_2, slope_2) = (
        line_of(plan, n, **links) for plan in (first, second))
    text = (f'you say {found:,.6g} bytes; {right:,.6g} is right. The first '
            f'plan takes {start * 1e3:.4g} ms for no bytes and '
            f'{slope * 1e9:.4g} ms for each MB more, the second plan '
            f'{start_2 * 1e3:.4g} and {slope_2 * 1e9:.4g}. ')
    if 0 <= found < 1e15:
        one, two = start + slope * found, start_2 + slope_2 * found
        text += (f'For {found:,.6g} bytes they take {one * 1e3:.4g} and '
                 f'{two * 1e3:.4g} ms. ')
    if slope and abs(slope - slope_2) <= 1e-9 * slope:
        text += 'Each MB more costs both plans the same. '
    raise Wrong(text + (
        'There is no size from which on the second plan is faster. Never: '
        'return float("inf").' if right == math.inf else
        'The second plan is faster for all sizes above 0.' if right == 0 else
        'Where the two lines cross, both times are equal.'))


LIKE_CHAPTER = Links(180e-6, 11.8e6, 45e-6, 'A network like chapter 11\'s')


def picture(predict: Answer, crossover: Answer,
            measured: Measured | None = None) -> Picture:
    """What two plans take by the student's prediction, and measured."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import legend_below, new_figure
    plans, links, points = (strategies.recursive_doubling(4),
                            strategies.ring(4)), LIKE_CHAPTER, {}
    nbytes = links.alpha * links.bandwidth * 4.0 ** np.arange(-1, 5)
    if measured:
        plans, links, nbytes, seconds = measured
        points = {f'{plan.name}, measured': (nbytes, times * 1e3)
                  for plan, times in zip(plans, seconds)}
    nbytes = np.geomspace(nbytes.min(), nbytes.max(), 60)

    def seconds_of(plan):
        return lambda nbytes: _predicted(predict, plan, nbytes, *links[:3])

    functions = [seconds_of(plan) for plan in plans]
    figure = new_figure(5.4, 4.4 if measured else 4)
    ax = figure.subplots()
    for plan, function, color, line in zip(plans, functions, (BLUE, ORANGE),
                                           '- --'.split()):
        times = np.array([function(float(size)) for size in nbytes])
        if not (np.isfinite(times).all() and (times > 0).all()):
            raise Wrong(f'for {plan.name} your prediction goes from '
                        f'{times[0]:.4g} to {times[-1]:.4g} s: only times '
                        'above 0 can be drawn.')
        ax.loglog(nbytes, times * 1e3, color=color, linestyle=line,
                  label=f'{plan.name}, predicted')
    for (label, (sizes, times)), color, marker in zip(
            points.items(), (BLUE, ORANGE), 'os'):
        ax.plot(sizes, times, marker, color=color, label=label)
    try:
        found = number(crossover(*functions), 'A number of bytes is wanted.')
        if nbytes[0] < found < nbytes[-1]:
            ax.axvline(found, color='gray', linestyle='-.', linewidth=1.5,
                       label=f'your crossover: {found:,.0f} bytes')
    except NotImplementedError:  # the student has no second function yet
        pass
    ax.set(title=f'{links.words}: alpha = {links.alpha * 1e6:.0f} µs,\n'
           f'bandwidth = {links.bandwidth / 1e6:,.1f} MB/s, overhead = '
           f'{links.overhead * 1e6:.0f} µs', xlabel='bytes of the array',
           ylabel='time / ms')
    ax.xaxis.set_major_formatter('{x:,.0f}')
    ax.yaxis.set_major_formatter('{x:g}')
    legend_below(ax, columns=1)
    return figure


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


CHECKS = {
    'rounds': Check(_cases(('ring', 4), ('tree', 5), ('one_shot', 4),
                           ('ring', 1)) + [
                    {**case, 'nbytes': 0} for case in _cases(('ring', 4))],
                    run, partial(judge, 'rounds'),
                    'every round takes one latency.'),
    'bytes': Check(_cases(('halving_doubling', 5), ('uneven', 4),
                          ('tree', 8), ('two_servers', 3),
                          ('two_busy', 6)) + [
                   {**case, 'nbytes': 3} for case in _cases(('ring', 4))],
                   run, partial(judge, 'bytes'),
                   'in each round the busiest cable decides the time of the '
                   'bytes.'),
    'messages': Check(_cases(('one_shot', 4), ('uneven', 4),
                             ('halving_doubling', 4), ('tree', 8),
                             ('two_busy', 6)),
                      run, partial(judge, 'messages'),
                      'each further message of the busiest worker costs an '
                      'overhead.'),
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
                       'faster.')}
