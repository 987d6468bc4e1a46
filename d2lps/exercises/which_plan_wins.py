"""Exercise: predict from latency and bandwidth what a plan takes.

To chapter 11, notebooks/11-all-reduce-between-machines.ipynb. What is
predicted is judged; `measuring` then runs plans, and no time is judged.
"""
import math

import numpy as np

from d2lps.checks import shown
from d2lps.collectives import Schedule, Send, simulate, strategies
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, scalar)
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


def _plan(plan, n):
    return PLANS[plan](n)


def _counts(plan):
    """What each node does in each round: an array (rounds, 6, nodes).

    The arrays' worth that it sends and gets, the messages that it sends and
    gets, and the chunks.
    """
    size, nodes = plan.chunk_bytes(1), len(plan.nodes)
    counts = np.zeros((len(plan.rounds), 6, nodes))
    for count, sends in zip(counts, plan.rounds):
        src, dst = np.unique([sends.src, sends.dst], axis=1)
        for row, ends, amount in (
                (0, sends.src, size[sends.chunk]),
                (1, sends.dst, size[sends.chunk]), (2, src, 1), (3, dst, 1),
                (4, sends.src, 1), (5, sends.dst, 1)):
            np.add.at(count[row], ends, amount)
    return counts


def _truth(plan):
    """(latencies, overheads, arrays through cables), the model's counts."""
    counts = _counts(plan)
    return (len(counts), (counts[:, 2:4].max(axis=(1, 2)) - 1).sum(),
            counts[:, :2].max(axis=(1, 2)).sum())


def _seconds(plan, nbytes, alpha, bandwidth, overhead):
    """The model."""
    latencies, overheads, arrays = _truth(plan)
    return (latencies * alpha + overheads * overhead
            + arrays * nbytes / bandwidth)


def _links(alpha_us, MB_per_s, overhead_us):
    return alpha_us * 1e-6, MB_per_s * 1e6, overhead_us * 1e-6


def _number(returned, what):
    returned = scalar(returned)
    if isinstance(returned, (bool, np.bool_, str, bytes)):
        raise Wrong(f'your function returned {shown(returned)}. {what}')
    try:
        return float(returned)
    except (TypeError, ValueError):
        raise Wrong(f'your function returned {shown(returned)}. {what}'
                    ) from None


def _asked(answer, plan, *numbers):
    with forbidding(_truth, _counts, _seconds, simulate.time):
        returned = answer(plan, *numbers)
    return _number(returned, 'A number of seconds is wanted.')


def run(answer: Answer, plan: str, n: int, nbytes: float,
        **links: float) -> Notes:
    """Seconds for nothing, for all, and with three times of one thing."""
    alpha, bandwidth, overhead = _links(**links)
    schedule = _plan(plan, n)
    return [_asked(answer, schedule, *numbers) for numbers in (
        (0, 0.0, bandwidth, 0.0), (nbytes, alpha, bandwidth, overhead),
        (nbytes, 3 * alpha, bandwidth, overhead),
        (nbytes, alpha, bandwidth, 3 * overhead),
        (3 * nbytes, alpha, bandwidth, overhead),
        (3 * nbytes, alpha, 2 * bandwidth, overhead),
        (0, alpha, bandwidth, overhead))]


def _near(mine, right):
    return abs(mine - right) <= 1e-3 * abs(right) + 1e-6


def _count_is(mine, right, text, mistakes):
    """Raise `Wrong` unless a count is right; say how it was counted."""
    if _near(mine, right):
        return
    fit = [words for words, wrong in mistakes
           if not _near(wrong, right) and _near(mine, wrong)]
    fit = [*dict.fromkeys(fit)]
    if len(fit) > 4:
        fit = ['Do one round of this plan on paper. What does your function '
               'count in this round?']
    elif len(fit) > 1:
        text += (' More than one mistake gives this number. Is it one of '
                 'these mistakes?')
    raise Wrong(' '.join([text, *fit]))


def _units(right):
    """Mistakes with units of time."""
    return [(f'Are these {words}? Seconds are wanted.', right * times)
            for words, times in (('milliseconds', 1e3), ('microseconds', 1e6))]


def _finite(notes):
    if not np.isfinite(notes).all():
        raise Wrong(f'your function returned {notes}: seconds are finite '
                    'numbers.')


def _not_too_large(notes, plan, nbytes, links):
    """What is too large by far hides all else by its rounding."""
    right = _seconds(plan, nbytes, *links)
    if abs(notes[1]) > 1e9 * max(right, 1e-9):
        raise Wrong(f'for {nbytes:,} bytes you predict {notes[1]:.4g} s, and '
                    f'{right:.4g} is right for {plan.name}. Which term is so '
                    'large, and in which unit is it?')


def _several_rounds(amount):
    """Mistakes that have to do with more rounds than one.

    amount: what each node sends and gets, (rounds, 2, nodes).
    """
    if not len(amount):
        return []
    most = amount.max(axis=(1, 2))
    return [('You count the first round only.', most[0]),
            ('You leave out the first round.', most[1:].sum()),
            ('You count every round like the busiest round.',
             most.max() * len(most)),
            ('Your counts still have the numbers of earlier rounds.',
             amount.cumsum(axis=0).max(axis=(1, 2)).sum())]


def _busiest_in(counts, by, of):
    """Of each round's busiest in one thing: how much of another.

    by, of: where the two begin among the counts, 0 (bytes) or 2 (messages).
    """
    total = 0
    for count in counts:
        node = count[by:by + 2].max(axis=0).argmax()
        total += count[of:of + 2, node].max()
    return total


def judge_rounds(notes: Notes, plan: str, n: int, nbytes: float,
                 **links: float) -> None:
    _finite(notes)
    alpha, _, _ = _links(**links)
    nothing, one, three, *_ = notes
    if abs(nothing) > 1e-9:
        raise Wrong('without bytes, with alpha = 0 and overhead = 0, you '
                    f'predict {nothing:.4g} s. Then nothing costs time.')
    schedule = _plan(plan, n)
    _not_too_large(notes, schedule, nbytes, _links(**links))
    counts, mine = _counts(schedule), (three - one) / (2 * alpha)
    right, *_ = _truth(schedule)
    if right and notes[6] == 0 and _near(mine, right):
        raise Wrong('for arrays of 0 bytes you predict 0 s. But the messages '
                    f'of {right} rounds still have their latency.')
    messages = counts[:, 2].sum()
    _count_is(mine, right,
              f'when alpha grows by 1 µs, your prediction grows by '
              f'{mine:.4g} µs. {schedule.name} has {right} rounds.', [
                  ('Do you use a formula for the ring? Other plans have '
                   'other rounds.',
                   2 * (n - 1)),
                  ('That is the number of sends. The sends of a round travel '
                   'at the same time.', counts[:, 4].sum()),
                  ('That is the number of messages. The messages of a round '
                   'travel at the same time.', messages),
                  ('You count the messages of the busiest worker. They '
                   'travel at the same time. Only their handling is one '
                   'after the other, and this is the overhead.',
                   counts[:, 2:4].max(axis=(1, 2)).sum()),
                  ('Do you count a latency for each round?', 1),
                  ('Alpha is the latency of the whole way, through both '
                   'cables.',
                   2 * right),
                  ('The first round has a latency, too.', right - 1),
                  ('Do you count alpha for each round, and then its '
                   'bytes?', 0),
                  *_units(right)])


def judge_messages(notes: Notes, plan: str, n: int, nbytes: float,
                   **links: float) -> None:
    _finite(notes)
    _, _, overhead = _links(**links)
    schedule = _plan(plan, n)
    _not_too_large(notes, schedule, nbytes, _links(**links))
    counts = _counts(schedule)
    mine = (notes[3] - notes[1]) / (2 * overhead)
    _, right, _ = _truth(schedule)
    text = (f'when the overhead grows by 1 µs, your prediction grows by '
            f'{mine:.4g} µs; {right:.4g} is right for {schedule.name}.')
    out, into, sends, gets = counts.max(axis=2, initial=0)[:, 2:].T
    busiest = np.maximum(out, into)
    if len(busiest):
        number = int(busiest.argmax())
        text += (f' For example, in round {number + 1} '
                 f'{_busy(schedule, counts, number)}.')
    _count_is(mine, right, text, [
        ('You count the first message of a round, too: its handling is in '
         'alpha already.', busiest.sum()),
        ('You count each chunk. All that a worker sends to another one in '
         'a round is one message.', (np.maximum(sends, gets) - 1).sum()),
        ('You count each chunk, and the first message, too. All that a '
         'worker sends to another one in a round is one message.',
         np.maximum(sends, gets).sum()),
        ('You count only sent messages. A received message costs as much.',
         (out - 1).sum()),
        ('You count only received messages. A sent message costs as much.',
         (into - 1).sum()),
        ('You add what the busiest sends and what the busiest gets. Both '
         'are handled at the same time.', (out + into - 1).sum()),
        ('You count all messages of a round. Only the messages of one worker '
         'are handled one after the other.',
         (counts[:, 2].sum(axis=1) - 1).sum()),
        ('You count all messages. Only the messages of one worker are '
         'handled one after the other.', counts[:, 2].sum()),
        ('You take the messages of the worker with the most bytes, or of the '
         'slowest worker. Another worker can have the most messages.',
         _busiest_in(counts, 0, 2) - len(counts)),
        ('You count the workers of a round. Count the messages of the '
         'busiest worker.',
         sum((count[2:4].max(axis=0) > 0).sum() - 1 for count in counts)),
        ('You add what the busiest sends and what the busiest gets. Both '
         'are handled at the same time.',
         (counts[:, 2:4].sum(axis=1).max(axis=1, initial=0) - 1).sum()),
        ('Servers handle messages, too.', _without_servers(schedule, counts, 2)
         - len(counts)),
        *[(words, wrong) for words, wrong in _several_rounds(
            np.maximum(counts[:, 2:4] - 1, 0))
          if not words.startswith('You still')],
        ('Your counts still have the numbers of earlier rounds.',
         (counts[:, 2:4].cumsum(axis=0).max(axis=(1, 2), initial=0)
          - 1).sum()),
        ('Does your prediction use the overhead, however many bytes there '
         'are?',
         0), *_units(right)])


def _without_servers(plan, counts, row):
    """What the busiest worker does, if nobody looks at the servers."""
    return counts[:, row:row + 2, :plan.num_devices].max(
        axis=(1, 2), initial=0).sum()


def _whole_bytes(plan, nbytes):
    """Bytes through the busiest cables, if each chunk is rounded down."""
    size, total = np.floor(plan.chunk_bytes(nbytes)), 0
    for sends in plan.rounds:
        load = np.zeros((2, len(plan.nodes)))
        np.add.at(load[0], sends.src, size[sends.chunk])
        np.add.at(load[1], sends.dst, size[sends.chunk])
        total += load.max()
    return total


def _busy(plan, counts, number):
    """Who has most messages in a round, in words."""
    way, node = np.unravel_index(counts[number, 2:4].argmax(),
                                 counts[number, 2:4].shape)
    many = int(counts[number, 2 + way, node])
    return (f'{_named(plan, node)} {("sends", "gets")[way]} {many} '
            f'message{"s" * (many > 1)}, the most in this round')


def _named(plan, node):
    name = plan.nodes[node]
    return name if isinstance(name, str) else f'worker {name}'


def _arrays(many):
    return f'{many:.4g} array{"s" * (f"{many:.4g}" != "1")}'


def judge_bytes(notes: Notes, plan: str, n: int, nbytes: float,
                **links: float) -> None:
    _finite(notes)
    _, bandwidth, _ = _links(**links)
    schedule = _plan(plan, n)
    counts = _counts(schedule)
    grown = notes[4] - notes[1]
    mine = grown / (2 * nbytes) * bandwidth
    *_, right = _truth(schedule)
    text = (f'for {2 * nbytes:,} bytes more, your prediction grows by '
            f'{grown * 1e3:.4g} ms, as if {_arrays(mine)} went through a '
            f'cable one after the other; {right:.4g} is right for '
            f'{schedule.name}.')
    if math.isclose(mine * 1e6, right, rel_tol=1e-3):
        raise Wrong(f'for {2 * nbytes:,} bytes more, your prediction grows '
                    f'by {grown:.4g} s, a million times too little. The '
                    'bandwidth is in bytes per second: do you use it as MB/s?')
    out, into = counts[:, 0], counts[:, 1]
    load = counts[:, :2].max(axis=(1, 2), initial=0)
    if len(load):
        number = int(load.argmax())
        way, node = np.unravel_index(counts[number, :2].argmax(),
                                     counts[number, :2].shape)
        text += (f' For example, in round {number + 1} '
                 f'{_named(schedule, node)} {("sends", "gets")[way]} '
                 f'{load[number]:.4g} × nbytes, the most in this round.')
    chunks = len(schedule.weights)
    largest = np.array([schedule.chunk_bytes(1)[sends.chunk].max()
                        for sends in schedule.rounds])
    _count_is(mine, right, text, [
        ('You add the bytes of different cables. All cables carry bytes at '
         'the same time.', out.sum()),
        ('You count one message of a round. All messages that a worker sends '
         'in this round share its cable, and so do all messages that it '
         'gets.', largest.sum()),
        ('You add the sent bytes and the received bytes. A cable carries '
         'both directions at the same time.',
         (out + into).max(axis=1, initial=0).sum()),
        ('You count the whole array in each round. A send carries one '
         'chunk.', len(counts)),
        ('You count the whole array for each send, not its chunk.',
         counts[:, 4:].max(axis=(1, 2), initial=0).sum()),
        ('You count only the sent bytes. The received bytes of a worker '
         'share its cable, too.',
         out.max(axis=1, initial=0).sum()),
        ('You count only the received bytes. The sent bytes of a worker '
         'share its cable, too.',
         into.max(axis=1, initial=0).sum()),
        ('You take the busiest worker of all rounds together. But a round '
         'ends when the busiest worker of this round is done, and this can '
         'be another worker.', max(out.sum(axis=0).max(initial=0),
                                into.sum(axis=0).max(initial=0))),
        ('You give all chunks the same size. `plan.chunk_bytes` returns '
         'their sizes.',
         counts[:, 4:].max(axis=(1, 2), initial=0).sum() / chunks),
        ('Is it a formula for the ring?', 2 * (n - 1) / n),
        ('You take the mean of all workers. The busiest worker decides when '
         'a round ends.', out.mean(axis=1).sum()),
        ('Seconds are bytes divided by the bandwidth, bytes per second.',
         right * bandwidth ** 2),
        ('You take the bytes of the worker with the most messages. Another '
         'worker can have the most bytes.', _busiest_in(counts, 2, 0)),
        ('Servers have cables, too.', _without_servers(schedule, counts, 0)),
        ('Do you round the bytes of a chunk? They need not be whole.',
         (_whole_bytes(schedule, 3 * nbytes) - _whole_bytes(schedule, nbytes))
         / (2 * nbytes)),
        *_several_rounds(counts[:, :2]), *_units(right)])
    fast = (notes[4] - notes[5]) * 2 * bandwidth / (3 * nbytes)
    _count_is(fast, right, 'with twice the bandwidth, you predict '
              f'{notes[5] * 1e3:.4g} ms in place of {notes[4] * 1e3:.4g}; '
              f'{(notes[4] - right * 1.5 * nbytes / bandwidth) * 1e3:.4g} is '
              'right, because all bytes need half of the time.', [])


def _line(plan, n, links):
    """A plan's seconds for no bytes, and for each byte, by the model."""
    plan, links = _plan(plan, n), _links(**links)
    start = _seconds(plan, 0, *links)
    return start, _seconds(plan, 1, 0.0, links[1], 0.0)


def run_crossover(answer: Answer, first: str, second: str, n: int,
                  **links: float) -> float | str:
    def line(plan):
        start, slope = _line(plan, n, links)
        return lambda nbytes: start + slope * nbytes

    functions = line(first), line(second)
    with forbidding(_crossing):
        returned = answer(*functions)
    found = _number(returned, 'A number of bytes is wanted; float("inf") is '
                    'allowed, too.')
    return found if math.isfinite(found) else repr(found)  # JSON has no inf


def _crossing(first, second, n, links):
    """From which size on the second plan is faster; 0.0 and inf, too."""
    (start, slope), (start_2, slope_2) = (_line(plan, n, links)
                                          for plan in (first, second))
    if abs(slope - slope_2) <= 1e-9 * slope:
        return 0.0 if start_2 < start else math.inf
    if slope_2 > slope:
        return math.inf
    return max(0.0, (start_2 - start) / (slope - slope_2))


def judge_crossover(found: Notes, first: str, second: str, n: int,
                    **links: float) -> None:
    found, right = float(found), _crossing(first, second, n, links)
    lines = [_line(plan, n, links) for plan in (first, second)]
    if right == math.inf:
        good = found >= 1e15
    else:
        good = abs(found - right) <= (1e-3 * right + 1 if right else 0.5)
    if good:
        return
    (start, slope), (start_2, slope_2) = lines
    both = (f'The first takes {start * 1e3:.4g} ms for no bytes and '
            f'{slope * 1e9:.4g} ms for each MB more, the second '
            f'{start_2 * 1e3:.4g} and {slope_2 * 1e9:.4g}.')
    if right == math.inf:
        raise Wrong(f'you say {found:,.6g} bytes. {both} There is no size '
                    'from which on the second plan is faster for all larger '
                    'arrays. Never: return float("inf").')
    if right == 0:
        remark = ''
        if abs(slope - slope_2) <= 1e-9 * slope:
            remark = (' Their milliseconds per MB are equal, apart from '
                      'rounding. What does your function return for such '
                      'lines?')
        raise Wrong(f'you say {found:,.6g} bytes. {both} So the second plan '
                    f'is faster for all sizes, from 0 on.{remark}')
    raise Wrong(f'you say {found:,.6g} bytes; {right:,.6g} is right. {both} '
                + _there(found, lines))


def _there(found, lines):
    if not 0 <= found < 1e15:
        return ('The lines cross, because a byte takes less time with the '
                'second plan.')
    one, two = (start + slope * found for start, slope in lines)
    return (f'So for {found:,.6g} bytes they take {one * 1e3:.4g} and '
            f'{two * 1e3:.4g} ms. Where the lines cross, both times are '
            'equal.')


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
        return lambda nbytes: _asked(predict, plan, nbytes, *links[:3])

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
        found = _number(crossover(*functions), 'A number of bytes is wanted.')
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
                           ('ring', 1)),
                    run, judge_rounds,
                    'every round takes one latency.'),
    'bytes': Check(_cases(('halving_doubling', 5), ('uneven', 4),
                          ('tree', 8), ('two_servers', 3),
                          ('two_busy', 6)) + [
                   {**case, 'nbytes': 3} for case in _cases(('ring', 4))],
                   run, judge_bytes,
                   'in each round the busiest cable decides the time of the '
                   'bytes.'),
    'messages': Check(_cases(('one_shot', 4), ('uneven', 4),
                             ('halving_doubling', 4), ('tree', 8),
                             ('two_busy', 6)),
                      run, judge_messages,
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
